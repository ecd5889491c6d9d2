"""GroupQueryAttention of ONNX Runtime whose cache holds no more than the last keys and values (`sliding_window_cache`).

The cache has C rows, at least the w of the window. After t tokens its first rows are the last ones of them, in order: all of
them while t <= C, then t - G ceil((t - C) / G) with G = C - w + 1, so that G tokens are forgotten at once. What is there thus
follows from t alone, in whatever pieces the tokens came.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...calls.attention import Settings, attend, rotary
from ...calls.machine import Machine, of
from ...kernels import dispatch
from .._base import FLOAT32, Spec, View, register
from .._traits import Traits
from ..positional_rotary import turned
from .core import Rule, join_heads, split_heads
from .gqa import BIAS, COS, KEY, PAST_K, PAST_V, QUERY, SIN, SINK, TOTAL, VALUE, _entry, _rule, _sizes
from .gqa import _infer as _full

if TYPE_CHECKING:
    from ..builder import Builder

__all__ = ["attended", "rotated"]


def _held(tokens: int, rows: int, window: int) -> int:
    """The number of tokens so far that the cache has."""
    step = rows - window + 1
    return tokens if tokens <= rows else tokens - step * -(-(tokens - rows) // step)


def _window(n: View, rows: Any) -> int:
    window = int(n.get("local_window_size", -1))
    if window < 1 or not n.get("causal", 1):
        raise n.fail(f"sliding_window_cache with local_window_size={window}, causal={n.get('causal', 1)}: expected 1 or more, 1")
    if isinstance(rows, int) and rows < window:
        raise n.fail(f"past_key has room for {rows} keys: expected local_window_size={window} or more")
    return window


def _infer(n: View) -> list[Spec]:
    if not n.has(PAST_K):
        raise n.fail("sliding_window_cache without past_key: expected the cache")
    if len(n.node.outputs) > 3:
        raise n.fail("sliding_window_cache with an output of scores: expected three outputs")
    first, *_ = _full(n)
    s: Any = _sizes(n, None)
    _window(n, s.past)
    cache = Spec((s.batch, s.groups, s.past, s.width), first.dtype)
    return [first, cache, cache][: len(n.node.outputs)]


def _windowed(n: View, entry: Any, turn: Any, *given: Any) -> Sequence[np.ndarray]:
    """One entry of the batch after the other: what the cache has, then its own keys. Rows beyond those it has are 0.

    `entry` takes the node, queries, keys, values, mask, sink and the rule; `turn` rotates x (1, h, t, d) by cosines and sines.
    """
    query, key, value, past_k, past_v, ends, total, cos, sin, positions, bias, sink = (*given, *(None,) * 12)[:12]
    s: Any = _sizes(n, int(total.reshape(-1)[0]))
    if key is None:
        wide = s.heads * s.width, (s.heads + s.groups) * s.width
        query, key, value = query[..., : wide[0]], query[..., wide[0] : wide[1]], query[..., wide[1] :]
    q, k, v = (split_heads(x, h) for x, h in ((query, s.heads), (key, s.groups), (value, s.groups)))
    window, tokens = _window(n, s.past), ends.reshape(-1).astype(np.int64) + 1
    if s.batch and (tokens.min() < 1 or tokens.max() > s.total):
        raise n.fail(f"seqlens_k has {tokens.min() - 1} .. {tokens.max() - 1}: expected 0 .. {s.total - 1}")
    cache = [np.zeros((s.batch, s.groups, s.past, s.width), query.dtype) for _ in range(2)]
    out = np.zeros((s.batch, s.heads, s.steps, s.width), query.dtype)
    for b, t in enumerate(int(t) for t in tokens):
        new = min(s.steps, t)  # the rest pads
        held, left = _held(t - new, s.past, window), _held(t, s.past, window)
        own = [x[b : b + 1, :, :new] for x in (q, k, v)]
        if n.get("do_rotary", 0):
            places = np.arange(t - new, t) if positions is None else positions.reshape(s.batch, -1)[b, :new]
            if places.size and (places.min() < 0 or places.max() >= len(cos)):
                raise n.fail(f"positions are {places.min()} .. {places.max()}: expected 0 .. {len(cos) - 1}")
            turned_by = cos[places][None], sin[places][None], bool(n.get("rotary_interleaved", 0))
            own[:2] = (turn(np.ascontiguousarray(x), *turned_by).astype(query.dtype) for x in own[:2])
        keys, values = (np.concatenate((p[b : b + 1, :, :held], x), 2) for p, x in ((past_k, own[1]), (past_v, own[2])))
        mask = None if bias is None else bias[b % len(bias)][None, ..., t - new - held : t]
        out[b, :, :new] = entry(n, own[0], keys, values, mask, sink, _rule(n, s.width, held))[0]
        for whole, every in zip(cache, (keys, values), strict=True):
            whole[b, :, :left] = every[0, :, every.shape[2] - left :]
    return (join_heads(out), *cache)[: len(n.node.outputs)]


def _run(n: View, *given: Any) -> Sequence[np.ndarray]:
    return _windowed(n, _entry, turned, *given)


# ---- by kernels, which are called when the number of tokens of each entry is known ---------------------------------------


def rotated(m: Machine, x: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool) -> np.ndarray:
    out = dispatch.empty(x.shape)
    rotary(m, x, cos, sin, out, interleaved, None)
    return out


def attended(m: Machine, n: View, q: Any, k: Any, v: Any, mask: Any, sink: Any, rule: Rule) -> Sequence[np.ndarray]:
    if mask is not None or sink is not None or rule.softcap or n.get("smooth_softmax", 0):
        return list(_entry(n, q, k, v, mask, sink, rule))
    (_, _, rows, _), keys = q.shape, k.shape[2]
    before, first = rule.before or 0, max((rule.before or 0) - rule.left, 0)  # keys before it are outside of every window
    ahead = np.arange(first, keys) - (np.arange(rows)[:, None] + before)
    bias = np.where((ahead > 0) | (-ahead > rule.left), FLOAT32.type(-np.inf), FLOAT32.type(0))[None, None] if rows > 1 else None
    out = dispatch.empty(q.shape)
    q, k, v = (np.ascontiguousarray(x) for x in (q, k[:, :, first:], v[:, :, first:]))
    attend(m, q, k, v, bias, None, out, Settings(rule.scale, False, 0, 0, False, False))
    return [out[0]]


def _lower(n: View, b: Builder) -> Any:
    if not n.float32(QUERY, KEY, VALUE, PAST_K, PAST_V, COS, SIN, BIAS, SINK):
        return False
    m = of({name: b.kernel(name) for name in ("attention", "rotary")})

    def function(*given: Any) -> Sequence[np.ndarray]:
        with np.errstate(all="ignore"):
            return _windowed(n, partial(attended, m), partial(rotated, m), *given)

    inputs = [b.optional(i) for i in range(len(n.inputs))]
    b.python(function, inputs, [b.output(i) if n.wants(i) else None for i in range(len(n.node.outputs))])
    return True


register("GroupQueryWindow", _infer, _run, _lower, Traits(whole="attends to", steers=(TOTAL,)))
