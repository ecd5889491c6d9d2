"""GroupQueryAttention of ONNX Runtime whose cache holds keys and values in 8 or 4 bits (`k_quant_type`, `v_quant_type`).

A number q stands for q * scale; scales are one for all, or one for each head and feature. New keys, rotated, and values become
round(x / scale), halves to even, cut off to what the bits hold; queries meet what the cache then has, the new ones included.
8 bits are int8. 4 bits are two numbers a byte, plus 8, of neighbouring features, the first one lowest. Only the caches of one
entry of the batch are floats at a time, while it is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...calls.machine import ARRAYS, Machine
from .._base import FLOAT32, Spec, View, register
from .._traits import Traits
from ..positional_rotary import turned
from .core import Rule, join_heads, split_heads
from .gqa import BIAS, COS, KEY, PAST_K, PAST_V, QUERY, SIN, SINK, TOTAL, VALUE, _entry, _rule, _sizes, _total
from .gqa import _infer as _full
from .gqa_window import attended, rotated

if TYPE_CHECKING:
    from ..builder import Builder

__all__: list[str] = []

SCALES = 12, 13  # of keys, of values
_STORED = {8: np.dtype(np.int8), 4: np.dtype(np.uint8)}


def _bits(n: View) -> int:
    bits: int = n.get("bits", 0)
    if bits not in _STORED:
        raise n.fail(f"kv_cache_bit_width is {bits}: expected 8 or 4")
    return bits


def _as_floats(n: View) -> View:
    """The node as it would be with a cache of floats."""
    specs = list(n.inputs)
    for i in (PAST_K, PAST_V):
        shape = n.shape(i)
        if shape is not None and shape and isinstance(shape[-1], int):
            shape = (*shape[:-1], shape[-1] * 8 // _bits(n))
        specs[i] = Spec(shape, n.spec(QUERY).dtype)
    return View(n.node, specs[: SCALES[0]], n.values)


def _infer(n: View) -> list[Spec]:
    bits = _bits(n)
    if not n.has(PAST_K) or not n.has(PAST_V) or not n.has(SCALES[0]) or not n.has(SCALES[1]):
        raise n.fail("a quantized cache without past_key, past_value, k_scale or v_scale: expected all of them")
    if len(n.node.outputs) > 3:
        raise n.fail("a quantized cache with an output of scores: expected three outputs")
    for i in (PAST_K, PAST_V):
        if n.spec(i).dtype != _STORED[bits]:
            raise n.wrong_dtype(f"input {i} has dtype {n.spec(i).dtype}: expected {_STORED[bits]}, of {bits} bits")
    for i in SCALES:
        if n.spec(i).dtype != FLOAT32:
            raise n.wrong_dtype(f"input {i}, a scale, has dtype {n.spec(i).dtype}: expected float32")
    view = _as_floats(n)
    first, *_ = _full(view)
    s: Any = _sizes(view, _total(n, n.value(TOTAL)))
    if bits == 4 and isinstance(s.width, int) and s.width % 2:
        raise n.fail(f"heads are {s.width} wide: expected an even number, two of 4 bits a byte")
    for i in SCALES:
        shape: Any = n.shape(i)
        wanted = (1, s.groups, 1, s.width)
        known = shape is not None and all(isinstance(d, int) for d in shape)
        if known and any(d != 1 for d in shape) and shape not in (wanted, wanted[1:]):
            raise n.fail(f"input {i}, a scale, has shape {shape}: expected one number, or {wanted}")
        value = n.value(i)
        if value is not None and not (np.isfinite(value) & (value > 0)).all():
            raise n.fail(f"input {i}, a scale, has {value.reshape(-1)[:4]}: expected finite numbers above 0")
    width = s.width * bits // 8 if isinstance(s.width, int) else None
    cache = Spec((s.batch, s.groups, s.present, width), _STORED[bits])
    return [first, cache, cache][: len(n.node.outputs)]


def _numbers(x: np.ndarray, scale: np.ndarray, bits: int) -> np.ndarray:
    """Floats (g, s, d) as a cache has them, by scales that broadcast to it."""
    half = 1 << bits - 1
    with np.errstate(all="ignore"):
        q = np.clip(np.rint(x.astype(FLOAT32) / scale), -half, half - 1)
    q = np.where(q == q, q, 0).astype(np.int8)
    if bits == 8:
        return q
    wide = (q + np.int8(half)).astype(np.uint8)
    return np.asarray(wide[..., ::2] | wide[..., 1::2] << np.uint8(4))


def _floats(cache: np.ndarray, scale: np.ndarray, bits: int) -> np.ndarray:
    """Rows (g, s, ...) of a cache as float32 (1, g, s, d)."""
    if bits == 4:
        out = np.empty((*cache.shape[:-1], 2 * cache.shape[-1]), FLOAT32)
        np.subtract(cache & np.uint8(15), FLOAT32.type(8), out=out[..., ::2])
        np.subtract(cache >> np.uint8(4), FLOAT32.type(8), out=out[..., 1::2])
        out *= scale
        return out[None]
    return np.asarray(np.multiply(cache, scale, dtype=FLOAT32))[None]


def _attend(n: View, entry: Any, turn: Any, *given: Any) -> Sequence[np.ndarray]:
    """One entry of the batch after the other; `entry` and `turn` as in `gqa_window`."""
    query, key, value, past_k, past_v, ends, total, cos, sin, positions, bias, sink, *scales = (*given, *(None,) * 14)[:14]
    s: Any = _sizes(_as_floats(n), int(total.reshape(-1)[0]))
    bits, kind = _bits(n), query.dtype
    if key is None:
        wide = s.heads * s.width, (s.heads + s.groups) * s.width
        query, key, value = query[..., : wide[0]], query[..., wide[0] : wide[1]], query[..., wide[1] :]
    q, k, v = (split_heads(x, h) for x, h in ((query, s.heads), (key, s.groups), (value, s.groups)))
    steps = [
        x.astype(FLOAT32).reshape(1, 1, 1) if x.size == 1 else x.astype(FLOAT32).reshape(s.groups, 1, s.width) for x in scales
    ]
    ends = ends.reshape(-1).astype(np.int64)
    first = s.steps == s.total
    starts = np.zeros(s.batch, np.int64) if first else ends + 1 - s.steps
    if s.batch and (starts.min() < 0 or ends.max() >= s.present or ends.min() < 0):
        raise n.fail(f"seqlens_k has {ends.min()} .. {ends.max()}: expected {s.steps - 1} .. {s.present - 1}")
    if s.batch and not first and starts.max() > s.past:
        raise n.fail(f"seqlens_k says that {starts.max()} keys came before, past_key has {s.past}")
    cache = [np.zeros((s.batch, s.groups, s.present, s.width * bits // 8), _STORED[bits]) for _ in range(2)]
    out = np.zeros((s.batch, s.heads, s.steps, s.width), kind)
    for b in range(s.batch):
        begin, end = int(starts[b]), int(ends[b]) + 1
        own = [x[b : b + 1] for x in (q, k, v)]
        if n.get("do_rotary", 0):
            places = np.arange(begin, begin + s.steps) if positions is None else positions.reshape(s.batch, -1)[b, : s.steps]
            if positions is not None and first:
                places = places[:1] + np.arange(s.steps)
            if places.size and (places.min() < 0 or places.max() >= len(cos)):
                raise n.fail(f"positions are {places.min()} .. {places.max()}: expected 0 .. {len(cos) - 1}")
            by = cos[places][None], sin[places][None], bool(n.get("rotary_interleaved", 0))
            own[:2] = (turn(np.ascontiguousarray(x), *by).astype(kind) for x in own[:2])
        for whole, past, new, scale in zip(cache, (past_k, past_v), own[1:], steps, strict=True):
            whole[b, :, :begin] = past[b, :, :begin]
            whole[b, :, begin : begin + s.steps] = _numbers(new[0], scale, bits)
        keys, values = (_floats(whole[b, :, :end], scale, bits) for whole, scale in zip(cache, steps, strict=True))
        mask = None if bias is None else bias[b % len(bias)][None, ..., :end]
        out[b] = entry(n, own[0], keys, values, mask, sink, _rule(n, s.width, begin))[0]
    return (join_heads(out), *cache)[: len(n.node.outputs)]


def _run(n: View, *given: Any) -> Sequence[np.ndarray]:
    return _attend(n, _entry, turned, *given)


def _entry_by_kernels(m: Machine, n: View, q: Any, k: Any, v: Any, mask: Any, sink: Any, rule: Rule) -> Sequence[np.ndarray]:
    if not rule.causal or (rule.before or 0) + q.shape[2] > k.shape[2]:
        return list(_entry(n, q, k, v, mask, sink, rule))
    return attended(m, n, q, k, v, mask, sink, rule._replace(left=k.shape[2]) if rule.left < 0 else rule)


def _lower(n: View, b: Builder) -> Any:
    if not n.float32(QUERY, KEY, VALUE, COS, SIN, BIAS, SINK, *SCALES):
        return False
    kernels = {name: b.kernel(name) for name in ("attention", "rotary")}
    m = ARRAYS._replace(call=lambda name, *args: kernels[name](*args))

    def function(*given: Any) -> Sequence[np.ndarray]:
        with np.errstate(all="ignore"):
            return _attend(n, partial(_entry_by_kernels, m), partial(rotated, m), *given)

    inputs = [b.optional(i) for i in range(len(n.inputs))]
    b.python(function, inputs, [b.output(i) if n.wants(i) else None for i in range(len(n.node.outputs))])
    return True


register("GroupQueryQuantized", _infer, _run, _lower, Traits(whole="attends to", steers=(TOTAL,)))
