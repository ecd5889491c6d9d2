"""What is public: names at the top, docstrings whose arguments are those of the signature, examples that run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import fastlayers as fl
from fastlayers.model.custom import forget
from tests.each import each

PACKAGES = (fl.functional, fl.layers, fl.graph)
ROOT = Path(fl.__file__).parent
# Every file with an example.
MODULES = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
FUNCTIONS = {
    **{f"functional.{name}": getattr(fl.functional, name) for name in fl.functional.__all__},
    **{f"graph.{name}": getattr(fl.graph, name) for name in ("Input", "trace", "execute")},
}
LAYERS = {name: getattr(fl.layers, name) for name in fl.layers.__all__ if issubclass(getattr(fl.layers, name), fl.Layer)}
METHODS = {
    f"{name}.{method}": getattr(layer, method)
    for name, layer in LAYERS.items()
    for method in ("__call__", "load_state_dict", "state_dict", "tensor_shapes")
}


def documented(text: str | None) -> list[str]:
    """Names under "Args:" of a docstring."""
    section = re.search(r"^Args:\n((?: {4,}.*\n?|\n)+)", inspect.cleandoc(text or ""), flags=re.MULTILINE)
    return re.findall(r"^ {4}(\*?\w+):", section[1], flags=re.MULTILINE) if section else []


def arguments(function: Any, *without: str) -> list[str]:
    star = {inspect.Parameter.VAR_POSITIONAL: "*"}
    found = inspect.signature(function).parameters.values()
    return [star.get(p.kind, "") + p.name for p in found if p.name not in ("self", *without) and p.kind is not p.VAR_KEYWORD]


def test_everything_public_is_at_the_top() -> None:
    assert len(set(fl.__all__)) == len(fl.__all__)
    for name in (*fl.layers.__all__, "functional", "graph", "kernels", "load_weights", "Error", "set_num_threads"):
        assert name in fl.__all__
    assert all(hasattr(fl, name) for name in fl.__all__)
    errors = {name for name, value in vars(fl.errors).items() if inspect.isclass(value) and issubclass(value, Exception)}
    assert errors <= set(fl.__all__)


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: module.__name__)
def test_packages_export_what_they_say(module: Any) -> None:
    assert all(hasattr(module, name) for name in module.__all__)
    assert sorted(set(module.__all__)) == sorted(module.__all__)


@each("name", FUNCTIONS)
def test_docstrings_of_functions_are_complete(name: str) -> None:
    function = FUNCTIONS[name]
    text = inspect.cleandoc(function.__doc__)
    if twin := re.search(r"^See `(\w+)` for the arguments", text, flags=re.MULTILINE):
        theirs = arguments(FUNCTIONS[f"functional.{twin[1]}"])
        assert arguments(function) == [argument for argument in theirs if argument in arguments(function)]
        parts = (f"{twin[0]}", ">>> ")
    else:
        assert documented(text) == arguments(function)
        parts = ("Args:", "Returns:", "Raises:", ">>> ")
    order = [text.find(part) for part in parts]
    assert -1 not in order and order == sorted(order), "sentence, Args, Returns, Raises, example"
    first = text.split("\n")[0]
    assert first.endswith((".", ":", "``.")) and first[0].isupper()


@each("name", LAYERS)
def test_docstrings_of_layers_fit_the_constructor(name: str) -> None:
    layer = LAYERS[name]
    names = documented(layer.__doc__)
    if names:
        assert names == arguments(layer.__init__, "inplace")  # the class says of it that it changes nothing
    else:
        assert layer is fl.Layer or len(arguments(layer.__init__, "inplace")) <= 2 or "see `" in layer.__doc__


@each("name", METHODS)
def test_methods_have_docstrings(name: str) -> None:
    names = documented(METHODS[name].__doc__)
    assert METHODS[name].__doc__
    assert not names or names == arguments(METHODS[name])


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")), optionflags=doctest.ELLIPSIS)
    forget("Doubled", "com.example")  # of `fastlayers.operator`
    assert result.failed == 0 and "doctest: +SKIP" not in Path(importlib.import_module(name).__file__ or "").read_text("utf-8")


def test_examples_are_found() -> None:
    """Names that shadow modules, and decorated functions, must not hide examples."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    module = importlib.import_module("fastlayers.functional._activation")
    found = {test.name.rpartition(".")[2] for test in finder.find(module) if test.examples}
    assert {"relu", "gelu", "hardsigmoid"} <= found


@pytest.mark.parametrize("name", ["activation", "linear", "softmax"])
def test_functions_shadow_the_modules_of_their_name(name: str) -> None:
    assert name == "activation" or callable(getattr(fl.functional, name))
