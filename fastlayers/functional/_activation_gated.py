"""Activations with a second operand: a slope of each channel, or a gate in the other half of the input."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError
from ..graph.arrays import as_float32, empty
from ..graph.ops import op
from ..graph.record import ints, record
from ..ir.checks import axis, integer
from ..ir.graph import Shape
from ..kernels import dispatch
from ..kernels.table import Activation
from ..rules.weights import slopes_rule
from ._activation_unary import PLAIN

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["glu", "prelu", "swiglu"]


def slopes_axis(rank: int, dim: Any) -> int:
    """The axis of `prelu`'s channels, counted from the front; the only one where there is one."""
    return 0 if rank < 2 and integer("prelu", "axis", dim) in (1, 0, -1) else axis("prelu", dim, rank)


def prelu_rule(x: Shape, weight: Shape, axis: Any = 1) -> Shape:
    """Checks the shapes of `prelu` and returns that of its result."""
    integer("prelu", "axis", axis)
    if len(weight) > 1:
        raise ShapeError(f"prelu: weight has shape {weight}: expected (c,) or (1,)")
    count = weight[0] if weight else 1
    if count != 1:
        slopes_rule("prelu", x, count, x[slopes_axis(len(x), axis)] if x else 1)
    return x


def _record_prelu(x: Any, weight: Any, axis: int) -> Any:
    after = x.ndim - 1 - slopes_axis(x.ndim, axis) if x.ndim > 1 else 0
    if weight.ndim == 1 and after:  # one slope a channel
        weight = record("Reshape", weight, ints(-1, *(1,) * after))
    return record("PRelu", x, weight)


def _record_gated(op: str, x: Any, dim: int, gate: int) -> Any:
    halves = _halves(x, dim % x.ndim)
    return record("Mul", halves[1 - gate], record(op, halves[gate]))


def _halves(x: Any, axis: int) -> tuple[Any, Any]:
    """Both halves of an axis. Split would halve an odd size too, unequally; a new axis of two refuses it."""
    if isinstance(x.shape[axis], int):
        first, second = record("Split", x, outputs=2, axis=axis, num_outputs=2)
        return first, second
    shape = record("Shape", x)
    before = record("Slice", shape, ints(0), ints(axis))
    after = record("Slice", shape, ints(axis + 1), ints(x.ndim))
    half = record("Div", record("Gather", shape, ints(axis)), ints(2))
    opened = record("Reshape", x, record("Concat", before, ints(2), half, after, axis=0), allowzero=1)
    return tuple(record("Gather", opened, np.array(i, np.int64), axis=axis) for i in (0, 1))


@op("prelu", "x weight", prelu_rule, _record_prelu)
def prelu(x: Tensor, weight: Tensor, axis: int = 1) -> np.ndarray:
    """Rectifier with given slopes below zero: ``x if x >= 0 else weight[channel] * x``.

    Args:
        x: ``(n, c, ...)``, or ``(c,)``; any real dtype.
        weight: ``(c,)``, one slope a channel, or ``(1,)`` for all.
        axis: the axis of the channels; -1 in channels-last layouts.

    Returns:
        float32, the shape of x.

    Raises:
        ShapeError: there is no such axis, or there are neither one slope nor one per channel.
        DTypeError: an argument is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.prelu([[-2.0, -2.0]], [0.5, 0.25])
    array([[-1. , -0.5]], dtype=float32)
    """
    x, weight = as_float32(x, "prelu", "x"), as_float32(weight, "prelu", "weight")
    prelu_rule(x.shape, weight.shape, axis)
    out = empty(x.shape)
    c = weight.size
    if c == 1:
        outer, inner = 1, x.size
    else:
        at = slopes_axis(x.ndim, axis)
        outer, inner = math.prod(x.shape[:at]), math.prod(x.shape[at + 1 :])
    dispatch.kernel("prelu")(x.reshape(outer, c, inner), weight.reshape(c), out.reshape(outer, c, inner))
    return out


@op("glu", "x", lambda x, dim: _gated_rule("glu", x, dim), lambda x, dim: _record_gated("Sigmoid", x, dim, 1))
def glu(x: Tensor, dim: int = -1) -> np.ndarray:
    """Gated linear unit: ``a * sigmoid(b)`` with a the first and b the second half of x along `dim`.

    Args:
        x: any shape with an even size along `dim`; any real dtype.
        dim: the axis that is halved.

    Returns:
        float32, the shape of x with half the size along `dim`.

    Raises:
        ShapeError: there is no such axis, or its size is odd.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.glu([2.0, 4.0, 0.0, 0.0])
    array([1., 2.], dtype=float32)
    """
    return _gated("glu", x, dim, PLAIN["sigmoid"], 1)


@op("swiglu", "x", lambda x, dim: _gated_rule("swiglu", x, dim), lambda x, dim: _record_gated("Swish", x, dim, 0))
def swiglu(x: Tensor, dim: int = -1) -> np.ndarray:
    """Gated unit with silu: ``silu(a) * b`` with a the first and b the second half of x along `dim`.

    Args:
        x: any shape with an even size along `dim`; any real dtype.
        dim: the axis that is halved.

    Returns:
        float32, the shape of x with half the size along `dim`.

    Raises:
        ShapeError: there is no such axis, or its size is odd.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.swiglu([0.0, 100.0, 2.0, 3.0])
    array([  0., 300.], dtype=float32)
    """
    return _gated("swiglu", x, dim, PLAIN["silu"], 0)


def _gated_rule(op_name: str, x: Shape, dim: Any) -> Shape:
    if not x:
        raise ShapeError(f"{op_name}: x has no axes: expected an even size along dim={dim!r}")
    at = axis(op_name, dim, len(x))
    size = x[at]
    if isinstance(size, int) and size % 2:
        raise ShapeError(f"{op_name}: x has shape {x}, size {size} along dim={dim}: expected an even size, it is halved")
    return (*x[:at], size // 2 if isinstance(size, int) else None, *x[at + 1 :])


def _gated(op_name: str, x: Any, dim: Any, activation: Activation, gate: int) -> np.ndarray:
    x = as_float32(x, op_name, "x")
    shape = _gated_rule(op_name, x.shape, dim)
    out = empty(shape)  # type: ignore[arg-type]
    at = axis(op_name, dim, x.ndim)
    outer, inner = math.prod(x.shape[:at]), math.prod(out.shape[at:])
    dispatch.kernel("gated")(x.reshape(outer, 2, inner), out.reshape(outer, inner), activation, gate)
    return out
