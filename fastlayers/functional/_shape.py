"""The same values in another order or shape: always copies, never views."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError
from ..graph.arrays import as_float32, empty
from ..graph.ops import op
from ..graph.record import ints, record
from ..ir.checks import axis, integer, product
from ..ir.graph import Dim, Shape
from ..kernels import dispatch
from ..rules.shapes import permute_rule as _permute_rule
from ..rules.shapes import reshape_rule as _reshape_rule
from ..rules.shapes import squeeze_rule as _squeeze_rule

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["flatten", "permute", "reshape", "squeeze", "to_channels_first", "to_channels_last", "unsqueeze"]


def copy_to(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The values of an array of any strides in a fresh one of the given shape."""
    out = empty(shape)
    np.copyto(out.reshape(x.shape), x)
    return out


def last_rule(x: Shape) -> Shape:
    """Checks the shape of `to_channels_last` and returns that of its result."""
    if len(x) < 3:
        raise ShapeError(f"to_channels_last: x has shape {x}: expected (n, c, *space), at least 3 axes")
    return (x[0], *x[2:], x[1])


def first_rule(x: Shape) -> Shape:
    """Checks the shape of `to_channels_first` and returns that of its result."""
    if len(x) < 3:
        raise ShapeError(f"to_channels_first: x has shape {x}: expected (n, *space, c), at least 3 axes")
    return (x[0], x[-1], *x[1:-1])


def _transposed(x: Any, perm: Sequence[int]) -> Any:
    return record("Transpose", x, perm=tuple(p % x.ndim for p in perm))


def _record_flatten(x: Any, start_dim: int, end_dim: int) -> Any:
    first, last = start_dim % max(x.ndim, 1), end_dim % max(x.ndim, 1)
    # 0 keeps a size; -1 is what is left, which zero sizes before it do not allow: the general form names every size.
    shape = record("Shape", x)
    head = record("Slice", shape, ints(0), ints(first))
    middle = record("ReduceProd", record("Slice", shape, ints(first), ints(last + 1)), ints(0), keepdims=1)
    tail = record("Slice", shape, ints(last + 1), ints(x.ndim))
    return record("Reshape", x, record("Concat", head, middle, tail, axis=0), allowzero=1)


@op("to_channels_last", "x", last_rule, lambda x: _transposed(x, (0, *range(2, x.ndim), 1)))
def to_channels_last(x: Tensor) -> np.ndarray:
    """Moves the channels after the spatial axes.

    Args:
        x: ``(n, c, *space)``, any real dtype.

    Returns:
        float32 ``(n, *space, c)``.

    Raises:
        ShapeError: x has fewer than 3 axes.
        DTypeError: x is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.to_channels_last(np.zeros((1, 3, 8, 9))).shape
    (1, 8, 9, 3)
    """
    x = as_float32(x, "to_channels_last", "x")
    return _swap(x, last_rule(x.shape), (*x.shape[:2], math.prod(x.shape[2:])))


@op("to_channels_first", "x", first_rule, lambda x: _transposed(x, (0, -1, *range(1, x.ndim - 1))))
def to_channels_first(x: Tensor) -> np.ndarray:
    """Moves the channels before the spatial axes.

    Args:
        x: ``(n, *space, c)``, any real dtype.

    Returns:
        float32 ``(n, c, *space)``.

    Raises:
        ShapeError: x has fewer than 3 axes.
        DTypeError: x is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.to_channels_first(np.zeros((1, 8, 9, 3))).shape
    (1, 3, 8, 9)
    """
    x = as_float32(x, "to_channels_first", "x")
    return _swap(x, first_rule(x.shape), (x.shape[0], math.prod(x.shape[1:-1]), x.shape[-1]))


def _swap(x: np.ndarray, shape: Any, brc: tuple[int, int, int]) -> np.ndarray:
    out = empty(shape)
    b, r, c = brc
    dispatch.kernel("transpose")(x.reshape(brc), out.reshape(b, c, r))
    return out


def permute_rule(x: Shape, dims: Any) -> Shape:
    """Checks the arguments of `permute` and returns the shape of its result."""
    order = _order(x, dims)
    return tuple(x[i] for i in order)


def _order(x: Shape, dims: Any) -> tuple[int, ...]:
    found = tuple(axis("permute", d, len(x), "dims") for d in dims) if isinstance(dims, (tuple, list)) else ()
    return _permute_rule("permute", "dims", x, found, given=dims)


def _plain_dims(attributes: dict[str, Any]) -> None:
    attributes["dims"] = tuple(int(d) for d in attributes["dims"])


