"""Products of quantized matrices: MatMulInteger and QLinearMatMul of ONNX; QGemm, MatMulIntegerToFloat and
DynamicQuantizeMatMul of ONNX Runtime. All sums are exact.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base import FLOAT32, Spec, View, register
from .._costs import product as product_cost
from .._traits import Traits
from ..linear import gemm_infer, matmul_infer
from . import lowering as lower
from .parameters import (
    Arrays,
    applied,
    factor,
    need_integers,
    need_like,
    need_one,
    need_scale,
    quantized,
    requantized,
    result_dtype,
    whole,
    wrapped,
)
from .quantize import UINT8, dynamic_range

if TYPE_CHECKING:
    from ..builder import Builder

INT32 = np.dtype(np.int32)


def _shape(n: View, a: int, b: int, dtype: np.dtype[Any]) -> list[Spec]:
    shape = matmul_infer(applied(n, "MatMul", [n.spec(a), n.spec(b)]))[0].shape
    return [Spec(shape, dtype)]


def _parameter(n: View, i: int, side: int, row: bool) -> None:
    """Checks the shape of a scale or zero point of operand `side`: one number, one per row (of a) or one per column (of b)."""
    if not n.has(i):
        return
    shape, x = n.shape(i), n.shape(side)
    if shape is None or x is None or all(d == 1 for d in shape):
        return
    if len(shape) == 1:
        want = x[-2] if row and len(x) > 1 else 1 if row else x[-1]
        fits = not (isinstance(shape[0], int) and isinstance(want, int)) or shape[0] == want
    else:
        expected = (*x[:-1], 1) if row else (*x[:-2], 1, x[-1])
        fits = len(shape) == len(expected) and not any(
            isinstance(p, int) and isinstance(q, int) and p not in (q, 1) for p, q in zip(shape, expected, strict=True)
        )
    if not fits:
        which = "row" if row else "column"
        raise n.fail(f"input {i} has shape {shape}, the operand {x}: expected one number, or one per {which}")


def rows(value: np.ndarray | None) -> np.ndarray | None:
    """A parameter of the left operand in a shape that broadcasts to it."""
    return None if value is None else value.reshape(()) if value.size == 1 else value[:, None] if value.ndim == 1 else value


def columns(value: np.ndarray | None) -> np.ndarray | None:
    """A parameter of the right operand in a shape that broadcasts to it."""
    return None if value is None else value.reshape(()) if value.size == 1 else value


def _product(a: np.ndarray, b: np.ndarray, a_zero: np.ndarray | None, b_zero: np.ndarray | None) -> np.ndarray:
    return wrapped(np.matmul(whole(a, rows(a_zero)), whole(b, columns(b_zero))))


# ---- ONNX's -----------------------------------------------------------------------------------------------------------------


def integer_infer(n: View) -> list[Spec]:
    """Inputs: a, b, their zero points."""
    need_integers(n, 0, 1)
    need_like(n, 2, 0)
    need_like(n, 3, 1)
    _parameter(n, 2, 0, True)
    _parameter(n, 3, 1, False)
    return _shape(n, 0, 1, INT32)


def integer_run(
    n: View, a: np.ndarray, b: np.ndarray, a_zero: np.ndarray | None = None, b_zero: np.ndarray | None = None
) -> Arrays:
    """(a - a_zero) (b - b_zero) in int32."""
    return (_product(a, b, a_zero, b_zero),)


def integer_lower(n: View, b: Builder) -> Any:
    weight = lower.matmul_lower(n, b, 0, 1, 2, 3)
    if weight is None:
        return lower.computed(n, b, 0, 1, 2, 3, None, None)
    return lower.product(n, b, b.input(0), weight, n.value(3), None, b.optional(2), None, None)


register("MatMulInteger", integer_infer, integer_run, integer_lower, Traits(work="products", multiply_adds=product_cost))


def linear_infer(n: View) -> list[Spec]:
    """Inputs: a and b with their scales and zero points, then the scale and the zero point of the result."""
    need_integers(n, 0, 3)
    need_scale(n, 1, 4)
    need_like(n, 2, 0)
    need_like(n, 5, 3)
    for i in (1, 2):
        _parameter(n, i, 0, True)
        _parameter(n, i + 3, 3, False)
    return _shape(n, 0, 3, result_dtype(n, 7))


def linear_run(
    n: View, a: np.ndarray, a_scale: np.ndarray, a_zero: np.ndarray | None, b: np.ndarray, b_scale: np.ndarray,
    b_zero: np.ndarray | None, y_scale: np.ndarray, y_zero: np.ndarray | None = None,
) -> Arrays:  # fmt: skip
    """The product in the result's steps."""
    by = factor(rows(a_scale), columns(b_scale), y_scale.reshape(()))  # type: ignore[arg-type]
    dtype = a.dtype if y_zero is None else y_zero.dtype
    total = _product(a, b, a_zero, b_zero)
    return (requantized(total, by, 0 if y_zero is None else y_zero.reshape(()), dtype),)


