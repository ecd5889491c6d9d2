"""Tables of positions, made once for lengths near each other; what layers add or turn by, eager and recorded alike."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..errors import ArgumentError, ours
from ..ir.checks import fits, integer, number

__all__ = ["cosines_and_sines", "encoding", "rotary_rows", "sinusoidal_rows", "whole_rotary"]

_STEP = 512  # tables grow by steps, so that lengths near each other share one
_KEPT = 1 << 22  # elements of a table that is retained


@functools.lru_cache(maxsize=8)
def _encoding(length: int, dim: int, base: float) -> np.ndarray:
    table = encoding("sinusoidal_encoding", length, dim, base)
    table.flags.writeable = False
    return table


@functools.lru_cache(maxsize=8)
def _tables(length: int, dim: int, base: float) -> tuple[np.ndarray, np.ndarray]:
    found = cosines_and_sines("rotary_tables", length, dim, base)
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


def cosines_and_sines(name: str, length: Any, dim: Any, base: Any) -> tuple[np.ndarray, np.ndarray]:
    """See `functional.rotary_tables`; `name`: of the function that errors name."""
    with ours(lambda: name):  # layers ask for tables of any length, outside of a function that says there is no memory
        angles = _angles(name, length, dim, base)
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def encoding(name: str, length: Any, dim: Any, base: Any) -> np.ndarray:
    """See `functional.sinusoidal_encoding`; `name`: of the function that errors name."""
    with ours(lambda: name):
        angles = _angles(name, length, dim, base)
        pairs = np.stack([np.sin(angles), np.cos(angles)], axis=2)
        return pairs.reshape(angles.shape[0], 2 * angles.shape[1]).astype(np.float32)


def _angles(name: str, length: Any, dim: Any, base: Any) -> np.ndarray:
    """(length, dim / 2) in float64."""
    steps, width, slow = integer(name, "length", length, 0), integer(name, "dim", dim, 0), number(name, "base", base)
    if width % 2 or not slow > 0:
        raise ArgumentError(f"{name}: dim is {width}, base {slow}: expected an even size and a positive number")
    fits(name, (steps + 1) * (width + 1), np.float64, f"{steps} positions of {width} values")
    with np.errstate(all="ignore"):
        found: np.ndarray = np.arange(steps)[:, None] * slow ** (-np.arange(0, width, 2) / max(width, 1))
    return found
