"""The stream that torch wrote before version 1.6: five pickles, then the raw storages, each after its number of elements.

The pickles are a magic number, the protocol's version, facts of the machine, the object, and the storages' keys in their order.
Values are little-endian whatever machine wrote them.
"""

from __future__ import annotations

import struct
from typing import Any

from ...errors import UnsupportedError
from .._arrays import Array
from ..budget import Budget
from ..source import Source, quote
from . import tensors
from .dtypes import ITEMSIZES
from .machine import Machine
from .names import Named, name_tensors
from .records import Context, Global, Storage

MAGIC = b"l\xfc\x9cF\xf9 j\xa8P\x19"
_PROTOCOL = 1001
_COUNT = struct.Struct("<q")


def sniff(source: Source) -> bool:
    """A pickle whose first value is the magic number; from protocol 4 on there is a frame before it."""
    first = bytes(source.view[:24])
    return first[:1] == b"\x80" and first[2:].removeprefix(b"\x95\x0d" + bytes(7))[:12] == b"\x8a\x0a" + MAGIC


class _Stream:
    """The pickles and what they refer to."""

    def __init__(self, source: Source, context: Context) -> None:
        self._source = source
        self._context = context
        self._storages: dict[str, Storage] = {}
        self._places: dict[str, memoryview] = {}
        self._machine = Machine(source.view, context, self._load_id)

    def read(self) -> Named:
        """The tensors by name, once the positions of their storages are known."""
        context = self._context
        if self._machine.run() != int.from_bytes(MAGIC, "little"):
            context.fail("the magic number is wrong")
        version = self._machine.run()
        if version != _PROTOCOL:
            raise UnsupportedError(f"{context.where}: is of legacy version {quote(version)}, only {_PROTOCOL} is supported")
        self._machine.run()  # facts of the machine, which nothing depends on
        value = self._machine.run()
        self._find_storages(self._machine.run())
        return name_tensors(value, context)

    def content(self, storage: Storage) -> memoryview:
        """The bytes of a whole storage."""
        return self._places[storage.key]

    def _load_id(self, found: Any) -> object:
        context = self._context
        if type(found) is tuple and len(found) == 4 and found[0] == "module" and type(found[1]) is Global:
            return found[1]  # a class of modules; its source, which follows, is not looked at
        if type(found) is not tuple or len(found) != 6 or found[0] != "storage":
            context.fail(f"the pickle refers to {quote(found)}, expected a storage")
        storage = tensors.storage(found[1:], context)
        known = self._storages.setdefault(storage.key, storage)
        if (known.dtype, known.numel) != (storage.dtype, storage.numel):
            context.fail(f"the storage {quote(storage.key)} is described in two ways")
        return storage

    def _find_storages(self, keys: Any) -> None:
        """Finds the position of each storage; they must be those referred to, and end where the file does."""
        context, view, at = self._context, self._source.view, self._machine.at
        if type(keys) is not list or not all(isinstance(key, str) for key in keys) or len(set(keys)) < len(keys):
            context.fail("the list of storages is malformed: expected a list of different strings")
        if self._storages.keys() != set(keys):
            context.fail(f"{len(keys)} storages are listed, {len(self._storages)} are referred to, and they are not the same")
        for key in keys:
            storage = self._storages[key]
            if at + _COUNT.size > len(view):
                context.fail(f"the storage {quote(key)} at {at} is beyond the end: truncated?")
            (count,) = _COUNT.unpack_from(view, at)
            at += _COUNT.size
            if count != storage.numel:
                context.fail(f"the storage {quote(key)} has {count} elements, the pickle says {storage.numel}")
            end = at + count * ITEMSIZES[storage.dtype]
            if end > len(view):
                context.fail(f"the storage {quote(key)} takes {end - at} bytes, {len(view) - at} are there: truncated?")
            self._places[key] = view[at:end]
            at = end
        if at != len(view):
            context.fail(f"{len(view) - at} bytes follow the last storage, expected none")


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every tensor of the file."""
    stream = _Stream(source, Context(source.where, budget))
    return tensors.read_all(stream.read(), stream.content, len(source), budget, source.where)
