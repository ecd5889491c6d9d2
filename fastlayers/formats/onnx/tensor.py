"""From the pieces of a TensorProto to a read-only array, in every encoding that ONNX has. Parses no message.

Elements are in raw_data or an external file (little-endian, small types packed), or in a field of typed values, where bool and
whatever has less than 32 bits is an int32 each. Plain elements that are aligned stay where they are.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..._codes import small_values
from ..._tuples import NamedTuple
from ...errors import FormatError, LimitError, UnsupportedError
from .._arrays import MAX_RANK, Array, Codec, codec, count_bytes, decode
from ..budget import Budget
from . import wire
from .elements import BOOL, DOUBLE_DATA, ELEMENTS, FIELD_NAMES, FLOAT_DATA, RAW_DATA, STRING, STRING_DATA, Elements
from .proto import Pending, Place

# From this many bytes on a copy is made at first access. Smaller ones are not worth the object that waits for it.
LAZY_BYTES = 1 << 15
_SHORT = 48  # bytes of varints that are decoded faster one by one
# Bytes that every sparse tensor may expand to; larger results may be at most so many times the bytes that it has in the file.
_FREE_BYTES = 1 << 16
_MAX_RATIO = 1000


class Payload(NamedTuple):
    """Elements of a tensor as found: the `field` that holds them (0: none has any), and its content.

    `view` has raw or external data, or the packed values; `numbers` (uint64, as varints give them) those that were not packed;
    `strings` those of a string tensor.
    """

    field: int
    view: memoryview
    numbers: Array | None
    strings: list[str | bytes]


def element_type(code: int, where: object) -> Elements:
    """The supported type with this number; raises FormatError or UnsupportedError."""
    kind = ELEMENTS.get(code)
    if kind is None:
        if code == 0:
            raise FormatError(f"{where}: has no element type")
        raise UnsupportedError(f"{where}: its elements are of type {code}, which is not known")
    if kind.codec is None and code != STRING:
        raise UnsupportedError(f"{where}: {kind.name} elements are not supported")
    return kind


def shape_of(dims: list[int], where: object) -> tuple[int, ...]:
    """The shape that signed dims give."""
    shape = tuple(dims)
    if len(shape) > MAX_RANK:
        raise UnsupportedError(f"{where}: has {len(shape)} dimensions, at most {MAX_RANK} are supported")
    if shape and min(shape) < 0:
        raise FormatError(f"{where}: has the shape {shape}, expected sizes from 0 up")
    return shape


def nbytes_of(kind: Elements, shape: tuple[int, ...], where: object) -> int:
    """The bytes of the elements in raw_data; raises if the array could not exist."""
    count = math.prod(shape)
    # Small and not empty is what nearly all are; for the others each dimension is looked at, since an empty one hides the rest.
    if not 0 < count < 1 << 40:
        count_bytes(shape, kind.codec or _POINTER, where)
    return kind.size(count)


_POINTER = codec("<u8")


def build(kind: Elements, shape: tuple[int, ...], payload: Payload, budget: Budget, where: object) -> Array | Pending:
    """The array of these elements, checked; pending if it is large and must be a copy, which `budget` has then paid for."""
    field = payload.field
    nbytes = nbytes_of(kind, shape, where)
    if field == 0 and 0 in shape:
        return _empty(kind, shape)
    if field not in (kind.field, RAW_DATA) or (field == RAW_DATA and kind.codec is None):
        found = f"in {FIELD_NAMES[field]}" if field else "nowhere"
        raise FormatError(f"{where}: its {kind.name} elements are {found}, expected them in {_expected(kind)}")
    if field == STRING_DATA:
        return _of_strings(shape, payload.strings, budget, where)
    assert kind.codec is not None
    if field in (RAW_DATA, FLOAT_DATA, DOUBLE_DATA):
        if len(payload.view) != nbytes:
            raise FormatError(
                f"{where}: {FIELD_NAMES[field]} has {len(payload.view)} bytes, {kind.name} of shape {shape} takes {nbytes}"
            )
        return _of_bytes(payload.view, kind.codec, shape, nbytes, budget, where)
    return _of_integers(kind, shape, payload, budget, where)


def _expected(kind: Elements) -> str:
    return FIELD_NAMES[kind.field] + (" or raw_data" if kind.codec else "")


def _empty(kind: Elements, shape: tuple[int, ...]) -> Array:
    array = np.empty(shape, kind.dtype)
    array.flags.writeable = False
    return array


def _of_strings(shape: tuple[int, ...], strings: list[str | bytes], budget: Budget, where: object) -> Array:
    if len(strings) != math.prod(shape):
        raise FormatError(f"{where}: string_data has {len(strings)} strings, shape {shape} takes {math.prod(shape)}")
    array = budget.empty((len(strings),), object, where)
    array[:] = strings
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def _of_bytes(
    view: memoryview, kind: Codec, shape: tuple[int, ...], nbytes: int, budget: Budget, where: object
) -> Array | Pending:
    if nbytes < LAZY_BYTES:
        return decode(view, kind, shape, budget, where)
    if kind.widen is None and kind.stored.isnative and np.frombuffer(view, kind.stored).flags.aligned:
        return decode(view, kind, shape, budget, where)
    taken = math.prod(shape) * kind.itemsize
    budget.take(taken, where)
    paid = functools.partial(Budget, taken, "the same call")
    # Weights are copied once more when they are packed: a graph does without this copy (`proto.in_place`).
    plain = kind.widen is None and kind.stored.isnative and kind.stored.kind == "f"
    coded = kind.widen is not None and kind.result.kind == "f" and kind.stored.itemsize == 1 and nbytes == math.prod(shape)
    held = np.frombuffer(view, kind.stored).reshape(shape) if plain or coded else None
    return Pending(lambda: decode(view, kind, shape, paid(), where), held if plain else None, held if coded else None)


def _of_integers(kind: Elements, shape: tuple[int, ...], payload: Payload, budget: Budget, where: object) -> Array:
    """The array of typed integers: each is an element, or (types of 2 and 4 bits) a byte of packed ones."""
    count = kind.size(math.prod(shape)) if kind.bits in (2, 4) else math.prod(shape)
    where = Place(where, FIELD_NAMES[payload.field])
    assert kind.codec is not None
    stored = kind.codec.stored.newbyteorder("=")
    if payload.numbers is None and not count <= len(payload.view) <= wire.MAX_VARINT * count:
        raise FormatError(f"{where}: has {len(payload.view)} bytes, shape {shape} takes {count} values of 1 to 10 bytes")
    codes = budget.empty((count,), f"u{stored.itemsize}", where)
    low, high = _range(kind)

    def store(values: Array, part: slice) -> None:
        if kind.bits < 64 and values.size:
            as_signed = values.view(np.int64)
            if int(as_signed.min()) < low or int(as_signed.max()) > high:
                raise FormatError(f"{where}: has values beyond {low} to {high}, the range of {kind.name}")
        codes[part] = values.astype(codes.dtype)

    if payload.numbers is not None:
        if payload.numbers.size != count:
            raise FormatError(f"{where}: has {payload.numbers.size} values, shape {shape} takes {count}")
        store(payload.numbers, slice(0, count))
    elif len(payload.view) <= _SHORT:
        values = list(wire.varints(payload.view, 0, len(payload.view), where))
        if len(values) != count:
            raise FormatError(f"{where}: has {len(values)} values, shape {shape} takes {count}")
        store(np.array(values, np.uint64), slice(0, count))
    else:
        wire.unpack(payload.view, count, store, where)
    return _finished(kind, codes, shape, budget, where)


def _range(kind: Elements) -> tuple[int, int]:
    """The range of values in a field of typed integers. Writers differ in whether they extend the sign of narrower types."""
    if kind is ELEMENTS[BOOL]:
        return 0, 1
    if kind.bits == 6:
        return 0, 63
    bits = max(kind.bits, 8)
    return -(1 << (bits - 1)), (1 << bits) - 1


def _finished(kind: Elements, codes: Array, shape: tuple[int, ...], budget: Budget, where: object) -> Array:
    """The array of unsigned integers that hold the elements' bits."""
    assert kind.codec is not None
    if not kind.widened:
        array = codes.view(kind.dtype).reshape(shape)
        array.flags.writeable = False
        return array
    if kind.bits == 6:  # one code a byte here, four in three bytes in raw_data
        array = budget.empty(shape, kind.dtype, where)
        np.take(small_values(kind.name, 6), codes, out=array.reshape(-1), mode="clip")
        array.flags.writeable = False
    else:
        array = decode(codes.data.cast("B").toreadonly(), Codec(codes.dtype, kind.codec.widen, kind.dtype), shape, budget, where)
    budget.release(codes.nbytes)
    return array


