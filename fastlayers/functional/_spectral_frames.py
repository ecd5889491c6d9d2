"""The shared part of short-time transforms: their arguments, checked; plans that are retained; frames cut out of signals."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .._arguments import shown
from .._tuples import NamedTuple
from ..calls import spectral as calls
from ..calls.machine import ARRAYS
from ..errors import ArgumentError, ShapeError
from ..graph.arrays import empty
from ..ir.checks import flag, integer, number
from ..ir.graph import Dim, Shape
from ..kernels import dispatch
from ..kernels.fft_tables import MOST_SIZE, REAL, RFFT
from ..operators.spectral_rules import scale_of
from ..rules.spectral import frames_rule, window_rule
from ._padding import pad

__all__ = [
    "Frames", "cut", "frames_in", "frames_of", "inverse_scale", "padded", "plan", "power_of", "whole_window",
]  # fmt: skip

_KEPT = 1 << 16  # points of the longest transform whose plan is retained between calls


@functools.lru_cache(maxsize=32)
def _kept(pack: Any, size: int, kind: int, scale: float) -> Any:
    return pack(size, kind, scale)


def plan(size: int, kind: int, scale: float) -> Any:
    """A plan of the variant in use; those of moderate size are retained, the last few."""
    pack = dispatch.kernel("fft_pack")
    return _kept(pack, size, kind, scale) if size <= _KEPT else pack(size, kind, scale)


class Frames(NamedTuple):
    """The arguments of short-time transforms, checked."""

    n_fft: int
    hop: int
    win: int
    center: bool
    pad_mode: str
    normalized: bool
    onesided: bool

    @property
    def bins(self) -> int:
        """Frequencies."""
        return self.n_fft // 2 + 1 if self.onesided else self.n_fft

    @property
    def around(self) -> int:
        """Values that are put before and after the signal."""
        return self.n_fft // 2 if self.center else 0


PAD_MODES = ("reflect", "constant", "replicate", "circular")


def frames_of(
    name: str, n_fft: Any, hop_length: Any, win_length: Any, center: Any, pad_mode: Any, normalized: Any, onesided: Any
) -> Frames:
    """Checks the arguments and puts in the defaults."""
    size = integer(name, "n_fft", n_fft, 1, MOST_SIZE)
    win = size if win_length is None else integer(name, "win_length", win_length, 1, size)
    hop = max(size // 4, 1) if hop_length is None else integer(name, "hop_length", hop_length, 1, 1 << 31)
    if not isinstance(pad_mode, str) or pad_mode not in PAD_MODES:
        raise ArgumentError(f"{name}: pad_mode is {shown(pad_mode)}: expected one of {', '.join(map(repr, PAD_MODES))}")
    flags = (flag(name, "center", center), flag(name, "normalized", normalized), flag(name, "onesided", onesided))
    return Frames(size, hop, win, flags[0], pad_mode, *flags[1:])


def whole_window(name: str, s: Frames, window: np.ndarray | None) -> np.ndarray | None:
    """The window, with zeros around it where it is shorter than a transform; None where it is all ones."""
    window_rule(name, None if window is None else window.shape, s.win, "win_length")
    if s.win == s.n_fft:
        return window
    out, before = np.zeros(s.n_fft, np.float32), (s.n_fft - s.win) // 2
    out[before : before + s.win] = 1 if window is None else window
    return out


def frames_in(name: str, x: Shape, s: Frames) -> Dim:
    """The number of frames of a signal."""
    if len(x) not in (1, 2):
        raise ShapeError(f"{name}: x has shape {x}: expected (t,) or (n, t)")
    if not isinstance(x[-1], int):
        return None
    # For a signal too short to be padded, a program raises the error of `pad`.
    least = s.around + 1 if s.around and s.pad_mode == "reflect" else s.n_fft - 2 * s.around
    frames_rule(name, x[-1], least, s.n_fft, "n_fft")
    return (x[-1] + 2 * s.around - s.n_fft) // s.hop + 1


def cut(x: np.ndarray, window: np.ndarray | None, s: Frames, frames: int, scale: float) -> np.ndarray:
    """(n, frames, frequencies, 2) of signals (n, t), which are padded already."""
    out = empty((len(x), frames, s.bins, 2))
    calls.frames(ARRAYS, plan(s.n_fft, RFFT if s.onesided else REAL, scale), x, window, out, s.hop)
    return out


def padded(name: str, x: np.ndarray, s: Frames) -> np.ndarray:
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    return pad(rows, (s.around, s.around), s.pad_mode) if s.around else rows


def inverse_scale(s: Frames) -> float:
    """The factors of sums of inverse transforms."""
    return scale_of("ortho" if s.normalized else "backward", True, s.n_fft)


def power_of(name: str, power: Any) -> float:
    """The exponent of magnitudes: 1 or 2."""
    found = number(name, "power", power)
    if found not in (1.0, 2.0):
        raise ArgumentError(f"{name}: power is {found}: expected 1 or 2")
    return found
