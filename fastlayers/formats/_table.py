"""The formats that are read, and how the one that a content is in gets chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from .._lazy import imported
from ..errors import ArgumentError, FormatError
from ._arrays import Array
from .budget import Budget
from .source import Source, quote


class Format(Protocol):
    """Entry points of a format's module."""

    NAME: str  # what `format=` takes
    LOOKS: str  # what the content begins with, for the error about an unknown one

    def sniff(self, source: Source) -> bool:
        """Whether the content claims to be of this format; cheap, and never by a file's name."""

    def load_weights(self, source: Source, budget: Budget) -> dict[str, Array]:
        """Every tensor by name, checked."""


# Formats with a magic number first; a content belongs to the first that claims it. The name is the module's as well, which is
# imported to be asked only if the byte at that place is one of these: a process that reads one format needs no other.
_ANY = bytes(range(256))
FORMATS: dict[str, tuple[int, bytes]] = {
    "npy": (0, b"\x93"),
    "gguf": (0, b"G"),
    "torch": (0, b"P\x80"),
    "npz": (0, b"P"),
    "keras": (0, b"P"),
    "safetensors": (8, b"{"),
    "safetensors index": (0, b"{ \t\n\r\v\f"),
    "hdf5": (0, _ANY),  # another program's block may stand before it
    "tflite": (4, b"T"),
    "onnx": (0, b"\x08"),
    "msgpack": (0, bytes((*range(0x81, 0x90), 0xDE, 0xDF))),
}


def module_of(name: str) -> Format:
    """The module of a format."""
    found: Any = imported(f"{__package__}.{name.replace(' ', '_')}")
    return found  # type: ignore[no-any-return]


def may_be(source: Source, name: str) -> bool:
    """Whether the content may be of a format, to judge by one byte of it."""
    place, first = FORMATS[name]
    return len(source) > place and source.view[place] in first


def candidates(source: Source) -> Iterator[Format]:
    """The formats that the content may be of."""
    return (module_of(name) for name in FORMATS if may_be(source, name))


def choose(source: Source, format: str | None) -> Format:
    """The format of the content. Raises FormatError if it is unknown or not the one asked for, UnsupportedError if not read."""
    names = [*FORMATS]
    if format is not None and format not in names:
        raise ArgumentError(f"{source.where}: format={quote(format)} is not known: expected one of {', '.join(names)}")
    if not len(source):
        raise FormatError(f"{source.where}: is empty (0 bytes)")
    found = next((f for f in candidates(source) if f.sniff(source)), None)
    if found is None:
        from . import foreign

        foreign.refuse(source)
        looks = "; ".join(f"{name}: {module_of(name).LOOKS}" for name in names)
        raise FormatError(f"{source.where}: is of no known format: {_first_bytes(source)}. Known are {looks}")
    if format is not None and format != found.NAME:
        raise FormatError(
            f"{source.where}: format={format!r} was asked for, but the content is {found.NAME}: {_first_bytes(source)}"
        )
    return found


def _first_bytes(source: Source) -> str:
    first = bytes(source.view[:16])
    text = "".join(chr(b) if 32 <= b < 127 else "." for b in first)
    return f"{len(source)} bytes, beginning with {first.hex(' ')} ({text})"
