"""The formats that are read, and how the one that a content is in gets chosen."""

from __future__ import annotations

from typing import Protocol

from ..errors import FormatError, ShapeError
from . import foreign, hdf5, keras, msgpack, npy, npz, onnx, safetensors, safetensors_index, tflite, torch
from ._arrays import Array
from ._budget import Budget
from ._source import Source, quote


class Format(Protocol):
    """What the module of a format offers."""

    NAME: str  # what `format=` takes
    LOOKS: str  # what the content begins with, for the error about an unknown one

    def sniff(self, source: Source) -> bool:
        """Whether the content claims to be of this format; cheap, and never by a file's name."""

    def load_weights(self, source: Source, budget: Budget) -> dict[str, Array]:
        """Every tensor by name, checked."""


# Formats with a magic number first; a content belongs to the first that claims it.
FORMATS: tuple[Format, ...] = (npy, torch, npz, keras, safetensors, safetensors_index, hdf5, tflite, onnx, msgpack)


def choose(source: Source, format: str | None) -> Format:
    """The format of the content. Raises FormatError if it is unknown or not the one asked for, UnsupportedError if not read."""
    names = [f.NAME for f in FORMATS]
    if format is not None and format not in names:
        raise ShapeError(f"{source.where}: format={quote(format)} is not known: expected one of {', '.join(names)}")
    if not len(source):
        raise FormatError(f"{source.where}: is empty (0 bytes)")
    found = next((f for f in FORMATS if f.sniff(source)), None)
    if found is None:
        foreign.refuse(source)
        looks = "; ".join(f"{f.NAME}: {f.LOOKS}" for f in FORMATS)
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
