"""Copies between any strides, rows picked by number, and casts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...errors import ShapeError

__all__ = ["cast", "copy", "embedding", "gather"]


def copy(
    x: np.ndarray,
    out: np.ndarray,
    shape: Sequence[int],
    x_offset: int,
    x_strides: Sequence[int],
    out_offset: int,
    out_strides: Sequence[int],
    itemsize: int,
) -> None:
    """out[out_offset + Σ i out_strides] = x[x_offset + Σ i x_strides] for all i < shape; offsets and strides count items."""
    if 0 not in shape:
        items = f"V{itemsize}"  # no conversion may touch a bit
        source = _strided(x.view(items), shape, x_offset, x_strides)
        _strided(out.view(items), shape, out_offset, out_strides)[...] = source


def _strided(array: np.ndarray, shape: Sequence[int], offset: int, strides: Sequence[int]) -> np.ndarray:
    flat = array.reshape(-1)[offset:]
    return as_strided(flat, tuple(shape), tuple(array.itemsize * s for s in strides), writeable=array.flags.writeable)


def gather(x__oni: np.ndarray, indices__m: np.ndarray, out__omi: np.ndarray, itemsize: int) -> None:
    """out[o, j] = x[o, indices[j]]; an index below 0 counts from the end, ShapeError if one is out of range."""
    n = x__oni.shape[1]
    check("gather: index", indices__m, -n, n - 1)
    out__omi[...] = x__oni[:, indices__m]


def embedding(weight__vd: np.ndarray, ids__m: np.ndarray, out__md: np.ndarray) -> None:
    """out[j] = weight[ids[j]]; ShapeError if an id is out of range, and one below 0 is."""
    check("embedding: id", ids__m, 0, weight__vd.shape[0] - 1)
    out__md[...] = weight__vd[ids__m]


def check(name: str, indices: np.ndarray, least: int, most: int) -> None:
    """ShapeError if an index is out of range."""
    wrong = indices[(indices < least) | (indices > most)]
    if wrong.size:
        raise ShapeError(f"{name} {wrong[0]} is out of range: expected {least} to {most}")


def cast(x: np.ndarray, out: np.ndarray, source: int, target: int) -> None:
    """out = x as another dtype, both codes of table.KINDS, which the arrays are of."""
    with np.errstate(all="ignore"):
        out[...] = x.astype(out.dtype)
