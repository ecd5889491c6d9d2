"""GGUF: counts, lengths, offsets and alignments that are lies, lists in lists, and damage of every kind."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from fastlayers.errors import FormatError, LimitError, UnsupportedError
from fastlayers.formats.gguf import metadata

from ..formats.gguf_build import SMALL, gguf
from ..formats.test_gguf import LIES, ONE, with_value
from ..formats.test_gguf_models import REFUSED, changed
from .cases import Case, Sweep, damaged, fixed, network, table


def _damaged() -> Iterator[bytes]:
    return damaged(SMALL)


def described(source: Any, **options: Any) -> Any:
    """Reads all of the metadata."""
    return metadata(source)


CASES: list[Case | Sweep] = [
    Case("gguf", "counts beyond the end", fixed(gguf(ONE, pairs=1 << 63)), FormatError, "pairs of metadata are announced"),
    Case("gguf", "16 Mi empty texts", fixed(with_value(struct.pack("<IQ", 8, 1 << 24) + bytes(1 << 27))), LimitError, "at most"),
    Case("gguf", "lists 100,000 deep", fixed(with_value(struct.pack("<IQ", 9, 1) * 100_000)), UnsupportedError, "list of lists"),
    Case("gguf", "a tensor of 2**62 elements", fixed(gguf({"a": (2, (1 << 57, 32), b"")})), FormatError, "beyond any memory"),
    Case("gguf", "tensors that overlap", fixed(gguf({**ONE, "b": ONE["a"]}, offsets=[0, 0])), FormatError, "after the one"),
    Case("gguf", "a good file", fixed(SMALL), valid=True),
    Case("gguf", "a good file's metadata", fixed(SMALL), read=described, valid=True),
    table("gguf", "lies", LIES),
    table("gguf", "networks", {"good": (changed(), None, ""), **REFUSED}, read=network),
    Sweep("gguf", "damaged", _damaged),
    Sweep("gguf", "damaged, of which the metadata is read", _damaged, read=described),
]
