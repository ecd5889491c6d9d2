"""The public interface in text: one line a name, with its arguments, so that a change of it is a line of a review.

python -m tests.api            writes tests/api.txt
python -m tests.api --check    says what differs
"""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import fastlayers as fl

__all__ = ["PAGE", "differences", "lines"]

PAGE = Path(__file__).parent / "api.txt"
MODULES = ("functional", "graph", "integrations", "kernels", "ort", "report", "testing", "text")


def lines() -> list[str]:
    """One line a public name: those of the package, and of the modules that it offers."""
    found = list(_of_module("fastlayers", fl))
    for name in MODULES:
        found += _of_module(f"fastlayers.{name}", import_module(f"fastlayers.{name}"))
    return found


def _of_module(where: str, module: ModuleType) -> Iterator[str]:
    for name in sorted(module.__all__):
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield f"{where}.{name}: module"
        elif inspect.isclass(value):
            public = (
                base.__name__
                for base in value.__mro__[1:]
                if base.__name__ in fl.__all__ or base in (tuple, ValueError, TypeError)
            )
            arguments = "" if issubclass(value, Exception) else _arguments(value.__init__)
            yield f"class {where}.{name}{arguments}: {', '.join(public)}".removesuffix(": ")
            yield from _of_class(f"{where}.{name}", value)
        elif callable(value):
            yield f"def {where}.{name}{_arguments(value)}"
        else:
            yield f"{where}.{name}: {type(value).__name__}"


def _of_class(where: str, value: type) -> Iterator[str]:
    """What a class adds to its bases."""
    for name, member in sorted(vars(value).items()):
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if inspect.isfunction(member):
            yield f"    def {where}.{name}{_arguments(member)}"
        elif isinstance(member, property) or inspect.isdatadescriptor(member):
            yield f"    {where}.{name}: attribute"


def _arguments(function: Any) -> str:
    """Names, kinds and defaults: annotations are mypy's business, and some differ between versions of Python."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # of a compiled type
        return ""
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def differences() -> list[str]:
    """Lines that are there and not on the page (+), or the reverse (-)."""
    said = PAGE.read_text(encoding="utf-8").splitlines()
    return [line for line in difflib.unified_diff(said, lines(), lineterm="", n=0) if not line.startswith(("---", "+++", "@@"))]


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit("\n".join(differences()) or None)
    PAGE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
