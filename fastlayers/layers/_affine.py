"""`Linear` inside of other layers: with a residual, which its kernel adds before the result is stored."""

from __future__ import annotations

from typing import Any

from ..functional import linear
from ..functional._arrays import as_float32
from ..functional.linear import run_linear
from ..graph.symbol import symbolic
from .linear import Linear

__all__ = ["affine"]


def affine(layer: Linear, x: Any, residual: Any = None) -> Any:
    """``act(x weightᵀ + bias + residual)`` of a layer; shapes have been checked."""
    if symbolic(x, residual):
        tensors = layer._tensors()
        return linear(x, tensors["weight"], tensors.get("bias"), activation=layer._activation_code, residual=residual)
    kernel, packed = layer._packed()
    if residual is not None:
        residual = as_float32(residual, "linear", "residual")
    return run_linear(kernel, as_float32(x, "linear", "x"), packed, layer.out_features, residual, layer._activation_code)
