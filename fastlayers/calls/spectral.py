"""Fourier transforms: one kernel, along rows. An axis that is not the last is brought there, and back.

Complex values are pairs on a last axis of 2; that of reals has the size 1, or is not there. `packed` are the tables of so many
points, a kind of transform and a factor: see `fft_tables`.
"""

from __future__ import annotations

import math
from typing import Any

from .machine import Machine

__all__ = ["frames", "transform"]


def transform(m: Machine, packed: Any, x: Any, out: Any, at: int, pairs: bool, gives: bool) -> None:
    """Transforms along axis `at`, of as many points as were packed; x is cut there, or zeros are put after it.

    `pairs`, `gives`: whether x, and the result, have a last axis of the parts of numbers.
    """
    n, p = x.shape[at], x.shape[-1] if pairs else 1
    w, q = out.shape[at], out.shape[-1] if gives else 1
    outer, inner = math.prod(x.shape[:at]), math.prod(x.shape[at + 1 :]) // p
    if inner == 1:
        m.call("fft", m.view(x, (outer, n * p)), packed, None, m.view(out, (outer, 1, w * q)), 0)
        return
    rows, made = m.temp((outer * inner, n * p)), m.temp((outer * inner, 1, w * q))
    _moved(m, x, rows, (outer, inner, n, p), (n * inner * p, p, inner * p, 1))
    m.call("fft", rows, packed, None, made, 0)
    _moved(m, made, out, (outer, w, inner, q), (inner * w * q, q, w * q, 1))


def _moved(m: Machine, x: Any, out: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Fills `out`, of this shape, with what of x these strides tell; a last axis of 1 is left out."""
    axes = 3 if shape[3] == 1 else 4
    own = tuple(math.prod(shape[i + 1 :]) for i in range(axes))
    if 0 not in shape:
        m.call("copy", x, out, shape[:axes], 0, strides[:axes], 0, own, 4)


def frames(m: Machine, packed: Any, x: Any, window: Any, out: Any, step: int) -> None:
    """Transforms (n, frames, frequencies, 2) of overlapping frames of x (n, t) or (n, t, parts), each times the window."""
    if len(x.shape) == 3:
        n, t, parts = x.shape
        x, step = m.view(x, (n, t * parts)), step * parts
    m.call("fft", x, packed, window, m.view(out, (*out.shape[:2], out.shape[2] * out.shape[3])), step)
