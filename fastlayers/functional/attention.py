"""Attention over dot products of queries and keys, and the choice of one value instead of a mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError
from ..graph.ir import Dim, Shape
from ..graph.ops import op
from ..graph.record import record
from ..kernels import _dispatch
from ._arrays import as_float32, empty, optional_int64, optional_mask
from ._attention import (
    ARRAYS,
    FAR,
    Machine,
    Settings,
    additive_mask,
    attend,
    check_lengths,
    four,
    lengths_rule,
    mask_rule,
    offset_of,
    recorded_mask,
    scale_of,
    wanted,
    weigh,
)
from ._checks import differ, integer, number

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["scaled_dot_product_attention"]

_SDPA = "scaled_dot_product_attention"


def _over(name: str, argument: str, size: Dim, by: int) -> Dim:
    if isinstance(size, int) and (by < 1 or size % by):
        raise ShapeError(f"{_SDPA}: {argument} has {size} features, {name} is {by}: expected a multiple")
    return size // by if isinstance(size, int) else None


def heads_of(num_heads: Any, num_kv_heads: Any) -> tuple[int, int]:
    """Numbers of heads of queries and of keys; (0, 0) where heads have an axis of their own."""
    if num_heads is None:
        if num_kv_heads is not None:
            raise ShapeError(f"{_SDPA}: num_kv_heads is {num_kv_heads} without num_heads: expected both")
        return 0, 0
    heads = integer(_SDPA, "num_heads", num_heads, 1)
    groups = heads if num_kv_heads is None else integer(_SDPA, "num_kv_heads", num_kv_heads, 1)
    if heads % groups:
        raise ShapeError(f"{_SDPA}: num_heads is {heads}, num_kv_heads {groups}: expected a multiple of it")
    return heads, groups


def sdpa_rule(
    query: Shape,
    key: Shape,
    value: Shape,
    attn_mask: Shape | None,
    lengths: Shape | None,
    dropout_p: Any = 0.0,
    is_causal: Any = False,
    scale: Any = None,
    enable_gqa: Any = False,
    num_heads: Any = None,
    num_kv_heads: Any = None,
    offset: Any = 0,
    need_weights: Any = False,
    need_scores: Any = False,
) -> Shape | list[Shape]:
    """Checks the arguments of `scaled_dot_product_attention` and returns the shapes of its results."""
    number(_SDPA, "dropout_p", dropout_p)
    offset_of(_SDPA, offset)
    heads, groups = heads_of(num_heads, num_kv_heads)
    shapes = f"query {query}, key {key}, value {value}"
    if heads:
        if not len(query) == len(key) == len(value) == 3:
            raise ShapeError(f"{_SDPA}: {shapes}: expected (n, l, h d), (n, s, g d) and (n, s, g e) with num_heads")
        d, e = _over("num_heads", "query", query[2], heads), _over("num_kv_heads", "value", value[2], groups)
        inner = _over("num_kv_heads", "key", key[2], groups)
        lead: Shape = (query[0], heads)
        batches = [(query[0], key[0]), (query[0], value[0])]
        out: Shape = (*query[:2], heads * e if isinstance(e, int) else None)
    else:
        if not 2 <= len(query) <= 4 or not len(query) == len(key) == len(value):
            raise ShapeError(f"{_SDPA}: {shapes}: expected (..., l, d), (..., s, d) and (..., s, e) of two to four axes each")
        d, e, inner, lead = query[-1], value[-1], key[-1], query[:-2]
        grouped = bool(enable_gqa) and len(query) == 4
        batches = [pair for other in (key, value) for pair in zip(lead[:1] if grouped else lead, other[:-2], strict=False)]
        if grouped:
            h, g = query[1], key[1]
            batches.append((key[1], value[1]))
            if isinstance(h, int) and isinstance(g, int) and (h % g if g else h):
                raise ShapeError(f"{_SDPA}: query has {h} heads, key {g}: expected a multiple with enable_gqa")
        out = (*query[:-1], e)
    if any(differ(*pair) for pair in batches):
        hint = "" if heads or enable_gqa or len(query) < 4 else "; fewer heads of keys need enable_gqa=True"
        raise ShapeError(f"{_SDPA}: {shapes}: expected equal batches and heads{hint}")
    if differ(d, inner) or differ(key[-2], value[-2]):
        raise ShapeError(f"{_SDPA}: {shapes}: expected one width of queries and keys, and a value for every key")
    scale_of(_SDPA, scale, d)
    whole = (*lead, query[-2], key[-2])
    mask_rule(_SDPA, attn_mask, whole)
    if lengths is not None and len(query) < 3:
        raise ShapeError(f"{_SDPA}: lengths with query {query}: expected a batch, query of three or four axes")
    lengths_rule(_SDPA, lengths, query[0], f"query {query}")
    results = [out]
    need = wanted(_SDPA, need_weights)
    if need == "mean" and len(whole) != 4:
        raise ShapeError(f"{_SDPA}: need_weights is 'mean', query has shape {query}: expected heads to take it over")
    if need:
        results.append((whole[0], *whole[2:]) if need == "mean" else whole)
    if need_scores:
        results.append(whole)
    return results if len(results) > 1 else out


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
        DTypeError: an argument is complex, or no array of numbers.

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
    shapes: Any = [None if x is None else x.shape for x in (q, k, v, mask, counts)]
    found: Any = sdpa_rule(  # type: ignore[call-arg]
        *shapes, dropout_p, is_causal, scale, enable_gqa, num_heads, num_kv_heads, offset, need_weights, need_scores
    )
    check_lengths(_SDPA, counts, k.shape[-2])
    results = [empty(shape) for shape in (found if isinstance(found, list) else [found])]
    run_sdpa(
        ARRAYS, q, k, v, additive_mask(mask), counts, results, is_causal=bool(is_causal), scale=scale, num_heads=num_heads,
        num_kv_heads=num_kv_heads, offset=offset_of(_SDPA, offset), need_weights=wanted(_SDPA, need_weights),
        need_scores=bool(need_scores),
    )  # fmt: skip
    return tuple(results) if isinstance(found, list) else results[0]


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
    _dispatch.kernel("attention")(q, k, v, None, None, out, max(d, 1) ** -0.5, causal, offset, 0, False, False)
    return out


def run_sdpa(
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
    heads, groups = heads_of(num_heads, num_kv_heads)
    out, single = results[0], len(q.shape) == 3 and not heads
    if heads:
        q, k, v = (m.view(x, (*x.shape[:2], h, x.shape[2] // h)) for x, h in ((q, heads), (k, groups), (v, groups)))
        out = m.view(out, (*q.shape[:3], v.shape[3]))
    else:
        q, k, v, out = (m.view(x, four(x.shape, True)) for x in (q, k, v, out))
    if mask is not None:
        mask = m.view(mask, four(mask.shape, single))
    at = 1 if heads else 2
    factor = scale_of(_SDPA, scale, q.shape[3])
    before = k.shape[at] - q.shape[at] if offset is None else offset
    settings = Settings(1.0 if factor is None else factor, is_causal, before, heads_last=bool(heads))
    attend(m, q, k, v, mask, lengths, out, settings)
    weights = results[1] if need_weights else None
    scores = results[-1] if need_scores else None
    if weights is None and scores is None:
        return
    mean = need_weights == "mean"
    scores = None if scores is None else m.view(scores, four(scores.shape, True))
    weights = weights if weights is None or mean else m.view(weights, four(weights.shape, True))
    weigh(m, q, k, mask, lengths, weights, scores, mean, settings)