def linear_lower(n: View, b: Builder) -> Any:
    weight = lower.matmul_lower(n, b, 0, 3, 2, 5)
    if not lower.known(n, 1, 2, 4, 6, 7) or not lower.single(n, 1) or not lower.float32(n, 1, 4, 6):
        return False
    if weight is None:
        by = lower.conv_factor(n) if lower.single(n, 4) else None
        return by is not None and lower.computed(n, b, 0, 3, 2, 5, by, n.value(7))
    if math.prod(n.sizes(4)) not in (1, weight.shape[1]):
        return False
    by, zero = lower.conv_factor(n), lower.one(b, n.value(2))
    return lower.product(n, b, b.input(0), weight, n.value(5), by, zero, None, n.value(7))


register("QLinearMatMul", linear_infer, linear_run, linear_lower, Traits(multiply_adds=product_cost))

# ---- ONNX Runtime's ---------------------------------------------------------------------------------------------------------


def gemm_specs(n: View) -> list[Spec]:
    """QGemm's inputs: A and B with their scales and zero points, C (int32), the scale and the zero point of the result."""
    need_integers(n, 0, 3)
    need_scale(n, 1, 4)
    need_like(n, 2, 0)
    need_like(n, 5, 3)
    need_one(n, 1, 2)
    if n.has(6) and n.spec(6).dtype != INT32:
        raise n.wrong_dtype(f"input 6, the bias, has dtype {n.spec(6).dtype}: expected int32")
    dtype = result_dtype(n, 8) if n.has(7) else FLOAT32
    inner: list[Spec | None] = [n.spec(0), n.spec(3), *([n.spec(6)] if n.has(6) else [])]
    shape = gemm_infer(applied(n, "Gemm", inner))[0].shape
    count = None if shape is None else shape[1]
    for i in (4, 5):
        given = n.shape(i) if n.has(i) else ()
        size = given[0] if given else 1
        if given is not None and (
            len(given) > 1 or (isinstance(size, int) and isinstance(count, int) and size not in (1, count))
        ):
            raise n.fail(f"input {i} has shape {given}: expected one number, or {count}")
    return [Spec(shape, dtype)]


def gemm_run(
    n: View, a: np.ndarray, a_scale: np.ndarray, a_zero: np.ndarray | None, b: np.ndarray, b_scale: np.ndarray,
    b_zero: np.ndarray | None, c: np.ndarray | None = None, y_scale: np.ndarray | None = None, y_zero: np.ndarray | None = None,
) -> Arrays:  # fmt: skip
    """alpha A B + C, C in steps of alpha a_scale b_scale; as float32 where the result has no scale."""
    left = whole(a.T if n.get("transA", 0) else a, None if a_zero is None else a_zero.reshape(()))
    right = whole(b.T, None) if n.get("transB", 0) else whole(b, None)
    if b_zero is not None:
        right = right - b_zero.reshape(-1)
    total = left @ right
    total = wrapped(total if c is None else total + c)
    alpha = FLOAT32.type(n.get("alpha", 1.0))
    scale = np.asarray(alpha * a_scale.reshape(()) * b_scale.reshape(-1), FLOAT32)
    if y_scale is None:
        return (total.astype(FLOAT32) * scale,)
    dtype = a.dtype if y_zero is None else y_zero.dtype
    return (requantized(total, scale / y_scale.reshape(()), 0 if y_zero is None else y_zero.reshape(()), dtype),)


def gemm_lower(n: View, b: Builder) -> Any:
    weight, bias = n.value(3), n.value(6)
    if weight is None or n.get("transA", 0) or not lower.known(n, *range(1, 9)) or not lower.float32(n, 1, 4):
        return False
    weight = weight.T if n.get("transB", 0) else weight
    if bias is not None and (bias.size not in (1, weight.shape[1]) or (bias.ndim == 2 and bias.shape[0] != 1)):
        return False
    alpha, a_scale, b_scale, y_scale = FLOAT32.type(n.get("alpha", 1.0)), n.value(1), n.value(4), n.value(7)
    assert a_scale is not None
    assert b_scale is not None
    by = np.asarray(alpha * a_scale.reshape(()) * b_scale.reshape(-1), FLOAT32)
    by = by if y_scale is None else by / y_scale.reshape(())
    zero = lower.one(b, n.value(2))
    return lower.product(n, b, b.input(0), weight, n.value(5), by, zero, None, n.value(8), bias)


