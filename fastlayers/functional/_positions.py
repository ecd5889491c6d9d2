"""Tables of positions, made once for lengths near each other; what layers add or turn by, eager and recorded alike."""

from __future__ import annotations

import functools

import numpy as np

from .positional import rotary_tables, sinusoidal_encoding

__all__ = ["rotary_rows", "sinusoidal_rows", "whole_rotary"]

_STEP = 512  # tables grow by steps, so that lengths near each other share one
_KEPT = 1 << 22  # elements of a table that is kept


@functools.lru_cache(maxsize=8)
def _encoding(length: int, dim: int, base: float) -> np.ndarray:
    table = sinusoidal_encoding(length, dim, base)
    table.flags.writeable = False
    return table


@functools.lru_cache(maxsize=8)
def _tables(length: int, dim: int, base: float) -> tuple[np.ndarray, np.ndarray]:
    found = rotary_tables(length, dim, base)
    for table in found:
        table.flags.writeable = False
    return found


def _whole(length: int) -> int:
    return -(-length // _STEP) * _STEP


def sinusoidal_rows(start: int, steps: int, dim: int, base: float) -> np.ndarray:
    """`sinusoidal_encoding` of the positions from `start` on: (steps, dim), read-only and contiguous."""
    length = _whole(start + steps)
    made = _encoding if length * dim <= _KEPT else _encoding.__wrapped__
    return made(length, dim, base)[start : start + steps]


def rotary_rows(start: int, steps: int, dim: int, base: float) -> tuple[np.ndarray, np.ndarray]:
    """`rotary_tables` of the positions from `start` on: (steps, dim / 2) each, read-only and contiguous."""
    cos, sin = whole_rotary(start + steps, dim, base)
    return cos[start : start + steps], sin[start : start + steps]


def whole_rotary(length: int, dim: int, base: float) -> tuple[np.ndarray, np.ndarray]:
    """`rotary_tables` of at least the first `length` positions, read-only."""
    made = _tables if _whole(length) * dim <= _KEPT else _tables.__wrapped__
    return made(_whole(length), dim, base)
