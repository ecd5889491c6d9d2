"""Pages of the layers and functions: an overview by meaning, and a page each, whose text autodoc takes from the docstrings.

A layer and the function of its name, such as `Conv2d` and `conv2d`, share a page. conf.py writes the pages when the site is
built.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import fastlayers as fl

HEAD = """# Layers and functions

Every layer has torch's name, arguments and defaults where torch has the layer, and every function those of
`torch.nn.functional`. On its page, `Tensors` says what `load_state_dict` takes, and what `load_keras` takes where Keras has the
like. Results are float32 unless said; every layer and function takes the symbolic values of `fl.graph` as well as arrays, so
`fl.compile` records them. How to build networks of them: [networks of layers](start/layers.md); their base, for layers of your
own: `fl.Layer`.
"""

# Groups by meaning, each with the modules of `fastlayers.layers` and `fastlayers.functional` whose names belong to it.
GROUPS = {
    "Linear layers and embeddings": "linear embedding feedforward similarity",
    "Convolution": "conv conv_separable conv_transpose",
    "Pooling": "pooling pooling_adaptive pooling_lp pooling_time regions",
    "Normalization and dropout": "normalization dropout",
    "Activation": "activation activation_gated activation_softmax",
    "Attention": "attention attention_multihead attention_additive positional",
    "Transformers": "transformer transformer_layer",
    "Recurrent networks and search": "recurrent recurrent_lstm recurrent_gru recurrent_rnn seq2seq search",
    "Padding and resampling": "padding resampling",
    "Spectra": "spectral spectral_short_time spectral_mel",
    "Hierarchical softmax": "tree",
    "Shapes and arithmetic": "shape movement arithmetic",
    "Networks and blocks": "container blocks base",
}
# What is drawn below the heading of a group; docs/make_pictures.py and docs/make_pictures_tree.py make them.
PICTURES = {
    "Attention": (
        ("attention-1.svg", "attention-2.svg", "attention-3.svg"),
        "Which tokens three heads of MiniLM look at: rows are queries, columns keys",
    ),
    "Hierarchical softmax": (
        ("hierarchical.svg",),
        "Probabilities of letters go down a Huffman tree; each node decides left or right",
    ),
}
HIDDEN = {"Loaded", "Layer"}  # what `load_state_dict` returns, and the base of all: in the Python interface


class Page(NamedTuple):
    """A layer, a function, or both; each by its name, "" if there is none."""

    layer: str
    function: str

    @property
    def name(self) -> str:
        """Name of the page's file and its title."""
        return self.layer or self.function


def own_call(layer: type) -> str:
    """The method that says how a layer, or a family of layers that it is of, is called; "" where all layers say the same."""
    for kind in layer.__mro__:
        if kind is fl.Layer:
            break
        for name in ("__call__", "forward"):
            found = kind.__dict__.get(name)
            if found is not None and found.__doc__:
                return name
    return ""


def members(package: ModuleType) -> Iterator[tuple[str, str]]:
    """The group and the name of each public value of a package, in the order of its sources."""
    homes = {stem: group for group, stems in GROUPS.items() for stem in stems.split()}
    modules = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    for module in modules:
        found = importlib.import_module(f"{package.__name__}.{module}")
        own = getattr(found, "__all__", ())
        for name in vars(found):
            if name in own and name in package.__all__ and name not in HIDDEN:
                yield homes[module.strip("_")], name


def pages() -> dict[str, list[Page]]:
    """The pages of each group."""
    functions = {name.replace("_", ""): (group, name) for group, name in members(fl.functional)}
    found: dict[str, list[Page]] = {group: [] for group in GROUPS}
    for group, name in members(fl.layers):
        found[group].append(Page(name, functions.pop(name.lower(), ("", ""))[1]))
    for group, name in functions.values():
        found[group].append(Page("", name))
    return found


def sentence(value: Any) -> str:
    """The first sentence of a docstring, in Markdown, without what a table cannot hold."""
    first = inspect.cleandoc(value.__doc__ or "").split("\n\n")[0].replace("\n", " ")
    first = re.split(r"(?<=\.) (?=[A-Z])", first)[0].split("; see `")[0].rstrip(".:;")
    return re.sub(r"`+([^`]+)`+", r"`\1`", first).replace("|", "\\|")


def value_of(page: Page) -> Any:
    """The layer of a page, or else its function."""
    return getattr(fl.layers, page.layer) if page.layer else getattr(fl.functional, page.function)


def overview() -> str:
    """The page that lists all by meaning."""
    parts = [HEAD]
    for group, found in pages().items():
        parts.append(f"## {group}\n")
        if group in PICTURES:
            files, caption = PICTURES[group]
            parts.append("\n\n".join(f"![{caption}]({file})" for file in files) + f"\n\n{caption}.\n")
        parts.append("| | |\n| --- | --- |")
        for page in found:
            also = f", [`{page.function}`](layers/{page.name}.md)" if page.layer and page.function else ""
            says = sentence(value_of(page))
            if says.startswith("`functional.") and page.function:  # "... as a layer": the function says what it is
                says = sentence(getattr(fl.functional, page.function))
            parts.append(f"| [`{page.name}`](layers/{page.name}.md){also} | {says} |")
        parts.append("")
    return "\n".join(parts)


def text_of(page: Page, group: str, siblings: list[Page]) -> str:
    """A layer's page."""
    lines = ["---", "orphan: true", "---", "", f"# {page.name}", ""]
    place = re.sub(r"[^\w\- ]", "", group.lower()).replace(" ", "-")
    lines += [f"[Layers and functions](../layers.md) › [{group}](../layers.md#{place})", "", "```{eval-rst}"]
    if page.layer:
        lines.append(f".. autoclass:: fastlayers.{page.layer}")
        if call := own_call(getattr(fl.layers, page.layer)):
            lines += ["", f"   .. automethod:: {call}"]
        lines.append("")
    if page.function:
        lines += [f".. autofunction:: fastlayers.functional.{page.function}", ""]
    lines += ["```", "", "See also: " + ", ".join(f"[{p.name}]({p.name}.md)" for p in siblings if p != page), ""]
    return "\n".join(lines)


def texts() -> dict[str, str]:
    """Every page by the name of its file, without the ending."""
    found = {"layers": overview()}
    for group, listed in pages().items():
        found |= {f"layers/{page.name}": text_of(page, group, listed) for page in listed}
    return found
