"""Pools over boxes of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..graph.arrays import as_float32, contiguous, empty
from ..graph.ops import op
from ..graph.record import ints, record
from ..ir.checks import flag, integer, integers, number
from ..ir.graph import Dim, Shape
from ..kernels import dispatch
from ..kernels.table import MOST_SAMPLES, REDUCE
from ..rules.maps import boxes_rule, scale_rule
from ._conv_rules import channels_last
from ._pooling_rules import plain

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["roi_align", "roi_pool"]


def _shape(name: str, x: Shape, boxes: Shape, output_size: Any, spatial_scale: Any, layout: Any) -> Shape:
    last, size = channels_last(name, layout, 2), integers(name, "output_size", output_size, 2, 1)
    boxes_rule(name, x, boxes, True, last)
    scale_rule(name, number(name, "spatial_scale", spatial_scale))
    channels: Dim = x[3] if last else x[1]
    return (boxes[0], *size, channels) if last else (boxes[0], channels, *size)


def samples_of(name: str, sampling_ratio: Any) -> int:
    """The number of samples of a bin along each axis; 0 or less: one per pixel."""
    return integer(name, "sampling_ratio", sampling_ratio, None, MOST_SAMPLES)


def _images(name: str, x: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """The image of every box."""
    if not np.isfinite(boxes).all():
        raise ArgumentError(f"{name}: boxes has values that are not finite")
    images = boxes[:, 0]
    if not np.all((images >= 0) & (images < len(x)) & (images == np.floor(images))):
        raise ArgumentError(f"{name}: boxes name images {images.min()} to {images.max()}: expected integers below {len(x)}")
    return np.ascontiguousarray(images.astype(np.int64))


def _align_rule(x: Shape, boxes: Shape, output_size: Any, spatial_scale: Any, sampling_ratio: Any, aligned: Any, mode: Any,
                layout: Any) -> Shape:  # fmt: skip
    samples_of("roi_align", sampling_ratio)
    flag("roi_align", "aligned", aligned)
    if mode not in ("avg", "max"):
        raise ArgumentError(f"roi_align: mode is {mode!r}: expected 'avg' or 'max'")
    return _shape("roi_align", x, boxes, output_size, spatial_scale, layout)


def _record_pool(x: Any, boxes: Any, output_size: Any, spatial_scale: Any, layout: str) -> Any:
    size = integers("roi_pool", "output_size", output_size, 2)
    own: dict[str, Any] = {"x_last": True} if channels_last("roi_pool", layout, 2) else {}
    return record("MaxRoiPool", x, boxes, pooled_shape=size, spatial_scale=float(spatial_scale), **own)


def _record_align(
    x: Any, boxes: Any, output_size: Any, spatial_scale: Any, sampling_ratio: Any, aligned: Any, mode: str, layout: str
) -> Any:
    height, width = integers("roi_align", "output_size", output_size, 2)
    own: dict[str, Any] = {"x_last": True} if channels_last("roi_align", layout, 2) else {}
    first, corners = record("Split", boxes, ints(1, 4), outputs=2, axis=1)  # which refuses boxes of other widths
    images = record("Squeeze", first, ints(1))
    return record(
        "RoiAlign",
        x,
        corners,
        record("Cast", images, to=7),
        output_height=height,
        output_width=width,
        spatial_scale=float(spatial_scale),
        sampling_ratio=max(int(sampling_ratio), 0),
        mode=mode,
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        **own,
    )


@op("roi_pool", "x boxes", lambda x, boxes, **rest: _shape("roi_pool", x, boxes, **rest), _record_pool, plain, plans=False)
def roi_pool(
    x: Tensor, boxes: Tensor, output_size: int | Sequence[int], spatial_scale: float = 1.0, *, layout: str = "nchw"
) -> np.ndarray:
    """Maximum over the quantized bins of boxes: ``out[k, :, i, j] = max over bin (i, j) of box k``, 0 of an empty bin.

    Corners are rounded to pixels, both included; bin i reaches from ``floor(i size / bins)`` to ``ceil((i + 1) size / bins)``.

    Args:
        x: ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last; any real dtype, computed in float32.
        boxes: ``(k, 5)``, each ``(image, x1, y1, x2, y2)``.
        output_size: bins along h and w; an int, or one per axis.
        spatial_scale: what coordinates of boxes are multiplied by.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.

    Returns:
        float32 ``(k, c, oh, ow)``, or ``(k, oh, ow, c)``.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`), a box names an image that is not there or is not finite.
        DTypeError: an argument is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.roi_pool(np.arange(16.0).reshape(1, 1, 4, 4), [[0, 1, 1, 3, 3]], 1)
    array([[[[15.]]]], dtype=float32)
    """
    x, boxes = as_float32(x, "roi_pool", "x"), as_float32(boxes, "roi_pool", "boxes")
    shape: Any = _shape("roi_pool", x.shape, boxes.shape, output_size, spatial_scale, layout)
    _images("roi_pool", x, boxes)
    out = empty(shape)
    dispatch.kernel("roi_pool")(x, boxes, out, float(spatial_scale), channels_last("roi_pool", layout, 2))
    return out


@op("roi_align", "x boxes", _align_rule, _record_align, plain, plans=False)
def roi_align(
    x: Tensor,
    boxes: Tensor,
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
    *,
    mode: str = "avg",
    layout: str = "nchw",
) -> np.ndarray:
    """Bilinear samples of the bins of boxes: ``out[k, :, i, j] = mean over the samples of bin (i, j) of box k``.

    A sample more than a pixel outside of x is 0; the others are clipped to it.

    Args:
        x: ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last; any real dtype, computed in float32.
        boxes: ``(k, 5)``, each ``(image, x1, y1, x2, y2)``.
        output_size: bins along h and w; an int, or one per axis.
        spatial_scale: what coordinates of boxes are multiplied by.
        sampling_ratio: samples along each axis of a bin, at most 128; 0 or less: one per pixel, rounded up.
        aligned: whether coordinates are those of areas, half a pixel less (ONNX: ``half_pixel``); else boxes are at least one
            pixel long (``output_half_pixel``).
        mode: ``"avg"``, or ``"max"``, the largest of the samples' four neighbours times their weights, as in ONNX.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.

    Returns:
        float32 ``(k, c, oh, ow)``, or ``(k, oh, ow, c)``.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`), a box names an image that is not there or is not finite.
        DTypeError: an argument is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.roi_align(np.arange(16.0).reshape(1, 1, 4, 4), [[0, 0, 0, 2, 2]], 1, sampling_ratio=1)
    array([[[[5.]]]], dtype=float32)
    """
    x, boxes = as_float32(x, "roi_align", "x"), as_float32(boxes, "roi_align", "boxes")
    shape: Any = _align_rule(x.shape, boxes.shape, output_size, spatial_scale, sampling_ratio, aligned, mode, layout)
    images, out = _images("roi_align", x, boxes), empty(shape)
    shift = (0.5, -1e10) if aligned else (0.0, 1.0)
    number, samples = REDUCE["mean" if mode == "avg" else "max"], max(samples_of("roi_align", sampling_ratio), 0)
    corners, last = contiguous(boxes[:, 1:], "roi_align", "boxes"), channels_last("roi_align", layout, 2)
    dispatch.kernel("roi_align")(x, corners, images, out, float(spatial_scale), *shift, samples, number, last)
    return out
