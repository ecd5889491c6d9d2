"""The stubs of the compiled modules say what the modules have: names, arguments, attributes."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from fastlayers.kernels import dispatch

AOT = Path(dispatch.__file__).parent / "aot"
STUBS = sorted(AOT.glob("*.pyi"))
stubs = pytest.mark.parametrize("stub", STUBS, ids=lambda path: path.stem)

pytestmark = pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")


def module(stub: Path) -> Any:
    return importlib.import_module(f"fastlayers.kernels.aot.{stub.stem}")


def text_of(stub: Path) -> str:
    """The source of a module, with the files of this folder that it includes."""
    source = stub.with_suffix(".pyx").read_text(encoding="utf-8")
    names = re.findall(r'^include "(\w+\.pxi)"', source, flags=re.MULTILINE)
    return source + "".join((AOT / name).read_text(encoding="utf-8") for name in names)


def arguments(function: ast.FunctionDef) -> list[str]:
    """Names, with "=" after those that have a default, and "*" before those that take any number."""
    given, defaults = function.args.args, len(function.args.defaults)
    plain = [a.arg + "=" * (i >= len(given) - defaults) for i, a in enumerate(given) if a.arg != "self"]
    return plain + ([f"*{function.args.vararg.arg}"] if function.args.vararg else [])


def live(function: Any) -> list[str]:
    found = inspect.signature(function).parameters.values()
    star = {inspect.Parameter.VAR_POSITIONAL: "*"}
    return [star.get(p.kind, "") + p.name + "=" * (p.default is not p.empty) for p in found if p.name != "self"]


def declared(stub: Path) -> tuple[dict[str, ast.FunctionDef], dict[str, ast.ClassDef]]:
    body = ast.parse(stub.read_text(encoding="utf-8")).body
    return {n.name: n for n in body if isinstance(n, ast.FunctionDef)}, {n.name: n for n in body if isinstance(n, ast.ClassDef)}


@stubs
def test_every_public_name_is_there_and_no_other(stub: Path) -> None:
    source = text_of(stub)
    functions, classes = declared(stub)
    assert set(functions) == set(re.findall(r"^def ([a-z]\w*)\(", source, flags=re.MULTILINE))
    assert set(classes) == set(re.findall(r"^cdef class ([A-Z]\w*)", source, flags=re.MULTILINE))


@stubs
def test_functions_have_these_arguments(stub: Path) -> None:
    for name, function in declared(stub)[0].items():
        assert arguments(function) == live(getattr(module(stub), name)), name


@stubs
def test_classes_have_these_methods_and_attributes(stub: Path) -> None:
    source = text_of(stub)
    for name, node in declared(stub)[1].items():
        made = getattr(module(stub), name)
        methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        for method, function in methods.items():
            if method == "__init__":  # which Cython does not tell the arguments of
                text = re.search(
                    rf"^cdef class {name}\b.*?def __c?init__\(self, (.*?)\):", source, flags=re.MULTILINE | re.DOTALL
                )
                assert text and arguments(function) == [a.split()[-1] for a in text[1].split(", ")], name
            elif not method.startswith("__"):
                assert arguments(function) == live(getattr(made, method)), f"{name}.{method}"
            else:
                assert hasattr(made, method)
        assert {m for m in vars(made) if not m.startswith("_") and callable(getattr(made, m))} == {
            m for m in methods if m[0] != "_"
        }
        attributes = {n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
        found = {m for m in vars(made) if not m.startswith("_") and not callable(getattr(made, m))}
        assert attributes == found, name


def test_what_python_imports_has_a_stub() -> None:
    """Modules that are imported by name; the others hold kernels, which the table finds."""
    package = AOT.parents[1]
    imported = {
        name
        for path in package.rglob("*.py")
        for name in re.findall(r"kernels\.aot\.(\w+) import", path.read_text(encoding="utf-8"))
    }
    assert imported <= {stub.stem for stub in STUBS}
