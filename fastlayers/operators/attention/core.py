"""Attention over heads as operators of several domains define it: its values in numpy, and its kernel calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._tuples import NamedTuple
from ...calls.attention import Settings, attend, weighted_sum
from ...kernels.table import BINARY, COMPARE, KINDS, UNARY, Activation
from .._base import BOOL, FLOAT32, INT64
from ..calls import copy, float32_constant, strides_of
from ..fused import IDENTITY

if TYPE_CHECKING:
    from ..builder import Builder, Ref

__all__ = [
    "Rule",
    "append",
    "attention_numbers",
    "four_axes",
    "heads_first",
    "heads_last",
    "join_heads",
    "lower_attention",
    "split_heads",
]


class Rule(NamedTuple):
    """The rule between the products.

    Attributes:
        scale: of the scores.
        causal: whether query i sees the keys j <= i + `before` alone.
        before: how many keys come before the first query's own; None: each entry's length less the number of queries.
        softcap: c, scores are c tanh(score / c); 0: as they are.
        left, right: how many keys before and after its own a query sees; -1: all.
        mode: what of the scores is wanted: 0 scaled, 1 after softcap, 2 with the mask, 3 the weights.
        precise: whether the softmax of float16 is computed in float32.
    """

    scale: float
    causal: bool = False
    before: int | None = 0
    softcap: float = 0.0
    left: int = -1
    right: int = -1
    mode: int = 0
    precise: bool = False


# ---- in numpy ----------------------------------------------------------------------------------------------------------


def split_heads(x: np.ndarray, heads: int) -> np.ndarray:
    """(b, t, h d) as (b, h, t, d)."""
    b, t, width = x.shape
    return np.asarray(x.reshape(b, t, heads, width // heads if heads else 0).swapaxes(1, 2))


def join_heads(x: np.ndarray) -> np.ndarray:
    """(b, h, t, d) as (b, t, h d)."""
    b, h, t, d = x.shape
    return np.asarray(x.swapaxes(1, 2).reshape(b, t, h * d))


def attention_numbers(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None, lengths: np.ndarray | None, rule: Rule
) -> tuple[np.ndarray, np.ndarray]:
    """Attention of q (b, h, q, d), k (b, g, k, d), v (b, g, k, e), and what `rule.mode` asks for.

    Computed in float64, or in float16 step by step as the operators' texts spell it out. A mask of fewer keys forbids the others.
    """
    dtype = q.dtype
    wide = np.dtype(np.float64) if dtype.itemsize > 2 else dtype
    rows, keys, group = q.shape[2], k.shape[2], q.shape[1] // max(k.shape[1], 1)
    k, v = (np.repeat(x, group, 1) if group != 1 else x for x in (k, v))
    root = wide.type(np.sqrt(abs(rule.scale)))
    bias = np.zeros((rows, keys), wide)
    if mask is not None:
        if mask.dtype == np.bool_:
            mask = np.where(mask, wide.type(0), wide.type(-np.inf))
        if mask.ndim and mask.shape[-1] < keys:
            pads = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])]
            mask = np.pad(mask, pads, constant_values=-np.inf)
        bias = bias + mask
    counts = None if lengths is None else lengths.reshape(-1, 1, 1, 1).astype(np.int64)
    first = counts - rows if rule.before is None and counts is not None else rule.before or 0
    ahead = np.arange(keys) - (np.arange(rows)[:, None] + first)  # how far a key is after the query's own
    closed = np.zeros(ahead.shape, bool)
    closed |= (ahead > 0) & rule.causal
    closed |= (-ahead > rule.left) & (rule.left >= 0)
    closed |= (ahead > rule.right) & (rule.right >= 0)
    if counts is not None:
        closed = closed | (np.arange(keys) >= counts)
    bias = np.where(closed, wide.type(-np.inf), bias)
    scores = wanted = (q.astype(wide) * root) @ (k.astype(wide) * np.copysign(root, wide.type(rule.scale))).swapaxes(2, 3)
    if rule.softcap > 0:
        scores = np.tanh(scores / wide.type(rule.softcap)) * wide.type(rule.softcap)
    wanted = scores if rule.mode else wanted
    scores = scores + bias
    wanted = scores if rule.mode == 2 else wanted
    nothing = np.isneginf(bias.max(-1, keepdims=True, initial=-np.inf))
    scores = scores.astype(np.float32) if rule.precise and dtype.itemsize == 2 else scores
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isneginf(largest), 0, largest))
    weights = weights / np.where(weights.any(-1, keepdims=True), weights.sum(-1, keepdims=True), 1)
    weights = np.where(nothing, wide.type(0), weights)
    wanted = weights if rule.mode == 3 else wanted
    return (weights.astype(wide) @ v.astype(wide)).astype(dtype), wanted.astype(dtype)


# ---- through kernels ---------------------------------------------------------------------------------------------------


def heads_first(b: Builder, x: Ref, heads: int) -> Ref:
    """(b, t, h d) as (b, h, t, d), copied."""
    batch, t, width = x.shape
    out = b.temp((batch, heads, t, width // heads if heads else 0))
    append(b, x, heads, out, 0)
    return out


def heads_last(b: Builder, x: Ref, out: Ref) -> None:
    """Copies (b, h, t, d) into (b, t, h d)."""
    batch, h, t, d = x.shape
    copy(b, x, out, (batch, h, t, d), 0, (h * t * d, t * d, d, 1), 0, (t * h * d, d, h * d, 1))


def append(b: Builder, x: Ref, heads: int, whole: Ref, start: int) -> None:
    """Copies x, (b, g, t, d) or (b, t, g d), to (b, g, ..., d) from step `start` on."""
    batch, g, steps, d = whole.shape
    flat = len(x.shape) == 3
    t = x.shape[1] if flat else x.shape[2]
    strides = (t * g * d, d, g * d, 1) if flat else (g * t * d, t * d, d, 1)
    copy(b, x, whole, (batch, g, t, d), 0, strides, start * d, (g * steps * d, steps * d, d, 1))


def four_axes(ref: Ref) -> Ref:
    """The same memory with four axes."""
    return ref.view((*(1,) * (4 - len(ref.shape)), *ref.shape))


def lower_attention(
    b: Builder,
    q: Ref,
    k: Ref,
    v: Ref,
    mask: Ref | None,
    lengths: Ref | None,
    out: Ref,
    scores: Ref | None,
    rule: Rule,
    last: bool,
) -> None:
    """The kernel calls of float32 attention with heads first, or last; `scores` takes what `rule.mode` says, heads first.

    The mask may be boolean or additive, and of fewer keys.
    """
    rows, keys, batch = q.shape[1 if last else 2], k.shape[1 if last else 2], q.shape[0]
    bias = None if mask is None else _numbers(b, four_axes(mask), keys)
    lengths = None if lengths is None else _cast(b, lengths, INT64)
    causal, before = rule.causal, rule.before or 0
    if rule.before is None and rows == 1 and lengths is not None:
        causal = False  # the lengths say it
    limits = (
        [(1, 0)] * (causal and rule.before is None) + [(-1, rule.left)] * (rule.left >= 0) + [(1, rule.right)] * (rule.right >= 0)
    )
    if limits and rule.before is not None:
        ahead = np.arange(keys) - (np.arange(rows)[:, None] + rule.before)
        closed = np.zeros(ahead.shape, bool)
        for sign, most in limits:
            closed |= sign * ahead > most
        if closed.any():
            bias = _sum(b, bias, b.constant(np.where(closed, FLOAT32.type(-np.inf), FLOAT32.type(0))[None, None]))
    elif limits and lengths is not None:
        counts = _cast(b, lengths.view((batch, 1, 1, 1)), FLOAT32)
        # Of two vectors: their difference as a constant would be there once for each layer, and for each set of sizes.
        own, distance = b.temp((batch, 1, rows, 1)), b.temp((batch, 1, rows, keys))
        b.call("binary", counts, _numbered(b, -rows, 0, 2), own, BINARY["add"], IDENTITY)
        b.call("binary", _numbered(b, 0, keys, 3), own, distance, BINARY["subtract"], IDENTITY)
        for sign, most in limits:
            closed_, key = b.temp(distance.shape, BOOL), "less_equal" if sign > 0 else "greater_equal"
            b.call("compare", distance, float32_constant(b, sign * most), closed_, COMPARE[key])
            bias = _sum(b, bias, _numbers(b, closed_, keys))
    if rule.before is None:
        causal = False
    settings = Settings(rule.scale, causal, before, 0, False, last)
    m = b.machine
    if scores is None and not rule.softcap:
        attend(m, q, k, v, bias, lengths, out, settings)
        return
    h, g, d = q.shape[1], k.shape[1], q.shape[3]
    folded = (batch * g, h // max(g, 1) * rows)
    own_scores = b.temp((batch, h, rows, keys)) if scores is None or rule.mode == 3 else scores
    b.call(
        "matmul", q.view((*folded, d)), k.view((batch * g, keys, d)), own_scores.view((*folded, keys)), True, IDENTITY
    )  # fmt: skip

    def then(x: Ref, factor: float, function: str = "identity") -> Ref:
        y = x if rule.mode or scores is not x else b.temp(x.shape)
        b.call("binary", x, float32_constant(b, factor), y, BINARY["multiply"], Activation(UNARY[function].code))
        return y

    b.call("binary", own_scores, float32_constant(b, rule.scale), own_scores, BINARY["multiply"], IDENTITY)
    capped = then(then(own_scores, 1 / rule.softcap, "tanh"), rule.softcap) if rule.softcap else own_scores
    masked = capped if rule.mode > 1 or scores is not capped else b.temp(capped.shape)
    weights = scores if rule.mode == 3 and scores is not None else b.temp(capped.shape)
    b.call("attention_weights", capped, bias, lengths, masked, weights, 1.0, causal, before, 0)
    weighted_sum(m, masked, v, lengths, out, settings)


def _numbered(b: Builder, first: int, end: int, axis: int) -> Ref:
    """The numbers from `first` to `end` as a constant of four axes, along one of them."""
    shape = [1] * 4
    shape[axis] = end - first
    return b.constant(np.arange(first, end, dtype=FLOAT32).reshape(shape))


def _cast(b: Builder, x: Ref, dtype: np.dtype[Any]) -> Ref:
    if x.dtype == dtype:
        return x
    out = b.temp(x.shape, dtype)
    b.call("cast", x, out, KINDS[x.dtype.name], KINDS[dtype.name])
    return out


def _sum(b: Builder, x: Ref | None, y: Ref) -> Ref:
    if x is None:
        return y
    out = b.temp(np.broadcast_shapes(x.shape, y.shape))
    b.call("binary", x, y, out, BINARY["add"], IDENTITY)
    return out


def _numbers(b: Builder, mask: Ref, keys: int) -> Ref:
    """A mask as values that are added, -infinity for keys that it does not have."""
    if mask.dtype == BOOL:
        numbers = b.temp(mask.shape)
        b.call("where", mask, float32_constant(b, 0), float32_constant(b, -np.inf), numbers)
        mask = numbers
    had = mask.shape[3]
    if had >= keys:
        return mask
    lead = mask.shape[:3]
    whole = b.temp((*lead, keys))
    to = strides_of(whole.shape)
    copy(b, mask, whole, mask.shape, 0, strides_of(mask.shape), 0, to)
    copy(b, float32_constant(b, -np.inf), whole, (*lead, keys - had), 0, (0,) * 4, had, to)
    return whole
