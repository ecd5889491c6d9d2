"""From the object that a torch file holds to its tensors by name: keys joined with ".", items of lists by their number.

Of a module that was pickled whole come its parameters and buffers, named as its `state_dict` names them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import FormatError, LimitError, UnsupportedError
from ..source import quote
from . import ndarrays
from .ndarrays import NumpyArray
from .records import Context, Dict, Record, Refused, Set, Storage, Tensor

_DEEPEST = 100
_LONGEST = 1000  # characters of a name
# A container may stand at several positions, and each gives names: but not without bound, as in a dict that holds twice one that
# holds twice one ... So what naming takes is compared with the pickle's own steps; a name costs one for so many characters.
_VISITS_A_STEP = 8
_CHARACTERS = 32

Named = dict[str, Tensor | NumpyArray]
_Child = tuple[str, object, str]  # key, value, and what keeps a tensor there from being read, or ""


class _Namer:
    def __init__(self, context: Context) -> None:
        self.found: Named = {}
        self.refused: dict[str, str] = {}
        self._context = context
        self._keys: list[str] = []
        self._open: set[int] = set()  # the containers on the way to where we are: one within itself is not entered again
        self._arrays: dict[int, NumpyArray | Refused | None] = {}
        self._left = 1000 + _VISITS_A_STEP * context.steps

    def visit(self, value: Any, within: str) -> None:
        """Adds the tensors below `value`. `within` names the object because of which tensors here cannot be read, or is ""."""
        kind = type(value)
        if kind is Record and value.name == ndarrays.NAME:
            self._add(self._array(value), within)
        elif kind in (Tensor, Refused) or (kind is Storage and within):
            self._add(value, within)
        elif kind in (Dict, Set, list, tuple, Record) and id(value) not in self._open:
            if len(self._open) == _DEEPEST:
                raise LimitError(f"{self._context.where}: values are nested more than {_DEEPEST} deep")
            self._open.add(id(value))
            for key, child, reason in self._children(value):
                self._spend(1)
                self._keys.append(key)
                self.visit(child, within or reason)
                self._keys.pop()
            self._open.remove(id(value))

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise LimitError(f"{self._context.where}: the same values are referenced too often: rejected as a decompression bomb")

    def _array(self, record: Record) -> NumpyArray | Refused | None:
        if id(record) not in self._arrays:
            self._arrays[id(record)] = ndarrays.checked(record, self._context)
        return self._arrays[id(record)]

    def _add(self, value: Tensor | Refused | Storage | NumpyArray | None, within: str) -> None:
        if value is None:  # an array of text
            return
        where = self._context.where
        if sum(map(len, self._keys)) + len(self._keys) > _LONGEST:
            raise LimitError(f"{where}: a tensor's name is longer than {_LONGEST} characters: {quote('.'.join(self._keys[:9]))}")
        name = ".".join(self._keys) or "tensor"
        self._spend(len(name) // _CHARACTERS)
        if name in self.found or name in self.refused:
            raise FormatError(f"{where}: tensor {quote(name)}: there are two of this name")
        if any(0xD800 <= ord(c) < 0xE000 for c in name):
            raise FormatError(f"{where}: tensor {quote(name)}: the name has a lone surrogate, which is no character")
        if within:
            self.refused[name] = f"within {within}"
        elif isinstance(value, Refused):
            self.refused[name] = value.what
        elif isinstance(value, (Tensor, NumpyArray)):
            self.found[name] = value

    def _children(self, value: Any) -> Iterator[_Child]:
        """Children of a container."""
        if isinstance(value, Dict):
            yield from _items(value)
        elif isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                yield str(i), item, ""
        elif isinstance(value, Record):
            state = value.parts[-1] if value.parts else None
            if type(state) is Dict:
                self._spend(len(state))
                parts = {key: item for key, item in state if isinstance(key, str)}
                if all(type(parts.get(name)) is Dict for name in _OF_MODULES):
                    yield from self._module(parts)
                    return
                if value.name.startswith("__torch__."):
                    yield from _items(state)
                    return
            for i, part in enumerate((value.args, *value.parts)):
                yield str(i), part, f"an object of the class {quote(value.name)}"

    def _module(self, parts: dict[str, Any]) -> Iterator[_Child]:
        """Tensors that the state_dict of a module pickled as a whole has: neither its other attributes, nor buffers it leaves
        out."""
        hidden = parts.get("_non_persistent_buffers_set")
        left_out: set[str] = set()
        if type(hidden) is Set:
            self._spend(len(hidden))
            left_out = {name for name in hidden if isinstance(name, str)}
        for part in _OF_MODULES:
            for key, item, reason in _items(parts[part]):
                yield key, None if part == "_buffers" and key in left_out else item, reason


_OF_MODULES = ("_parameters", "_buffers", "_modules")


def _items(pairs: Dict) -> Iterator[_Child]:
    for key, item in pairs:
        if isinstance(key, bytes):  # a str of Python 2
            yield key.decode("utf-8", "backslashreplace"), item, ""
        elif key is None or isinstance(key, (str, int, float)):
            yield str(key), item, ""
        else:
            yield "", item, f"a dict, under a key that is a {type(key).__name__}"


def name_tensors(value: Any, context: Context) -> Named:
    """Every tensor below `value`, in the file's order. Raises UnsupportedError that lists those which cannot be read."""
    namer = _Namer(context)
    namer.visit(value, "")
    if namer.refused:
        some = ", ".join(f"{quote(name)} ({what})" for name, what in list(namer.refused.items())[:5])
        more = f", ... ({len(namer.refused)} in all)" if len(namer.refused) > 5 else ""
        raise UnsupportedError(f"{context.where}: tensors of kinds that are not supported: {some}{more}")
    return namer.found
