"""Attention: which kernels run. The kernel `attention` never has more of the scores in memory than a tile.

Where weights or scores are asked for they are computed beside it, by a product and the kernel `attention_weights`, of which the
result does not depend. Scores that are there already, those of additive attention, are given to it as the mask of queries and
keys of no width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tuples import NamedTuple
from ..kernels.table import REDUCE, Activation
from .machine import Machine

__all__ = ["Settings", "additive", "attend", "dot", "four", "rotary", "weigh", "weighted_sum"]


class Settings(NamedTuple):
    """Options of the kernels `attention` and `attention_weights`; see their references."""

    scale: float
    causal: bool = False
    offset: int = 0
    empty: int = 0
    k_transposed: bool = False
    heads_last: bool = False


def four(shape: Sequence[int], batched: bool) -> tuple[int, ...]:
    """A shape of two to four axes with four: axes of size 1 in front, or second if there are three of which one is the batch."""
    if len(shape) == 3 and batched:
        return (shape[0], 1, *shape[1:])
    return (*(1,) * (4 - len(shape)), *shape)


def dot(
    m: Machine,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    lengths: Any,
    results: list[Any],
    *,
    is_causal: bool,
    scale: float | None,
    num_heads: int | None,
    num_kv_heads: int | None,
    offset: int | None,
    need_weights: bool | str,
    need_scores: bool,
    **unused: Any,
) -> None:
    """`scaled_dot_product_attention` on checked operands; fills `results`, of which all but the first may be None."""
    out, single = results[0], len(q.shape) == 3 and not num_heads
    if num_heads:
        groups = num_kv_heads or num_heads
        heads = (q, num_heads), (k, groups), (v, groups)
        q, k, v = (m.view(x, (*x.shape[:2], h, x.shape[2] // h)) for x, h in heads)
        out = m.view(out, (*q.shape[:3], v.shape[3]))
    else:
        q, k, v, out = (m.view(x, four(x.shape, True)) for x in (q, k, v, out))
    if mask is not None:
        mask = m.view(mask, four(mask.shape, single))
    at = 1 if num_heads else 2
    factor = max(q.shape[3], 1) ** -0.5 if scale is None else float(scale)
    before = k.shape[at] - q.shape[at] if offset is None else offset
    settings = Settings(factor, is_causal, before, heads_last=bool(num_heads))
    attend(m, q, k, v, mask, lengths, out, settings)
    weights = results[1] if need_weights else None
    scores = results[-1] if need_scores else None
    if weights is None and scores is None:
        return
    mean = need_weights == "mean"
    scores = None if scores is None else m.view(scores, four(scores.shape, True))
    weights = weights if weights is None or mean else m.view(weights, four(weights.shape, True))
    weigh(m, q, k, mask, lengths, weights, scores, mean, settings)


def additive(
    m: Machine, q: Any, k: Any, v: Any, scale: Any, mask: Any, lengths: Any, results: list[Any], *, is_causal: bool,
    need_weights: bool, need_scores: bool,
) -> None:  # fmt: skip
    """`additive_attention` on checked and projected operands; fills `results`, of which all but the first may be None."""
    b, rows, units = (1, *q.shape) if len(q.shape) == 2 else q.shape
    keys, out = k.shape[-2], results[0]
    weights, kept = results[1] if need_weights else None, results[-1] if need_scores else None
    scores = m.temp((b, 1, rows, keys)) if kept is None else m.view(kept, (b, 1, rows, keys))
    m.call("additive_scores", m.view(q, (b, rows, units)), m.view(k, (b, keys, units)), scale, m.view(scores, (b, rows, keys)))
    if mask is not None or weights is not None or kept is not None:
        to = m.temp(scores.shape) if weights is None else m.view(weights, scores.shape)
        mask = None if mask is None else m.view(mask, four(mask.shape, True))
        m.call("attention_weights", scores, mask, lengths, scores, to, 1.0, is_causal, 0, 0)
    settings = Settings(1.0, is_causal)
    weighted_sum(m, scores, m.view(v, four(v.shape, True)), lengths, m.view(out, four(out.shape, True)), settings)


def attend(m: Machine, q: Any, k: Any, v: Any, mask: Any, lengths: Any, out: Any, s: Settings) -> None:
    """out = softmax(scale q kᵀ + mask) v, all scores but a tile of them never in memory."""
    m.call("attention", q, k, v, mask, lengths, out, *s)


def weigh(m: Machine, q: Any, k: Any, mask: Any, lengths: Any, weights: Any, scores: Any, mean: bool, s: Settings) -> None:
    """The weights (b, h, q, k), or their mean over the heads (b, q, k), and the scores; each of the two may be None."""
    q, k = (_heads_first(m, x) for x in (q, k)) if s.heads_last else (q, k)
    (b, h, rows, d), g = q.shape, k.shape[1]
    keys = k.shape[3] if s.k_transposed else k.shape[2]
    scores = m.temp((b, h, rows, keys)) if scores is None else scores
    own = m.temp((b, h, rows, keys)) if mean or weights is None else weights
    folded = (b * g, h // max(g, 1) * rows)
    inner = (d, keys) if s.k_transposed else (keys, d)
    m.call(
        "matmul",
        m.view(q, (*folded, d)),
        m.view(k, (b * g, *inner)),
        m.view(scores, (*folded, keys)),
        not s.k_transposed,
        Activation(0),
    )
    m.call("attention_weights", scores, mask, lengths, scores, own, s.scale, s.causal, s.offset, s.empty)
    if mean and weights is not None:
        m.call("reduce", m.view(own, (b, h, rows * keys)), m.view(weights, (b, rows * keys)), REDUCE["mean"])


def weighted_sum(m: Machine, scores: Any, v: Any, lengths: Any, out: Any, s: Settings) -> None:
    """out = softmax(scores) v for scores (b, h, q, k) that are there: the mask of queries and keys of no width."""
    b, h, rows, keys = scores.shape
    nothing = m.temp((b, h, rows, 0)), m.temp((b, v.shape[1], keys, 0))
    m.call("attention", *nothing, v, scores, lengths, out, *s._replace(scale=1.0, k_transposed=False, heads_last=False))


def _heads_first(m: Machine, x: Any) -> Any:
    """(b, t, h, d) as (b, h, t, d)."""
    b, t, h, d = x.shape
    out = m.temp((b, h, t, d))
    if b * t * h * d:
        m.call("copy", x, out, (b, h, t, d), 0, (t * h * d, d, h * d, 1), 0, (h * t * d, t * d, d, 1), 4)
    return out


def rotary(m: Machine, x: Any, cos: Any, sin: Any, out: Any, interleaved: bool, num_heads: int | None) -> None:
    """Rotary positions on checked operands; cos and sin have two axes or three."""
    shape = (*x.shape[:2], x.shape[2], 1, x.shape[3]) if num_heads is None else (x.shape[0], 1, x.shape[1], num_heads, -1)
    if num_heads is not None:
        shape = (*shape[:4], x.shape[2] // num_heads)
    tables = (a if len(a.shape) == 3 else m.view(a, (1, *a.shape)) for a in (cos, sin))
    m.call("rotary", m.view(x, shape), *tables, m.view(out, shape), interleaved)
