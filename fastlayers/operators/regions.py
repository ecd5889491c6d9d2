"""Pools over boxes: MaxRoiPool and RoiAlign, with `x_last` of our own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.reference.regions import roi_align, roi_pool
from ..kernels.table import MOST_SAMPLES, REDUCE
from ..rules.maps import boxes_rule, scale_rule
from ._base import Spec, View, register
from ._traits import PLAIN
from .shapes import expect
from .window import arranged

if TYPE_CHECKING:
    from .builder import Builder

__all__: list[str] = []


def _infer(n: View, size: Sequence[int]) -> list[Spec]:
    x, boxes, last = n.shape(0), n.shape(1), n.get("x_last", False)
    boxes_rule(n.where, x, boxes, n.op == "MaxRoiPool", last)
    scale_rule(n.where, float(n.get("spatial_scale", 1.0)))
    if len(size) != 2 or any(s < 1 for s in size):
        raise n.fail(f"bins are {tuple(size)}: expected two values of at least 1")
    count, channels = None if boxes is None else boxes[0], None if x is None else x[3 if last else 1]
    return [Spec(arranged(count, channels, size, last), n.spec(0).dtype)]


def pool_infer(n: View) -> list[Spec]:
    return _infer(n, n.get("pooled_shape"))


def pool_lower(n: View, b: Builder) -> Any:
    if not n.float32():
        return False
    x, boxes = b.input(0), b.input(1)
    b.call("roi_pool", x, boxes, b.output(0), float(n.get("spatial_scale", 1.0)), bool(n.get("x_last")))
    return True


def pool_run(n: View, x: np.ndarray, boxes: np.ndarray) -> Sequence[np.ndarray]:
    """The largest number of every bin."""
    shape: Any = pool_infer(n)[0].shape
    out = np.zeros(shape, x.dtype)
    roi_pool(x, boxes.astype(np.float32), out, n.get("spatial_scale", 1.0), bool(n.get("x_last")))
    return (out,)


def align_infer(n: View) -> list[Spec]:
    boxes = n.shape(1)
    expect(n, 2, None if not boxes else boxes[0])
    return _infer(n, (n.get("output_height", 1), n.get("output_width", 1)))


def _options(n: View) -> tuple[Any, ...]:
    coordinates, mode = n.get("coordinate_transformation_mode", "half_pixel"), n.get("mode", "avg")
    if coordinates not in ("half_pixel", "output_half_pixel") or mode not in ("avg", "max"):
        raise n.fail(
            f"coordinate_transformation_mode is {coordinates!r}, mode {mode!r}: expected (output_)half_pixel, avg or max"
        )
    shift = (0.5, -1e10) if coordinates == "half_pixel" else (0.0, 1.0)
    samples, number = max(int(n.get("sampling_ratio", 0)), 0), REDUCE["mean" if mode == "avg" else "max"]
    if samples > MOST_SAMPLES:
        raise n.fail(f"sampling_ratio is {samples}: expected at most {MOST_SAMPLES}")
    return (float(n.get("spatial_scale", 1.0)), *shift, samples, number, bool(n.get("x_last")))


def align_lower(n: View, b: Builder) -> Any:
    options = _options(n)
    if not n.float32(0, 1) or n.spec(2).dtype != np.int64:
        return False
    x, boxes, images = b.input(0), b.input(1), b.input(2)
    b.call("roi_align", x, boxes, images, b.output(0), *options)
    return True


def align_run(n: View, x: np.ndarray, boxes: np.ndarray, images: np.ndarray) -> Sequence[np.ndarray]:
    """The mean or the largest of bilinear samples of every bin."""
    shape: Any = align_infer(n)[0].shape
    out = np.zeros(shape, x.dtype)
    roi_align(x, boxes, images, out, *_options(n))
    return (out,)


register("MaxRoiPool", pool_infer, pool_run, pool_lower, traits=PLAIN)
register("RoiAlign", align_infer, align_run, align_lower, traits=PLAIN)
