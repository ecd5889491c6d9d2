"""Tensors of torch's files: a storage with offset, shape and strides, checked, and then made into an array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import FormatError
from .._arrays import Array, count_bytes, decode
from ..budget import Budget, check_ratio
from ..source import quote
from . import ndarrays
from .dtypes import CODECS, DTYPES, ITEMSIZES, STORAGES
from .ndarrays import NumpyArray
from .records import Context, Dict, Global, Refused, Storage, Tensor

_LARGEST = (1 << 63) - 1
_MOST_SIZES = 1000  # so that a long tuple, described many times, is not looked through many times


def storage(parts: tuple[Any, ...], context: Context) -> Storage:
    """The storage that (class, key, location, elements) stand for, and in the legacy format (key, begin, elements) of a view."""
    if len(parts) not in (4, 5):
        context.fail(f"a storage is described by {len(parts)} values, expected class, key, location and size")
    made, key, _, numel, *rest = parts
    if type(made) is not Global or made.name not in STORAGES:
        context.fail(f"a storage has the class {quote(made)}, which is not a torch storage class")
    if not isinstance(key, str) or not _is_size(numel):
        context.fail(f"a storage has the key {quote(key)} and {quote(numel)} elements, expected a string and a size")
    dtype = STORAGES[made.name]
    itemsize = ITEMSIZES[dtype]
    whole = numel * itemsize
    view = rest[0] if rest else None
    if view is None:
        return Storage(key, dtype, numel, whole, 0, whole)
    if not (type(view) is tuple and len(view) == 3 and _is_size(view[1]) and _is_size(view[2]) and view[1] + view[2] <= numel):
        context.fail(f"the storage {quote(key)} of {numel} elements has a view {quote(view)} that is not within it")
    return Storage(key, dtype, numel, whole, view[1] * itemsize, view[2] * itemsize)


def rebuild(args: tuple[Any, ...], context: Context) -> Tensor | Refused:
    """`_rebuild_tensor` and `_rebuild_tensor_v2`: storage, offset, shape, strides, and what says nothing of the values."""
    return _tensor(args, args[6:7], None, context)


def rebuild_typed(args: tuple[Any, ...], context: Context) -> Tensor | Refused:
    """`_rebuild_tensor_v3`: the same over bytes, with the dtype after it."""
    dtype = args[6] if len(args) > 6 else None
    if type(dtype) is not Global:
        context.fail(f"a tensor's dtype is {quote(dtype)}, expected one of torch's")
    return _tensor(args, args[7:8], dtype.name, context)


def _tensor(args: tuple[Any, ...], metadata: tuple[Any, ...], dtype_name: str | None, context: Context) -> Tensor | Refused:
    context.charge_tensor()
    if len(args) < 4 or type(args[0]) is not Storage:
        context.fail(f"a tensor is described by {len(args)} values, expected a storage, offset, shape, strides")
    held, offset, shape, strides = args[:4]
    dtype = held.dtype if dtype_name is None else DTYPES.get(dtype_name, "")
    where = f"{context.where}: a tensor of storage {quote(held.key)}"
    if not (_is_size(offset) and _are_sizes(shape) and _are_sizes(strides) and len(shape) == len(strides)):
        raise FormatError(
            f"{where}: has offset {quote(offset)}, shape {quote(shape)} and strides {quote(strides)}, expected values from "
            "0 up, as many strides as dimensions"
        )
    if dtype not in CODECS:
        return Refused(f"of dtype {dtype or quote(dtype_name)}")
    # A dict of the bits that torch resolves when it computes.
    if metadata and type(metadata[0]) is Dict:
        context.charge(len(metadata[0]))
        if any(flag for _, flag in metadata[0]):
            return Refused("a conjugated or negated view")
    kind = CODECS[dtype]
    count_bytes(shape, kind, where)
    count = math.prod(shape)
    end = offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if count else 0
    if end * kind.stored.itemsize > held.nbytes:
        raise FormatError(
            f"{where}: {dtype} of shape {shape} with strides {strides} from element {offset} on takes "
            f"{end * kind.stored.itemsize} bytes, the storage has {held.nbytes}"
        )
    return Tensor(held, dtype, offset, shape, tuple(s if n > 1 else 0 for n, s in zip(shape, strides, strict=True)), count)


def read_all(
    named: dict[str, Tensor | NumpyArray],
    content: Callable[[Storage], memoryview],
    length: int,
    budget: Budget,
    where: str,
    big_endian: bool = False,
) -> dict[str, Array]:
    """The arrays; a tensor that has several names gives one array. `content` gives a storage's bytes, read-only.

    Strides of 0 and overlapping views make much of little, so all arrays together are compared with the file's `length`.
    """
    distinct = {id(tensor): tensor for tensor in named.values()}
    claimed = sum(t.elements * CODECS[t.dtype].itemsize if isinstance(t, Tensor) else len(t.data) for t in distinct.values())
    check_ratio(claimed, length, where, "are views that expand to", "save copies of the tensors (contiguous, cloned)")
    arrays: dict[int, Array] = {}
    for name, tensor in named.items():
        if id(tensor) in arrays:
            continue
        mine = f"{where}: tensor {quote(name)}"
        if isinstance(tensor, NumpyArray):
            arrays[id(tensor)] = ndarrays.read(tensor, budget, mine)
        else:
            arrays[id(tensor)] = _read(tensor, content, budget, mine, big_endian)
    return {name: arrays[id(tensor)] for name, tensor in named.items()}


def _read(tensor: Tensor, content: Callable[[Storage], memoryview], budget: Budget, where: str, big_endian: bool) -> Array:
    kind = CODECS[tensor.dtype]
    if big_endian:
        kind = kind._replace(stored=kind.stored.newbyteorder(">"))
    if not tensor.elements:
        return decode(memoryview(b""), kind, tensor.shape, budget, where)
    itemsize = kind.stored.itemsize
    held = tensor.storage
    view = content(held)[held.begin : held.begin + held.nbytes][tensor.offset * itemsize :]
    if _is_contiguous(tensor):
        return decode(view[: tensor.elements * itemsize], kind, tensor.shape, budget, where)
    # numpy checks once more that the strides stay within the buffer.
    strides = tuple(s * itemsize for s in tensor.strides)
    strided: Array = np.ndarray(tensor.shape, kind.stored, buffer=view, strides=strides)
    copy = budget.empty(tensor.shape, kind.stored, where)
    copy[...] = strided
    array = decode(copy.reshape(-1).view(np.uint8).data.toreadonly(), kind, tensor.shape, budget, where)
    if array.flags.owndata:  # decoded to another copy
        budget.release(copy.nbytes)
    return array


def _is_contiguous(tensor: Tensor) -> bool:
    expected = 1
    for n, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if n > 1 and stride != expected:
            return False
        expected *= n
    return True


def _is_size(value: Any) -> bool:
    """A whole number from 0 up, within 64 bits; True and False are none."""
    return type(value) is int and 0 <= value <= _LARGEST


def _are_sizes(value: Any) -> bool:
    return type(value) in (tuple, list) and len(value) <= _MOST_SIZES and all(_is_size(n) for n in value)
