"""`Linear` inside of other layers: with a residual, which its kernel adds before the result is stored."""

from __future__ import annotations

from typing import Any

from ..functional._linear import linear, run_linear
from ..graph.arrays import as_float32
from ..graph.symbol import symbolic
from ..rules.weights import linear_rule
from .linear import Linear

__all__ = ["affine"]


def affine(layer: Linear, x: Any, residual: Any = None) -> Any:
    """``act(x weightᵀ + bias + residual)`` of a layer; the shape of the residual has been checked."""
    if symbolic(x, residual):
        tensors = layer._tensors()
        return linear(x, tensors["weight"], tensors.get("bias"), activation=layer._activation_code, residual=residual)
    packed = layer._packed()
    x = as_float32(x, "linear", "x")
    if x.ndim == 0 or x.shape[-1] != layer.in_features:
        linear_rule("linear", x.shape, (layer.out_features, layer.in_features), None)  # raises
    if residual is not None:
        residual = as_float32(residual, "linear", "residual")
    return run_linear(packed, x, layer.out_features, residual, layer._activation_code)
