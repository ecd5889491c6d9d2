"""Pooling over time: one vector of a sequence, whatever its length."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls import pooling
from ..calls.machine import ARRAYS
from ..errors import ArgumentError, ShapeError
from ..graph.arrays import as_float32, empty, optional_int64, optional_mask
from ..graph.ops import op
from ..graph.record import record
from ..ir.checks import flag, same_shape
from ..ir.graph import Shape

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["max_over_time", "mean_over_time"]


def _rule(name: str, x: Shape, lengths: Shape | None, mask: Shape | None, batch_first: Any) -> Shape:
    first = flag(name, "batch_first", batch_first)
    if len(x) != 3:
        raise ShapeError(f"{name}: x has shape {x} ({len(x)} axes): expected {'(n, t, c)' if first else '(t, n, c)'}")
    n, t = (x[0], x[1]) if first else (x[1], x[0])
    if lengths is not None:
        same_shape(name, "lengths", lengths, (n,), "one per sequence")
    if mask is not None:
        same_shape(name, "mask", mask, (n, t), "one per step of every sequence")
    return (n, x[2])


def _over_time(name: str, x: Any, lengths: Any, mask: Any, batch_first: Any) -> np.ndarray:
    x, lengths, mask = as_float32(x, name, "x"), optional_int64(lengths, name, "lengths"), optional_mask(mask, name, "mask")
    given = [None if a is None else a.shape for a in (lengths, mask)]
    shape: Any = _rule(name, x.shape, given[0], given[1], batch_first)
    steps = x.shape[1 if batch_first else 0]
    if lengths is not None and lengths.size and not 0 <= lengths.min() <= lengths.max() <= steps:
        raise ArgumentError(
            f"{name}: lengths has values from {lengths.min()} to {lengths.max()}: expected 0 to {steps}, the steps of x"
        )
    if mask is not None and mask.dtype != np.bool_:
        mask = mask != 0
    out = empty(shape)
    pooling.over_time(ARRAYS, x, lengths, mask, out, "mean" if "mean" in name else "max", bool(batch_first))
    return out


def _record(reduce: str, x: Any, lengths: Any, mask: Any, batch_first: Any) -> Any:
    if mask is not None and mask.dtype != np.bool_:
        mask = record("Cast", mask, to=9)
    return record("TimePool", x, lengths, mask, reduce=reduce, batch_first=bool(batch_first))


@op(
    "max_over_time",
    "x lengths:int mask:mask",
    lambda x, lengths, mask, batch_first: _rule("max_over_time", x, lengths, mask, batch_first),
    partial(_record, "max"),
)
def max_over_time(
    x: Tensor, lengths: Tensor | None = None, mask: Tensor | None = None, *, batch_first: bool = True
) -> np.ndarray:
    """Maximum over the valid steps of every sequence: padding changes no result, whatever is in it.

    Args:
        x: ``(n, t, c)``, or ``(t, n, c)`` without `batch_first`; any real dtype, computed in float32.
        lengths: ``(n,)`` integers from 0 to t: the steps before each length are valid. None: all are.
        mask: ``(n, t)``, True (or any number but 0) where a step is valid, in both orders of x; None: all are.
            With lengths as well, a step must be valid by both.
        batch_first: whether the first axis of x is the batch, as in Keras; False: the second one is, as torch's recurrent
            layers have it.

    Returns:
        float32 ``(n, c)``; zeros for a sequence without a valid step.

    Raises:
        ArgumentError: shapes do not fit, or a length is below 0 or above t.
        DTypeError: an argument is complex or not numeric, or lengths are not integers.

    >>> import fastlayers as fl
    >>> fl.functional.max_over_time([[[1.0], [3.0], [100.0]]], lengths=[2])
    array([[3.]], dtype=float32)
    """
    return _over_time("max_over_time", x, lengths, mask, batch_first)


@op(
    "mean_over_time",
    "x lengths:int mask:mask",
    lambda x, lengths, mask, batch_first: _rule("mean_over_time", x, lengths, mask, batch_first),
    partial(_record, "mean"),
)
def mean_over_time(
    x: Tensor, lengths: Tensor | None = None, mask: Tensor | None = None, *, batch_first: bool = True
) -> np.ndarray:
    """Mean over the valid steps of every sequence: padding changes no result, whatever is in it.

    Keras calls it GlobalAveragePooling1D, with a mask.

    Args:
        x: ``(n, t, c)``, or ``(t, n, c)`` without `batch_first`; any real dtype, computed in float32.
        lengths: ``(n,)`` integers from 0 to t: the steps before each length are valid. None: all are.
        mask: ``(n, t)``, True (or any number but 0) where a step is valid, in both orders of x; None: all are.
            With lengths as well, a step must be valid by both.
        batch_first: whether the first axis of x is the batch, as in Keras; False: the second one is, as torch's recurrent
            layers have it.

    Returns:
        float32 ``(n, c)``; zeros for a sequence without a valid step.

    Raises:
        ArgumentError: shapes do not fit, or a length is below 0 or above t.
        DTypeError: an argument is complex or not numeric, or lengths are not integers.

    >>> import fastlayers as fl
    >>> fl.functional.mean_over_time([[[1.0], [3.0], [100.0]]], lengths=[2])
    array([[2.]], dtype=float32)
    """
    return _over_time("mean_over_time", x, lengths, mask, batch_first)
