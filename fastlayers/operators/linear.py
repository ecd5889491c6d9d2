"""Matrix products: Gemm and MatMul of ONNX, and `Linear`, what passes make of them: act(x Wᵀ + b + residual) with fixed
weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls import linear as calls
from ..ir.graph import Shape
from ..kernels import halves
from ..kernels.table import BINARY
from ..rules.weights import linear_rule
from ._base import Spec, View, register
from ._costs import product as product_cost
from ._traits import PLAIN, Quantized, Scaling, Traits, elements
from .activation import wide
from .calls import copy, float32_constant, strides_of
from .fused import IDENTITY, finished, fused, half_of, taken, times, widened
from .shapes import broadcast as _broadcast
from .shapes import need_kind

if TYPE_CHECKING:
    from .builder import Builder, Ref


def broadcast(n: View, a: Shape, b: Shape) -> Shape:
    """The common shape of two that numpy would broadcast."""
    shape = _broadcast(n, (a, b))
    assert shape is not None
    return shape


def _multiply_adds(n: View, p: Any, q: Any) -> None:
    if isinstance(p, int) and isinstance(q, int) and p != q:
        raise n.fail(f"inner sizes {p} and {q} differ: shapes {[s.shape for s in n.inputs[:2] if s]}")


# ---- Gemm ---------------------------------------------------------------------------------------------------------------


def gemm_infer(n: View) -> list[Spec]:
    a, w = n.shape(0), n.shape(1)
    if a is None or w is None:
        return [Spec((None, None), n.spec(0).dtype)]
    if len(a) != 2 or len(w) != 2:
        raise n.fail(f"shapes {a} and {w}: expected two axes each")
    m, k = a[::-1] if n.get("transA", 0) else a
    k2, columns = w[::-1] if n.get("transB", 0) else w
    _multiply_adds(n, k, k2)
    c = n.shape(2) if n.has(2) else None
    known = c is not None and all(isinstance(d, int) for d in (m, columns, *c))
    if known and broadcast(n, (m, columns), c or ()) != (m, columns):
        raise n.fail(f"C has shape {c}: expected one that broadcasts to {(m, columns)}")
    return [Spec((m, columns), n.spec(0).dtype)]


def gemm_run(n: View, a: np.ndarray, w: np.ndarray, c: np.ndarray | None = None) -> Sequence[np.ndarray]:
    """alpha A B + beta C."""
    dtype = a.dtype
    wide = np.float64 if dtype.kind == "f" else dtype
    a, w = a.astype(wide), w.astype(wide)
    y = (a.T if n.get("transA", 0) else a) @ (w.T if n.get("transB", 0) else w)
    alpha, beta = n.get("alpha", 1.0), n.get("beta", 1.0)
    if alpha != 1:
        y = y * _number(alpha, y.dtype)
    if c is not None:
        y = y + (c.astype(wide) if beta == 1 else c.astype(wide) * _number(beta, y.dtype))
    return (y.astype(dtype),)


def _number(value: float, dtype: np.dtype[Any]) -> np.ndarray:
    """A factor in a dtype; integers are cut off, and wrap around where they are negative and the dtype is not."""
    return np.array(value if dtype.kind == "f" else int(value)).astype(dtype)


def gemm_lower(n: View, b: Builder) -> Any:
    weight = n.value(1)
    c = n.value(2)
    if not n.float32():
        return False
    if weight is None or (n.has(2) and c is None):
        return _gemm_computed(n, b)
    if c is not None and not (c.size and (c.ndim < 2 or c.shape[0] == 1)):
        return False
    a = b.input(0)
    m, k = a.shape[::-1] if n.get("transA", 0) else a.shape
    if n.get("transA", 0):
        turned = b.temp((m, k))
        b.call("transpose", a.view((1, *a.shape)), turned.view((1, m, k)))
        a = turned
    packed = b.pack("linear_pack", lambda: _gemm_weights(n, weight, c))
    calls.linear(b.machine, a, packed, b.output(0).shape[1], None, b.output(0), fused(n))
    return True


def _gemm_computed(n: View, b: Builder) -> Any:
    """Lowers a Gemm whose B or C is known only when the model runs."""
    if "activation" in n.node.attributes or 0 in n.sizes(0) or 0 in n.sizes(1):
        return False
    a, w, out = b.input(0), b.input(1), b.output(0)
    if n.get("transA", 0):
        turned = b.temp(a.shape[::-1])
        b.call("transpose", a.view((1, *a.shape)), turned.view((1, *turned.shape)))
        a = turned
    b.call("matmul", *(ref.view((1, *ref.shape)) for ref in (a, w, out)), bool(n.get("transB", 0)), IDENTITY)
    alpha, beta = n.get("alpha", 1.0), n.get("beta", 1.0)
    if alpha != 1:
        b.call("binary", out, float32_constant(b, alpha), out, BINARY["multiply"], IDENTITY)
    if n.has(2):
        c = b.input(2)
        if beta != 1:
            scaled = b.temp(c.shape)
            b.call("binary", c, float32_constant(b, beta), scaled, BINARY["multiply"], IDENTITY)
            c = scaled
        b.call("binary", out, c, out, BINARY["add"], IDENTITY)
    return True


def _gemm_weights(n: View, weight: np.ndarray, c: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """alpha Bᵀ and beta C as (columns, k) and (columns,)."""
    alpha, beta = np.float32(n.get("alpha", 1.0)), np.float32(n.get("beta", 1.0))
    ordered = weight if n.get("transB", 0) else weight.T
    bias = None if c is None else np.broadcast_to(c.reshape(-1) * beta, (ordered.shape[0],))
    return (
        np.asarray(ordered if alpha == 1 else ordered * alpha, np.float32),
        None if bias is None else np.ascontiguousarray(bias, np.float32),
    )


_PRODUCT = Traits(work="products", multiply_adds=product_cost)
register("Gemm", gemm_infer, gemm_run, gemm_lower, _PRODUCT._replace(time="gemm", quantized=Quantized("QGemm", "product")))


# ---- MatMul -------------------------------------------------------------------------------------------------------------


def matmul_infer(n: View) -> list[Spec]:
    a, w = n.shape(0), n.shape(1)
    dtype = n.spec(0).dtype
    if a is None or w is None:
        return [Spec(None, dtype)]
    if not a or not w:
        raise n.fail(f"shapes {a} and {w}: expected one axis at least")
    left, right = (a if len(a) > 1 else (1, *a)), (w if len(w) > 1 else (*w, 1))
    _multiply_adds(n, left[-1], right[-2])
    shape = (*broadcast(n, left[:-2], right[:-2]), left[-2], right[-1])
    if len(a) == 1:
        shape = (*shape[:-2], shape[-1])
    if len(w) == 1:
        shape = shape[:-1]
    return [Spec(shape, dtype)]


def matmul_run(n: View, a: np.ndarray, w: np.ndarray) -> Sequence[np.ndarray]:
    """numpy's matmul, floats in float64."""
    wide = np.float64 if a.dtype.kind == "f" else a.dtype
    return (np.matmul(a.astype(wide), w.astype(wide)).astype(a.dtype),)


