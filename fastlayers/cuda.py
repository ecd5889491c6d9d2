"""Arrays and streams of NVIDIA GPUs: what models loaded with ``device="cuda"`` take and give. Numba is imported at first use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import DTypeError
from .kernels import dispatch

if TYPE_CHECKING:
    from .kernels.cuda import Array as DeviceArray

__all__ = ["DeviceArray", "array", "stream", "synchronize"]


def __getattr__(name: str) -> Any:
    if name != "DeviceArray":
        raise AttributeError(f"module 'fastlayers.cuda' has no attribute {name!r}")
    return _started("cuda.DeviceArray").Array


def _started(what: str) -> Any:
    """The package of CUDA kernels, where there is a device."""
    dispatch.start_cuda(what)
    from .kernels import cuda

    return cuda


def array(value: Any) -> DeviceArray:
    """An array on the GPU.

    Args:
        value: an array of torch, CuPy or another library that is there already, C-contiguous, which is taken as it is, without a
            copy, and kept; or anything that `np.asarray` takes, which is copied to the GPU.

    Returns:
        An array with ``shape``, ``dtype``, ``numpy()``, ``__cuda_array_interface__`` and DLPack's methods, so that
        ``torch.from_dlpack(y)`` and ``cupy.asarray(y)`` take it without a copy.

    Raises:
        DeviceError: there is no GPU or driver, or the array is on another GPU.
        MissingExtraError: Numba's CUDA target is not installed.
        DTypeError: it is no array of values.
        ShapeError: it is not contiguous.
    """
    device = _started("cuda.array")
    if device.is_foreign(value):
        return device.wrap(value, "cuda.array: value")
    made = np.asarray(value)
    if made.dtype.str[1:] not in device.DTYPES:
        raise DTypeError(f"cuda.array: value has dtype {made.dtype}: expected booleans, integers or floats")
    return device.placed(made.astype(made.dtype.newbyteorder("="), copy=False))


@contextmanager
def stream(value: Any) -> Iterator[None]:
    """Calls of this thread meanwhile queue their work on a stream.

    Args:
        value: a stream of torch, CuPy or Numba, its handle as an int, or None for the default stream.

    Raises:
        DTypeError: it is no stream.
        DeviceError: there is no GPU or driver.
        MissingExtraError: Numba's CUDA target is not installed.
    """
    cuda = _started("cuda.stream")
    with cuda.on_stream(_handle(value)):
        yield


def _handle(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if hasattr(value, "__cuda_stream__"):  # the protocol of CUDA's Python libraries: (version, handle)
        protocol = value.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for name in ("cuda_stream", "ptr", "handle"):  # torch, CuPy, Numba before it had the protocol
        found = getattr(value, name, None)
        found = getattr(found, "value", found)
        if isinstance(found, int):
            return found
    raise DTypeError(
        f"cuda.stream: value is of type {type(value).__name__}: expected a stream of torch, CuPy or Numba, or an int"
    )


def synchronize() -> None:
    """Waits for all that calls of this thread have queued on their stream."""
    _started("cuda.synchronize").synchronize()
