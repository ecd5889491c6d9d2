"""Padding of the three space axes: constant, reflect, replicate, circular. No cropping (negative pads)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..table import PAD_MODES

__all__ = ["pad", "padded"]

_NUMPY_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_BY_NUMBER = {number: _NUMPY_MODES[name] for name, number in PAD_MODES.items()}


def pad(x: np.ndarray, out: np.ndarray, pads: Sequence[int], mode: int, value: float) -> None:
    """Copies x (o, d, h, w, i) into the middle of `out` and fills the rest: with `value`, or from x as the mode says."""
    out[...] = padded(x, 1, pads, mode, value)


def padded(x: np.ndarray, first: int, pads: Sequence[int], mode: int, value: float = 0.0) -> np.ndarray:
    """x with axes from `first` on padded; pads: two for each, (d before, d after, h before, h after, w before, w after)."""
    width = [(0, 0)] * x.ndim
    width[first : first + len(pads) // 2] = list(zip(pads[::2], pads[1::2], strict=True))
    options: dict[str, Any] = {"mode": _BY_NUMBER[mode]}
    if mode == PAD_MODES["zeros"]:
        options["constant_values"] = value
    with np.errstate(over="ignore"):  # a value that float32 cannot hold is infinite
        result: np.ndarray = np.pad(x, width, **options)
    return result
