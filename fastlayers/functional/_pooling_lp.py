"""Lp pooling: roots of sums of powers over windows that slide over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls import pooling
from ..errors import ArgumentError
from ..graph.ops import op
from ..ir.checks import flag, number
from ..ir.graph import Shape
from ._pooling_rules import Pool, plain, pool, pool_shape, record_pool, run_pool

if TYPE_CHECKING:
    from ._types import Padding, Tensor

__all__ = ["lp_pool1d", "lp_pool2d", "lp_pool3d"]


def _rule(name: str, axes: int) -> Callable[..., Shape]:
    """The shape rule of `lp_pool` over `axes` axes."""

    def rule(x: Shape, *, norm_type: Any, norm: Any, **place: Any) -> Shape:
        exponent(name, norm_type)
        flag(name, "norm", norm)
        return pool_shape(pool(name, axes, dilation=1, **place), x)

    return rule


def exponent(name: str, norm_type: Any) -> float:
    """p, checked."""
    p = number(name, "norm_type", norm_type)
    if not 1 <= p < float("inf"):
        raise ArgumentError(f"{name}: norm_type is {norm_type!r}: expected a finite number of at least 1")
    return p


def _lp(place: Pool, x: Any, norm_type: Any, norm: Any) -> np.ndarray:
    return run_pool(place, pooling.powers, x, exponent(place.op, norm_type), flag(place.op, "norm", norm))


@op("lp_pool1d", "x", _rule("lp_pool1d", 1), partial(record_pool, "LpPool", 1), plain)
def lp_pool1d(
    x: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
    *,
    padding: Padding = 0,
    norm: bool = False,
    layout: str = "nchw",
) -> np.ndarray:
    """Root of the sum of powers over windows of a sequence: ``out[o] = (sum over k of x[o * stride + k]^p)^(1/p)``.

    See `lp_pool2d` for the arguments. Here x is ``(n, c, l)``, or ``(n, l, c)`` if `layout` is channels-last.

    >>> import fastlayers as fl
    >>> fl.functional.lp_pool1d([[[3.0, 4.0, 5.0, 12.0]]], 2, 2)
    array([[[ 5., 13.]]], dtype=float32)
    """
    return _lp(pool("lp_pool1d", 1, kernel_size, stride, padding, 1, ceil_mode, layout), x, norm_type, norm)


@op("lp_pool2d", "x", _rule("lp_pool2d", 2), partial(record_pool, "LpPool", 2), plain)
def lp_pool2d(
    x: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
    *,
    padding: Padding = 0,
    norm: bool = False,
    layout: str = "nchw",
) -> np.ndarray:
    """Root of the sum of powers over windows of a plane: ``out[o] = (sum over k of x[o * stride + k]^p)^(1/p)``.

    Args:
        x: ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last, or the same without n; any real dtype, computed
            in float32.
        norm_type: p, at least 1; ``1`` sums, ``2`` takes the Euclidean norm.
        kernel_size: size of the window: an int, or one per axis.
        stride: from one window to the next; an int, one per axis, or None for the kernel's size.
        ceil_mode: whether a last window may overhang the padding; one that would begin after the image and the padding
            before is left out, as in torch.
        padding: an int, one per axis, a pair (before, after) an axis, ``"valid"`` for none, or ``"same"`` for ``ceil(size /
            stride)`` outputs by TensorFlow's rule: what is odd goes after. Less than a window spans. Filled with zeros. torch
            has none.
        norm: False, torch's formula: powers keep the sign of x (an odd p may give NaN), and the sum of a window that
            overhangs is scaled up to a full one. True, that of ONNX: absolute values, and sums as they are.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.

    Returns:
        float32 ``(n, c, oh, ow)`` or ``(n, oh, ow, c)``, each size ``(size + before + after - k) // stride + 1``, rounded up
        with `ceil_mode`.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.lp_pool2d(np.ones((1, 1, 4, 4)), 2, 2)
    array([[[[2., 2.],
             [2., 2.]]]], dtype=float32)
    """
    return _lp(pool("lp_pool2d", 2, kernel_size, stride, padding, 1, ceil_mode, layout), x, norm_type, norm)


@op("lp_pool3d", "x", _rule("lp_pool3d", 3), partial(record_pool, "LpPool", 3), plain)
def lp_pool3d(
    x: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
    *,
    padding: Padding = 0,
    norm: bool = False,
    layout: str = "nchw",
) -> np.ndarray:
    """Root of the sum of powers over windows of a volume: ``out[o] = (sum over k of x[o * stride + k]^p)^(1/p)``.

    See `lp_pool2d` for the arguments. Here x is ``(n, c, d, h, w)``, or ``(n, d, h, w, c)`` if `layout` is channels-last.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.lp_pool3d(np.zeros((1, 2, 4, 6, 8)), 2, 2).shape
    (1, 2, 2, 3, 4)
    """
    return _lp(pool("lp_pool3d", 3, kernel_size, stride, padding, 1, ceil_mode, layout), x, norm_type, norm)
