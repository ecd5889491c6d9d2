"""ONNX Runtime's GroupQueryAttention: keys and values in a cache that is longer than what each entry of the batch has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._tuples import NamedTuple
from ...calls.attention import rotary
from ...ir.graph import Dim
from ...kernels.table import BINARY, COMPARE, KINDS
from .._base import BOOL, FLOAT32, INT64, Spec, View, register
from .._traits import Traits
from ..calls import copy, float32_constant
from ..fused import IDENTITY
from ..positional_rotary import turned
from ..shapes import need_kind, same_dtype, scalar
from .core import Rule, append, heads_first, heads_last, join_heads, lower_attention, split_heads
from .in_place import is_in_place, put

if TYPE_CHECKING:
    from ..builder import Builder, Ref

__all__: list[str] = []

QUERY, KEY, VALUE, PAST_K, PAST_V, ENDS, TOTAL, COS, SIN, POSITIONS, BIAS, SINK = range(12)
SLOTS = 12  # of a node that appends in place (`in_place`): where each head's new keys go; ENDS are then counts of keys


class _Sizes(NamedTuple):
    batch: Dim
    steps: Dim
    heads: int
    groups: int
    width: Dim
    past: Dim
    present: Dim
    total: int | None


def _sizes(n: View, total: int | None) -> _Sizes:
    heads, groups = int(n.get("num_heads", 0)), int(n.get("kv_num_heads", 0))
    if heads < 1 or groups < 1 or heads % groups:
        raise n.fail(f"num_heads is {heads}, kv_num_heads {groups}: expected a multiple of it")
    query = n.shape(QUERY)
    if query is None:
        return _Sizes(None, None, heads, groups, None, None, None, total)
    if len(query) != 3:
        raise n.fail(f"query has shape {query}: expected (b, s, h d)")
    parts = heads if n.has(KEY) else heads + 2 * groups
    if isinstance(query[2], int) and query[2] % parts:
        raise n.fail(f"query has {query[2]} features: expected a multiple of {parts}")
    width = query[2] // parts if isinstance(query[2], int) else None
    for i in (KEY, VALUE):
        shape = n.shape(i) if n.has(i) else None
        if shape is not None:
            wanted = (*query[:2], groups * width if isinstance(width, int) else None)
            if len(shape) != 3 or any(
                isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(shape, wanted, strict=True)
            ):
                raise n.fail(f"input {i} has shape {shape}: expected {wanted}")
    past: Dim = 0
    for i in (PAST_K, PAST_V):
        shape = n.shape(i) if n.has(i) else None
        if n.has(i) and shape is None:
            past = None
        elif shape is not None:
            cached = (query[0], groups, shape[2] if len(shape) == 4 else None, width)
            if len(shape) != 4 or any(
                isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(shape, cached, strict=True)
            ):
                raise n.fail(f"input {i} has shape {shape}: expected {cached}")
            if i == PAST_V and isinstance(past, int) and isinstance(shape[2], int) and past != shape[2]:
                raise n.fail(f"{past} past keys, {shape[2]} values")
            past = shape[2]
    present = max(past, total) if isinstance(past, int) and total is not None else None
    return _Sizes(query[0], query[1], heads, groups, width, past, present, total)


def _total(n: View, given: np.ndarray | None) -> int | None:
    """The longest sequence, if it is known."""
    if given is None:
        return None
    found = int(scalar(n, TOTAL, given))
    if found < 0:
        raise n.fail(f"total_sequence_length is {found}: expected 0 or more")
    return found


def _infer(n: View) -> list[Spec]:
    need_kind(n, "f", QUERY, KEY, VALUE, PAST_K, PAST_V, COS, SIN, BIAS, SINK)
    need_kind(n, "i", ENDS, TOTAL, POSITIONS)
    dtype = same_dtype(n, QUERY, KEY, VALUE)
    if n.has(KEY) != n.has(VALUE) or n.has(PAST_K) != n.has(PAST_V):
        raise n.fail("of keys and values one is left out: expected both or none")
    if n.get("do_rotary", 0) and not (n.has(COS) and n.has(SIN)):
        raise n.fail("do_rotary without cos_cache and sin_cache")
    s = _sizes(n, _total(n, n.value(TOTAL)))
    ends = n.shape(ENDS)
    if (
        ends is not None
        and isinstance(s.batch, int)
        and (len(ends) not in (1, 2) or (isinstance(ends[0], int) and ends[0] != s.batch))
    ):
        raise n.fail(f"seqlens_k has shape {ends}: expected ({s.batch},)")
    if n.shape(QUERY) is None:
        return [Spec(None, dtype)] * len(n.node.outputs)
    if is_in_place(n):
        wanted = {SLOTS: (s.batch, s.groups, s.steps), ENDS: (s.batch,), POSITIONS: (s.batch, s.steps)}
        floats = n.float32(QUERY, KEY, VALUE, PAST_K, PAST_V, COS, SIN, BIAS)
        if not floats or any(n.has(i) and n.shape(i) != shape for i, shape in wanted.items()):
            raise n.fail("appends to its cache: expected float32, and places of its own shape")
        return [n.spec(QUERY)._replace(shape=(s.batch, s.steps, s.heads * s.width))]  # type: ignore[operator]
    if s.total is not None and isinstance(s.steps, int) and s.total < s.steps:
        raise n.fail(f"total_sequence_length is {s.total}, there are {s.steps} queries: expected as many or more")
    joined = s.heads * s.width if isinstance(s.width, int) else None
    cache = Spec((s.batch, s.groups, s.present, s.width), dtype)
    made = [Spec((s.batch, s.steps, joined), dtype), cache, cache, Spec((s.batch, s.heads, s.steps, s.present), dtype)]
    return made[: len(n.node.outputs)]


def _rule(n: View, width: int, before: int | None) -> Rule:
    window, causal = int(n.get("local_window_size", -1)), bool(n.get("causal", 1))
    left = window - 1 if window > 0 else -1
    return Rule(n.get("scale", 0.0) or max(width, 1) ** -0.5, causal, before, float(n.get("softcap", 0.0)), left)


# ---- in numpy ----------------------------------------------------------------------------------------------------------


def _run(
    n: View, query: np.ndarray, key: Any, value: Any, past_k: Any, past_v: Any, ends: Any, total: Any, *rest: Any
) -> Sequence[Any]:
    """One entry of the batch after the other: its past, then its own keys; see `attention_core` for the rest."""
    cos, sin, positions, bias, sink = (*rest, *(None,) * 5)[:5]
    s: Any = _sizes(n, _total(n, total))
    if key is None:
        wide = s.heads * s.width, (s.heads + s.groups) * s.width
        query, key, value = query[..., : wide[0]], query[..., wide[0] : wide[1]], query[..., wide[1] :]
    q, k, v = (split_heads(x, h) for x, h in ((query, s.heads), (key, s.groups), (value, s.groups)))
    ends = ends.reshape(-1).astype(np.int64)
    first = s.steps == s.total
    starts = np.zeros(s.batch, np.int64) if first else ends + 1 - s.steps
    if s.batch and (starts.min() < 0 or ends.max() >= s.present):
        raise n.fail(f"seqlens_k has {ends.min()} .. {ends.max()}: expected {s.steps - 1} .. {s.present - 1}")
    if s.batch and not first and starts.max() > s.past:
        raise n.fail(f"seqlens_k says that {starts.max()} keys came before, past_key has {s.past}")
    rows = np.arange(s.steps)
    places = starts[:, None] + rows if positions is None else positions.reshape(s.batch, -1)[:, : s.steps]
    if n.get("do_rotary", 0):
        if positions is not None and first:
            places = places[:, :1] + rows
        if places.size and (places.min() < 0 or places.max() >= len(cos)):
            raise n.fail(f"positions are {places.min()} .. {places.max()}: expected 0 .. {len(cos) - 1}")
        q, k = (turned(x, cos[places], sin[places], bool(n.get("rotary_interleaved", 0))).astype(query.dtype) for x in (q, k))
    cache = [np.zeros((s.batch, s.groups, s.present, s.width), query.dtype) for _ in range(2)]
    out = np.zeros((s.batch, s.heads, s.steps, s.width), query.dtype)
    scores = np.zeros((s.batch, s.heads, s.steps, s.present), query.dtype)
    for b in range(s.batch):
        begin, end = int(starts[b]), int(ends[b]) + 1
        for whole, past, new in zip(cache, (past_k, past_v), (k, v), strict=True):
            if past is not None:
                whole[b, :, :begin] = past[b, :, :begin]
            whole[b, :, begin : begin + s.steps] = new[b]
        mask = None if bias is None else bias[b % len(bias)][None, ..., :end]
        keys, values = (x[b : b + 1, :, :end] for x in cache)
        out[b], scores[b, :, :, :end] = _entry(n, q[b : b + 1], keys, values, mask, sink, _rule(n, s.width, begin))
    return (join_heads(out), *cache, scores)[: len(n.node.outputs)]


def _entry(n: View, q: Any, k: Any, v: Any, mask: Any, sink: Any, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """Attention of one entry; a sink is a key of that score, and of no value."""
    wide, (h, rows), keys = np.float64, q.shape[1:3], k.shape[2]
    k, v = (np.repeat(x.astype(wide), h // max(k.shape[1], 1), 1) for x in (k, v))
    scores = q.astype(wide) @ k.swapaxes(2, 3) * rule.scale
    if rule.softcap:
        scores = np.tanh(scores / rule.softcap) * rule.softcap
    if mask is not None:
        scores = scores + mask
    ahead = np.arange(keys) - (np.arange(rows)[:, None] + (rule.before or 0))
    closed = ((ahead > 0) & rule.causal) | ((-ahead > rule.left) & (rule.left >= 0))
    scores = np.where(closed, -np.inf, scores)
    sinks = np.full((1, h, rows, 1), -np.inf)
    if sink is not None or n.get("smooth_softmax", 0):
        sinks[...] = 0 if sink is None else sink.reshape(1, h, 1, 1)
    every = np.concatenate((scores, sinks), 3)
    largest = every.max(-1, keepdims=True)
    weights = np.exp(every - np.where(np.isneginf(largest), 0, largest))
    weights = (weights / np.where(weights.any(-1, keepdims=True), weights.sum(-1, keepdims=True), 1))[..., :keys]
    return (weights @ v)[0], (weights if n.get("qk_output", 0) == 2 else scores)[0]


# ---- through kernels ---------------------------------------------------------------------------------------------------


def _lower(n: View, b: Builder) -> Any:
    """All keys at once, or one query more for each entry; other steps, and sinks, are numpy's."""
    s: Any = _sizes(n, _total(n, n.value(TOTAL)))
    if is_in_place(n):
        return _lower_in_place(n, b, s)
    first = s.steps == s.total
    plain = n.float32(QUERY, KEY, VALUE, PAST_K, PAST_V, COS, SIN, BIAS) and not n.has(SINK) and not n.get("smooth_softmax", 0)
    if not plain or n.wants(3) or not (first or s.steps == 1) or (n.has(BIAS) and n.sizes(BIAS)[-1] != s.present):
        return False
    if n.has(POSITIONS) and n.sizes(POSITIONS) != (s.batch, s.steps):
        return False
    ends = b.temp((s.batch,), FLOAT32)
    b.call("cast", b.input(ENDS), ends, KINDS[n.spec(ENDS).dtype.name], KINDS["float32"])
    q, k, v = _parts(n, b, s)
    if n.get("do_rotary", 0):
        q, k = _turned(n, b, s, q, k, first)
    whole = [_cache(n, b, s, new, i, ends, first) for i, new in ((0, k), (1, v))]
    counts, lengths = b.temp((s.batch,)), b.temp((s.batch,), INT64)
    b.call("binary", ends, float32_constant(b, 1), counts, BINARY["add"], IDENTITY)
    b.call("cast", counts, lengths, KINDS["float32"], KINDS["int64"])
    out = b.temp(q.shape)
    rule = _rule(n, s.width, 0 if first else None)
    lower_attention(b, q, whole[0], whole[1], b.optional(BIAS), lengths, out, None, rule, False)
    heads_last(b, out, b.output(0))
    return True


