"""Parts of arrays, and arrays put together: always copies, never views."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, ShapeError
from ..graph.arrays import as_float32, empty
from ..graph.ops import op
from ..graph.record import ints, record
from ..ir.checks import axis, integer
from ..ir.graph import Shape
from ..rules.shapes import concat_rule as _concat_rule
from ..rules.shapes import index_error, step_rule
from ._shape import copy_to

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["concat", "select", "slice"]


def concat_rule(tensors: Any, dim: Any) -> Shape:
    """Checks the shapes of `concat` and returns that of its result."""
    if not tensors or not tensors[0]:
        raise ShapeError("concat: got no tensors, or one without axes: expected at least one of at least one axis")
    return _concat_rule("concat", tensors, axis("concat", dim, len(tensors[0])))


def _record_slice(x: Any, dim: int, start: int | None, end: int | None, step: int) -> Any:
    """Python's rule by ONNX's, which begin backward steps from before the first element at it, where Python takes nothing."""
    far, size = np.iinfo(np.int64).max, x.shape[dim]
    if step < 0 and start is not None and start < -1 and not (isinstance(size, int) and size + start >= 0):
        if isinstance(size, int) or (end is not None and start <= end < 0):
            start = end = 0
        else:  # what is after the start goes first: nothing is left where it is before the first element
            kept = start + 1
            x = record("Slice", x, ints(0), ints(kept), ints(dim), ints(1))
            start, end = None, end if end is None or end >= 0 else end - kept
    first = start if start is not None else (0 if step > 0 else far)
    last = end if end is not None else (far if step > 0 else -far)
    return record("Slice", x, ints(first), ints(last), ints(dim), ints(step))


def _record_select(x: Any, dim: int, index: int) -> Any:
    return record("Gather", x, np.array(index, np.int64), axis=dim)


@op("concat", "*tensors", concat_rule, lambda *tensors, dim: record("Concat", *tensors, axis=dim))
def concat(tensors: Sequence[Tensor], dim: int = 0) -> np.ndarray:
    """Puts arrays one after the other along an axis.

    Args:
        tensors: at least one, equal in every size but that along `dim`; any real dtypes.
        dim: the axis.

    Returns:
        float32, the sizes along `dim` added up.

    Raises:
        ShapeError: there are none, or the shapes do not fit.
        DTypeError: one is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.concat([[[1.0]], [[2.0, 3.0]]], dim=1)
    array([[1., 2., 3.]], dtype=float32)
    """
    if not isinstance(tensors, (tuple, list)):
        raise DTypeError(f"concat: tensors of type {type(tensors).__name__}: expected a list or tuple of arrays")
    arrays = [as_float32(t, "concat", f"tensors[{i}]") for i, t in enumerate(tensors)]
    out = empty(concat_rule([a.shape for a in arrays], dim))  # type: ignore[arg-type]
    np.concatenate(arrays, axis("concat", dim, out.ndim), out=out)
    return out


def slice_rule(x: Shape, dim: Any, start: Any, end: Any, step: Any) -> Shape:
    """Checks the arguments of `slice` and returns the shape of its result."""
    at = axis("slice", dim, len(x))
    if not x:
        raise ShapeError("slice: x has no axes: expected at least one")
    for name, value in (("start", start), ("end", end)):
        if value is not None:
            integer("slice", name, value)
    step_rule("slice", (integer("slice", "step", step),))
    size = x[at]  # what is taken of it goes by Python's rule; the operator Slice has ONNX's, see `_record_slice`
    if isinstance(size, int):
        return (*x[:at], len(range(*builtins.slice(start, end, step).indices(size))), *x[at + 1 :])
    whole = start in (None, 0) and end is None and step == 1
    return (*x[:at], size if whole else None, *x[at + 1 :])


@op("slice", "x", slice_rule, _record_slice)
def slice(x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> np.ndarray:
    """Part of an axis, as Python's ``x[start:end:step]``.

    Args:
        x: at least one axis, any real dtype.
        dim: the axis.
        start: the first index, from the end if negative; None begins at the end that `step` comes from.
        end: the index to stop before, from the end if negative; None goes on to the last.
        step: not 0; negative ones go backwards.

    Returns:
        float32; a copy.

    Raises:
        ShapeError: there is no such axis, or `step` is 0.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.slice([1.0, 2.0, 3.0, 4.0], start=1, step=2)
    array([2., 4.], dtype=float32)
    """
    x = as_float32(x, "slice", "x")
    slice_rule(x.shape, dim, start, end, step)
    part = x[(builtins.slice(None),) * axis("slice", dim, x.ndim) + (builtins.slice(start, end, step),)]
    return copy_to(part, part.shape)


def select_rule(x: Shape, dim: Any, index: Any) -> Shape:
    """Checks the arguments of `select` and returns the shape of its result."""
    at = axis("select", dim, len(x))
    found = integer("select", "index", index)
    size = x[at] if x else 0
    if isinstance(size, int) and not -size <= found < size:
        raise index_error("select", found, x, at)
    return (*x[:at], *x[at + 1 :])


@op("select", "x", select_rule, _record_select)
def select(x: Tensor, dim: int, index: int) -> np.ndarray:
    """One entry of an axis, which goes away, as Python's ``x[index]``.

    Args:
        x: at least one axis, any real dtype.
        dim: the axis.
        index: which entry, from the end if negative.

    Returns:
        float32, one axis less than x; a copy.

    Raises:
        ShapeError: there is no such axis or entry.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.select([[1.0, 2.0], [3.0, 4.0]], 1, 0)
    array([1., 3.], dtype=float32)
    """
    x = as_float32(x, "select", "x")
    select_rule(x.shape, dim, index)
    part = x[(builtins.slice(None),) * axis("select", dim, x.ndim) + (index,)]
    return copy_to(part, part.shape)
