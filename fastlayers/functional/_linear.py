"""Affine maps over the last axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph.arrays import as_float32, empty, optional_float32
from ..graph.ops import op
from ..graph.record import record
from ..ir.checks import same_shape
from ..ir.graph import Shape
from ..kernels import dispatch
from ..kernels.table import BINARY, Activation
from ..rules.weights import linear_rule as _linear_rule
from ._activation_names import IDENTITY, normal_activation, resolve
from ._recorded import after

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["linear"]

# Rows of x up to which products read weights where they are. In plans, next to weights that are packed for the call (AMD Zen 4,
# one thread): 0.6 of the time for 1 row and 1024 x 1024 weights, 0.9 for 16 rows, 0.9 for 32 and 256 x 256; 1 for 128 rows.
MOST_ROWS = 32
# Elements of weights from which a call without a plan does so too: to pack those takes longer than to transpose them in pieces.
LARGE = 1 << 18


def linear_rule(x: Shape, weight: Shape, bias: Shape | None, residual: Shape | None, activation: Any = None) -> Shape:
    """Checks the shapes of `linear` and returns that of its result."""
    resolve("linear", activation)
    shape = _linear_rule("linear", x, weight, bias)
    if residual is not None:
        same_shape("linear", "residual", residual, shape, "the shape of the result")
    return shape


def _few(arrays: Sequence[np.ndarray]) -> bool:
    """Whether x has so few rows that to pack the weights takes longer than to read them where they are."""
    x = arrays[0]
    return bool(x.size <= MOST_ROWS * x.shape[-1])


def _record(x: Any, weight: Any, bias: Any, residual: Any, activation: Any) -> Any:
    inputs = (x, weight, bias) if residual is None else (x, weight, bias, residual)
    return record("Linear", *inputs, **after(resolve("linear", activation)))


@op("linear", "x weight bias residual", linear_rule, _record, normal_activation, plans=_few)
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
    return run_once(x, weight, bias, residual, resolve("linear", activation))


def run_once(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, residual: np.ndarray | None, activation: Activation
) -> np.ndarray:
    """`linear` on checked operands, whose weights are packed for this call, or read where they are: to the same bits."""
    if weight.size < LARGE or not _few((x,)) or dispatch.step("matmul") is None:
        packed = dispatch.kernel("linear_pack")(weight, bias)
        return run_linear(dispatch.kernel("linear"), x, packed, weight.shape[0], residual, activation)
    n, k = weight.shape
    out = empty((*x.shape[:-1], n))
    flat = out.reshape(-1 if out.size else _rows(x.shape), n)
    given = x.reshape(1, len(flat), k), weight.reshape(1, n, k), flat.reshape(1, len(flat), n)
    dispatch.kernel("matmul")(*given, True, activation if bias is None and residual is None else IDENTITY)
    if bias is not None:
        dispatch.kernel("binary")(flat, bias, flat, BINARY["add"], activation if residual is None else IDENTITY)
    if residual is not None:
        dispatch.kernel("binary")(flat, residual.reshape(flat.shape), flat, BINARY["add"], activation)
    return out


def run_linear(
    kernel: Callable[..., None],
    x: np.ndarray,
    packed: Any,
    out_features: int,
    residual: np.ndarray | None,
    activation: Activation,
) -> np.ndarray:
    """`linear` on checked operands and packed weights."""
    k = x.shape[-1]
    rows = x.size // k if k else _rows(x.shape)
    out = empty((*x.shape[:-1], out_features))
    flat = None if residual is None else residual.reshape(rows, out_features)
    kernel(x.reshape(rows, k), packed, out.reshape(rows, out_features), flat, activation)
    return out


def _rows(shape: tuple[int, ...]) -> int:
    rows = 1
    for size in shape[:-1]:
        rows *= size
    return rows
