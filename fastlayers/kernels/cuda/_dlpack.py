"""Arrays on the GPU for other libraries, and the structures of DLPack."""

from __future__ import annotations

import ctypes
from typing import Any

from ._driver import SIMULATED, current_device

__all__ = [
    "CUDA", "KINDS", "MANAGED", "NAME", "OURS", "USED", "Managed", "capsule", "living", "place", "pointer", "rename", "valid",
]  # fmt: skip

_CPU, CUDA, MANAGED = 1, 2, 13  # DLDeviceType
OURS = _CPU if SIMULATED else CUDA
KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLDataTypeCode
NAME, USED = b"dltensor", b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))

_api: Any = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))
living: dict[int, Any] = {}  # what capsules that were passed out keep, by the address of their structure


def place() -> tuple[int, int]:
    """Device of our arrays, in DLPack's terms."""
    return OURS, current_device()


def _forget(managed: Any) -> None:
    living.pop(ctypes.addressof(managed.contents), None)


def _forget_unused(capsule: Any) -> None:
    """A capsule that was not consumed gives its array back."""
    if valid(capsule, NAME):
        living.pop(pointer(capsule, NAME), None)


_delete, _drop = _Deleter(_forget), ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_forget_unused)


def capsule(array: Any, stream: Any, device: Any, copy: Any) -> Any:
    """The DLPack capsule of an array; the consumer's `stream` waits for what is queued on ours."""
    if (device is not None and tuple(device) != place()) or copy:
        raise BufferError("DLPack: an array of fastlayers on the GPU is given where it is, without a copy")
    if stream != -1:
        array.block.shown(1 if stream is None else int(stream))
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    managed = Managed(context=None, deleter=_delete)
    kind, number = place()
    code = KINDS[array.dtype.kind]
    managed.tensor = _Tensor(
        array.pointer, kind, number, array.ndim, code, array.dtype.itemsize * 8, 1, shape, None, 0
    )  # fmt: skip
    address = ctypes.addressof(managed)
    living[address] = managed, shape, array
    return _new(address, NAME, ctypes.cast(_drop, ctypes.c_void_p))