def _lower_in_place(n: View, b: Builder, s: Any) -> bool:
    """Positions of queries that follow each entry's own keys, whose number is not the cache's size."""
    q, k, v = _parts(n, b, s)
    if n.get("do_rotary", 0):
        q, k = _turned(n, b, s, q, k, False)
    caches = b.input(PAST_K), b.input(PAST_V)
    for cache, new in zip(caches, (k, v), strict=True):
        put(b, cache, new, b.input(SLOTS))
    single, y = s.steps == 1, b.output(0)
    out = y.view(q.shape) if single else b.temp(q.shape)
    lower_attention(b, q, *caches, b.optional(BIAS), b.input(ENDS), out, None, _rule(n, s.width, None), False)
    if not single:
        heads_last(b, out, y)
    return True


def _parts(n: View, b: Builder, s: Any) -> list[Ref]:
    """Queries, keys and values with heads first."""
    if n.has(KEY):
        inputs = [(b.input(i), h) for i, h in ((QUERY, s.heads), (KEY, s.groups), (VALUE, s.groups))]
        return [x.view((s.batch, h, 1, s.width)) if s.steps == 1 else heads_first(b, x, h) for x, h in inputs]
    packed, found, start = b.input(QUERY), [], 0
    row = packed.shape[2]
    for h in (s.heads, s.groups, s.groups):
        if s.batch == s.steps == 1:
            found.append(packed.view((1, h, 1, s.width), start))
            start += h * s.width
            continue
        x = b.temp((s.batch, h, s.steps, s.width))
        strides = (s.steps * row, s.width, row, 1)
        copy(b, packed, x, x.shape, start, strides, 0, (h * s.steps * s.width, s.steps * s.width, s.width, 1))
        found.append(x)
        start += h * s.width
    return found


