"""Arrays of other libraries on the GPU, as ours and back, without a copy: ``__cuda_array_interface__`` and DLPack."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from ...errors import DeviceError, DTypeError, ShapeError
from ._device import Array
from ._driver import SIMULATED, current_device, device_of, foreign, order, stream_pointer
from ._memory import Block

__all__ = ["capsule", "is_foreign", "place", "wrap"]

_CPU, _CUDA, _MANAGED = 1, 2, 13  # DLDeviceType
_OURS = _CPU if SIMULATED else _CUDA
_KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLDataTypeCode
_NAME, _USED = b"dltensor", b"used_dltensor"
DTYPES = frozenset({"b1", "i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8"})


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))

_api: Any = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))
_living: dict[int, Any] = {}  # what capsules that were passed out keep, by the address of their structure


def place() -> tuple[int, int]:
    """Device of our arrays, in DLPack's terms."""
    return _OURS, current_device()


# ---- out -------------------------------------------------------------------------------------------------------------


def _forget(managed: Any) -> None:
    _living.pop(ctypes.addressof(managed.contents), None)


def _forget_unused(capsule: Any) -> None:
    """A capsule that was not consumed gives its array back."""
    if _valid(capsule, _NAME):
        _living.pop(_pointer(capsule, _NAME), None)


_delete, _drop = _Deleter(_forget), ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_forget_unused)


def capsule(array: Array, stream: Any, device: Any, copy: Any) -> Any:
    """The DLPack capsule of an array; the consumer's `stream` waits for what is queued on ours."""
    if (device is not None and tuple(device) != place()) or copy:
        raise BufferError("DLPack: an array of fastlayers on the GPU is given where it is, without a copy")
    if stream != -1:
        array.block.shown(1 if stream is None else int(stream))
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    managed = _Managed(context=None, deleter=_delete)
    kind, number = place()
    code = _KINDS[array.dtype.kind]
    managed.tensor = _Tensor(
        array.pointer, kind, number, array.ndim, code, array.dtype.itemsize * 8, 1, shape, None, 0
    )  # fmt: skip
    address = ctypes.addressof(managed)
    _living[address] = managed, shape, array
    return _new(address, _NAME, ctypes.cast(_drop, ctypes.c_void_p))


# ---- in --------------------------------------------------------------------------------------------------------------


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
        return hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] in (_CUDA, _MANAGED)
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
    if kind not in (_OURS, _CUDA, _MANAGED) or (not SIMULATED and (kind, number) not in (place(), (_MANAGED, place()[1]))):
        raise DeviceError(f"{what} is on device {number} of DLPack's type {kind}: expected the current GPU, {place()}")
    try:
        made = value.__dlpack__() if SIMULATED else value.__dlpack__(stream=stream_pointer() or 1)
    except Exception as error:  # torch's, for example of a tensor that requires a gradient
        raise DTypeError(f"{what} cannot be taken by DLPack: {type(error).__name__}: {error}") from error
    address = _pointer(id(made), _NAME) if _valid(id(made), _NAME) else None
    if address is None:
        raise DTypeError(f"{what}: its __dlpack__ gives no DLPack capsule of an unused tensor")
    managed = _Managed.from_address(address)
    _rename(made, _USED)
    tensor = managed.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    owner = _Taken(managed, made)
    code = {v: k for k, v in _KINDS.items()}.get(tensor.code)
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
        from ._device import empty

        return empty(shape, dtype)
    number = device_of(pointer)
    if number not in (None, place()[1]):
        raise DeviceError(f"{what} is on GPU {number}: expected the current one, {place()[1]}")
    if pointer % dtype.itemsize:
        raise ShapeError(f"{what}: its memory at {pointer:#x} is not aligned for {dtype}")
    block = Block(foreign(pointer, size * dtype.itemsize, owner), owner=owner)
    return Array(block, 0, shape, dtype)
