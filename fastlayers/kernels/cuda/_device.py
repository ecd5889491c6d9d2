"""Arrays on the GPU, and kernel functions that take arrays of either side."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, overload

import numpy as np

from ...errors import LimitError
from ._cuda import SIMULATED, U8, cuda, current_stream, failure, kernel, sized, synchronize, threads
from ._dlpack import capsule, place
from ._driver import event
from ._memory import Block, kept, lent

__all__ = ["Array", "absent", "empty", "on_device", "placed", "sent", "upload", "zeros"]


@kernel
def clear_kernel(out: U8, n: int) -> None:
    """Zeros, one byte per thread: what is cleared is small next to what is computed into it."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        out[i] = 0


class Array:
    """A contiguous array on the GPU: a shape and a dtype in a piece of memory. Kernels take its `flat`."""

    __slots__ = ("__weakref__", "_flat", "block", "dtype", "offset", "shape")

    def __init__(self, block: Block, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.block, self.offset, self.shape, self.dtype = block, offset, shape, dtype
        self._flat: Any = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        return self.size * self.dtype.itemsize

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def flat(self) -> Any:
        """Memory as kernels take it: one axis, never empty, bool as uint8. It does not keep the memory: this array does."""
        if self._flat is None:
            self._flat = self.items("u1" if self.dtype.kind == "b" else self.dtype)
        return self._flat

    def items(self, dtype: Any) -> Any:
        """The same memory as one axis of another dtype, such as "u4" for any four bytes."""
        dtype = np.dtype(dtype)
        count = max(self.nbytes, dtype.itemsize)
        return self.block.buffer[self.offset : self.offset + count].view(dtype)

    def view(self, shape: tuple[int, ...], dtype: Any = None, start: int = 0) -> Array:
        """The same memory in another shape or dtype, from byte `start` on."""
        return Array(self.block, self.offset + start, shape, self.dtype if dtype is None else np.dtype(dtype))

    def reshape(self, *shape: Any) -> Array:
        """The same values in another shape, of which one size may be -1."""
        sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if -1 in sizes:
            rest = -math.prod(sizes)
            sizes = tuple(self.size // rest if s == -1 else s for s in sizes)
        assert math.prod(sizes) == self.size, (self.shape, sizes)
        return self.view(sizes)

    @property
    def pointer(self) -> int:
        """The address on the GPU."""
        if SIMULATED:
            return int(self.flat._ary.ctypes.data)
        return int(self.flat.device_ctypes_pointer.value or 0)

    @property
    def aligned(self) -> bool:
        """Whether load4 may start at element 0."""
        return self.pointer % 16 == 0

    def fill_from(self, array: np.ndarray) -> None:
        """Copies values of the same dtype and count from the host."""
        if array.size:
            source = np.ascontiguousarray(array).reshape(-1)
            try:
                stream = current_stream()
                self.flat.copy_to_device(source.view(np.uint8) if source.dtype.kind == "b" else source, stream=stream)
                if stream:  # memory that is pinned is read later, when its owner may have changed it
                    stream.synchronize()
            except Exception as error:
                raise failure(f"cuda: a copy of {self.nbytes} bytes to the GPU", error) from error

    def clear(self) -> None:
        """Zeros."""
        if self.size:
            block = threads(256)
            clear_kernel.launch(sized(self.nbytes, block), block, self.items("u1"), self.nbytes)

    def copy_to(self, array: np.ndarray) -> None:
        """Copies to a contiguous host array of the same dtype and count; waits for work that was queued before."""
        if array.size:
            target = array.reshape(-1)
            stream = current_stream()
            try:
                self.block.ready()
                self.flat.copy_to_host(target.view(np.uint8) if target.dtype.kind == "b" else target, stream=stream)
                if stream:
                    stream.synchronize()
            except Exception as error:  # also an error of work that was queued before
                raise failure(f"cuda: a copy of {self.nbytes} bytes from the GPU", error) from error

    def numpy(self) -> np.ndarray:
        """A copy on the host."""
        try:
            out: np.ndarray = np.empty(self.shape, self.dtype)
        except MemoryError:
            raise LimitError(f"cuda: the host has no memory for a copy of {self.nbytes} bytes") from None
        self.copy_to(out)
        return out

    # ---- for other libraries ------------------------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array on the GPU becomes a numpy array only by a copy")
        out = self.numpy()
        return out if dtype is None else out.astype(dtype, copy=False)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape, "strides": None, "typestr": self.dtype.str, "version": 3,
            "data": (self.pointer if self.size else 0, False), "stream": self.block.shown(),
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return place()

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        return capsule(self, stream, dl_device, copy)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype})"


