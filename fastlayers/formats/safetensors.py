"""Reading safetensors: an 8-byte length, a JSON header, and the data, which is used in place where it is aligned.

Every rule of the format is checked. Nothing but the header is read from a mapped file, except what must be widened or is bool.
"""

from __future__ import annotations

import json
from typing import Any

from .._tuples import NamedTuple
from ..errors import FormatError, UnsupportedError
from ._arrays import Array, Codec, codec, count_bytes, decode, widen_bfloat16, widen_float8
from .budget import Budget
from .source import Source, quote

NAME = "safetensors"
LOOKS = "an 8-byte little-endian length, then '{'"

MAX_HEADER = 100_000_000  # the format's own limit
# The most memory that parsing takes, in bytes for a byte of JSON: 40 were measured, for '{"":{}},' repeated, in Python 3.10.
_PARSE_FACTOR = 48
_MAX_DIGITS = 20  # of 2**64 - 1; no size is longer

_CODECS: dict[str, Codec] = {
    "BOOL": codec("?"),
    "U8": codec("u1"),
    "I8": codec("i1"),
    "U16": codec("<u2"),
    "I16": codec("<i2"),
    "U32": codec("<u4"),
    "I32": codec("<i4"),
    "U64": codec("<u8"),
    "I64": codec("<i8"),
    "F16": codec("<f2"),
    "F32": codec("<f4"),
    "F64": codec("<f8"),
    "C64": codec("<c8"),
    "BF16": codec("<u2", widen_bfloat16),
    "F8_E4M3": codec("u1", widen_float8(4, 7, "fn")),
    "F8_E5M2": codec("u1", widen_float8(5, 15, "ieee")),
    "F8_E4M3FNUZ": codec("u1", widen_float8(4, 8, "fnuz")),
    "F8_E5M2FNUZ": codec("u1", widen_float8(5, 16, "fnuz")),
    "F8_E8M0": codec("u1", widen_float8(8, 127, "scale")),
}
# What can be written: numpy's names, and the format's own.
DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8",
    "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
_SUB_BYTE = ("F4", "F6_E2M3", "F6_E3M2")


class _Entry(NamedTuple):
    """One tensor of the header, its types checked. `where` begins the errors about it."""

    name: str
    where: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def sniff(source: Source) -> bool:
    """The length's upper three bytes are zero in any real file; its value is judged by the reader."""
    return source.starts_with(b"\x00\x00\x00{", 5)


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every tensor of the file, in the order of the header."""
    return load_with_metadata(source, budget)[0]


def load_with_metadata(source: Source, budget: Budget) -> tuple[dict[str, Array], dict[str, str]]:
    """The tensors, and the strings of ``__metadata__``."""
    where = source.where
    text, data = _split(source, budget)
    header = _parse(text, where)
    entries = [_entry(name, info, where) for name, info in header.items() if not _is_metadata(name, info, where)]
    _check_supported(entries, where)
    _check_layout(entries, len(data), where)
    tensors = {e.name: decode(data[e.begin : e.end], _CODECS[e.dtype], e.shape, budget, e.where) for e in entries}
    return tensors, header.get("__metadata__", {})


def _split(source: Source, budget: Budget) -> tuple[bytes, memoryview]:
    """The header's text and the data after it."""
    length = int.from_bytes(source.view[:8], "little")
    if length > MAX_HEADER:
        raise FormatError(f"{source.where}: the header's length is {length} bytes, at most {MAX_HEADER} are allowed")
    if length > len(source) - 8:
        raise FormatError(f"{source.where}: the header's length is {length} bytes, but only {len(source) - 8} follow: truncated?")
    budget.check(length * _PARSE_FACTOR, f"{source.where}: the header of {length} bytes")
    return bytes(source.view[8 : 8 + length]), source.view[8 + length :]


