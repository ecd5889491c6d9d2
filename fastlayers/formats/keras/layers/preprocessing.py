"""Layers that prepare data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..build import INT64, Build, Tensor
from ..layer import Layer, layer
from .shapes import resize


def _number(value: Any) -> Any:
    """A number, or a list of one for each channel."""
    return np.asarray(value, np.float32)


@layer("Rescaling", words="scale offset")
def rescaling(this: Layer, b: Build, x: Tensor) -> Tensor:
    """x scale + offset."""
    y = b.op("Mul", b.floats(x), _number(this.config["scale"]))
    offset = _number(this.get("offset", 0.0))
    return b.op("Add", y, offset) if offset.any() else y


_RESIZING = "height width interpolation antialias data_format crop_to_aspect_ratio pad_to_aspect_ratio"


@layer("Resizing", words=_RESIZING, mask="drop")
def resizing(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Images of another size."""
    if this.get("crop_to_aspect_ratio") or this.get("pad_to_aspect_ratio"):
        this.refuse("crop_to_aspect_ratio or pad_to_aspect_ratio")
    size = (int(this.config["height"]), int(this.config["width"]))
    return resize(this, b, x, this.get("interpolation", "bilinear"), sizes=size, antialias=bool(this.get("antialias")))


@layer("CenterCrop", words="height width data_format", mask="drop")
def center_crop(this: Layer, b: Build, x: Tensor) -> Tensor:
    """The middle of images that are large enough."""
    rows, columns = (-3, -2) if this.last() else (-2, -1)
    for axis, wanted in ((rows, int(this.config["height"])), (columns, int(this.config["width"]))):
        size = x.size(axis)
        if size < wanted:
            this.refuse("images smaller than the crop, which are resized")
        first = (size - wanted) // 2
        x = b.slice(x, axis, first, first + wanted)
    return x


@layer("CategoryEncoding", words="num_tokens output_mode sparse", mask="drop")
def category_encoding(this: Layer, b: Build, x: Tensor, count_weights: Any = None) -> Tensor:
    """Categories as vectors: one 1, all that are there, or how often each is."""
    count, mode = int(this.config["num_tokens"]), this.get("output_mode", "multi_hot")
    if this.get("sparse") or mode not in ("one_hot", "multi_hot", "binary", "count"):
        this.refuse(f"output_mode {mode!s:.40}, or sparse")
    if mode == "one_hot":
        x = b.squeeze(x, x.rank - 1) if x.rank > 1 and x.sizes[-1] == 1 else x
    hot = b.op("OneHot", b.cast(x, INT64), b.constant(np.array(count, np.int64)), np.array([0, 1], np.float32), axis=-1)
    if mode == "one_hot":
        return hot
    if isinstance(count_weights, Tensor):
        hot = b.op("Mul", hot, b.unsqueeze(b.floats(count_weights), count_weights.rank))
    if x.rank < 2 and mode != "count":
        return hot
    return b.reduce("Sum" if mode == "count" else "Max", hot, [hot.rank - 2])


@layer("Discretization", words="bin_boundaries output_mode sparse", mask="drop")
def discretization(this: Layer, b: Build, x: Tensor) -> Tensor:
    """The number of the bin that each number falls into."""
    bounds = this.get("bin_boundaries")
    if not bounds or this.get("output_mode", "int") != "int" or this.get("sparse"):
        this.refuse("bins that are not in the configuration, or another output_mode than int")
    above = b.op("GreaterOrEqual", b.unsqueeze(b.floats(x), x.rank), np.asarray(bounds, np.float32))
    return b.reduce("Sum", b.cast(above, INT64), [-1])
