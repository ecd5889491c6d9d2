"""Maximum and average over windows that slide over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls import pooling
from ..graph.ops import op
from ..ir.checks import flag, integer
from ..ir.graph import Shape
from ._pooling_rules import Pool, no_indices, plain, pool, pool_shape, record_pool, run_pool

if TYPE_CHECKING:
    from ._types import Padding, Tensor

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"]


def _max_rule(name: str, axes: int) -> Callable[..., Shape]:
    """The shape rule of `max_pool` over `axes` axes."""

    def rule(x: Shape, *, return_indices: Any, **place: Any) -> Shape:
        no_indices(name, return_indices)
        return pool_shape(pool(name, axes, **place), x)

    return rule


def _avg_rule(name: str, axes: int) -> Callable[..., Shape]:
    """The shape rule of `avg_pool` over `axes` axes."""

    def rule(x: Shape, *, count_include_pad: Any, divisor_override: Any = None, **place: Any) -> Shape:
        divisor(name, count_include_pad, divisor_override)
        return pool_shape(pool(name, axes, dilation=1, **place), x)

    return rule


def divisor(name: str, count_include_pad: Any, divisor_override: Any) -> tuple[bool, int | None]:
    """Whether padding counts, and what sums are divided by if not by what counts."""
    count = flag(name, "count_include_pad", count_include_pad)
    return count, None if divisor_override is None else integer(name, "divisor_override", divisor_override, 1)


def _avg(place: Pool, x: Any, count_include_pad: Any, divisor_override: Any) -> np.ndarray:
    count, override = divisor(place.op, count_include_pad, divisor_override)
    return run_pool(place, pooling.average, x, count and place.window.pads is not None, override)


@op("max_pool1d", "x", _max_rule("max_pool1d", 1), partial(record_pool, "MaxPool", 1), plain)
def max_pool1d(
    x: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    layout: str = "nchw",
) -> np.ndarray:
    """Maximum over windows of a sequence: ``out[o] = max over k of x[o * stride - before + k * dilation]``; NaN if one is.

    See `max_pool2d` for the arguments. Here x is ``(n, c, l)``, or ``(n, l, c)`` if `layout` is channels-last.

    >>> import fastlayers as fl
    >>> fl.functional.max_pool1d([[[1.0, 3.0, 2.0, 5.0]]], 2)
    array([[[3., 5.]]], dtype=float32)
    """
    no_indices("max_pool1d", return_indices)
    return run_pool(pool("max_pool1d", 1, kernel_size, stride, padding, dilation, ceil_mode, layout), pooling.largest, x)


@op("max_pool2d", "x", _max_rule("max_pool2d", 2), partial(record_pool, "MaxPool", 2), plain)
def max_pool2d(
    x: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    layout: str = "nchw",
) -> np.ndarray:
    """Maximum over windows of a plane: ``out[o] = max over k of x[o * stride - before + k * dilation]``; NaN if one is.

    Args:
        x: ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last, or the same without n; any real dtype, computed
            in float32.
        kernel_size: size of the window: an int, or one per axis.
        stride: from one window to the next; an int, one per axis, or None for the kernel's size.
        padding: an int, one per axis, a pair (before, after) an axis, ``"valid"`` for none, or ``"same"`` for ``ceil(size /
            stride)`` outputs by TensorFlow's rule: what is odd goes after. Less than a window spans. Positions in it never
            count.
        dilation: the distance between the elements of a window; an int, or one per axis.
        ceil_mode: whether a last window may overhang the padding; one that would begin after the image and the padding
            before is left out, as in torch.
        return_indices: must be False: positions of the largest are not computed.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.

    Returns:
        float32 ``(n, c, oh, ow)`` or ``(n, oh, ow, c)``, each size ``(size + before + after - dilation * (k - 1) - 1) //
        stride + 1``, rounded up with `ceil_mode`.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.
        UnsupportedError: `return_indices` is True.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.max_pool2d(np.arange(16.0).reshape(1, 1, 4, 4), 2)
    array([[[[ 5.,  7.],
             [13., 15.]]]], dtype=float32)
    """
    no_indices("max_pool2d", return_indices)
    return run_pool(pool("max_pool2d", 2, kernel_size, stride, padding, dilation, ceil_mode, layout), pooling.largest, x)


@op("max_pool3d", "x", _max_rule("max_pool3d", 3), partial(record_pool, "MaxPool", 3), plain)
def max_pool3d(
    x: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
    *,
    layout: str = "nchw",
) -> np.ndarray:
    """Maximum over windows of a volume: ``out[o] = max over k of x[o * stride - before + k * dilation]``; NaN if one is.

    See `max_pool2d` for the arguments. Here x is ``(n, c, d, h, w)``, or ``(n, d, h, w, c)`` if `layout` is channels-last.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.max_pool3d(np.zeros((1, 2, 4, 6, 8)), 2).shape
    (1, 2, 2, 3, 4)
    """
    no_indices("max_pool3d", return_indices)
    return run_pool(pool("max_pool3d", 3, kernel_size, stride, padding, dilation, ceil_mode, layout), pooling.largest, x)


@op("avg_pool1d", "x", _avg_rule("avg_pool1d", 1), partial(record_pool, "AveragePool", 1), plain)
def avg_pool1d(
    x: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    *,
    layout: str = "nchw",
) -> np.ndarray:
    """Average over windows of a sequence: ``out[o] = sum over k of x[o * stride - before + k] / positions that count``.

    See `avg_pool2d` for the arguments. Here x is ``(n, c, l)``, or ``(n, l, c)`` if `layout` is channels-last. There is no
    `divisor_override`, as in torch.

    >>> import fastlayers as fl
    >>> fl.functional.avg_pool1d([[[1.0, 3.0, 2.0, 5.0]]], 2)
    array([[[2. , 3.5]]], dtype=float32)
    """
    place = pool("avg_pool1d", 1, kernel_size, stride, padding, 1, ceil_mode, layout)
    return _avg(place, x, count_include_pad, None)


@op("avg_pool2d", "x", _avg_rule("avg_pool2d", 2), partial(record_pool, "AveragePool", 2), plain)
def avg_pool2d(
    x: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    layout: str = "nchw",
) -> np.ndarray:
    """Average over windows of a plane: ``out[o] = sum over k of x[o * stride - before + k] / positions that count``.

    Args:
        x: ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last, or the same without n; any real dtype, computed
            in float32.
        kernel_size: size of the window: an int, or one per axis.
        stride: from one window to the next; an int, one per axis, or None for the kernel's size.
        padding: an int, one per axis, a pair (before, after) an axis, ``"valid"`` for none, or ``"same"`` for ``ceil(size /
            stride)`` outputs by TensorFlow's rule: what is odd goes after. Less than a window spans.
        ceil_mode: whether a last window may overhang the padding; one that would begin after the image and the padding
            before is left out, as in torch.
        count_include_pad: whether positions in the padding count as zeros; with ``padding="same"`` they never do, as in Keras.
            Positions after the padding (`ceil_mode`) never count.
        divisor_override: what sums are divided by in place of the number of positions, or None.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.

    Returns:
        float32 ``(n, c, oh, ow)`` or ``(n, oh, ow, c)``, each size ``(size + before + after - k) // stride + 1``, rounded up
        with `ceil_mode`.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.avg_pool2d(np.arange(16.0).reshape(1, 1, 4, 4), 2)
    array([[[[ 2.5,  4.5],
             [10.5, 12.5]]]], dtype=float32)
    """
    place = pool("avg_pool2d", 2, kernel_size, stride, padding, 1, ceil_mode, layout)
    return _avg(place, x, count_include_pad, divisor_override)


@op("avg_pool3d", "x", _avg_rule("avg_pool3d", 3), partial(record_pool, "AveragePool", 3), plain)
def avg_pool3d(
    x: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    layout: str = "nchw",
) -> np.ndarray:
    """Average over windows of a volume: ``out[o] = sum over k of x[o * stride - before + k] / positions that count``.

    See `avg_pool2d` for the arguments. Here x is ``(n, c, d, h, w)``, or ``(n, d, h, w, c)`` if `layout` is channels-last.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.avg_pool3d(np.zeros((1, 2, 4, 6, 8)), 2).shape
    (1, 2, 2, 3, 4)
    """
    place = pool("avg_pool3d", 3, kernel_size, stride, padding, 1, ceil_mode, layout)
    return _avg(place, x, count_include_pad, divisor_override)
