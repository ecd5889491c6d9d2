"""`DotAttention`: attention over dot products of queries and keys, as layers have it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...calls.attention import dot
from ...calls.machine import ARRAYS
from ...errors import ArgumentError, ShapeError
from ...ir.checks import differ, integer, number
from ...ir.graph import Dim, Shape
from ...kernels import dispatch
from .._base import register
from .._costs import attention
from .._traits import Traits
from ._layer import infer_as, lower_as, run_as
from .rules import (
    additive_mask,
    check_lengths,
    lengths_rule,
    mask_rule,
    offset_of,
    scale_of,
    wanted,
)

__all__ = ["dot_product", "heads_of", "sdpa_rule"]

_SDPA = "scaled_dot_product_attention"


def _over(name: str, argument: str, size: Dim, by: int) -> Dim:
    if isinstance(size, int) and (by < 1 or size % by):
        raise ShapeError(f"{_SDPA}: {argument} has {size} features, {name} is {by}: expected a multiple")
    return size // by if isinstance(size, int) else None


def heads_of(num_heads: Any, num_kv_heads: Any) -> tuple[int, int]:
    """The numbers of heads of queries and keys; (0, 0) where heads have their own axis."""
    if num_heads is None:
        if num_kv_heads is not None:
            raise ArgumentError(f"{_SDPA}: num_kv_heads is {num_kv_heads} without num_heads: expected both")
        return 0, 0
    heads = integer(_SDPA, "num_heads", num_heads, 1)
    groups = heads if num_kv_heads is None else integer(_SDPA, "num_kv_heads", num_kv_heads, 1)
    if heads % groups:
        raise ArgumentError(f"{_SDPA}: num_heads is {heads}, num_kv_heads {groups}: expected a multiple of it")
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


def dot_product(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None, counts: np.ndarray | None, *, dropout_p: Any = 0.0,
    is_causal: Any = False, scale: Any = None, enable_gqa: Any = False, num_heads: Any = None, num_kv_heads: Any = None,
    offset: Any = 0, need_weights: Any = False, need_scores: Any = False,
) -> Any:  # fmt: skip
    """`functional.scaled_dot_product_attention` on arrays in the dtypes that kernels take."""
    shapes: Any = [None if x is None else x.shape for x in (q, k, v, mask, counts)]
    found: Any = sdpa_rule(  # type: ignore[call-arg]
        *shapes, dropout_p, is_causal, scale, enable_gqa, num_heads, num_kv_heads, offset, need_weights, need_scores
    )
    check_lengths(_SDPA, counts, k.shape[-2])
    results = [dispatch.empty(shape) for shape in (found if isinstance(found, list) else [found])]
    dot(
        ARRAYS, q, k, v, additive_mask(mask), counts, results, is_causal=bool(is_causal), scale=scale, num_heads=num_heads,
        num_kv_heads=num_kv_heads, offset=offset_of(_SDPA, offset), need_weights=wanted(_SDPA, need_weights),
        need_scores=bool(need_scores),
    )  # fmt: skip
    return tuple(results) if isinstance(found, list) else results[0]


register(
    "DotAttention",
    infer_as(sdpa_rule),
    run_as(dot_product, 5),
    lower_as(dot, 5),
    # Heads are their own axis, or adjacent in the last one.
    Traits(whole="attends to", multiply_adds=attention(lambda n: n.sizes(1)[-2])),
)
