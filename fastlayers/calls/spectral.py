"""Fourier transforms: one kernel, along rows. An axis that is not the last is brought there, and back.

Complex values are pairs on a last axis of 2; that of reals has the size 1.
"""

from __future__ import annotations

import math
from typing import Any

from .machine import Machine

__all__ = ["frames", "transform"]


def transform(m: Machine, x: Any, out: Any, at: int, points: int, kind: int, scale: float, kept: bool = True) -> None:
    """Transforms of so many points along axis `at`; x is cut there, or zeros are put after it. `kind`: of `fft_tables`."""
    packed = m.pack("fft_pack", lambda: (points, kind, scale), ("fft", points, kind), kept)
    outer, inner = math.prod(x.shape[:at]), math.prod(x.shape[at + 1 : -1])
    (n, p), (w, q) = (x.shape[at], x.shape[-1]), (out.shape[at], out.shape[-1])
    rows, made = x, out
    if inner != 1:
        rows, made = m.temp((outer, inner, n, p)), m.temp((outer, inner, w, q))
        _moved(m, x, rows, (outer, inner, n, p), (n * inner * p, p, inner * p, 1))
    m.call("fft", m.view(rows, (outer * inner, n * p)), packed, None, m.view(made, (outer * inner, 1, w * q)), 0)
    if inner != 1:
        _moved(m, made, out, (outer, w, inner, q), (inner * w * q, q, w * q, 1))


def _moved(m: Machine, x: Any, out: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Fills `out`, of this shape, with what of x these strides tell; a last axis of 1 is left out."""
    axes = 3 if shape[3] == 1 else 4
    own = tuple(math.prod(shape[i + 1 :]) for i in range(axes))
    if 0 not in shape:
        m.call("copy", x, out, shape[:axes], 0, strides[:axes], 0, own, 4)


def frames(m: Machine, x: Any, window: Any, out: Any, points: int, kind: int, scale: float, step: int, kept: bool = True) -> None:
    """Transforms (n, frames, frequencies, 2) of overlapping frames of x (n, t) or (n, t, parts), each times the window."""
    n, t = x.shape[:2]
    parts = x.shape[2] if len(x.shape) == 3 else 1
    packed = m.pack("fft_pack", lambda: (points, kind, scale), ("fft", points, kind), kept)
    made = m.view(out, (n, out.shape[1], out.shape[2] * out.shape[3]))
    m.call("fft", m.view(x, (n, t * parts)), packed, window, made, step * parts)
