"""Numba's simulator: the names of numba.cuda within kernels, and twins of what it has not got."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from ._driver import numba_cuda

__all__ = ["block_max", "block_sum", "group_max", "group_sum", "load1", "load4", "store1", "store4", "within"]

f32 = np.float32


class _Shared:
    """Shared memory of a block: an array for each line that asks for one, as the simulator's, which refuses alignments."""

    def __init__(self, allocations: dict[Any, np.ndarray]) -> None:
        self._allocations = allocations

    def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> np.ndarray:
        """An array of the block."""
        caller = sys._getframe(1)
        key = caller.f_code, caller.f_lineno
        found = self._allocations.get(key)
        if found is None:
            kind = np.dtype(dtype if isinstance(dtype, (str, type)) else str(dtype))
            found = self._allocations.setdefault(key, np.empty(shape, kind))
        return found


class _Within:
    """The names of numba.cuda within a kernel that the simulator runs, wherever the function stands that asks for them."""

    def __getattr__(self, name: str) -> Any:
        from numba.cuda.simulator import kernel as simulator

        context = simulator._get_kernel_context()
        if name == "shared" and context is not None:
            return _Shared(context.shared._allocations)
        return getattr(numba_cuda if context is None else context, name)


within: Any = _Within()


def _shared_by_all(value: Any) -> tuple[np.ndarray, int]:
    """Shares a value with all threads of the block; returns all values, and the index of this thread. There are no shuffles: it
    goes through one of two shared arrays, alternately, so that threads wait for each other once.
    """
    thread = threading.current_thread()
    turn = thread.__dict__["turn"] = 1 - thread.__dict__.get("turn", 0)
    shape = within.blockDim
    me = within.threadIdx.x + shape.x * (within.threadIdx.y + shape.y * within.threadIdx.z)
    scratch = within.shared.array((2, 1024), "float32")[turn]
    scratch[me] = value
    within.syncthreads()
    return scratch[: shape.x * shape.y * shape.z], me


def _folded(value: Any, width: int, fold: Any) -> Any:
    values, me = _shared_by_all(value)
    begin = me - me % width
    return f32(fold(values[begin : begin + width].astype(np.float32)))


def group_sum(value: Any, width: int) -> Any:
    """The sum of what `width` (1, 2, 4 .. 32) neighbouring threads have. All threads of the block call it."""
    return _folded(value, width, np.sum)


def group_max(value: Any, width: int) -> Any:
    """The largest, NaN if one is. All threads of the block call it."""
    return _folded(value, width, np.max)


def block_sum(value: Any, scratch: Any) -> Any:
    """The sum over the block."""
    return f32(np.sum(_shared_by_all(value)[0].astype(np.float32)))


def block_max(value: Any, scratch: Any) -> Any:
    """The largest of the block, NaN if one is."""
    return f32(np.max(_shared_by_all(value)[0].astype(np.float32)))


def load1(a: Any, i: Any) -> Any:
    """a[i]; i is not negative."""
    assert i >= 0
    return a[i]


def store1(a: Any, i: Any, v: Any) -> None:
    """a[i] = v; i is not negative."""
    assert i >= 0
    a[i] = v


def load4(a: Any, i: Any) -> Any:
    """a[i], .. a[i + 3] in one transaction; i is divisible by 4."""
    assert i % 4 == 0
    return a[i], a[i + 1], a[i + 2], a[i + 3]


def store4(a: Any, i: Any, v: Any, w: Any, x: Any, y: Any) -> None:
    """a[i], .. a[i + 3] = v, w, x, y in one transaction; i is divisible by 4."""
    assert i % 4 == 0
    a[i], a[i + 1], a[i + 2], a[i + 3] = v, w, x, y