def densify(values: Array, indices: Array, shape: tuple[int, ...], budget: Budget, where: object) -> Array:
    """The dense array of a sparse tensor: `values` (nnz,) at `indices`, (nnz,) linear ones or (nnz, rank), ascending; else 0."""
    if values.ndim != 1 or values.dtype == object:
        raise FormatError(f"{where}: sparse values of shape {values.shape} and {values.dtype}, expected one dimension of values")
    if indices.dtype != np.int64 or indices.shape not in ((values.size,), (values.size, len(shape))):
        raise FormatError(
            f"{where}: sparse indices of shape {indices.shape} and {indices.dtype}, expected int64 of shape {(values.size,)} or "
            f"{(values.size, len(shape))}"
        )
    count = count_bytes(shape, codec("u1"), where)
    size = count_bytes(shape, Codec(values.dtype), where)
    given = values.nbytes + indices.nbytes
    if size > _FREE_BYTES and size > _MAX_RATIO * given:
        raise LimitError(
            f"{where}: {given} bytes of a sparse tensor stand for {size} of a dense one: more than {_MAX_RATIO} times is refused "
            f"(beyond {_FREE_BYTES} bytes)"
        )
    flat = _linear(indices, shape, count, where)
    if flat.size and (flat[0] < 0 or flat[-1] >= count or (flat[1:] <= flat[:-1]).any()):
        raise FormatError(f"{where}: sparse indices must ascend without repetition, from 0 to {count - 1}")
    dense = budget.empty(shape, values.dtype, where)
    dense.fill(0)
    dense.reshape(-1)[flat] = values
    dense.flags.writeable = False
    return dense


def _linear(indices: Array, shape: tuple[int, ...], count: int, where: object) -> Array:
    """Indices into the flattened array; those of a row must each be within their dimension."""
    if indices.ndim == 1:
        return indices
    if indices.size and ((indices < 0) | (indices >= np.array(shape, np.int64))).any():
        raise FormatError(f"{where}: sparse indices go beyond the shape {shape}")
    flat = np.zeros(len(indices), np.int64)
    for axis, size in enumerate(shape):
        flat = flat * size + indices[:, axis]
    return flat