def matmul_lower(n: View, b: Builder) -> Any:
    if not n.float32():
        return False
    weight = n.value(1)
    if weight is not None and weight.ndim == 2:
        x, out = b.input(0), b.output(0)
        packed = b.pack("linear_pack", lambda: (weight.T, None))
        calls.linear(b.machine, x, packed, weight.shape[1], None, out, IDENTITY)
        return True
    left, right = b.input(0), b.input(1)
    if len(left.shape) < 2 or len(right.shape) < 2:
        return False
    out = b.output(0)
    batch = out.shape[:-2]
    m, columns = left.shape[-2], right.shape[-1]
    left3, right3 = _batched(b, left, batch), _batched(b, right, batch)
    b.call("matmul", left3, right3, out.view((math.prod(batch), m, columns)), False, IDENTITY)
    return True


def _batched(b: Builder, x: Ref, batch: Sequence[int]) -> Ref:
    """x with one batch axis, of size 1 or of the whole batch; other broadcasts are copied out."""
    lead, inner = x.shape[:-2], x.shape[-2:]
    if math.prod(lead) in (1, math.prod(batch)):
        return x.view((math.prod(lead), *inner))
    return repeated(b, x, batch).view((math.prod(batch), *inner))


def repeated(b: Builder, x: Ref, batch: Sequence[int], inner: tuple[int, int] | None = None) -> Ref:
    """x (..., m, n) broadcast to (*batch, m, n), or to (*batch, *inner), copied out where it differs."""
    shape = (*batch, *(x.shape[-2:] if inner is None else inner))
    if x.shape == shape:
        return x
    strides = [0 if size == 1 else step for size, step in zip(x.shape, strides_of(x.shape), strict=True)]
    whole = b.temp(shape)
    copy(b, x, whole, shape, 0, [0] * (len(shape) - len(strides)) + strides, 0, strides_of(shape))
    return whole


