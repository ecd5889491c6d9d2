"""Axes of operands that are walked together: merged where they can be, and as kernels read them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ._device import Array, upload

__all__ = ["broadcast", "contiguous", "merged", "table"]


def contiguous(shape: Sequence[int]) -> list[int]:
    """Strides of a contiguous array, in elements."""
    found = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        found[i] = found[i + 1] * shape[i + 1]
    return found


def merged(shape: Sequence[int], *strides: Sequence[int]) -> list[list[int]]:
    """[size, stride of each operand] of the axes: those of size 1 are gone, neighbours have become one where they can."""
    axes: list[list[int]] = []
    for size, *steps in zip(shape, *strides, strict=True):
        if size == 1:
            continue
        if axes and all(axes[-1][1 + k] == step * size for k, step in enumerate(steps)):
            axes[-1] = [axes[-1][0] * size, *steps]
        else:
            axes.append([size, *steps])
    return axes


def broadcast(out: tuple[int, ...], *operands: Array) -> list[list[int]]:
    """The axes of a result, merged, with the strides of operands that are broadcast to it."""
    strides = []
    for x in operands:
        shape = (1,) * (len(out) - x.ndim) + x.shape
        strides.append([0 if size == 1 else step for size, step in zip(shape, contiguous(shape), strict=True)])
    return merged(out, *strides)


@lru_cache(maxsize=1024)
def table(axes: tuple[tuple[int, ...], ...]) -> Array:
    """Axes as a kernel reads them, flat: all sizes, then all strides of the first operand, and so on."""
    columns = np.array(axes, np.int64).reshape(len(axes), -1).T if axes else np.zeros((1, 1), np.int64)
    return upload(np.ascontiguousarray(columns))
