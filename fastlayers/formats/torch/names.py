"""From the object that a torch file holds to its tensors by name: keys joined with ".", items of lists by their number.

Of a module that was pickled whole come its parameters and buffers, named as its `state_dict` names them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import FormatError, LimitError, UnsupportedError
from .._source import quote
from . import ndarrays
from .ndarrays import NumpyArray
from .records import Context, Dict, Record, Refused, Set, Storage, Tensor

_DEEPEST = 100
_LONGEST = 1000  # characters of a name
# A container may stand in several places, and each gives names: but not without bound, as in a dict that holds twice one that
# holds twice one ...
_VISITS_A_STEP = 8

Named = dict[str, Tensor | NumpyArray]


class _Namer:
    def __init__(self, context: Context) -> None:
        self.found: Named = {}
        self.refused: dict[str, str] = {}
        self._context = context
        self._path: set[int] = set()
        self._left = 1000 + _VISITS_A_STEP * context.steps

    def visit(self, name: str, value: Any, within: str) -> None:
        """Adds what is below `value`. `within` is what makes a tensor here one that cannot be read, or ""."""
        self._left -= 1
        if self._left < 0:
            raise LimitError(f"{self._context.where}: the same values stand in too many places: taken for a bomb")
        array = ndarrays.checked(value, self._context) if type(value) is Record else None
        if type(value) in (Tensor, Refused) or array is not None or (within and type(value) is Storage):
            self._add(name, array or value, within)
        elif type(value) in (Dict, Set, list, tuple, Record) and id(value) not in self._path:
            if len(self._path) == _DEEPEST:
                raise LimitError(f"{self._context.where}: values are nested more than {_DEEPEST} deep")
            self._path.add(id(value))
            for key, child, reason in _children(value):
                self.visit(self._joined(name, key), child, within or reason)
            self._path.remove(id(value))

    def _joined(self, name: str, key: str) -> str:
        if len(name) + len(key) >= _LONGEST:
            raise LimitError(f"{self._context.where}: the names below {quote(name)} are longer than {_LONGEST} characters")
        return f"{name}.{key}" if name else key

    def _add(self, name: str, value: Any, within: str) -> None:
        where = f"{self._context.where}: tensor {quote(name)}"
        if name in self.found or name in self.refused:
            raise FormatError(f"{where}: there are two of this name")
        if not name.isprintable() and any(0xD800 <= ord(c) < 0xE000 for c in name):
            raise FormatError(f"{where}: the name has a lone surrogate, which is no character")
        if within:
            self.refused[name] = f"within {within}"
        elif isinstance(value, Refused):
            self.refused[name] = value.what
        elif isinstance(value, (Tensor, NumpyArray)):
            self.found[name] = value


def name_tensors(value: Any, context: Context) -> Named:
    """Every tensor below `value`, in the file's order. Raises UnsupportedError that lists those which cannot be read."""
    namer = _Namer(context)
    alone = type(value) in (Tensor, Refused, NumpyArray) or (type(value) is Record and value.name == "numpy.ndarray")
    namer.visit("tensor" if alone else "", value, "")
    if namer.refused:
        some = ", ".join(f"{quote(name)} ({what})" for name, what in list(namer.refused.items())[:5])
        more = f", ... ({len(namer.refused)} in all)" if len(namer.refused) > 5 else ""
        raise UnsupportedError(f"{context.where}: tensors of kinds that are not supported: {some}{more}")
    return namer.found


def _children(value: Any) -> Iterator[tuple[str, object, str]]:
    """Names and values of what a container holds, and what keeps tensors in it from being read, if anything does."""
    if isinstance(value, Dict):
        yield from _items(value)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield str(i), item, ""
    elif isinstance(value, Record):
        state = value.parts[-1] if value.parts else None
        if type(state) is Dict and _is_module(state):
            yield from _module(state)
        elif (
            type(state) is Dict and value.name.startswith("__torch__.") and not value.name.startswith("__torch__.torch.classes.")
        ):
            yield from _items(state)
        else:
            within = f"an object of the class {quote(value.name)}"
            for i, part in enumerate((value.args, *value.parts)):
                yield str(i), part, within


def _items(pairs: Dict) -> Iterator[tuple[str, object, str]]:
    for key, item in pairs:
        if isinstance(key, bytes):  # a str of Python 2
            yield key.decode("utf-8", "backslashreplace"), item, ""
        elif key is None or isinstance(key, (str, int, float)):
            yield str(key), item, ""
        else:
            yield "", item, f"a dict, under a key that is a {type(key).__name__}"


def _is_module(state: Dict) -> bool:
    """Whether it is the state of a torch.nn.Module."""
    return {"_parameters", "_buffers", "_modules"} <= {key for key, _ in state if isinstance(key, str)}


def _module(state: Dict) -> Iterator[tuple[str, object, str]]:
    parts = {key: item for key, item in state if isinstance(key, str)}
    hidden = parts.get("_non_persistent_buffers_set")
    left_out = {name for name in hidden if isinstance(name, str)} if isinstance(hidden, Set) else set()
    for part in ("_parameters", "_buffers", "_modules"):
        held = parts[part]
        if isinstance(held, Dict):
            yield from (item for item in _items(held) if part != "_buffers" or item[0] not in left_out)