register(
    "MatMul",
    matmul_infer,
    matmul_run,
    matmul_lower,
    _PRODUCT._replace(time="matmul", quantized=Quantized("QLinearMatMul", "product")),
)


# ---- Linear: what passes make of products with fixed weights ------------------------------------------------------------


def linear_infer(n: View) -> list[Spec]:
    """Inputs: x (..., k), weight (n, k), bias (n,) or None, residual (..., n) or None."""
    x, w = n.shape(0), n.shape(1)
    if x is None or w is None:
        return [Spec(None, n.spec(0).dtype)]
    return [Spec(widened(n, linear_rule(n.where, x, w, n.shape(2) if n.has(2) else None)), n.spec(0).dtype)]


def linear_lower(n: View, b: Builder) -> Any:
    weight, bias = n.value(1), n.value(2)
    if not taken(n, (1,)):
        return False
    half = half_of(n)
    if weight is None or (n.has(2) and bias is None):  # known only when the model runs
        if half:
            return False
        calls.computed(b.machine, b.input(0), b.input(1), b.optional(2), b.optional(3), b.output(0), fused(n))
        return True
    more = (half,) if half else ()
    packed = b.pack("linear_half_pack" if more else "linear_pack", lambda: (weight, bias, *more))
    calls.linear(b.machine, b.input(0), packed, weight.shape[0], b.optional(3), b.output(0), fused(n))
    return True


def linear_run(
    n: View, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, residual: np.ndarray | None = None
) -> Sequence[np.ndarray]:
    """act(x Wᵀ + b + residual), sums in float64."""
    y = x.astype(np.float64) @ halves.rounded(halves.widened(weight, half_of(n)), half_of(n)).T.astype(np.float64)
    return (finished(n, (y if bias is None else y + bias).astype(x.dtype), residual),)


_ROWS = Scaling(
    axis=lambda n: -1,
    channels=lambda n, weight: int(weight.shape[0]),
    weight=lambda n, weight, factors: times(weight, factors.reshape(-1, 1)),
)
register(
    "Linear",
    linear_infer,
    linear_run,
    linear_lower,
    Traits(
        time="linear",
        multiply_adds=lambda n, out: elements(out) * n.sizes(1)[-1],
        epilogue=("activation", "residual"),
        weights=(1, 2),
        halves=(1,),
        scaling=_ROWS,
        by_sizes=True,
    ),
)

# ---- Det -------------------------------------------------------------------------------------------------------------


def _det_infer(n: View) -> list[Spec]:
    need_kind(n, "f")
    shape = n.shape(0)
    if shape is not None and (len(shape) < 2 or (shape[-2] != shape[-1] and all(isinstance(d, int) for d in shape[-2:]))):
        raise n.fail(f"x has shape {shape}: expected square matrices")
    return [Spec(None if shape is None else shape[:-2], n.spec(0).dtype)]


register("Det", _det_infer, lambda n, x: (np.asarray(np.linalg.det(wide(x))).astype(x.dtype),), traits=PLAIN)
