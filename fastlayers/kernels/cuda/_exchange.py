"""Arrays of other libraries on the GPU as ours, without a copy: ``__cuda_array_interface__`` and DLPack."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from ...errors import DeviceError, DTypeError, ShapeError
from ._device import Array, empty
from ._dlpack import CUDA, KINDS, MANAGED, NAME, OURS, USED, Managed, place, pointer, rename, valid
from ._driver import SIMULATED, device_of, foreign, order, stream_pointer
from ._memory import Block

__all__ = ["DTYPES", "is_foreign", "wrap"]

DTYPES = frozenset({"b1", "i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8"})


def is_foreign(value: Any) -> bool:
    """Is it an array on the GPU, fastlayers' or another library's?"""
    if isinstance(value, Array):
        return True
    if isinstance(value, np.ndarray):
        return False
    try:
        if getattr(value, "__cuda_array_interface__", None) is not None:
            return True
    except Exception:  # torch refuses by various errors, for example for tensors that require a gradient
        pass
    try:
        return hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] in (CUDA, MANAGED)
    except Exception:
        return False


def wrap(value: Any, what: str) -> Array:
    """An array on the GPU as ours: the same memory. It must be contiguous."""
    if isinstance(value, Array):
        return value
    try:
        interface = getattr(value, "__cuda_array_interface__", None)
    except Exception:
        interface = None
    # torch's interface names no stream, but its DLPack makes ours wait for what torch has queued.
    if hasattr(value, "__dlpack__") and (interface is None or "stream" not in interface):
        return _from_dlpack(value, what)
    if interface is not None:
        return _from_interface(interface, value, what)
    raise DTypeError(f"{what} of type {type(value).__name__}: expected an array on the GPU")


def _from_interface(interface: Any, owner: Any, what: str) -> Array:
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    dtype = np.dtype(interface["typestr"])
    if interface.get("mask") is not None:
        raise DTypeError(f"{what} is a masked array: expected a plain one")
    if strides is not None:
        strides = tuple(s // dtype.itemsize for s in strides)
    stream = interface.get("stream")
    if stream is not None:
        order(int(stream), stream_pointer())
    return _made(int(interface["data"][0] or 0), shape, strides, dtype, owner, what)


def _from_dlpack(value: Any, what: str) -> Array:
    kind, number = value.__dlpack_device__()
    if kind not in (OURS, CUDA, MANAGED) or (not SIMULATED and (kind, number) not in (place(), (MANAGED, place()[1]))):
        raise DeviceError(f"{what} is on device {number} of DLPack's type {kind}: expected the current GPU, {place()}")
    try:
        made = value.__dlpack__() if SIMULATED else value.__dlpack__(stream=stream_pointer() or 1)
    except Exception as error:  # torch's, for example of a tensor that requires a gradient
        raise DTypeError(f"{what} cannot be taken by DLPack: {type(error).__name__}: {error}") from error
    address = pointer(id(made), NAME) if valid(id(made), NAME) else None
    if address is None:
        raise DTypeError(f"{what}: its __dlpack__ gives no DLPack capsule of an unused tensor")
    managed = Managed.from_address(address)
    rename(made, USED)
    tensor = managed.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    owner = _Taken(managed, made)
    code = {v: k for k, v in KINDS.items()}.get(tensor.code)
    if code is None or tensor.lanes != 1 or tensor.bits % 8:
        raise DTypeError(f"{what} has DLPack's type code {tensor.code}: expected booleans, integers or floats that numpy has")
    return _made((tensor.data or 0) + tensor.byte_offset, shape, strides, np.dtype(f"{code}{tensor.bits // 8}"), owner, what)


class _Taken:
    """A tensor that was taken over; its producer is told when it is dropped."""

    def __init__(self, managed: Any, capsule: Any) -> None:
        self.managed, self.capsule = managed, capsule

    def __del__(self) -> None:
        if self.managed.deleter:
            self.managed.deleter(ctypes.byref(self.managed))


def _made(
    pointer: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: np.dtype[Any], owner: Any, what: str
) -> Array:
    if dtype.str[1:] not in DTYPES or not dtype.isnative:
        raise DTypeError(f"{what} has dtype {dtype}: expected booleans, integers or floats of the machine's byte order")
    size = math.prod(shape)
    if strides is not None and size:
        step = 1
        for length, stride in zip(reversed(shape), reversed(strides), strict=True):
            if length != 1 and stride != step:
                raise ShapeError(f"{what} of shape {shape} has strides {strides}: expected C-contiguous memory, .contiguous()")
            step *= length
    if not size:
        return empty(shape, dtype)
    number = device_of(pointer)
    if number not in (None, place()[1]):
        raise DeviceError(f"{what} is on GPU {number}: expected the current one, {place()[1]}")
    if pointer % dtype.itemsize:
        raise ShapeError(f"{what}: its memory at {pointer:#x} is not aligned for {dtype}")
    block = Block(foreign(pointer, size * dtype.itemsize, owner), owner=owner)
    return Array(block, 0, shape, dtype)