register("QGemm", gemm_specs, gemm_run, gemm_lower, Traits(multiply_adds=product_cost))


def to_float_infer(n: View) -> list[Spec]:
    """MatMulIntegerToFloat's inputs: A, B, their scales, their zero points, a bias (float32)."""
    need_integers(n, 0, 1)
    need_scale(n, 2, 3)
    need_like(n, 4, 0)
    need_like(n, 5, 1)
    for i in (2, 4):
        _parameter(n, i, 0, True)
        _parameter(n, i + 1, 1, False)
    return _biased(n, _shape(n, 0, 1, n.spec(2).dtype), 6)


def _biased(n: View, specs: list[Spec], i: int) -> list[Spec]:
    shape = specs[0].shape
    if n.has(i) and n.shape(i) is not None and shape:
        bias, want = n.shape(i), shape[-1]
        assert bias is not None
        if len(bias) != 1 or (isinstance(bias[0], int) and isinstance(want, int) and bias[0] != want):
            raise n.fail(f"the bias has shape {bias}: expected ({want},)")
    return specs


def _scaled(total: np.ndarray, by: np.ndarray, bias: np.ndarray | None, dtype: np.dtype[Any]) -> np.ndarray:
    y = total.astype(FLOAT32) * by
    return np.asarray(y if bias is None else y + bias.astype(FLOAT32), dtype)


def to_float_run(
    n: View, a: np.ndarray, b: np.ndarray, a_scale: np.ndarray, b_scale: np.ndarray, a_zero: np.ndarray | None = None,
    b_zero: np.ndarray | None = None, bias: np.ndarray | None = None,
) -> Arrays:  # fmt: skip
    """The product as floats, + bias."""
    by = rows(a_scale).astype(FLOAT32) * columns(b_scale).astype(FLOAT32)  # type: ignore[union-attr]
    return (_scaled(_product(a, b, a_zero, b_zero), by, bias, a_scale.dtype),)


def to_float_lower(n: View, b: Builder) -> Any:
    weight = lower.matmul_lower(n, b, 0, 1, 4, 5)
    if weight is None or not lower.known(n, 3, 6) or not lower.single(n, 2) or not lower.float32(n, 2, 3):
        return False
    if math.prod(n.sizes(3)) not in (1, weight.shape[1]):
        return False
    scale, zero = b.input(2), b.optional(4)
    return lower.product(n, b, b.input(0), weight, n.value(5), n.value(3), zero, scale, None, None, n.value(6))


register("MatMulIntegerToFloat", to_float_infer, to_float_run, to_float_lower, Traits(multiply_adds=product_cost))


def dynamic_infer(n: View) -> list[Spec]:
    """DynamicQuantizeMatMul's inputs: A (float32), B, its scale, its zero point, a bias (float32)."""
    if n.spec(0).dtype != FLOAT32:
        raise n.wrong_dtype(f"input 0 has dtype {n.spec(0).dtype}: expected float32")
    need_integers(n, 1)
    need_scale(n, 2)
    need_like(n, 3, 1)
    _parameter(n, 2, 1, False)
    _parameter(n, 3, 1, False)
    return _biased(n, _shape(n, 0, 1, FLOAT32), 4)


def dynamic_run(
    n: View, a: np.ndarray, b: np.ndarray, b_scale: np.ndarray, b_zero: np.ndarray | None = None, bias: np.ndarray | None = None
) -> Arrays:
    """A in uint8 by its own range, times B, as floats, + bias."""
    scale, zero = dynamic_range(a)
    total = _product(quantized(a / scale, zero, UINT8), b, zero, b_zero)
    return (_scaled(total, scale * columns(b_scale), bias, FLOAT32),)


def dynamic_lower(n: View, b: Builder) -> Any:
    weight = lower.matmul_lower(n, b, 0, 1, 9, 3)
    if weight is None or not lower.known(n, 2, 4) or not lower.float32(n, 0, 2):
        return False
    if math.prod(n.sizes(2)) not in (1, weight.shape[1]):
        return False
    x, made = b.input(0), (b.temp(n.sizes(0), UINT8), b.temp((1,)), b.temp((1,), UINT8))
    b.call("dynamic_quantize", x, *made)
    return lower.product(n, b, made[0], weight, n.value(3), n.value(2), made[2], made[1], None, None, n.value(4))


register("DynamicQuantizeMatMul", dynamic_infer, dynamic_run, dynamic_lower, Traits(multiply_adds=product_cost))
