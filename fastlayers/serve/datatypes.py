"""One tensor of the protocol: its datatype, its elements as JSON or as bytes, and the array that they are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .failures import Refused

__all__ = ["DATATYPES", "datatype", "dump", "from_bytes", "from_json", "shape_of", "to_bytes"]

DATATYPES = {
    "BOOL": np.dtype(np.bool_),
    **{f"UINT{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)},
    **{f"INT{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"FP{n}": np.dtype(f"float{n}") for n in (16, 32, 64)},
    "BYTES": np.dtype(object),
}
_NAMES = {dtype: name for name, dtype in DATATYPES.items()}
MOST_AXES = 32


def datatype(dtype: np.dtype[Any]) -> str | None:
    """The protocol's name of a dtype; None if it has none."""
    return _NAMES.get(np.dtype(dtype))


def shape_of(what: str, given: Any) -> tuple[tuple[int, ...], int]:
    """A declared shape and its number of elements. Nothing of that size is allocated before as many elements have come."""
    if not isinstance(given, list) or len(given) > MOST_AXES:
        raise Refused(400, f"{what}: shape is {given!r:.100}: expected a list of at most {MOST_AXES} sizes")
    for size in given:
        if type(size) is not int or not 0 <= size < 2**63:
            raise Refused(400, f"{what}: shape is {given!r:.100}: expected integers of at least 0")
    return tuple(given), math.prod(given)


def from_bytes(what: str, name: str, shape: tuple[int, ...], count: int, data: memoryview) -> np.ndarray:
    """The array whose elements are these bytes: row-major, little-endian; BYTES have their length in front, in four bytes."""
    if name == "BYTES":
        return _strings(what, shape, count, data)
    dtype = DATATYPES[name].newbyteorder("<")
    if len(data) != count * dtype.itemsize:
        raise Refused(400, f"{what}: binary_data_size is {len(data)}: expected {count * dtype.itemsize}, for {name}{list(shape)}")
    array = np.frombuffer(data, dtype)
    if name == "BOOL" and count and (array.view(np.uint8) > 1).any():
        raise Refused(400, f"{what}: a byte of BOOL is neither 0 nor 1")
    # What stands before the elements, JSON of any length, decides how they are aligned.
    return np.require(array, DATATYPES[name], "A").reshape(shape)


def _strings(what: str, shape: tuple[int, ...], count: int, data: memoryview) -> np.ndarray:
    found: list[str] = []
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        if end > len(data) or at + 4 > len(data):
            raise Refused(400, f"{what}: element {len(found)} of BYTES ends {end - len(data)} bytes after the data")
        try:
            found.append(str(data[at + 4 : end], "utf-8"))
        except UnicodeDecodeError:
            raise Refused(400, f"{what}: element {len(found)} of BYTES is no UTF-8") from None
        at = end
    return _objects(what, shape, count, found)


def _objects(what: str, shape: tuple[int, ...], count: int, found: list[str]) -> np.ndarray:
    if len(found) != count:
        raise Refused(400, f"{what}: {len(found)} elements came: expected {count}, for BYTES{list(shape)}")
    array = np.empty(count, object)
    array[:] = found
    return array.reshape(shape)


def from_json(what: str, name: str, shape: tuple[int, ...], count: int, data: Any) -> np.ndarray:
    """The array whose elements are in a list, flat or nested as `shape` says."""
    if not isinstance(data, list):
        raise Refused(400, f"{what}: data is {data!r:.50}: expected a list")
    if name == "BYTES":
        return _objects(what, shape, count, _flat(what, data))
    dtype = DATATYPES[name]
    try:
        array = np.array(data) if data else np.empty(0, dtype)
    except (ValueError, OverflowError):  # ragged, or an integer of more than 64 bits
        raise Refused(400, f"{what}: data is neither flat nor nested evenly, or has an integer out of range") from None
    if array.shape not in (shape, (count,)) or (array.ndim > 1 and array.shape != shape):
        raise Refused(400, f"{what}: data has shape {list(array.shape)}: expected {list(shape)}, or {count} elements")
    kinds = {"b": "b", "i": "iu", "u": "iu", "f": "fiu"}[dtype.kind]
    if array.dtype.kind not in kinds and count:
        raise Refused(400, f"{what}: data has elements that are no {name}")
    if dtype.kind in "iu" and count:
        info = np.iinfo(dtype)
        if int(array.min()) < info.min or int(array.max()) > info.max:
            raise Refused(400, f"{what}: data has elements outside of {name}")
    with np.errstate(over="ignore"):  # beyond the largest float is infinity, as for the parser
        return array.astype(dtype).reshape(shape)


def _flat(what: str, data: list[Any]) -> list[str]:
    found: list[str] = []
    waiting = [iter(data)]
    while waiting:
        for item in waiting[-1]:
            if isinstance(item, list):
                waiting.append(iter(item))
                break
            if not isinstance(item, str):
                raise Refused(400, f"{what}: data has {item!r:.50}: expected strings")
            found.append(item)
        else:
            waiting.pop()
    return found


def to_bytes(array: np.ndarray) -> bytes:
    """The elements of a tensor, as `from_bytes` takes them."""
    if array.dtype.kind != "O":
        return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    encoded = [_encoded(item) for item in array.ravel()]
    return b"".join(part for item in encoded for part in (len(item).to_bytes(4, "little"), item))


def _encoded(item: Any) -> bytes:
    return item if isinstance(item, bytes) else str(item).encode()


def dump(array: np.ndarray) -> list[Any]:
    """The elements of a tensor as a flat list for JSON."""
    if array.dtype.kind == "O":
        return [_encoded(item).decode("utf-8", "replace") for item in array.ravel()]
    found: list[Any] = array.ravel().tolist()
    return found