@op("permute", "x", permute_rule, lambda x, dims: _transposed(x, dims), _plain_dims)
def permute(x: Tensor, dims: Sequence[int]) -> np.ndarray:
    """The axes in another order: axis i of the result is axis ``dims[i]`` of x.

    Args:
        x: any shape, any real dtype.
        dims: every axis of x once.

    Returns:
        float32, the sizes of x in the order of `dims`.

    Raises:
        ShapeError: `dims` is not an order of the axes.
        DTypeError: x is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.permute(np.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = as_float32(x, "permute", "x")
    order = _order(x.shape, dims)
    moved = x.transpose(order)
    return copy_to(moved, moved.shape)


def reshape_rule(x: Shape, shape: Any) -> Shape:
    """Checks the arguments of `reshape` and returns the shape of its result, in which an unknown size may stand for -1."""
    want = [integer("reshape", "shape", d, -1) for d in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    return _reshape_rule("reshape", x, want)


def _plain_shape(attributes: dict[str, Any]) -> None:
    shape = attributes["shape"]
    attributes["shape"] = tuple(operator.index(d) for d in (shape if isinstance(shape, (tuple, list)) else (shape,)))


@op("reshape", "x", reshape_rule, lambda x, shape: record("Reshape", x, ints(*shape), allowzero=1), _plain_shape)
def reshape(x: Tensor, shape: int | Sequence[int]) -> np.ndarray:
    """The same values, in C order, in another shape.

    Args:
        x: any shape, any real dtype.
        shape: sizes whose product is that of the sizes of x; one may be -1 and is found.

    Returns:
        float32 of that shape; a copy.

    Raises:
        ShapeError: the products differ, or there is more than one -1.
        DTypeError: x is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.reshape(np.zeros((2, 3, 4)), (2, -1)).shape
    (2, 12)
    """
    x = as_float32(x, "reshape", "x")
    return copy_to(x, reshape_rule(x.shape, shape))  # type: ignore[arg-type]


def flatten_rule(x: Shape, start_dim: Any, end_dim: Any) -> Shape:
    """Checks the arguments of `flatten` and returns the shape of its result."""
    first, last = axis("flatten", start_dim, len(x), "start_dim"), axis("flatten", end_dim, len(x), "end_dim")
    if first > last:
        raise ShapeError(
            f"flatten: start_dim={start_dim} is after end_dim={end_dim}, x has shape {x}: expected it before or the same"
        )
    middle = x[first : last + 1]
    unknown = [d for d in middle if not isinstance(d, int)]
    size: Dim = product(middle)
    if size is None and len(unknown) == 1 and all(d == 1 for d in middle if isinstance(d, int)):
        size = unknown[0]
    return (*x[:first], size, *x[last + 1 :])


@op("flatten", "x", flatten_rule, _record_flatten)
def flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> np.ndarray:
    """Makes one axis of several, in C order.

    Args:
        x: any shape, any real dtype.
        start_dim: the first of the axes.
        end_dim: the last of them.

    Returns:
        float32 ``(*x.shape[:start_dim], product, *x.shape[end_dim + 1:])``; a copy.

    Raises:
        ShapeError: an axis does not exist, or `start_dim` is after `end_dim`.
        DTypeError: x is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.flatten(np.zeros((2, 3, 4, 5)), 1).shape
    (2, 60)
    """
    x = as_float32(x, "flatten", "x")
    return copy_to(x, flatten_rule(x.shape, start_dim, end_dim))  # type: ignore[arg-type]


def unsqueeze_rule(x: Shape, dim: Any) -> Shape:
    """Checks the arguments of `unsqueeze` and returns the shape of its result."""
    at = axis("unsqueeze", dim, len(x) + 1)
    return (*x[:at], 1, *x[at:])


@op("unsqueeze", "x", unsqueeze_rule, lambda x, dim: record("Unsqueeze", x, ints(dim)))
def unsqueeze(x: Tensor, dim: int) -> np.ndarray:
    """Puts in an axis of size 1.

    Args:
        x: any shape, any real dtype.
        dim: where the new axis is in the result.

    Returns:
        float32, one axis more than x; a copy.

    Raises:
        ShapeError: `dim` is no axis of the result.
        DTypeError: x is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.unsqueeze(np.zeros((2, 3)), 1).shape
    (2, 1, 3)
    """
    x = as_float32(x, "unsqueeze", "x")
    return copy_to(x, unsqueeze_rule(x.shape, dim))  # type: ignore[arg-type]


def squeeze_rule(x: Shape, dim: Any) -> Shape:
    """Checks the arguments of `squeeze` and returns the shape of its result."""
    at = axis("squeeze", dim, len(x))
    if not x:
        raise ShapeError(f"squeeze: x has shape {x}: expected at least one axis")
    return _squeeze_rule("squeeze", x, (at,))


@op("squeeze", "x", squeeze_rule, lambda x, dim: record("Squeeze", x, ints(dim)))
def squeeze(x: Tensor, dim: int) -> np.ndarray:
    """Takes out an axis of size 1; another size is an error (torch leaves it as it is).

    Args:
        x: any shape, any real dtype.
        dim: the axis.

    Returns:
        float32, one axis less than x; a copy.

    Raises:
        ShapeError: there is no such axis, or its size is not 1.
        DTypeError: x is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.squeeze(np.zeros((2, 1, 3)), 1).shape
    (2, 3)
    """
    x = as_float32(x, "squeeze", "x")
    return copy_to(x, squeeze_rule(x.shape, dim))  # type: ignore[arg-type]
