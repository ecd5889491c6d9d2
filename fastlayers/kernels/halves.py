"""Weights of 16 bits: what rounding to float16 or bfloat16 makes of them, as float32, and as they are stored. The meaning of
`table.HALF_KINDS`.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from ..errors import ArgumentError
from .table import EXACT_BFLOAT16, HALF_KINDS, HALVES

__all__ = ["LARGEST_HALF", "STORED", "narrowed", "rounded", "widened"]

LARGEST_HALF = 65504.0  # of float16; what is larger would become infinite
# As what arrays are stored; numpy lacks bfloat16, so there its bits are.
STORED = {half: np.dtype(np.float16 if half == HALVES["float16"] else np.uint16) for half in HALF_KINDS.values()}
_ROWS = 256  # that are converted at a time


def narrowed(array: np.ndarray, half: int) -> np.ndarray:
    """float32 values rounded to 16 bits, as the uint16 that are stored."""
    made = np.empty(array.shape, STORED[half])
    for i in range(0, len(array), _ROWS):
        some = rounded(array[i : i + _ROWS], half)
        made[i : i + _ROWS] = some if made.dtype.kind == "f" else np.ascontiguousarray(some).view(np.uint32) >> np.uint32(16)
    return made


def widened(array: np.ndarray, half: int) -> np.ndarray:
    """Values that are stored in 16 bits as float32; others as they are."""
    if array.dtype == np.float32 or array.dtype != STORED.get(half):
        return array
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    made = array.astype(np.uint32)
    made <<= np.uint32(16)
    return made.view(np.float32)


@overload
def rounded(array: np.ndarray, half: int) -> np.ndarray: ...


@overload
def rounded(array: None, half: int) -> None: ...


def rounded(array: np.ndarray | None, half: int) -> np.ndarray | None:
    """float32 values rounded to nearest, ties to even; 0: as they are. NaN stays NaN."""
    if not half or array is None:
        return array
    if half == HALVES["float16"]:
        with np.errstate(over="ignore"):
            return array.astype(np.float16).astype(np.float32)
    if half not in (HALVES["bfloat16"], EXACT_BFLOAT16):
        raise ArgumentError(f"half is {half}: expected 0, or one of {HALF_KINDS}")
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    odd = bits >> np.uint32(16) & np.uint32(1)
    upper = np.where(np.isnan(array), bits | np.uint32(0x400000), bits + (np.uint32(0x7FFF) + odd)) & np.uint32(0xFFFF0000)
    made: np.ndarray = upper.astype(np.uint32).view(np.float32).reshape(array.shape)
    return made
