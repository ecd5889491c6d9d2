"""`ScaledAttention`, what the pass `attention` makes: softmax(scale q kᵀ + mask) v, and `Activate`, an elementwise function by
number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.reference.activation import unary
from .._base import Spec, View, register
from .._traits import Traits, elements, function
from ..fused import fused
from ..linear import broadcast, repeated
from ..normalization import same_infer
from .in_place import is_in_place, put

if TYPE_CHECKING:
    from ..builder import Builder, Ref


def _infer(n: View) -> list[Spec]:
    """q (..., s, d), k (..., t, d) or, if `transposed`, (..., d, t), v (..., t, e), mask broadcast to (..., s, t).

    As in a sum of scores and mask, a mask may repeat a single query, or a single key for as many values as it has columns.
    """
    _empty(n)
    if is_in_place(n):
        return [n.spec(0)._replace(shape=(*n.sizes(0)[:3], n.sizes(2)[3]))]
    q, k, v = n.shape(0), n.shape(1), n.shape(2)
    if q is None or k is None or v is None:
        return [Spec(None, n.spec(0).dtype)]
    keys, inner = (k[-1], k[-2]) if n.get("transposed") else (k[-2], k[-1])
    if keys == 1 and n.has(3) and n.shape(3) != ():
        keys = v[-2] if n.shape(3) is None or n.shape(3)[-1] != 1 else keys  # type: ignore[index]
    for a, b in ((q[-1], inner), (keys, v[-2])):
        if isinstance(a, int) and isinstance(b, int) and a != b:
            raise n.fail(f"shapes {q}, {k} and {v} do not fit")
    scores = (*broadcast(n, q[:-2], k[:-2]), q[-2], keys)
    if n.has(3) and n.shape(3) is not None:
        scores = broadcast(n, scores, n.shape(3))  # type: ignore[arg-type]
    return [Spec((*broadcast(n, scores[:-2], v[:-2]), scores[-2], v[-1]), n.spec(0).dtype)]


def _run(n: View, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None) -> Sequence[np.ndarray]:
    keys = k if n.get("transposed") else np.swapaxes(k, -1, -2)
    scores = q.astype(np.float64) @ keys * n.get("scale", 1.0)
    if mask is not None:
        scores = scores + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    weights /= weights.sum(-1, keepdims=True)
    if _empty(n) == 2:
        weights = np.where(np.isnan(weights), 0, weights)
    return ((weights @ v).astype(q.dtype),)


def _empty(n: View) -> int:
    """The kernels' `empty`: 1, or 2 where NaN among the weights becomes 0."""
    empty = n.get("empty", 1)
    if empty not in (1, 2):
        raise n.fail(f"empty is {empty!s:.80}: expected 1 or 2")
    return int(empty)


def _four(ref: Ref) -> tuple[int, ...]:
    return (*(1,) * (4 - len(ref.shape)), *ref.shape)


def _lower_in_place(n: View, b: Builder) -> bool:
    """q, keys and values in caches, mask, new keys and values, counts of all keys, slots of the new ones."""
    q, cache_k, cache_v, mask, k, v, counts, slots = (b.optional(i) for i in range(8))
    if not n.float32(0, 1, 2, 3, 4, 5) or q is None or cache_k is None or cache_v is None or len(q.shape) != 4:
        raise n.fail("appends to its caches: expected float32, and four axes")
    for cache, new in ((cache_k, k), (cache_v, v)):
        put(b, cache, new, slots)
    mask = None if mask is None else mask.view(_four(mask))
    scale, empty = float(n.get("scale", 1.0)), _empty(n)
    b.call("attention", q, cache_k, cache_v, mask, counts, b.output(0), scale, False, 0, empty, False, False)
    return True


def _lower(n: View, b: Builder) -> Any:
    if is_in_place(n):
        return _lower_in_place(n, b)
    out_shape = _infer(n)[0].shape
    if not n.float32() or out_shape is None or len(out_shape) > 4:
        return False
    # Batches that differ are repeated: a sample alone is computed as it is next to others. So are a query and a key that the mask
    # repeats.
    batch: Any = out_shape[:-2]
    rows, keys, inner = out_shape[-2], n.sizes(2)[-2], n.sizes(0)[-1]
    q = repeated(b, b.input(0), batch, (rows, inner))  # type: ignore[arg-type]
    k = repeated(b, b.input(1), batch, (inner, keys) if n.get("transposed") else (keys, inner))
    v = repeated(b, b.input(2), batch)
    mask, out = b.optional(3), b.output(0)
    b.call(
        "attention", q.view(_four(q)), k.view(_four(k)), v.view(_four(v)), None if mask is None else mask.view(_four(mask)),
        None, out.view(_four(out)), float(n.get("scale", 1.0)), False, 0, _empty(n), bool(n.get("transposed", False)), False,
    )  # fmt: skip
    return True


def _cost(n: View, out: Spec) -> int:
    """Each query meets each key, and each weight a row of values."""
    q, k, v = n.sizes(0), n.sizes(1), n.sizes(2)
    return elements(n.spec(0)) // max(q[-1], 1) * k[-1 if n.get("transposed") else -2] * (q[-1] + v[-1])


register("ScaledAttention", _infer, _run, _lower, Traits(whole="attends to", multiply_adds=_cost))


def _activate_run(n: View, x: np.ndarray) -> Sequence[np.ndarray]:
    out = np.empty(x.shape, np.float32)
    unary(np.ascontiguousarray(x, np.float32), out, fused(n))
    return (out,)


def _activate_lower(n: View, b: Builder) -> Any:
    if not n.float32():
        return False
    x = b.input(0)
    b.call("unary", x, b.output(0, over=x), fused(n))
    return True


register("Activate", same_infer, _activate_run, _activate_lower, function(fused))
