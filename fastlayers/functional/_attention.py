"""Attention over dot products of queries and keys, and the choice of one value instead of a mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls.machine import ARRAYS
from ..graph.arrays import as_float32, empty, optional_int64, optional_mask
from ..graph.ops import op
from ..graph.record import record
from ..operators.attention.dot import dot_product, heads_of, sdpa_rule
from ..operators.attention.rules import (
    FAR,
    offset_of,
    wanted,
)
from ._recorded import recorded_mask

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["scaled_dot_product_attention"]

_SDPA = "scaled_dot_product_attention"


def _normal(attributes: dict[str, Any]) -> None:
    a = attributes
    a["dropout_p"] = 0.0
    a["scale"] = None if a["scale"] is None else float(a["scale"])
    for name in ("is_causal", "enable_gqa", "need_scores"):
        a[name] = bool(a[name])
    a["need_weights"] = wanted(_SDPA, a["need_weights"])
    a["offset"] = offset_of(_SDPA, a["offset"])
    heads, groups = heads_of(a["num_heads"], a["num_kv_heads"])
    a["num_heads"], a["num_kv_heads"] = heads or None, groups or None


def _record(query: Any, key: Any, value: Any, mask: Any, lengths: Any, **values: Any) -> Any:
    results = 1 + bool(values["need_weights"]) + values["need_scores"]
    return record("DotAttention", query, key, value, recorded_mask(mask), lengths, outputs=results, **values)


@op(_SDPA, "query key value attn_mask:mask lengths:int", sdpa_rule, _record, _normal)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    lengths: Tensor | None = None,
    num_heads: int | None = None,
    num_kv_heads: int | None = None,
    offset: int | None = 0,
    need_weights: bool | str = False,
    need_scores: bool = False,
) -> Any:
    """Attention: ``softmax(scale query keyᵀ + attn_mask) value``; the scores are never in memory unless they are asked for.

    A query that sees no key at all gives zeros.

    Args:
        query: ``(..., l, d)`` of two to four axes, ``(n, h, l, d)`` with heads; any real dtype.
        key: ``(..., s, d)``.
        value: ``(..., s, e)``.
        attn_mask: broadcasts to ``(..., l, s)``: booleans, True where a query may attend, or values that are added.
        dropout_p: accepted for compatibility; there is none at inference.
        is_causal: whether query i sees the keys j <= i + `offset` alone. It may be given next to a mask.
        scale: a factor for the scores; None is ``1 / sqrt(d)``.
        enable_gqa: whether key and value may have fewer heads g: each serves h / g heads of queries that are next to each other.
        lengths: ``(n,)``: how many keys each entry of the batch has. What is after them has no influence, NaN neither.
        num_heads: None; or h: heads are next to each other, query is ``(n, l, h d)``, key ``(n, s, g d)``, value ``(n, s, g e)``
            and the result ``(n, l, h e)``, as projections write them. Nothing is copied.
        num_kv_heads: g where `num_heads` is given; None is h.
        offset: for `is_causal`: how many keys come before the first query's own, for example those of a cache; None is s - l.
        need_weights: whether the weights are returned too: True ``(..., l, s)``, ``(n, h, l, s)`` with `num_heads`; or "mean",
            over all heads, ``(n, l, s)``.
        need_scores: whether the scores, with scale and mask, -infinity where a key is forbidden, are returned too.

    Returns:
        float32 ``(..., l, e)``; if more is asked for, a tuple: the result, the weights, the scores.

    Raises:
        ShapeError: shapes do not fit, or lengths are out of range.
        DTypeError: an argument is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> q, k, v = np.zeros((1, 2)), np.zeros((3, 2)), np.array([[0.0], [1.0], [8.0]])
    >>> fl.functional.scaled_dot_product_attention(q, k, v, np.array([True, True, False]))
    array([[0.5]], dtype=float32)
    """
    q, k, v = as_float32(query, _SDPA, "query"), as_float32(key, _SDPA, "key"), as_float32(value, _SDPA, "value")
    if (
        attn_mask is lengths is num_heads is num_kv_heads is scale is None
        and dropout_p == 0
        and not (need_weights or need_scores)
    ):
        plain = _plain(q, k, v, bool(is_causal), offset)
        if plain is not None:
            return plain
    mask, counts = optional_mask(attn_mask, _SDPA, "attn_mask"), optional_int64(lengths, _SDPA, "lengths")
    return dot_product(
        q, k, v, mask, counts, dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa, num_heads=num_heads,
        num_kv_heads=num_kv_heads, offset=offset, need_weights=need_weights, need_scores=need_scores,
    )  # fmt: skip


def _plain(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, offset: Any) -> np.ndarray | None:
    """The usual call, four axes and as many heads everywhere, without the search for what else may have been meant: that takes
    longer than one query does. None if it is another one.
    """
    if not (q.ndim == k.ndim == v.ndim == 4 and offset.__class__ is int and -FAR <= offset <= FAR):
        return None
    if k.shape[:3] != v.shape[:3]:
        return None
    b, h, rows, d = q.shape
    if k.shape[0] != b or k.shape[1] != h or k.shape[3] != d:
        return None
    out = empty((b, h, rows, v.shape[3]))
    ARRAYS.call("attention", q, k, v, None, None, out, max(d, 1) ** -0.5, causal, offset, 0, False, False)
    return out
