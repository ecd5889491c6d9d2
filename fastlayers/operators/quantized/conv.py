"""Convolution of quantized values: ConvInteger and QLinearConv. Sums are exact; padding holds the zero point of x.

As Conv they take `x_last` and `out_last`: channels last in x, in the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...calls.conv_choice import why_bytes
from .._base import Spec, View, register
from .._costs import convolution
from .._layouts import convolution_sides
from .._traits import Layout, Traits
from ..conv import _parts, conv_infer, conv_run
from . import lowering as lower
from .linear import INT32
from .parameters import (
    Arrays,
    applied,
    array_spec,
    factor,
    float_spec,
    need_integers,
    need_like,
    need_one,
    need_scale,
    requantized,
    result_dtype,
    triple,
    whole,
    wrapped,
)

if TYPE_CHECKING:
    from ..builder import Builder


def _floats(n: View, x: int, w: int, b: int | None = None) -> View:
    """The same convolution of floats."""
    bias = [n.spec(b)] if b is not None and n.has(b) else []
    return applied(n, "Conv", [float_spec(n.spec(x)), float_spec(n.spec(w)), *map(float_spec, bias)])


def _per_channel(n: View, i: int, w: int) -> None:
    if not n.has(i):
        return
    shape, weight = n.shape(i), n.shape(w)
    count = weight[0] if weight else None
    if shape is not None and (
        len(shape) > 1 or (shape and isinstance(shape[0], int) and isinstance(count, int) and shape[0] not in (1, count))
    ):
        raise n.fail(f"input {i} has shape {shape}, the weights {weight}: expected one number, or {count}, one per channel")


def _channels(value: np.ndarray, axes: int) -> np.ndarray:
    """A number, or one per channel, next to weights of so many axes."""
    return value.reshape(()) if value.size == 1 else value.reshape(-1, *(1,) * (axes - 1))


def _total(n: View, x: np.ndarray, w: np.ndarray, x_zero: np.ndarray | None, w_zero: np.ndarray | None) -> np.ndarray:
    """Exact sums as float64."""
    wide = whole(x, None if x_zero is None else x_zero.reshape(()))
    weight = whole(w, None if w_zero is None else _channels(w_zero, w.ndim))
    view = applied(n, "Conv", [array_spec(wide), array_spec(weight)])
    return conv_run(view, wide, weight)[0]


def _why(i: int) -> Callable[[View], str]:
    return lambda n: why_bytes(n.sizes(i), n.get("group", 1))


# ---- ConvInteger ------------------------------------------------------------------------------------------------------------


def integer_infer(n: View) -> list[Spec]:
    """Inputs: x, w, the zero point of x, that of w or those of its channels."""
    need_integers(n, 0, 1)
    need_like(n, 2, 0)
    need_like(n, 3, 1)
    need_one(n, 2)
    _per_channel(n, 3, 1)
    return [Spec(conv_infer(_floats(n, 0, 1))[0].shape, INT32)]


def integer_run(
    n: View, x: np.ndarray, w: np.ndarray, x_zero: np.ndarray | None = None, w_zero: np.ndarray | None = None
) -> Arrays:
    """The convolution of (x - x_zero) with (w - w_zero), in int32."""
    return (wrapped(_total(n, x, w, x_zero, w_zero)),)


def integer_lower(n: View, b: Builder) -> Any:
    weight = n.value(1)
    place = _parts(_floats(n, 0, 1))[2]
    if weight is None or place is None or not lower.window_of(n, place) or not lower.known(n, 3):
        return False
    return lower.conv_lower(n, b, place, weight, n.value(3), None, b.optional(2), None)


register(
    "ConvInteger", integer_infer, integer_run, integer_lower, Traits(work="products", multiply_adds=convolution(), why=_why(1))
)

# ---- QLinearConv ------------------------------------------------------------------------------------------------------------


def linear_infer(n: View) -> list[Spec]:
    """Inputs: x and w with their scales and zero points, scale and zero point of the result, a bias (int32)."""
    triple(n, 0)
    need_integers(n, 3)
    need_scale(n, 4)
    need_like(n, 5, 3)
    _per_channel(n, 4, 3)
    _per_channel(n, 5, 3)
    if n.has(8) and n.spec(8).dtype != INT32:
        raise n.wrong_dtype(f"input 8, the bias, has dtype {n.spec(8).dtype}: expected int32")
    return [Spec(conv_infer(_floats(n, 0, 3, 8))[0].shape, result_dtype(n, 7))]


def linear_run(
    n: View, x: np.ndarray, x_scale: np.ndarray, x_zero: np.ndarray | None, w: np.ndarray, w_scale: np.ndarray,
    w_zero: np.ndarray | None, y_scale: np.ndarray, y_zero: np.ndarray | None = None, bias: np.ndarray | None = None,
) -> Arrays:  # fmt: skip
    """The convolution in the result's steps; the bias is in steps of x_scale w_scale."""
    total, last = _total(n, x, w, x_zero, w_zero), n.get("out_last", False)

    def along(value: np.ndarray) -> np.ndarray:
        return value.reshape(()) if value.size == 1 else value.reshape(-1, *(1,) * (0 if last else x.ndim - 2))

    if bias is not None:
        total = total + bias.reshape(-1, *(1,) * (0 if last else x.ndim - 2))
    by = along(factor(x_scale.reshape(()), w_scale, y_scale.reshape(())))
    dtype = x.dtype if y_zero is None else y_zero.dtype
    return (requantized(wrapped(total), by, 0 if y_zero is None else y_zero.reshape(()), dtype),)


def linear_lower(n: View, b: Builder) -> Any:
    weight = n.value(3)
    place = _parts(_floats(n, 0, 3))[2]
    if weight is None or place is None or not lower.window_of(n, place) or not lower.known(n, 1, 2, 4, 5, 6, 7, 8):
        return False
    by, zero = lower.conv_factor(n), lower.one(b, n.value(2))
    return lower.conv_lower(n, b, place, weight, n.value(5), by, zero, n.value(7), n.value(8))


def _zero(n: View) -> float | None:
    """The number that stands for zero in x."""
    zero = n.value(2)
    return 0.0 if not n.has(2) else float(zero.reshape(-1)[0]) if zero is not None and zero.size == 1 else None


register(
    "QLinearConv",
    linear_infer,
    linear_run,
    linear_lower,
    Traits(
        layout=Layout("free", lambda n: convolution_sides(n, 3, 9, None), lambda x, out: {"x_last": x, "out_last": out}),
        multiply_adds=convolution(3),
        padding=_zero,
        why=_why(3),
    ),
)
