"""Normalizations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..build import Build, Tensor
from ..layer import Layer, layer
from .merging import unit


def _axes(this: Layer, x: Tensor) -> list[int]:
    """The axes that the configuration names."""
    return sorted(x.axes(this.get("axis", -1)))


def _gamma_beta(this: Layer) -> list[str]:
    return [*(["gamma"] if this.config.get("scale", True) else []), *(["beta"] if this.config.get("center", True) else [])]


@layer("BatchNormalization", "BatchNormalizationV1", "BatchNormalizationV2", "SyncBatchNormalization",
       words="axis epsilon scale center | mode", weights=_gamma_beta,
       fixed=lambda this: ["moving_mean", "moving_variance"])  # fmt: skip
def batch_normalization(this: Layer, b: Build, x: Tensor) -> Tensor:
    """With the statistics of training."""
    (axis,) = _axes(this, x)
    count = x.size(axis)
    if this.get("mode", 0) not in (0, 2):
        this.refuse("mode 1 of Keras 1")
    scale = this.weight("gamma", count) if "gamma" in this.own else b.filled(1, count)
    shift = this.weight("beta", count) if "beta" in this.own else b.filled(0, count)
    mean, variance = this.weight("moving_mean", count), this.weight("moving_variance", count)
    values = {"gamma": scale, "beta": shift, "mean": mean, "variance": variance}
    given = [b.constant(value, name) for name, value in values.items()]
    return b.op("BatchNormalization", b.floats(x), *given, epsilon=float(this.get("epsilon", 1e-3)), axis=axis)


def _layer_norm(this: Layer) -> list[str]:
    if this.get("rms_scaling"):
        return ["gamma"]
    return _gamma_beta(this)


@layer("LayerNormalization", words="axis epsilon rms_scaling scale center", weights=_layer_norm)
def layer_normalization(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Over the axes that are named, which also have the scale; rms_scaling leaves the mean where it is."""
    x, axes = b.floats(x), _axes(this, x)
    sizes = tuple(x.size(a) for a in axes)
    epsilon, rms = float(this.get("epsilon", 1e-3)), bool(this.get("rms_scaling"))
    scale = this.weight("gamma", *sizes) if "gamma" in this.own else b.filled(1, *sizes)
    shift = this.weight("beta", *sizes) if "beta" in this.own else None
    if axes == list(range(x.rank - len(axes), x.rank)) and not rms:
        return b.op(
            "LayerNormalization", x, b.constant(scale, "gamma"), None if shift is None else b.constant(shift, "beta"),
            axis=-len(axes), epsilon=epsilon,
        )  # fmt: skip
    wide = [x.size(a) if a in axes else 1 for a in range(x.rank)]
    centred = b.op("Sub", x, b.reduce("Mean", x, axes, True))
    variance = b.reduce("Mean", b.op("Mul", centred, centred), axes, True)
    # With rms_scaling Keras divides by the root of the variance, and leaves the mean.
    y = b.op("Div", x if rms else centred, b.op("Sqrt", b.op("Add", variance, epsilon)))
    y = b.op("Mul", y, b.constant(scale.reshape(wide), "gamma"))
    return y if shift is None else b.op("Add", y, b.constant(shift.reshape(wide), "beta"))


@layer("RMSNormalization", words="axis epsilon", weights=lambda this: ["scale"], mask="drop")
def rms_normalization(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Divided by the root of the mean square."""
    x, axes = b.floats(x), _axes(this, x)
    scale, epsilon = this.weight("scale"), float(this.get("epsilon", 1e-6))
    if axes == list(range(x.rank - len(axes), x.rank)) and scale.ndim == len(axes):
        return b.op("RMSNormalization", x, b.constant(scale, "scale"), axis=-len(axes), epsilon=epsilon)
    mean = b.reduce("Mean", b.op("Mul", x, x), axes, True)
    y = b.op("Div", x, b.op("Sqrt", b.op("Add", mean, epsilon)))
    wide = [x.size(a) if a in axes else 1 for a in range(x.rank)]
    return b.op("Mul", y, b.constant(scale.reshape(wide), "scale"))


@layer("GroupNormalization", words="axis groups epsilon scale center", weights=_gamma_beta)
def group_normalization(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Over groups of channels of each image; -1 groups: every channel by itself."""
    x = b.floats(x)
    (axis,) = _axes(this, x)
    count = x.size(axis)
    groups = int(this.get("groups", 32))
    groups = count if groups == -1 else groups
    scale = this.weight("gamma", count) if "gamma" in this.own else b.filled(1, count)
    shift = this.weight("beta", count) if "beta" in this.own else b.filled(0, count)
    order = [0, axis, *(a for a in range(1, x.rank) if a != axis)]
    turned = b.transpose(x, *order)
    flat = x.rank == 2
    turned = b.unsqueeze(turned, 2) if flat else turned
    y = b.op(
        "GroupNormalization", turned, b.constant(scale, "gamma"), b.constant(shift, "beta"), num_groups=groups,
        epsilon=float(this.get("epsilon", 1e-3)),
    )  # fmt: skip
    y = b.squeeze(y, 2) if flat else y
    return b.transpose(y, *(order.index(a) for a in range(x.rank)))


@layer("UnitNormalization", words="axis")
def unit_normalization(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Vectors of length 1 along the axes."""
    return unit(b, b.floats(x), _axes(this, x))


def _statistics(this: Layer) -> list[str]:
    return ["mean", "variance"] if this.config.get("mean") is None else []


@layer("Normalization", words="axis mean variance invert", weights=_statistics)
def normalization(this: Layer, b: Build, x: Tensor) -> Tensor:
    """(x - mean) / root of the variance, or the other way; both were learned from data, or stand in the configuration."""
    x = b.floats(x)
    axis: Any = this.config.get("axis", -1)
    axes = [] if axis is None else _axes(this, x)
    wide = [x.size(a) if a in axes else 1 for a in range(x.rank)]
    if this.own:
        mean, variance = this.weight("mean"), this.weight("variance")
    else:
        mean, variance = (np.array(this.config[name], np.float32) for name in ("mean", "variance"))
    if mean.size > 1:
        mean, variance = (np.broadcast_to(v.reshape(-1), math.prod(wide)).reshape(wide) for v in (mean, variance))
    mean = np.ascontiguousarray(mean, np.float32)
    deviation = np.asarray(np.maximum(np.sqrt(np.asarray(variance, np.float32)), np.float32(1e-7)))
    if this.get("invert"):
        return b.op("Add", b.op("Mul", x, b.constant(deviation, "deviation")), b.constant(mean, "mean"))
    return b.op("Div", b.op("Sub", x, b.constant(mean, "mean")), b.constant(deviation, "deviation"))


@layer("LayerScale", weights=lambda this: ["gamma"], mask="drop")
def layer_scale(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Keras' ConvNeXt: a factor for every channel."""
    return b.op("Mul", b.floats(x), b.constant(this.weight("gamma"), "gamma"))