def _turned(n: View, b: Builder, s: Any, q: Ref, k: Ref, first: bool) -> list[Ref]:
    cos, sin = b.input(COS), b.input(SIN)
    half, count = cos.shape[1], s.batch * s.steps
    if first and not n.has(POSITIONS):
        if s.steps > cos.shape[0]:
            raise n.fail(f"positions are 0 .. {s.steps - 1}: expected 0 .. {cos.shape[0] - 1}")
        tables = [t.view((s.steps, half)) for t in (cos, sin)]
    else:
        given = POSITIONS if n.has(POSITIONS) else ENDS
        ids = b.input(given)
        if ids.dtype != INT64:
            ids = b.temp((count,), INT64)
            b.call("cast", b.input(given), ids, KINDS[n.spec(given).dtype.name], KINDS["int64"])
        tables = [b.temp((s.batch, s.steps, half)) for _ in range(2)]
        for table, rows in zip((cos, sin), tables, strict=True):
            b.call("gather", table.view((1, table.shape[0], half)), ids.view((count,)), rows.view((1, count, half)), 4)
    made = [b.temp(x.shape) for x in (q, k)]
    for x, out in zip((q, k), made, strict=True):
        rotary(b.machine, x, tables[0], tables[1], out, bool(n.get("rotary_interleaved", 0)), None)
    return made


