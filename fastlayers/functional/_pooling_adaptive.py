"""Pools whose bins follow from the sizes of their results, and pools over all of space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls import pooling
from ..calls.machine import ARRAYS
from ..errors import ArgumentError, DTypeError, ShapeError
from ..graph.arrays import as_float32, empty
from ..graph.ops import op
from ..graph.record import ints, record
from ..ir.checks import flag, integer
from ..ir.graph import Dim, Shape
from ..rules.maps import space_rule
from ._conv_rules import channels_last
from ._pooling_rules import image, no_indices, plain
from ._recorded import with_batch

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "global_avg_pool", "global_max_pool",
]  # fmt: skip


def bins(name: str, axes: int, output_size: Any) -> tuple[int | None, ...]:
    """The sizes of the result; None is that of x."""
    if not isinstance(output_size, (tuple, list)):
        output_size = (output_size,) * axes
    if len(output_size) != axes:
        raise ArgumentError(
            f"{name}: output_size is {tuple(output_size)!r} of length {len(output_size)}: expected one int or {axes}"
        )
    if axes == 1 and output_size[0] is None:
        raise DTypeError(f"{name}: output_size is None: expected an int")
    return tuple(None if size is None else integer(name, "output_size", size, 1) for size in output_size)


def _shape(name: str, axes: int, x: Shape, output_size: Any, layout: Any) -> Shape:
    wanted, last = bins(name, axes, output_size), channels_last(name, layout, axes)
    sizes = image(name, x, axes, last)
    space_rule(name, x, sizes)
    out = tuple(size if want is None else want for size, want in zip(sizes, wanted, strict=True))
    return (*x[: -1 - axes], *out, x[-1]) if last else (*x[:-axes], *out)


def _rule(name: str, axes: int) -> Callable[..., Shape]:
    """The shape rule of an adaptive pool over `axes` axes."""

    def rule(x: Shape, *, output_size: Any, layout: Any, return_indices: Any = False) -> Shape:
        no_indices(name, return_indices)
        return _shape(name, axes, x, output_size, layout)

    return rule


def _adaptive(name: str, axes: int, x: Any, output_size: Any, layout: Any) -> np.ndarray:
    x = as_float32(x, name, "x")
    shape: Any = _shape(name, axes, x.shape, output_size, layout)
    last, out = channels_last(name, layout, axes), empty(shape)
    pooling.adaptive(ARRAYS, x, out, "mean" if "avg" in name else "max", last, axes)
    return out


def global_rule(name: str, x: Shape, layout: Any, keepdims: Any) -> Shape:
    """Checks the arguments of a global pool and returns the shape of its result."""
    if not 3 <= len(x) <= 5:
        raise ShapeError(f"{name}: x has shape {x} ({len(x)} axes): expected (n, c, ...) with one to three spatial axes")
    keep, last = flag(name, "keepdims", keepdims), channels_last(name, layout, len(x) - 2)
    ones: tuple[Dim, ...] = (1,) * (len(x) - 2) if keep else ()
    space_rule(name, x, x[1:-1] if last else x[2:])
    return (x[0], *ones, x[-1]) if last else (x[0], x[1], *ones)


def _global(name: str, x: Any, layout: Any, keepdims: Any) -> np.ndarray:
    x = as_float32(x, name, "x")
    shape: Any = global_rule(name, x.shape, layout, keepdims)
    out, last = empty(shape), channels_last(name, layout, x.ndim - 2)
    pooling.whole(ARRAYS, x, out, "mean" if "avg" in name else "max", last)
    return out


def _record(reduce: str, name: str, axes: int, x: Any, output_size: Any, layout: str, return_indices: Any = False) -> Any:
    own: dict[str, Any] = {"x_last": True} if channels_last(name, layout, axes) else {}
    sizes = tuple(size or 0 for size in bins(name, axes, output_size))
    return with_batch(x, axes, lambda x: record("AdaptivePool", x, sizes=sizes, reduce=reduce, **own))


def _record_global(op: str, name: str, x: Any, layout: str, keepdims: bool) -> Any:
    last, space = channels_last(name, layout, x.ndim - 2), ints(*range(2, x.ndim))
    made = record(op, x, **({"x_last": True} if last else {}))  # with its channels first in both layouts
    if keepdims and not last:
        return made
    flat = record("Squeeze", made, space)
    return record("Unsqueeze", flat, ints(*range(1, x.ndim - 1))) if keepdims else flat


@op("adaptive_avg_pool1d", "x", _rule("adaptive_avg_pool1d", 1), partial(_record, "mean", "adaptive_avg_pool1d", 1), plain)
def adaptive_avg_pool1d(x: Tensor, output_size: int | Sequence[int], *, layout: str = "nchw") -> np.ndarray:
    """Average over bins of a sequence: bin i reaches from ``floor(i * in / out)`` to ``ceil((i + 1) * in / out)``.

    See `adaptive_avg_pool2d` for the arguments. Here x is ``(n, c, l)``, or ``(n, l, c)`` if `layout` is channels-last.

    >>> import fastlayers as fl
    >>> fl.functional.adaptive_avg_pool1d([[[1.0, 3.0, 5.0, 7.0]]], 2)
    array([[[2., 6.]]], dtype=float32)
    """
    return _adaptive("adaptive_avg_pool1d", 1, x, output_size, layout)


@op("adaptive_avg_pool2d", "x", _rule("adaptive_avg_pool2d", 2), partial(_record, "mean", "adaptive_avg_pool2d", 2), plain)
def adaptive_avg_pool2d(x: Tensor, output_size: int | Sequence[int | None] | None, *, layout: str = "nchw") -> np.ndarray:
    """Average over bins of a plane: bin i reaches from ``floor(i * in / out)`` to ``ceil((i + 1) * in / out)``.

    Args:
        x: ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last, or the same without n; any real dtype, computed
            in float32.
        output_size: sizes of the result along space: an int, or one per axis; None keeps a size.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.

    Returns:
        float32 of the shape of x, its sizes along space replaced by `output_size`.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.adaptive_avg_pool2d(np.zeros((1, 2, 10, 8)), (7, None)).shape
    (1, 2, 7, 8)
    """
    return _adaptive("adaptive_avg_pool2d", 2, x, output_size, layout)


@op("adaptive_avg_pool3d", "x", _rule("adaptive_avg_pool3d", 3), partial(_record, "mean", "adaptive_avg_pool3d", 3), plain)
def adaptive_avg_pool3d(x: Tensor, output_size: int | Sequence[int | None] | None, *, layout: str = "nchw") -> np.ndarray:
    """Average over bins of a volume: bin i reaches from ``floor(i * in / out)`` to ``ceil((i + 1) * in / out)``.

    See `adaptive_avg_pool2d` for the arguments. Here x is ``(n, c, d, h, w)``, or ``(n, d, h, w, c)`` if `layout` is
    channels-last.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.adaptive_avg_pool3d(np.zeros((1, 2, 4, 6, 8)), 3).shape
    (1, 2, 3, 3, 3)
    """
    return _adaptive("adaptive_avg_pool3d", 3, x, output_size, layout)


@op("adaptive_max_pool1d", "x", _rule("adaptive_max_pool1d", 1), partial(_record, "max", "adaptive_max_pool1d", 1), plain)
def adaptive_max_pool1d(
    x: Tensor, output_size: int | Sequence[int], return_indices: bool = False, *, layout: str = "nchw"
) -> np.ndarray:
    """Maximum over bins of a sequence: bin i reaches from ``floor(i * in / out)`` to ``ceil((i + 1) * in / out)``.

    See `adaptive_max_pool2d` for the arguments. Here x is ``(n, c, l)``, or ``(n, l, c)`` if `layout` is channels-last.

    >>> import fastlayers as fl
    >>> fl.functional.adaptive_max_pool1d([[[1.0, 3.0, 5.0, 7.0]]], 2)
    array([[[3., 7.]]], dtype=float32)
    """
    no_indices("adaptive_max_pool1d", return_indices)
    return _adaptive("adaptive_max_pool1d", 1, x, output_size, layout)


@op("adaptive_max_pool2d", "x", _rule("adaptive_max_pool2d", 2), partial(_record, "max", "adaptive_max_pool2d", 2), plain)
def adaptive_max_pool2d(
    x: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False, *, layout: str = "nchw"
) -> np.ndarray:
    """Maximum over bins of a plane: bin i reaches from ``floor(i * in / out)`` to ``ceil((i + 1) * in / out)``.

    Args:
        x: ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last, or the same without n; any real dtype, computed
            in float32.
        output_size: sizes of the result along space: an int, or one per axis; None keeps a size.
        return_indices: must be False: positions of the largest are not computed.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.

    Returns:
        float32 of the shape of x, its sizes along space replaced by `output_size`.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.
        UnsupportedError: `return_indices` is True.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.adaptive_max_pool2d(np.zeros((1, 2, 10, 8)), (7, None)).shape
    (1, 2, 7, 8)
    """
    no_indices("adaptive_max_pool2d", return_indices)
    return _adaptive("adaptive_max_pool2d", 2, x, output_size, layout)


@op("adaptive_max_pool3d", "x", _rule("adaptive_max_pool3d", 3), partial(_record, "max", "adaptive_max_pool3d", 3), plain)
def adaptive_max_pool3d(
    x: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False, *, layout: str = "nchw"
) -> np.ndarray:
    """Maximum over bins of a volume: bin i reaches from ``floor(i * in / out)`` to ``ceil((i + 1) * in / out)``.

    See `adaptive_max_pool2d` for the arguments. Here x is ``(n, c, d, h, w)``, or ``(n, d, h, w, c)`` if `layout` is
    channels-last.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.adaptive_max_pool3d(np.zeros((1, 2, 4, 6, 8)), 3).shape
    (1, 2, 3, 3, 3)
    """
    no_indices("adaptive_max_pool3d", return_indices)
    return _adaptive("adaptive_max_pool3d", 3, x, output_size, layout)


@op(
    "global_avg_pool",
    "x",
    lambda x, layout, keepdims: global_rule("global_avg_pool", x, layout, keepdims),
    partial(_record_global, "GlobalAveragePool", "global_avg_pool"),
)
def global_avg_pool(x: Tensor, *, layout: str = "nchw", keepdims: bool = False) -> np.ndarray:
    """Average over all of space, one number a channel: what Keras calls GlobalAveragePooling1D to 3D.

    Args:
        x: ``(n, c, ...)``, or ``(n, ..., c)`` if `layout` is channels-last, with one to three spatial axes; any real dtype,
            computed in float32.
        layout: channels first, ``"nchw"`` (or ``"ncl"``, ``"ncdhw"``), or last, ``"nhwc"`` (or ``"nlc"``, ``"ndhwc"``).
        keepdims: whether the spatial axes stay, with size 1.

    Returns:
        float32 ``(n, c)``, or the shape of x with ones along space.

    Raises:
        ShapeError: x has no spatial axis, or an empty one.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.global_avg_pool([[[[1.0, 2.0], [3.0, 4.0]]]])
    array([[2.5]], dtype=float32)
    """
    return _global("global_avg_pool", x, layout, keepdims)


@op(
    "global_max_pool",
    "x",
    lambda x, layout, keepdims: global_rule("global_max_pool", x, layout, keepdims),
    partial(_record_global, "GlobalMaxPool", "global_max_pool"),
)
def global_max_pool(x: Tensor, *, layout: str = "nchw", keepdims: bool = False) -> np.ndarray:
    """Maximum over all of space, one number a channel: what Keras calls GlobalMaxPooling1D to 3D.

    Args:
        x: ``(n, c, ...)``, or ``(n, ..., c)`` if `layout` is channels-last, with one to three spatial axes; any real dtype,
            computed in float32.
        layout: channels first, ``"nchw"`` (or ``"ncl"``, ``"ncdhw"``), or last, ``"nhwc"`` (or ``"nlc"``, ``"ndhwc"``).
        keepdims: whether the spatial axes stay, with size 1.

    Returns:
        float32 ``(n, c)``, or the shape of x with ones along space.

    Raises:
        ShapeError: x has no spatial axis, or an empty one.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.global_max_pool([[[[1.0, 2.0], [3.0, 4.0]]]])
    array([[4.]], dtype=float32)
    """
    return _global("global_max_pool", x, layout, keepdims)
