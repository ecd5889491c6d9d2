"""Reading npy: one array with a small text header, which a strict parser of our own reads. Nothing is evaluated or unpickled."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from .._tuples import NamedTuple
from ..errors import FormatError, UnsupportedError
from ._arrays import Array, Codec, count_bytes, decode
from .budget import Budget
from .source import Source, quote

NAME = "npy"
LOOKS = r"'\x93NUMPY'"
MAGIC = b"\x93NUMPY"

_MAX_HEADER = 10_000  # numpy's own limit; a header of plain dtypes takes 128 bytes
# One "key: value" of the header: a string, True or False, a tuple of sizes, or the start of a structured dtype.
_ITEM = re.compile(
    r"""\s*(['"])(?P<key>\w{1,20})\1\s*:\s*
    (?:(['"])(?P<text>[^'"\\]{0,40})\3|(?P<flag>True|False)|\((?P<sizes>[\d\sL,]*)\)|(?P<fields>\[))\s*""",
    re.VERBOSE | re.ASCII,
)
_SIZE = r"(?:0|[1-9]\d{0,19})L?"  # L: written by Python 2
_SIZES = re.compile(rf"\s*(?:{_SIZE}\s*(?:,\s*{_SIZE}\s*)*,?)?\s*", re.ASCII)
_DESCR = re.compile(r"([<>|])([A-Za-z?])(\d{1,18})(\[\w{1,20}\])?", re.ASCII)
_NUMBERS = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"})
_LONGEST_TEXT = (1 << 31) - 1  # bytes; numpy has no longer elements
_TEXT_UNITS = {"S": 1, "a": 1, "U": 4}  # bytes a character
_REFUSED = {
    "O": "holds Python objects (a pickle), and nothing is unpickled",
    "V": "holds raw bytes without a type (numpy writes bfloat16 so): save it as float32, or as safetensors",
}


class Header(NamedTuple):
    """Fields of the header, checked. `kind` is None for an array of strings or dates, which is no tensor."""

    kind: Codec | None
    shape: tuple[int, ...]
    fortran: bool
    nbytes: int  # of the data
    length: int  # of magic, version and text, in bytes


def sniff(source: Source) -> bool:
    """By the magic string."""
    return source.starts_with(MAGIC)


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """The file's one array, under the name that `numpy.savez` gives to an array without one."""
    position = 0

    def read(count: int) -> bytes:
        nonlocal position
        position += count
        return bytes(source.view[position - count : position])

    header = read_header(read, source.where)
    data = source.view[header.length :]
    check_length(header, len(data), source.where)
    if header.kind is None:
        raise FormatError(f"{source.where}: holds no tensors: an array of strings or dates is none")
    return {"arr_0": decode(data, header.kind, header.shape, budget, source.where, fortran=header.fortran)}


def read_header(read: Callable[[int], bytes], where: str) -> Header:
    """Reads and checks magic, version and header. `read(n)` gives the next n bytes, fewer at the end."""
    start = read(8)
    if len(start) < 8 or not start.startswith(MAGIC):
        raise FormatError(f"{where}: begins with {start.hex(' ')}, expected an npy header ({MAGIC.hex(' ')} and a version)")
    if start[6] not in (1, 2, 3) or start[7] != 0:
        raise UnsupportedError(f"{where}: is npy version {start[6]}.{start[7]}, supported are 1.0, 2.0 and 3.0")
    width = 2 if start[6] == 1 else 4
    size = read(width)
    length = int.from_bytes(size, "little")
    if length > _MAX_HEADER:
        raise FormatError(f"{where}: the header's length is {length} bytes, at most {_MAX_HEADER} are allowed")
    text = read(length)
    if len(size) < width or len(text) < length:
        raise FormatError(f"{where}: ends inside its header: truncated?")
    return _parse(text.decode("latin-1"), 8 + width + length, where)


def check_length(header: Header, available: int, where: str) -> None:
    """Raises unless the data that is there is exactly what the shape takes."""
    if header.nbytes != available:
        raise FormatError(f"{where}: shape {header.shape} takes {header.nbytes} bytes of data, {available} are there")


def _parse(text: str, length: int, where: str) -> Header:
    items = _items(text, where)
    if items.keys() != {"descr", "fortran_order", "shape"}:
        raise _malformed(text, where)
    descr, order, sizes = items["descr"]["text"], items["fortran_order"]["flag"], items["shape"]["sizes"]
    if items["descr"]["fields"]:
        raise UnsupportedError(f"{where}: holds records (a structured dtype), expected plain values")
    if descr is None or order is None or sizes is None or not _SIZES.fullmatch(sizes):
        raise _malformed(text, where)
    shape = tuple(int(n.rstrip(" \tL")) for n in sizes.split(",") if n.strip())
    if len(shape) == 1 and "," not in sizes:  # (3) is a number, not a tuple
        raise _malformed(text, where)
    kind, itemsize = _dtype(descr, where)
    stored = kind or Codec(np.dtype(f"V{itemsize}") if itemsize else np.dtype("u1"))
    nbytes = count_bytes(shape, stored, where) if itemsize else 0
    return Header(kind, shape, order == "True", nbytes, length)


def _items(text: str, where: str) -> dict[str, re.Match[str]]:
    """The keys of the header's dict with their matched values."""
    body = text.strip(" \n")
    if not (body.startswith("{") and body.endswith("}")):
        raise _malformed(text, where)
    items: dict[str, re.Match[str]] = {}
    position, end = 1, len(body) - 1
    while position < end:
        item = _ITEM.match(body, position, end)
        if item is None or item["key"] in items:
            raise _malformed(text, where)
        items[item["key"]] = item
        if item["fields"]:  # a structured dtype is refused whatever it holds
            return dict.fromkeys(("descr", "fortran_order", "shape"), item)
        position = item.end()
        if position < end and body[position] != ",":
            raise _malformed(text, where)
        position += 1
        if not body[position:end].strip(" \n"):
            break
    return items


def _dtype(descr: str, where: str) -> tuple[Codec | None, int]:
    """The codec (None: strings or dates) and the bytes of an element."""
    match = _DESCR.fullmatch(descr)
    order, letter, digits, unit = match.groups() if match else ("", "O" if descr == "|O" else "", "0", None)
    size = int(digits)
    if letter in _REFUSED:
        raise UnsupportedError(f"{where}: dtype {quote(descr)} {_REFUSED[letter]}")
    if letter in _TEXT_UNITS and not unit and size * _TEXT_UNITS[letter] <= _LONGEST_TEXT:
        return None, size * _TEXT_UNITS[letter]
    if letter in ("M", "m") and size == 8:
        return None, 8
    if letter in ("f", "c") and size in (12, 16, 24, 32) and f"{letter}{size}" not in _NUMBERS:
        raise UnsupportedError(
            f"{where}: dtype {quote(descr)} is a long double, whose format depends on the machine that wrote it"
        )
    if f"{letter}{size}" not in _NUMBERS or unit or (order == "|" and size > 1):
        raise FormatError(f"{where}: unknown dtype {quote(descr)}: expected one like '<f4', of {', '.join(sorted(_NUMBERS))}")
    return Codec(np.dtype(f"{order}{letter}{size}")), size


def _malformed(text: str, where: str) -> FormatError:
    example = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    return FormatError(f"{where}: malformed npy header {quote(text)}: expected one like {example}")
