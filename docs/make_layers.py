"""Page of every layer and function with its formula and shapes, from the docstrings: conf.py writes it when the site is built."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from types import ModuleType
from typing import Any

import fastlayers as fl

HEAD = """# Layers and functions

Every layer has torch's name, arguments and defaults where torch has the
layer; `Tensors` says what `load_state_dict` takes, and what `load_keras` takes where Keras has the like. Results are float32
unless said; every layer and function takes the symbolic values of `fl.graph` as well as arrays: so `fl.compile` records them.
"""

# What is drawn below the heading of a family; docs/make_pictures.py and docs/make_pictures_tree.py make them.
PICTURES = {
    "attention": ("attention.svg", "Which tokens three heads of MiniLM look at: rows are queries, columns keys"),
    "hierarchical": ("hierarchical.svg", "Probabilities of letters go down a Huffman tree; each node decides left or right"),
}


def anchor(title: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def body(text: str) -> str:
    """A docstring as Markdown: sections in bold, arguments as a list, examples as code."""
    lines: list[str] = []
    code = False
    section = ""
    for line in inspect.cleandoc(text).split("\n"):
        if line.startswith(">>> ") and not code:
            lines += ["", "```python"]
            code = True
        elif code and not line.strip():
            lines += ["```", ""]
            code = False
            continue
        if code:
            lines.append(line)
        elif found := re.match(r"^(Args|Returns|Raises|Attributes|Note):$", line):
            section = found[1]
            lines += ["", f"**{section}**", ""]
        elif section and (found := re.match(r"^ {4}(\*{0,2}\w+): (.*)$", line)) and section != "Returns":
            lines.append(f"- `{found[1]}`: {found[2]}")
        elif line.startswith("    "):
            lines.append(("  " if section not in ("", "Returns") else "") + line.strip())
        else:
            if line.strip():
                section = ""
            lines.append(line)
    if code:
        lines.append("```")
    return re.sub(r"`(\w+)`(?!`)", r"`\1`", re.sub(r"\n{3,}", "\n\n", "\n".join(lines))).strip()


def signature(value: Any, name: str) -> str:
    """`name(arguments)` with defaults, without types."""
    found = inspect.signature(value.__init__ if inspect.isclass(value) else value)
    parameters = [p.replace(annotation=p.empty) for n, p in found.parameters.items() if n != "self"]
    return name + str(inspect.Signature(parameters))


def own_call(layer: type) -> Any:
    """What a layer, or a family of layers that it is of, says of its call; None where that is what all layers say."""
    for kind in layer.__mro__:
        if kind is fl.Layer:
            break
        found = kind.__dict__.get("__call__") or kind.__dict__.get("forward")
        if found is not None and found.__doc__:
            return found
    return None


def members(module: ModuleType, public: list[str]) -> list[str]:
    """The public names that a module defines, in the order of its source."""
    own = getattr(module, "__all__", ())
    return [n for n in vars(module) if n in own and n in public]


def families(package: ModuleType) -> list[ModuleType]:
    """Modules of a package that define its public names."""
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    if package is not fl.functional:  # whose files are all private
        names = [name for name in names if not name.startswith("_")]
    return [importlib.import_module(f"{package.__name__}.{name}") for name in sorted(names)]


def page() -> str:
    """The whole page."""
    contents: list[str] = []
    parts: list[str] = []
    for title, package, prefix in (("Layers", fl.layers, "fl."), ("Functions", fl.functional, "fl.functional.")):
        contents += ["", f"**{title}**", ""]
        parts.append(f"## {title}")
        for module in families(package):
            names = members(module, package.__all__)
            if not names:
                continue
            first = (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")
            family = module.__name__.rpartition(".")[2].strip("_")
            heading = f"{title}: {family.replace('_', ' ')}"
            contents.append(f"- [{heading}](#{anchor(heading)}): " + ", ".join(f"`{n}`" for n in names))
            parts.append(f"### {heading}\n\n{first}")
            if title == "Layers" and family in PICTURES:
                parts.append(f"![{PICTURES[family][1]}]({PICTURES[family][0]})\n\n{PICTURES[family][1]}.")
            for name in names:
                value = getattr(module, name)
                text = body(value.__doc__ or "")
                if inspect.isclass(value) and (call := own_call(value)):
                    text += "\n\n**Call** `" + signature(call, "layer") + "`: " + body(call.__doc__ or "")
                parts.append(f"#### {prefix}{signature(value, name)}\n\n{text}")
    return HEAD + "\n".join(contents) + "\n\n" + "\n\n".join(parts) + "\n"
