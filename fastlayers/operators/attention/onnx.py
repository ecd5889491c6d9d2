"""ONNX's Attention: heads next to each other or with their own axis, keys of earlier calls, masks, windows, a soft cap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.graph import Dim, Shape
from .._base import Spec, View, register
from .._costs import attention
from .._traits import Traits
from ..shapes import need_kind, same_dtype
from .core import Rule, append, attention_numbers, heads_first, heads_last, join_heads, lower_attention, split_heads
from .in_place import is_in_place, put

if TYPE_CHECKING:
    from ..builder import Builder, Ref

__all__: list[str] = []

Q, K, V, MASK, PAST_K, PAST_V, LENGTHS = range(7)
SLOTS = 7  # of a node that appends in place (`in_place`), whose lengths are counts of all keys


def _unfolded(n: View, i: int, attribute: str) -> Shape | None:
    """The shape of input i as (b, h, t, d)."""
    shape = n.shape(i)
    if shape is None:
        return None
    if len(shape) == 4:
        return shape
    heads = n.get(attribute)
    if len(shape) != 3 or not heads or heads < 1:
        raise n.fail(
            f"input {i} has shape {shape}, {attribute} is {heads}: expected (b, h, t, d), or (b, t, h d) with {attribute}"
        )
    width = shape[2]
    if isinstance(width, int) and width % heads:
        raise n.fail(f"input {i} has {width} features, {attribute} is {heads}: expected a multiple")
    return (shape[0], heads, shape[1], width // heads if isinstance(width, int) else None)


def _same(n: View, what: str, *sizes: Dim) -> Dim:
    """The one size that these sizes are; raises where two that are known differ."""
    found = {s for s in sizes if isinstance(s, int)}
    if len(found) > 1:
        raise n.fail(
            f"{what} differ: {', '.join(str(s) for s in sizes)}; shapes {[None if s is None else s.shape for s in n.inputs]}"
        )
    return found.pop() if found else next((s for s in sizes if s is not None), None)


def _plus(a: Dim, b: Dim) -> Dim:
    return a + b if isinstance(a, int) and isinstance(b, int) else b if a == 0 else None


def _check(n: View) -> None:
    need_kind(n, "f", Q, K, V, PAST_K, PAST_V)
    same_dtype(n, Q, K)
    need_kind(n, "fb", MASK)
    need_kind(n, "i", LENGTHS)
    for name in ("left_window_size", "right_window_size"):
        if n.get(name, -1) < -1:
            raise n.fail(f"{name} is {n.get(name)}: expected -1 or more")
    if n.has(PAST_K) != n.has(PAST_V):
        raise n.fail("of past_key and past_value one is left out: expected both or none")
    if n.has(LENGTHS) and n.has(PAST_K) and not is_in_place(n):
        raise n.fail("nonpad_kv_seqlen was given next to past_key: expected one of them")
    if n.get("qk_matmul_output_mode", 0) not in range(4):
        raise n.fail(f"qk_matmul_output_mode is {n.get('qk_matmul_output_mode')}: expected 0 to 3")


def _infer(n: View) -> list[Spec]:
    _check(n)
    dtypes = [n.spec(i).dtype for i in (Q, K, V, Q)][: len(n.node.outputs)]
    q, k, v = (_unfolded(n, i, f"{side}_num_heads") for i, side in ((Q, "q"), (K, "kv"), (V, "kv")))
    if q is None or k is None or v is None:
        return [Spec(None, dtype) for dtype in dtypes]
    batch = _same(n, "batches", q[0], k[0], v[0])
    groups = _same(n, "heads of keys and values", k[1], v[1])
    width = _same(n, "widths of queries and keys", q[3], k[3])
    keys = _same(n, "numbers of keys and values", k[2], v[2])
    past: Dim = 0
    if isinstance(q[1], int) and isinstance(groups, int) and (q[1] % groups if groups else q[1]):
        raise n.fail(f"{q[1]} heads of queries, {groups} of keys: expected a multiple")
    if n.has(PAST_K):
        a, b = n.shape(PAST_K), n.shape(PAST_V)
        if a is None or b is None:
            past = None
        elif len(a) != 4 or len(b) != 4:
            raise n.fail(f"past_key has shape {a}, past_value {b}: expected (b, h, t, d)")
        else:
            for i, own in ((0, batch), (1, groups)):
                _same(n, "batches or heads of past and new keys", own, a[i], b[i])
            _same(n, "widths of past and new keys", a[3], width)
            _same(n, "widths of past and new values", b[3], v[3])
            past = _same(n, "numbers of past keys and values", a[2], b[2])
    total = _plus(past, keys)
    mask = n.shape(MASK) if n.has(MASK) else None
    for size, whole in zip((mask or ())[::-1], (total, q[2], q[1], batch), strict=False):
        if isinstance(size, int) and isinstance(whole, int) and size != 1 and (size > whole if whole is total else size != whole):
            raise n.fail(f"attn_mask has shape {mask}: expected one that broadcasts to {(batch, q[1], q[2], total)}")
    if mask is not None and len(mask) > 4:
        raise n.fail(f"attn_mask has shape {mask}: expected at most four axes")
    lengths = n.shape(LENGTHS) if n.has(LENGTHS) else None
    if lengths is not None and len(lengths) != 1:
        raise n.fail(f"nonpad_kv_seqlen has shape {lengths}: expected ({batch},)")
    _same(n, "batch and nonpad_kv_seqlen", batch, *(lengths or ()))
    e, flat = v[3], len(n.shape(Q) or ()) == 3
    joined = q[1] * e if isinstance(q[1], int) and isinstance(e, int) else None
    shapes: list[Shape] = [
        (batch, q[2], joined) if flat else (batch, q[1], q[2], e),
        (batch, groups, total, width), (batch, groups, total, e), (batch, q[1], q[2], total),
    ]  # fmt: skip
    return [Spec(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=False)]


def _rule(n: View, width: int, past: int) -> Rule:
    scale = n.get("scale")
    return Rule(
        max(width, 1) ** -0.5 if scale is None else float(scale),
        bool(n.get("is_causal", 0)),
        None if n.has(LENGTHS) else past,
        max(0.0, float(n.get("softcap", 0.0))),  # one below 0, or NaN, is none
        int(n.get("left_window_size", -1)),
        int(n.get("right_window_size", -1)),
        int(n.get("qk_matmul_output_mode", 0)),
        n.get("softmax_precision", 10) != 10,
    )


def _run(
    n: View,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None = None,
    past_key: np.ndarray | None = None,
    past_value: np.ndarray | None = None,
    lengths: np.ndarray | None = None,
) -> Sequence[np.ndarray]:
    """softmax(cap(scale q kᵀ) + mask) v; see `attention_core`."""
    flat = q.ndim == 3
    q, k, v = (split_heads(x, n.get(f"{side}_num_heads")) if x.ndim == 3 else x for x, side in ((q, "q"), (k, "kv"), (v, "kv")))
    past = 0
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        k, v = np.concatenate((past_key, k), 2), np.concatenate((past_value, v), 2)
    y, scores = attention_numbers(q, k, v, mask, lengths, _rule(n, q.shape[3], past))
    return (join_heads(y) if flat else y, k, v, scores)[: len(n.node.outputs)]


def _lower(n: View, b: Builder) -> Any:
    rule_needs_scores = n.wants(3) or n.get("softcap", 0.0) > 0
    if is_in_place(n):
        return _lower_in_place(n, b)
    if not n.float32(Q, K, V, PAST_K, PAST_V) or (n.has(MASK) and n.spec(MASK).dtype.kind != "b" and not n.float32(MASK)):
        return False
    q, k, v = (b.input(i) for i in (Q, K, V))
    heads = int(n.get("q_num_heads") or q.shape[1])
    groups = int(n.get("kv_num_heads") or k.shape[1])
    past = n.sizes(PAST_K)[2] if n.has(PAST_K) else 0
    flat = len(q.shape) == 3
    last = all(len(x.shape) == 3 for x in (q, k, v)) and not n.has(PAST_K) and not rule_needs_scores
    mask, lengths, y = b.optional(MASK), b.optional(LENGTHS), b.output(0)
    whole: list[Ref] = []
    for x, i, before in ((k, 1, PAST_K), (v, 2, PAST_V)):
        if not n.has(before) and len(x.shape) == 4:
            if n.wants(i):
                b.alias(i, x)
            whole.append(x)
        elif n.has(before) or n.wants(i) or not last:
            steps, width = (x.shape[1], x.shape[2] // groups) if len(x.shape) == 3 else x.shape[2:]
            present = b.output(i) if n.wants(i) else b.temp((x.shape[0], groups, past + steps, width))
            if n.has(before):
                append(b, b.input(before), groups, present, 0)
            append(b, x, groups, present, past)
            whole.append(present)
    rule = _rule(n, q.shape[2] // heads if flat else q.shape[3], past)
    if last:
        q, k, v, out = (x.view((*x.shape[:2], h, x.shape[2] // h)) for x, h in ((q, heads), (k, groups), (v, groups), (y, heads)))
        lower_attention(b, q, k, v, mask, lengths, out, None, rule, True)
        return True
    k, v = whole
    q = heads_first(b, q, heads) if flat else q
    out = b.temp((*q.shape[:3], v.shape[3])) if flat else y
    lower_attention(b, q, k, v, mask, lengths, out, b.output(3) if n.wants(3) else None, rule, False)
    if flat:
        heads_last(b, out, y)
    return True


def _lower_in_place(n: View, b: Builder) -> bool:
    q, k, v, cache_k, cache_v = (b.input(i) for i in (Q, K, V, PAST_K, PAST_V))
    masked = not n.has(MASK) or n.spec(MASK).dtype.kind == "b" or n.float32(MASK)
    if not masked or not n.float32(Q, K, V, PAST_K, PAST_V):
        raise n.fail("appends to its cache: expected float32")
    groups, y, flat = cache_k.shape[1], b.output(0), len(q.shape) == 3
    rule = _rule(n, cache_k.shape[3], 0)
    k, v = (heads_first(b, x, groups) if len(x.shape) == 3 else x for x in (k, v))
    q = heads_first(b, q, int(n.get("q_num_heads", 1))) if flat else q
    for cache, new in ((cache_k, k), (cache_v, v)):
        put(b, cache, new, b.input(SLOTS))
    out = b.temp((*q.shape[:3], cache_v.shape[3])) if flat else y
    lower_attention(b, q, cache_k, cache_v, b.optional(MASK), b.input(LENGTHS), out, None, rule, False)
    if flat:
        heads_last(b, out, y)
    return True


def _keys(n: View) -> int:
    """Keys of this call and of those before."""
    k, past = n.sizes(1), n.sizes(4) if n.has(4) else ()
    return (k[1] if len(k) == 3 else k[2]) + (past[2] if past else 0)


register("Attention", _infer, _run, _lower, Traits(whole="attends to", multiply_adds=attention(_keys)))
