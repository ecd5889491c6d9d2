"""The GPU's driver as Numba offers it: the device, its streams, memory that is somebody else's, and its errors as ours."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numba import cuda as _numba_cuda
from numba.core import config

from ...errors import DeviceError, LimitError

__all__ = [
    "SIMULATED",
    "current_stream",
    "event",
    "failure",
    "foreign",
    "numba_cuda",
    "on_stream",
    "order",
    "processors",
    "start",
    "stream_pointer",
    "synchronize",
    "wait",
]

SIMULATED = bool(config.ENABLE_CUDASIM)
numba_cuda: Any = _numba_cuda


def start(what: str) -> None:
    """Starts the driver; a DeviceError names `what` if it cannot be, or this thread is on another GPU than the first was."""
    try:
        first, number = _first_device(), current_device()
    except Exception as error:
        raise DeviceError(f"{what}: CUDA cannot be used on this machine: {error}") from error
    if number != first:
        raise DeviceError(f"{what}: this thread's GPU is {number}: expected {first}, on which fastlayers began")


def current_device() -> int:
    """The number of this thread's GPU."""
    return 0 if SIMULATED else int(_numba_cuda.current_context().device.id)


@cache
def _first_device() -> int:
    """Device of the first thread: tables, weights and free memory are there."""
    return current_device()


def device_of(pointer: int) -> int | None:
    """The number of the GPU that has this memory, or None where no driver knows."""
    if SIMULATED:
        return None
    try:
        from numba.cuda.cudadrv.driver import binding, driver

        kind = binding.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(driver.cuPointerGetAttribute(kind, binding.CUdeviceptr(pointer)))
    except Exception:
        return None


@cache
def processors() -> int:
    """Streaming multiprocessors of the GPU."""
    return 2 if SIMULATED else int(_numba_cuda.current_context().device.MULTIPROCESSOR_COUNT)


def failure(what: str, error: Exception) -> DeviceError | LimitError:
    """An error of the driver as a fastlayers error."""
    if "OUT_OF_MEMORY" in str(error):
        return LimitError(f"{what}: the GPU has no memory left ({error})")
    return DeviceError(f"{what}: the GPU refused: {type(error).__name__}: {error}")


_streams = threading.local()


def current_stream() -> Any:
    """Stream on which work of this thread is queued: 0, the default stream, or one of Numba's stream objects."""
    return getattr(_streams, "now", 0)


def stream_pointer() -> int:
    """The driver's handle of the current stream, 0 for the default one."""
    return getattr(_streams, "pointer", 0)


@contextmanager
def on_stream(pointer: int) -> Iterator[None]:
    """Work of this thread is queued on the stream of this handle meanwhile; 0 and 1 are the default one."""
    before = current_stream(), stream_pointer()
    _streams.now, _streams.pointer = _stream(pointer), 0 if pointer == 1 else pointer
    try:
        yield
    finally:
        _streams.now, _streams.pointer = before


def event() -> Any:
    """Now, on the current stream; None where nothing is ever waited for."""
    return None if SIMULATED else _recorded(current_stream())


def _recorded(stream: Any) -> Any:
    try:
        made = _numba_cuda.event(timing=False)
        made.record(stream)
    except Exception as error:  # also an error of work that was queued before
        raise failure("cuda: an event", error) from error
    return made


def wait(done: Any, stream: int) -> None:
    """Makes all work queued on a stream (a handle, 0 and 1 the default one) from now on wait for an event."""
    if done is not None:
        try:
            done.wait(_stream(stream))
        except Exception as error:
            raise failure("cuda: waiting for another stream", error) from error


def order(first: int, then: int) -> None:
    """Makes all work queued on the stream `then` from now on wait for the work on `first`; handles, 0 and 1 the default one."""
    if SIMULATED or (first if first != 1 else 0) == (then if then != 1 else 0):
        return
    wait(_recorded(_stream(first)), then)


def _stream(pointer: int) -> Any:
    return 0 if pointer in (0, 1) else _numba_cuda.external_stream(pointer)


def synchronize() -> None:
    """Waits for all that is queued on the current stream."""
    stream = current_stream()
    try:
        stream.synchronize() if stream else _numba_cuda.synchronize()
    except Exception as error:
        raise failure("synchronize", error) from error


def foreign(pointer: int, nbytes: int, owner: Any) -> Any:
    """Bytes of the GPU's memory that are somebody else's."""
    if SIMULATED:
        from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

        return FakeCUDAArray(np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(pointer)))
    interface = {"shape": (nbytes,), "typestr": "|u1", "data": (pointer, False), "version": 2}
    return _numba_cuda.from_cuda_array_interface(interface, owner=owner)
