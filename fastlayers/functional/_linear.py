"""Affine maps over the last axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls import linear as calls
from ..calls.linear import few
from ..calls.machine import ARRAYS, Machine, of
from ..graph.arrays import as_float32, empty, optional_float32
from ..graph.ops import op
from ..graph.record import record
from ..ir.checks import same_shape
from ..ir.graph import Shape
from ..kernels import dispatch
from ..kernels.table import Activation
from ..rules.weights import linear_rule as _linear_rule
from ._activation_names import normal_activation, resolve
from ._recorded import after

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["linear"]


def linear_rule(x: Shape, weight: Shape, bias: Shape | None, residual: Shape | None, activation: Any = None) -> Shape:
    """Checks the shapes of `linear` and returns that of its result."""
    resolve("linear", activation)
    shape = _linear_rule("linear", x, weight, bias)
    if residual is not None:
        same_shape("linear", "residual", residual, shape, "the shape of the result")
    return shape


def _record(x: Any, weight: Any, bias: Any, residual: Any, activation: Any) -> Any:
    inputs = (x, weight, bias) if residual is None else (x, weight, bias, residual)
    return record("Linear", *inputs, **after(resolve("linear", activation)))


@op("linear", "x weight bias residual", linear_rule, _record, normal_activation, plans=lambda arrays: few(arrays[0]))
def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: Any = None, residual: Tensor | None = None
) -> np.ndarray:
    """Affine map over the last axis: ``act(x weightᵀ + bias + residual)``.

    Args:
        x: ``(..., in)``, any real dtype; computed in float32.
        weight: ``(out, in)``.
        bias: ``(out,)`` or None.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.
        residual: added before the activation, ``(..., out)``, or None.

    Returns:
        float32 ``(..., out)``.

    Raises:
        ShapeError: the shapes do not fit.
        DTypeError: an argument is complex or not numeric.
        UnsupportedError: no elementwise function has the name given as `activation`.

    >>> import fastlayers as fl
    >>> fl.functional.linear([[1.0, 2.0]], [[1.0, 1.0], [0.0, -1.0]], [0.5, 0.0], activation="relu")
    array([[3.5, 0. ]], dtype=float32)
    """
    x = as_float32(x, "linear", "x")
    weight = as_float32(weight, "linear", "weight")
    bias = optional_float32(bias, "linear", "bias")
    residual = optional_float32(residual, "linear", "residual")
    linear_rule(x.shape, weight.shape, bias.shape if bias is not None else None, residual.shape if residual is not None else None)
    out = empty((*x.shape[:-1], weight.shape[0]))
    calls.once(ARRAYS, x, weight, bias, residual, out, resolve("linear", activation))
    return out


def pack_linear(weight: np.ndarray, bias: np.ndarray | None) -> tuple[Machine, Any]:
    """Weights packed under the variant in use, and the machine of its kernels."""
    kernels = dispatch.variant().kernels
    return of(kernels), kernels["linear_pack"](weight, bias)


def run_linear(
    packed: tuple[Machine, Any], x: np.ndarray, out_features: int, residual: np.ndarray | None, activation: Activation
) -> np.ndarray:
    """`linear` on checked operands, and what `pack_linear` gave."""
    out = empty((*x.shape[:-1], out_features))
    calls.linear(packed[0], x, packed[1], out_features, residual, out, activation)
    return out
