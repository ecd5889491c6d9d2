"""Batch normalization put into the weights of the layer before it, for networks that are called as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..kernels.table import Activation
from ._base import Layer, Weights
from .activation import Identity
from .conv import _Conv
from .linear import Linear
from .normalization import _BatchNorm

__all__ = ["fused"]


def fused(layers: list[Layer]) -> list[Layer]:
    """Layers that compute the same one after the other, each BatchNorm folded into what comes before it."""
    for i, layer in enumerate(layers):
        if i and isinstance(layer, _BatchNorm) and _fits(layers[i - 1], layer):
            two = isinstance(layers[i - 1], Linear) and layer.axis == 1
            layers[i - 1], layers[i] = _folded(layers[i - 1], layer), TwoAxes() if two else Identity()
    return layers


class TwoAxes(Layer):
    """In the place of a BatchNorm of axis 1 after a Linear: that is the features' axis only where there are two."""

    def __call__(self, x: Any) -> Any:
        """Returns x."""
        if len(x.shape) != 2:
            raise ShapeError(f"fuse: x has shape {x.shape} after a Linear: expected (n, c), else BatchNorm is of another axis")
        return x


def _fits(before: Layer, norm: _BatchNorm) -> bool:
    """Whether nothing comes between the two, and channels are those of the normalization."""
    if not norm.track_running_stats:
        return False
    if isinstance(before, Linear):
        plain, count, axes = before._activation_code == Activation(0), before.out_features, (-1, 1)
    elif isinstance(before, _Conv):
        plain, count = before._activation_code == Activation(0), before.out_channels
        axes = (-1, 1 + before._axes) if before._place.last else (1, -1 - before._axes)
    else:
        return False
    return plain and count == norm.num_features and norm.axis in axes


def _folded(before: Any, norm: _BatchNorm) -> Layer:
    tensors, of_norm = before._tensors(), norm._tensors()
    scale = 1 / np.sqrt(of_norm["running_var"].astype(np.float64) + norm.eps)
    if "weight" in of_norm:
        scale = scale * of_norm["weight"]
    shift = of_norm.get("bias", 0) + (tensors.get("bias", 0) - of_norm["running_mean"].astype(np.float64)) * scale
    weight = tensors["weight"] * scale.reshape(-1, *(1,) * (tensors["weight"].ndim - 1))
    made: Layer = object.__new__(type(before))
    made.__dict__.update(before.__dict__)
    made.__dict__.update(
        _shapes={**before._shapes, "bias": shift.shape},
        _weights=Weights({"weight": weight.astype(np.float32), "bias": shift.astype(np.float32)}),
        _fast=None, _snapshot=None, _bound=False, _sealed=True,
    )  # fmt: skip
    if "_plans" in made.__dict__:
        made.__dict__["_plans"] = {}
    return made
