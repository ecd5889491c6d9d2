"""Tables of weighted taps for `resize`: where every output of an axis reads, and how much of it.

A table is (index, weight), both [taps][outputs], int64 and float32; weight None: one tap of weight 1.
Positions are float32, in the order of operations of the framework that is followed: where a position is nearly whole, or nearly
between two elements, nothing else chooses the same element. `onnx_taps` follows onnxruntime, or TensorFlow; `torch_tables` torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .._tuples import NamedTuple

__all__ = ["Axis", "Rule", "Table", "onnx_taps", "torch_size", "torch_tables"]

Table = tuple[np.ndarray, np.ndarray | None]

NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "ceil_if_smaller")
COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)  # fmt: skip
_HALF = np.float32(0.5)
TIE = np.float32(1e-6)  # onnxruntime takes what is this near to the middle of two elements for the middle
STEPS = 1024  # of a pixel in TensorFlow's table of cubic weights
FEW = 128  # rows and columns of a result for which torch looks at the sizes first


class Axis(NamedTuple):
    """An axis that ONNX's Resize changes: sizes, scale, and the part of it that tf_crop_and_resize takes."""

    size: int
    out: int
    scale: float
    start: float = 0.0
    end: float = 1.0


class Rule(NamedTuple):
    """Attributes of ONNX's Resize. `steps`: positions are multiples of size / out, as in TensorFlow, not quotients."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    a: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    steps: bool = False


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """The weight of a tap at distance x in cubic interpolation."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _around(x: np.ndarray, size: int, rule: Rule, scale: float = 1.0) -> Table:
    """Taps around the positions x; scale < 1 widens them (antialias). Positions outside count as the nearest one inside."""
    x = x.astype(np.float64)
    low = np.ceil(x) - 1
    cubic, ratio = rule.mode == "cubic", x - low
    if cubic and rule.steps and not rule.antialias:
        ratio = np.rint(ratio * STEPS) / STEPS
    start = math.floor(-(2 if cubic else 1) / scale) + 1
    offsets = np.arange(start, 2 - start)[:, None]
    distance = (offsets - ratio) * scale
    weight = _cubic(distance, rule.a) if cubic else np.clip(1 - np.abs(distance), 0, 1)
    index = low.astype(np.int64) + offsets
    if rule.exclude_outside:
        weight = np.where((index < 0) | (index >= size), 0.0, weight)
    if rule.exclude_outside or scale < 1:
        total = weight.sum(0)
        weight = weight / np.where(total == 0, 1.0, total)
    return index.clip(0, size - 1), weight.astype(np.float32)


def _positions(axis: Axis, mode: str, steps: bool) -> np.ndarray:
    """Positions of outputs in the input. The order of operations is the framework's."""
    x: np.ndarray = np.arange(axis.out, dtype=np.float32)
    size, out, scale, one = np.float32(axis.size), np.float32(axis.out), np.float32(axis.scale), np.float32(1)
    if axis.out == 1 and mode in ("align_corners", "pytorch_half_pixel"):
        return x
    if mode == "align_corners":
        x = x * ((size - one) / (out - one)) if steps else x * (size - one) / (out - one)
    elif mode == "tf_crop_and_resize":
        start, end = np.float32(axis.start), np.float32(axis.end)
        if axis.out == 1:
            x = x + np.float32(0.5 * float(start + end) * float(size - one))
        else:
            x = start * (size - one) + x * (end - start) * (size - one) / (out - one)
    elif mode == "half_pixel_symmetric":
        offset = size / np.float32(2) * (one - out / (scale * size))
        x = (np.float64(offset) + (x.astype(np.float64) + 0.5) / np.float64(scale) - 0.5).astype(np.float32)
    else:
        x = x if mode == "asymmetric" else x + _HALF
        x = x * (size / out) if steps else x / scale
        x = x - _HALF if mode in ("half_pixel", "pytorch_half_pixel") else x
    return x


def _chosen(index: np.ndarray, size: int) -> Table:
    """One tap of weight 1 for each output."""
    return np.minimum(np.maximum(index.astype(np.int64), 0), size - 1)[None], None


def _nearest(x: np.ndarray, axis: Axis, rule: Rule) -> Table:
    mode = rule.nearest
    if mode == "ceil_if_smaller":  # Resize of opset 10
        mode = "ceil" if axis.scale < 1 else "floor"
    if mode == "ceil":
        return _chosen(np.ceil(x), axis.size)
    low = np.floor(x)
    if mode != "floor":
        beyond, tie = x - low - _HALF, np.float32(0) if rule.steps else TIE
        low += beyond > tie if mode == "round_prefer_floor" else beyond >= -tie
    return _chosen(low, axis.size)


def onnx_taps(axis: Axis, rule: Rule) -> tuple[Table, np.ndarray]:
    """The taps of an axis, and which outputs are outside of the input (tf_crop_and_resize gives those their own value)."""
    if rule.coordinates == "tf_crop_and_resize":
        with np.errstate(all="ignore"):  # a region may be anywhere
            x = _positions(axis, rule.coordinates, rule.steps)
            outside = ~((x >= 0) & (x <= np.float32(axis.size - 1)))
        x = np.where(outside, np.float32(0), x)
    else:
        x, outside = _positions(axis, rule.coordinates, rule.steps), np.zeros(1, np.bool_)
    if rule.mode == "nearest":
        return _nearest(x, axis, rule), outside
    return _around(x, axis.size, rule, min(axis.scale, 1.0) if rule.antialias else 1.0), outside


def torch_size(size: int, scale: float) -> int:
    """The size of the result for a scale factor."""
    return math.floor(size * scale)


def torch_tables(
    sizes: Sequence[int], outs: Sequence[int], mode: str, align_corners: bool, factors: Sequence[float | None] | None = None
) -> list[Table | None]:
    """The taps of all spatial axes as torch has them for contiguous arrays, None for an axis that stays.

    `factors` are those that were given, if positions are to follow them; torch still copies along an axis that keeps its size in
    the linear modes, and in "nearest" for few rows and columns.
    """
    few = len(outs) == 2 and sum(outs) <= FEW
    given = zip(sizes, outs, factors or (None,) * len(outs), strict=True)
    return [_torch_taps(size, out, mode, align_corners, factor, few) for size, out, factor in given]


def _torch_taps(size: int, out: int, mode: str, align_corners: bool, factor: float | None, few: bool) -> Table | None:
    if size == out and (factor in (None, 1) or mode == "linear" or (few and mode == "nearest")):
        return None
    x = np.arange(out, dtype=np.float32)
    index: np.ndarray | None = None
    if align_corners:
        x = x * (np.float32(size - 1) / np.float32(max(out - 1, 1)))
    else:
        step = np.float32(1 / factor) if factor else np.float32(size) / np.float32(max(out, 1))
        if mode == "nearest":
            index = np.arange(out) // 2 if few and out == 2 * size else np.floor(x * step)
        elif mode == "nearest-exact" and few:
            index = np.floor((x + _HALF) * step)
        else:  # product and difference are rounded once, as by processors that have both in one instruction
            x = ((x + _HALF).astype(np.float64) * np.float64(step) - 0.5).astype(np.float32)
            if mode == "nearest-exact":
                index = np.floor((np.maximum(x, 0) + 0.5).astype(np.float32))
    if index is not None:
        return _chosen(index, size)
    return _around(x, size, Rule(mode))
