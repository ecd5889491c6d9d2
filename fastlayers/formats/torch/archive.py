"""The zip archives that torch writes since version 1.6, and TorchScript's, whose code is not looked at.

In one folder: data.pkl (the object), data/<key> (a storage each) and byteorder; TorchScript has constants.pkl and constants/<key>
next to them. A member's CRC is not compared: torch can be told not to compute it, and a mapped storage would be read for nothing.
"""

from __future__ import annotations

from typing import Any

from ...errors import UnsupportedError
from .._arrays import Array
from .._zip import STORED
from ..budget import Budget, check_ratio, check_text
from ..source import Source, quote
from . import tensors
from .machine import Machine
from .names import Named, name_tensors
from .records import Context, Storage

_PICKLE = "data.pkl"
_CONSTANTS = "constants.pkl"
_LONGEST_ORDER = 16
# torch stores its pickles; one that somebody has compressed may not become a bomb of opcodes.
_FREE_PICKLE = 1 << 19
_PICKLE_RATIO = 20


def sniff(source: Source) -> bool:
    """A zip archive with data.pkl in a folder. Raises FormatError for a zip archive that is broken."""
    return source.starts_with(b"PK\x03\x04") and any(_is_pickle(member.name) for member in source.archive().members)


def _is_pickle(name: str) -> bool:
    return name.count("/") == 1 and name.endswith(f"/{_PICKLE}")


class _Archive:
    """The members of the one folder, by their names in it."""

    def __init__(self, source: Source, budget: Budget) -> None:
        self._source = source
        self._budget = budget
        self._context = Context(source.where, budget)
        members = source.archive().members
        pickles = [member.name for member in members if _is_pickle(member.name)]
        if len(pickles) > 1:
            self._context.fail(f"has two objects: {', '.join(quote(name) for name in pickles[:2])}")
        top = pickles[0].removesuffix(_PICKLE)
        self._members = {m.name.removeprefix(top): m for m in members if m.name.startswith(top)}
        self._storages: dict[str, Storage] = {}
        self._contents: dict[str, memoryview] = {}

    def load_weights(self) -> dict[str, Array]:
        """Every tensor of data.pkl, and TorchScript's constants, as its code calls them."""
        order = b"little"
        if "byteorder" in self._members:
            if self._members["byteorder"].size > _LONGEST_ORDER:
                self._context.fail(f"the byte order is of {self._members['byteorder'].size} bytes, expected little or big")
            order = bytes(self._content("byteorder"))
        if order not in (b"little", b"big"):
            raise UnsupportedError(f"{self._source.where}: the byte order is {quote(order)}, expected little or big")
        named = self._named(_PICKLE, "data/")
        if _CONSTANTS in self._members:
            for name, tensor in self._named(_CONSTANTS, "constants/").items():
                if f"CONSTANTS.c{name}" in named:
                    self._context.fail(f"has two tensors of the name {quote(f'CONSTANTS.c{name}')}")
                named[f"CONSTANTS.c{name}"] = tensor
        self._check_sizes()
        return tensors.read_all(named, self._storage, len(self._source), self._budget, self._source.where, order == b"big")

    def _named(self, pickle: str, folder: str) -> Named:
        """The tensors of one pickle, whose storages are the members of `folder`."""

        def load_id(found: Any) -> object:
            if type(found) is not tuple or len(found) != 5 or found[0] != "storage":
                self._context.fail(f"{pickle} refers to {quote(found)}, expected a storage")
            return self._found(tensors.storage(found[1:], self._context), folder)

        held = self._members[pickle]
        check_text(held.size, held.stored, _FREE_PICKLE, _PICKLE_RATIO, f"{self._source.where}: {pickle}")
        content = self._content(pickle)
        machine = Machine(content, self._context, load_id)
        value = machine.run()
        if machine.at != len(content):
            self._context.fail(f"{len(content) - machine.at} bytes follow the pickle in {pickle}, expected none")
        return name_tensors(value, self._context)

    def _found(self, storage: Storage, folder: str) -> Storage:
        """The storage by its member's name; the member must have as many bytes."""
        storage = storage._replace(key=f"{folder}{storage.key}")
        known = self._storages.setdefault(storage.key, storage)
        if storage is not known:
            if (known.dtype, known.numel) != (storage.dtype, storage.numel) and storage.whole:
                self._context.fail(f"the storage {quote(storage.key)} is described in two ways")
            return storage
        member = self._members.get(storage.key)
        if member is None and storage.whole:
            self._context.fail(f"has no member {quote(storage.key)}, expected a storage of {storage.whole} bytes in it")
        if member is not None and member.size != storage.whole:
            self._context.fail(
                f"member {quote(storage.key)} has {member.size} bytes, {storage.numel} of {storage.dtype} take {storage.whole}"
            )
        return storage

    def _check_sizes(self) -> None:
        """Holds what the storages are to inflate to against `max_bytes` and against the size of the file."""
        members = [self._members[key] for key in self._storages if key in self._members]
        self._check_size(sum(member.size for member in members if member.method != STORED))

    def _check_size(self, inflated: int) -> None:
        where = self._source.where
        self._budget.check(inflated, where)
        check_ratio(inflated, len(self._source), where, "claim to inflate to", "save the file again, uncompressed")

    def _storage(self, storage: Storage) -> memoryview:
        return self._content(storage.key)

    def _content(self, name: str) -> memoryview:
        """The bytes of a member: in place if it is stored, else inflated, once."""
        if name in self._contents:
            return self._contents[name]
        member, where = self._members[name], f"{self._source.where}: member {quote(name)}"
        if member.method == STORED:
            view = self._source.view[member.start : member.start + member.stored]
        else:
            self._check_size(member.size)
            stream = self._source.archive().open(member, where)
            inflated = self._budget.empty((member.size,), "u1", where)
            stream.fill(inflated.data)
            stream.finish()
            view = inflated.data.toreadonly()
        self._contents[name] = view
        return view


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every tensor of the file."""
    return _Archive(source, budget).load_weights()
