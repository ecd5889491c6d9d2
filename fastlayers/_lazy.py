"""Imports on first use: names of packages, and entries of registries.

A process that runs one network needs a small part of the package, and importing the rest would take longer than the network's
first answer. `exports` makes the ``__getattr__`` of a package (PEP 562), `Registry` is a dict whose entries are found by name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from .errors import SHORTAGE, refuse_shortage

__all__ = ["Registry", "by_name", "exports", "imported"]

V = TypeVar("V")


def imported(name: str) -> ModuleType:
    """The module of that absolute name. A fork by another thread waits until it is there (see `_forks`)."""
    found = sys.modules.get(name)
    if found is not None and not getattr(found.__spec__, "_initializing", False):
        return found
    try:
        return import_module(name)
    except SHORTAGE as error:
        refuse_shortage(error, f"fastlayers: importing {name}")
        raise


def by_name(homes: Mapping[str, str]) -> dict[str, str]:
    """``{"module": "a b"}`` as ``{"a": "module", "b": "module"}``."""
    return {name: module for module, names in homes.items() for name in names.split()}


def exports(
    package: str, homes: Mapping[str, str], modules: Iterable[str] = (), advice: Callable[[str], str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its name.
        homes: its modules, each with the public names that come from it, separated by spaces.
        modules: other modules that can be asked for as attributes, as those of `homes` can unless they begin with an underscore.
        advice: takes a name that is not here, and returns what the error says besides.
    """
    found = by_name(homes)
    public = {name for name in (*modules, *homes) if "." not in name and not name.startswith("_")}
    namespace = sys.modules[package].__dict__

    def fetch(name: str) -> Any:
        home = found.get(name)
        if home is not None:
            value = getattr(imported(f"{package}.{home}"), name)
        elif name in public:
            value = imported(f"{package}.{name}")
        else:
            hint = "" if advice is None or name.startswith("_") else advice(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        namespace[name] = value  # it is asked for once
        return value

    def names() -> list[str]:
        # Of what a module has besides, nothing is for users: what it imports, and the files that its names come from.
        own = {name for name in namespace if name.startswith("__")}
        return sorted({*own, *namespace.get("__all__", found), *modules})

    return fetch, names


class Registry(dict[str, V]):
    """A dict some of whose entries are looked up when their names are first asked for; asking for all gives all.

    Args:
        names: the names that may be looked up.
        find: the entry of a name, or None if there is none after all.
    """

    def __init__(self, names: Iterable[str], find: Callable[[str], V | None]) -> None:
        super().__init__()
        self._names, self._find = frozenset(names), find

    def __missing__(self, name: str) -> V:
        found = self._find(name) if name in self._names else None
        if found is None:
            raise KeyError(name)
        self[name] = found
        return found

    def found(self, name: str) -> V | None:
        """The entry if it is there already; looks nothing up."""
        return super().get(name)

    def get(self, name: str, default: Any = None) -> V | Any:
        """The entry, or the default if there is none."""
        try:
            return self[name]
        except KeyError:
            return default

    def setdefault(self, name: str, default: Any = None) -> V | Any:
        """The entry, which is the default from now on if there was none."""
        found = self.get(name)
        if found is None:
            found = self[name] = default
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __bool__(self) -> bool:
        return bool(self._names) or super().__len__() > 0

    def _look_up_all(self) -> None:
        """Puts every entry there, in alphabetical order."""
        for name in sorted(self._names):
            self.get(name)

    def __iter__(self) -> Iterator[str]:
        self._look_up_all()
        return super().__iter__()

    def __len__(self) -> int:
        self._look_up_all()
        return super().__len__()

    def keys(self) -> Any:
        """All names."""
        self._look_up_all()
        return super().keys()

    def values(self) -> Any:
        """All entries."""
        self._look_up_all()
        return super().values()

    def items(self) -> Any:
        """All names with their entries."""
        self._look_up_all()
        return super().items()
