"""Tables of weighted taps for `resize`: where every output of an axis reads, and how much of it.

A table is (index, weight), both [taps][outputs], int64 and float32; weight None: one tap of weight 1.
Everything is found in float64. `onnx_taps` follows the text of ONNX's Resize, `torch_taps` torch's interpolate.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._tuples import NamedTuple

__all__ = ["Axis", "Table", "onnx_taps", "torch_size", "torch_taps"]

Table = tuple[np.ndarray, np.ndarray | None]


class Axis(NamedTuple):
    """An axis that ONNX's Resize changes: sizes, scale, and the part of it that tf_crop_and_resize takes."""

    size: int
    out: int
    scale: float
    start: float = 0.0
    end: float = 1.0


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """The weight of a tap at distance x in cubic interpolation."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _around(x: np.ndarray, size: int, mode: str, a: float, scale: float, exclude_outside: bool) -> Table:
    """Taps around the positions x; scale < 1 widens them (antialias). Positions outside count as the nearest one inside."""
    low = np.ceil(x) - 1
    ratio, reach = x - low, 2 if mode == "cubic" else 1
    start = math.floor(-reach / scale) + 1
    offsets = np.arange(start, 2 - start)[:, None]
    distance = (offsets - ratio) * scale
    weight = _cubic(distance, a) if mode == "cubic" else np.clip(1 - np.abs(distance), 0, 1)
    index = low.astype(np.int64) + offsets
    if exclude_outside:
        weight = np.where((index < 0) | (index >= size), 0.0, weight)
    if exclude_outside or scale < 1:
        weight = weight / weight.sum(0)
    return index.clip(0, size - 1), weight.astype(np.float32)


_ROUND: dict[str, Any] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
NEAREST = tuple(_ROUND)
COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)  # fmt: skip


def _coordinates(axis: Axis, mode: str) -> np.ndarray:
    """Where outputs are in the input."""
    x, size, scale = np.arange(axis.out, dtype=np.float64), axis.size, axis.scale
    length = scale * size
    if mode == "align_corners":
        return x * ((size - 1) / (length - 1) if length != 1 else 0.0)
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_crop_and_resize":
        width = (axis.end - axis.start) * (size - 1)
        return axis.start * (size - 1) + (x * width / (length - 1) if length != 1 else width / 2 + 0 * x)
    if mode == "tf_half_pixel_for_nn":  # of opsets 11 and 12
        return (x + 0.5) / scale
    if mode == "pytorch_half_pixel" and length == 1:
        return x - 0.5
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - axis.out / length) + (x + 0.5) / scale - 0.5
    return (x + 0.5) / scale - 0.5


def onnx_taps(
    axis: Axis, mode: str, coordinates: str, nearest: str, a: float, exclude_outside: bool, antialias: bool
) -> tuple[Table, np.ndarray]:
    """The taps of an axis, and which outputs are outside of the input (tf_crop_and_resize gives those their own value)."""
    x = _coordinates(axis, coordinates)
    outside = ((x < 0) | (x > axis.size - 1)) & (coordinates == "tf_crop_and_resize")
    if mode == "nearest":
        return (_ROUND[nearest](x).astype(np.int64).clip(0, axis.size - 1)[None], None), outside
    return _around(x, axis.size, mode, a, min(axis.scale, 1.0) if antialias else 1.0, exclude_outside), outside


def torch_size(size: int, scale: float) -> int:
    """The size of the result for a scale factor."""
    return math.floor(size * scale)


def torch_taps(size: int, out: int, mode: str, align_corners: bool, scale: float | None) -> Table:
    """The taps of an axis as torch has them; `scale` is the factor that was given, if coordinates are to follow it."""
    o: Any = np.arange(out)
    if mode in ("nearest", "nearest-exact"):
        # torch finds these in float32, which shows where a product is nearly whole.
        step = np.float32(1 / scale) if scale else np.float32(size) / np.float32(max(out, 1))
        shift = np.float32(0.5 if mode == "nearest-exact" else 0)
        index = np.floor((o.astype(np.float32) + shift) * step).astype(np.int64)
        return (index.clip(0, size - 1) if out != size or scale else o)[None], None
    if align_corners:
        x = o * ((size - 1) / (out - 1) if out > 1 else 0.0)
    else:
        x = (o + 0.5) * (1 / scale if scale else size / max(out, 1)) - 0.5
        x = x if mode == "cubic" else np.maximum(x, 0)
    return _around(x, size, mode, -0.75, 1.0, False)