def empty(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """Uninitialized memory."""
    dtype = np.dtype(dtype)
    return Array(lent(math.prod(shape) * dtype.itemsize), 0, tuple(shape), dtype)


def sent(array: np.ndarray) -> Array:
    """A copy of a host array on the GPU, for what the current stream does next."""
    made = empty(array.shape, array.dtype)
    made.fill_from(array)
    return made


def placed(array: np.ndarray) -> Array:
    """A copy of a host array on the GPU, which is there when this returns, for whatever stream."""
    made = sent(array)
    made.block.finished(event())
    return made


def upload(array: np.ndarray) -> Array:
    """As `placed`, in its own memory, which is not reused while work on any stream may still read it: for what is retained."""
    made = Array(kept(array.nbytes), 0, array.shape, array.dtype)
    made.fill_from(array)
    synchronize()
    return made


def zeros(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    """Zeros."""
    return upload(np.zeros(shape, dtype))


@cache
def _nothing(dtype: str) -> Array:
    return zeros((4,), dtype)


def absent(dtype: str = "f4") -> Any:
    """Flat array that a kernel takes in place of an absent one."""
    return _nothing(dtype).flat


# Arguments that kernels write; see table.py for the others.
RESULTS = frozenset({"cn", "hn", "out", "scores"})


@overload
def on_device(function: Callable[..., Any]) -> Callable[..., Any]: ...
@overload
def on_device(*, partial: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def on_device(function: Any = None, *, partial: bool = False) -> Any:
    """The decorator of a kernel function of this folder: its body gets an `Array` for every array.

    The caller may give host arrays instead: they are copied to the GPU, and results back. `partial`: it need not write
    every element of its results.
    """
    if function is None:
        return lambda f: _wrapped(f, partial)
    return _wrapped(function, False)


def _wrapped(function: Callable[..., Any], partial: bool) -> Callable[..., Any]:
    names = list(inspect.signature(function).parameters)
    results = tuple(name.split("__")[0] in RESULTS for name in names)

    @wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        if named:
            arguments = (*arguments, *(named[name] for name in names[len(arguments) :]))
        if not any(isinstance(a, np.ndarray) for a in arguments):
            return function(*arguments)
        made: dict[Any, Array] = {}
        given: list[Any] = []
        written: list[tuple[np.ndarray, Array]] = []
        for value, is_result in sorted(zip(arguments, results, strict=True), key=lambda pair: pair[1]):
            if not isinstance(value, np.ndarray):
                continue
            key = (value.__array_interface__["data"][0], value.nbytes) if value.size else id(value)
            array = made.get(key)  # a result may be an operand
            if array is None:
                array = made[key] = empty(value.shape, value.dtype)
                if not is_result or partial:
                    array.fill_from(value)
            if is_result:
                written.append((value, array))
        for value in arguments:
            if isinstance(value, np.ndarray):
                key = (value.__array_interface__["data"][0], value.nbytes) if value.size else id(value)
                value = made[key].view(value.shape, value.dtype)
            given.append(value)
        answer = function(*given)
        for value, array in written:
            array.view(value.shape, value.dtype).copy_to(value)
        return answer

    run.on_device = True  # type: ignore[attr-defined]
    return run