def _cache(n: View, b: Builder, s: Any, new: Ref, i: int, ends: Ref, first: bool) -> Ref:
    """The cache with the new keys or values in it: output 1 + i."""
    shape = (s.batch, s.groups, s.present, s.width)
    out = b.output(1 + i) if n.wants(1 + i) else b.temp(shape)
    to = (s.groups * s.present * s.width, s.present * s.width, s.width, 1)

    def zeros(target: Ref, start: int) -> None:
        left = (s.batch, s.groups, s.present - start, s.width)
        copy(b, float32_constant(b, 0), target, left, 0, (0,) * 4, start * s.width, to)

    if first:
        append(b, new, s.groups, out, 0)
        zeros(out, s.steps)
        return out
    base = b.input(PAST_K + i) if n.has(PAST_K) and s.past == s.present else b.temp(shape)
    if s.past != s.present:
        if n.has(PAST_K):
            append(b, b.input(PAST_K + i), s.groups, base, 0)
        zeros(base, s.past)
    # The new one at its place, zeros after: what a cache has there is undefined.
    rows = b.constant(np.arange(s.present, dtype=FLOAT32).reshape(1, 1, -1, 1))
    for key, x, other in (("less", base, float32_constant(b, 0)), ("equal", new, out)):
        which = b.temp((s.batch, 1, s.present, 1), BOOL)
        b.call("compare", rows, ends.view((s.batch, 1, 1, 1)), which, COMPARE[key])
        b.call("where", which, x, other, out)
    return out


register("GroupQueryAttention", _infer, _run, _lower, Traits(whole="attends to", steers=(TOTAL,)))
