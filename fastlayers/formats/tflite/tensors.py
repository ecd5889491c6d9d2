"""From a tensor's data to a read-only array: in place where it can be, halves of bytes unpacked, sparse data spread out."""

from __future__ import annotations

import math

import numpy as np

from ...errors import FormatError, UnsupportedError
from .._arrays import Array, count_bytes, decode
from ..budget import Budget
from ..source import quote
from .flat import Table
from .proto import Tensor
from .schema import TYPES, dtype_of

__all__ = ["read", "readable"]

_NIBBLES = (17, 20)  # int4 and uint4
_INDICES = {1: "i", 2: "H", 3: "B"}  # the types of the union that holds indices of sparse data
_DENSE, _CSR = 0, 1


def readable(tensor: Tensor) -> bool:
    """Whether its elements are numeric."""
    return dtype_of(tensor.type) is not None


def read(tensor: Tensor, data: memoryview, budget: Budget, where: str) -> Array:
    """The array that `data` is; sparse data is spread out, so the result always has the tensor's shape."""
    where = f"{where}: tensor {quote(tensor.name)}"
    if tensor.type not in TYPES:
        raise FormatError(f"{where}: its elements are of type {tensor.type}, which is not known")
    name, kind = TYPES[tensor.type]
    if tensor.sparsity is not None:
        return _sparse(tensor, data, tensor.sparsity, budget, where)
    if tensor.type in _NIBBLES:
        return _nibbles(tensor.stored, data, tensor.type == _NIBBLES[0], budget, where)
    if kind is None:
        raise UnsupportedError(f"{where}: {name} elements are not supported")
    size = count_bytes(tensor.stored, kind, where)
    if len(data) != size:
        raise FormatError(f"{where}: has {len(data)} bytes, {name} of shape {list(tensor.stored)} takes {size}")
    return decode(data.toreadonly(), kind, tensor.stored, budget, where)


def _nibbles(shape: tuple[int, ...], data: memoryview, signed: bool, budget: Budget, where: str) -> Array:
    """Two values per byte, the first one in the lower half."""
    count = math.prod(shape)
    if len(data) != (count + 1) // 2:
        raise FormatError(f"{where}: has {len(data)} bytes, {count} values of 4 bits take {(count + 1) // 2}")
    out = budget.empty((2 * len(data),), np.int8 if signed else np.uint8, where)
    raw = np.frombuffer(data, np.uint8)
    out[0::2], out[1::2] = raw & 15, raw >> 4
    if signed:
        out -= (out > 7).astype(np.int8) * 16
    made: Array = out[:count].reshape(shape)
    made.flags.writeable = False
    return made


# ---- sparse data ------------------------------------------------------------------------------------------------------


def _sparse(tensor: Tensor, data: memoryview, sparsity: Table, budget: Budget, where: str) -> Array:
    """Values are in the order of a walk over the dimensions, and over those of blocks within them.

    A dense dimension goes through all its positions; of a compressed one, segments tell how many each place of the walk so far
    has, and indices which ones.
    """
    name, kind = TYPES[tensor.type]
    if kind is None or kind.widen is not None:
        raise UnsupportedError(f"{where}: sparse {name} elements are not supported")
    shape, rank = tensor.stored, len(tensor.stored)
    count_bytes(shape, kind, where)
    if len(data) % kind.stored.itemsize:
        raise FormatError(f"{where}: has {len(data)} bytes, which is no number of {name} elements")
    values = np.frombuffer(data, kind.stored)
    order, blocks = sparsity.ints(0) or (), sparsity.ints(1) or ()
    levels = list(sparsity.tables(2))
    fits = sorted(order) == list(range(rank + len(blocks))) and len(set(blocks)) == len(blocks)
    if not fits or len(levels) != len(order) or any(not 0 <= b < rank for b in blocks):
        raise FormatError(
            f"{where}: its order of dimensions {quote(order)} and its blocks {quote(blocks)} do not fit {rank} axes"
        )
    out = budget.empty(shape, kind.stored.newbyteorder("="), where)
    out[...] = 0
    places = _walk(order, levels, out.size, len(values), budget, where)
    flat = np.zeros(len(values), np.int64)
    stride = 1
    for axis in range(rank - 1, -1, -1):
        at = places[axis]
        for i, blocked in enumerate(blocks):
            if blocked == axis:
                at = at * _size(levels[order.index(rank + i)], where) + places[rank + i]
        if len(at) and (at.min() < 0 or at.max() >= shape[axis]):
            raise FormatError(f"{where}: a value is outside its shape {list(shape)}")
        flat += at * stride
        stride *= shape[axis]
    out.reshape(-1)[flat] = values
    out.flags.writeable = False
    return out


def _size(level: Table, where: str) -> int:
    """The positions of a dense dimension."""
    size: int = level.number(1, "i")
    if level.number(0, "b") != _DENSE or size < 1:
        raise FormatError(f"{where}: a dimension of blocks has {size} positions: expected a dense one of at least 1")
    return size


def _walk(order: tuple[int, ...], levels: list[Table], most: int, count: int, budget: Budget, where: str) -> dict[int, Array]:
    """For each dimension, the index of every stored value along it."""
    places: dict[int, Array] = {}
    total = 1
    for dimension, level in zip(order, levels, strict=True):
        if level.number(0, "b") == _DENSE:
            size = level.number(1, "i")
            if size < 0 or total * size > max(most, 1):
                raise FormatError(f"{where}: its dense dimensions have more positions than its shape")
            taken = 8 * total * size * (len(places) + 1)
            budget.take(taken, where)
            repeats: Array | int = size
            at = np.tile(np.arange(size, dtype=np.int64), total)
        else:
            segments, at = (_indices(level, i, where) for i in (2, 4))
            repeats = np.diff(segments)
            if len(segments) != total + 1 or segments[0] != 0 or segments[-1] != len(at) or (repeats < 0).any():
                raise FormatError(f"{where}: the segments of a compressed dimension do not fit its {len(at)} indices")
            taken = 8 * len(at) * (len(places) + 1)
            budget.take(taken, where)
        places = {key: np.repeat(value, repeats) for key, value in places.items()}
        places[dimension] = at
        total = len(at)
        budget.release(taken)
    if total != count:
        raise FormatError(f"{where}: has {count} values, its dimensions lead to {total}")
    return places


def _indices(level: Table, number: int, where: str) -> Array:
    """A vector of indices, whose type field `number` tells."""
    kind = level.number(number, "B")
    table = level.table(number + 1)
    found = table.vector(0, _INDICES[kind]) if table is not None and kind in _INDICES else None
    if found is None:
        raise FormatError(f"{where}: a compressed dimension has no segments or indices")
    return found.astype(np.int64)