def _parse(text: bytes, where: str) -> dict[str, Any]:
    """The header as a dict: JSON as the format restricts it (no duplicate keys, and integers from 0 up)."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            seen: set[str] = set()
            twice = next(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise FormatError(f"{where}: the header has the key {quote(twice)} more than once")
        return found

    def number(digits: str) -> int:
        if len(digits) > _MAX_DIGITS or not digits.isdigit():
            raise FormatError(f"{where}: the header has the number {quote(digits)}, expected an integer from 0 to 2**64 - 1")
        return int(digits)

    if not text.startswith(b"{"):
        raise FormatError(f"{where}: the header starts with {quote(text[:8])}, expected '{{'")
    try:
        header = json.loads(
            text.decode("utf-8"), object_pairs_hook=pairs, parse_int=number, parse_float=number, parse_constant=number
        )
    except FormatError:
        raise
    except UnicodeDecodeError as error:
        raise FormatError(f"{where}: the header is not UTF-8: byte {error.start} is 0x{text[error.start]:02x}") from None
    except RecursionError:
        raise FormatError(f"{where}: the header is nested too deeply, expected at most 3 levels") from None
    except ValueError as error:
        raise FormatError(f"{where}: the header is not valid JSON: {error}") from None
    return dict(header)


def _is_metadata(name: str, info: Any, where: str) -> bool:
    if name != "__metadata__":
        return False
    if not isinstance(info, dict) or not all(isinstance(value, str) for value in info.values()):
        raise FormatError(f"{where}: __metadata__ must map strings to strings, got {quote(info)}")
    return True


def _entry(name: str, info: Any, where: str) -> _Entry:
    where = f"{where}: tensor {quote(name)}"
    if not _is_text(name):
        raise FormatError(f"{where}: the name has a lone surrogate, which is no character")
    if not isinstance(info, dict) or info.keys() != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"{where}: expected an object with exactly dtype, shape and data_offsets, got {quote(info)}")
    dtype, shape, offsets = info["dtype"], info["shape"], info["data_offsets"]
    if not isinstance(dtype, str):
        raise FormatError(f"{where}: dtype must be a string, got {quote(dtype)}")
    if dtype not in _CODECS and dtype not in _SUB_BYTE:
        raise FormatError(f"{where}: unknown dtype {quote(dtype)}: expected one of {', '.join(_CODECS)}")
    if not _is_sizes(shape):
        raise FormatError(f"{where}: shape must be a list of integers from 0 up, got {quote(shape)}")
    if not _is_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise FormatError(f"{where}: data_offsets must be [begin, end] with 0 <= begin <= end, got {quote(offsets)}")
    return _Entry(name, where, dtype, tuple(shape), *offsets)


def _check_supported(entries: list[_Entry], where: str) -> None:
    refused = [e for e in entries if e.dtype in _SUB_BYTE]
    if refused:
        some = ", ".join(quote(e.name) for e in refused[:5]) + (f", ... ({len(refused)} in all)" if len(refused) > 5 else "")
        dtypes = ", ".join(sorted({e.dtype for e in refused}))
        raise UnsupportedError(f"{where}: elements of less than a byte ({dtypes}) are not supported: tensors {some}")


def _check_layout(entries: list[_Entry], length: int, where: str) -> None:
    """Sizes agree with shapes, and the tensors cover the data from end to end, without a hole, an overlap or a rest."""
    position = 0
    for e in sorted(entries, key=lambda e: (e.begin, e.end)):
        size = count_bytes(e.shape, _CODECS[e.dtype], e.where)
        if e.end - e.begin != size:
            raise FormatError(
                f"{e.where}: data_offsets [{e.begin}, {e.end}] span {e.end - e.begin} bytes, "
                f"{e.dtype} of shape {list(e.shape)} takes {size}"
            )
        if e.begin != position:
            wrong = "overlap the tensor before" if e.begin < position else "leave a hole"
            raise FormatError(f"{e.where}: data_offsets [{e.begin}, {e.end}] {wrong}: expected them to begin at {position}")
        if e.end > length:
            raise FormatError(
                f"{e.where}: data_offsets [{e.begin}, {e.end}] end beyond the file's {length} bytes of data: truncated?"
            )
        position = e.end
    if position != length:
        raise FormatError(f"{where}: {length - position} bytes follow the last tensor, expected none")


def _is_sizes(value: Any) -> bool:
    """A list of integers; True and False are none."""
    return isinstance(value, list) and all(type(n) is int for n in value)


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
