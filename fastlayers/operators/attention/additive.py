"""`AdditiveAttention`, and `HardAttention`, which chooses one value instead of a mean, as layers have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...calls import attention as calls
from ...calls.linear import once
from ...calls.machine import ARRAYS, Machine
from ...errors import ArgumentError, ShapeError
from ...ir.checks import differ, integer, same_shape
from ...ir.graph import Shape
from ...kernels import dispatch
from .._base import View, register
from .._traits import Traits
from ..fused import IDENTITY
from ._layer import infer_as, lower_as, run_as
from .rules import (
    additive_mask,
    check_lengths,
    lengths_rule,
    mask_rule,
    scale_of,
)

if TYPE_CHECKING:
    from ..builder import Builder

__all__ = ["additive", "additive_rule", "choose", "hard_rule"]

_ADD, _HARD = "additive_attention", "hard_attention"


def _three(name: str, query: Shape, key: Shape, value: Shape, mask: Shape | None, lengths: Shape | None) -> Shape:
    """Checks what both functions share; returns the shape of the scores."""
    shapes = f"query {query}, key {key}, value {value}"
    if not 2 <= len(query) <= 3 or not len(query) == len(key) == len(value):
        raise ShapeError(f"{name}: {shapes}: expected (n, l, features), (n, s, features) and (n, s, e), or all without n")
    if differ(key[-2], value[-2]) or (len(query) == 3 and (differ(query[0], key[0]) or differ(query[0], value[0]))):
        raise ShapeError(f"{name}: {shapes}: expected equal batches, and a value for every key")
    whole = (*query[:-1], key[-2])
    mask_rule(name, mask, whole)
    if lengths is not None and len(query) < 3:
        raise ShapeError(f"{name}: lengths with query {query}: expected a batch, query of three axes")
    lengths_rule(name, lengths, query[0], f"query {query}")
    return whole


def additive_rule(
    query: Shape,
    key: Shape,
    value: Shape,
    weight_q: Shape | None,
    weight_k: Shape | None,
    scale: Shape | None,
    attn_mask: Shape | None,
    lengths: Shape | None,
    is_causal: Any = False,
    need_weights: Any = False,
    need_scores: Any = False,
) -> Shape | list[Shape]:
    """Checks the arguments of `additive_attention` and returns the shapes of its results."""
    whole = _three(_ADD, query, key, value, attn_mask, lengths)
    units = []
    for name, x, argument, weight in (("query", query, "weight_q", weight_q), ("key", key, "weight_k", weight_k)):
        if weight is not None and (len(weight) != 2 or differ(weight[1], x[-1])):
            raise ShapeError(f"{_ADD}: {argument} has shape {weight}, {name} {x}: expected (units, {x[-1]})")
        units.append(x[-1] if weight is None else weight[0])
    if differ(*units):
        raise ShapeError(f"{_ADD}: queries have {units[0]} units, keys {units[1]}: expected equal values, projected or not")
    if scale is not None:
        same_shape(_ADD, "scale", scale, (units[0] if isinstance(units[0], int) else units[1],), "one factor per unit")
    out = (*query[:-1], value[-1])
    results = [out, *([whole] if need_weights else []), *([whole] if need_scores else [])]
    return results if len(results) > 1 else out


def additive(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, weight_q: np.ndarray | None, weight_k: np.ndarray | None,
    scale: np.ndarray | None, mask: np.ndarray | None, counts: np.ndarray | None, *, is_causal: Any = False,
    need_weights: Any = False, need_scores: Any = False,
) -> Any:  # fmt: skip
    """`functional.additive_attention` on arrays in the dtypes that kernels take."""
    shapes: Any = [None if x is None else x.shape for x in (q, k, v, weight_q, weight_k, scale, mask, counts)]
    found: Any = additive_rule(*shapes, is_causal, need_weights, need_scores)  # type: ignore[call-arg]
    check_lengths(_ADD, counts, k.shape[-2])
    q, k = _projected(q, weight_q), _projected(k, weight_k)
    results = [dispatch.empty(shape) for shape in (found if isinstance(found, list) else [found])]
    calls.additive(
        ARRAYS, q, k, v, scale, additive_mask(mask), counts, results, is_causal=bool(is_causal),
        need_weights=bool(need_weights), need_scores=bool(need_scores),
    )  # fmt: skip
    return tuple(results) if isinstance(found, list) else results[0]


def _projected(x: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    if weight is None:
        return x
    out = dispatch.empty((*x.shape[:-1], weight.shape[0]))
    once(ARRAYS, x, weight, None, None, out, IDENTITY)
    return out


def hard_rule(
    query: Shape,
    key: Shape,
    value: Shape,
    attn_mask: Shape | None,
    lengths: Shape | None,
    mode: Any = "argmax",
    seed: Any = None,
    scale: Any = None,
) -> list[Shape]:
    """Checks the arguments of `hard_attention` and returns the shapes of its results."""
    if mode not in ("argmax", "sample"):
        raise ArgumentError(f"{_HARD}: mode is {mode!r}: expected 'argmax' or 'sample'")
    if seed is not None:
        integer(_HARD, "seed", seed, 0)
    elif mode == "sample":
        raise ArgumentError(f"{_HARD}: mode is 'sample', seed is None: expected an int, so that the choice can be repeated")
    whole = _three(_HARD, query, key, value, attn_mask, lengths)
    if differ(query[-1], key[-1]):
        raise ShapeError(f"{_HARD}: query {query} and key {key}: expected one width")
    scale_of(_HARD, scale, query[-1])
    return [(*query[:-1], value[-1]), whole]


def choose(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None, counts: np.ndarray | None, mode: Any = "argmax",
    seed: Any = None, scale: Any = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """`functional.hard_attention` on arrays in the dtypes that kernels take."""
    shapes: Any = [None if x is None else x.shape for x in (q, k, v, mask, counts)]
    found: Any = hard_rule(*shapes, mode, seed, scale)  # type: ignore[call-arg]
    out_shape, whole = found
    check_lengths(_HARD, counts, k.shape[-2])
    b, rows, keys = (1, *whole) if len(whole) == 2 else whole
    weights = dispatch.empty((b, 1, rows, keys))
    mask = additive_mask(mask)
    factor = scale_of(_HARD, scale, q.shape[-1])
    settings = calls.Settings(1.0 if factor is None else factor)
    mask = None if mask is None else mask.reshape(calls.four(mask.shape, True))
    q, k = (x.reshape(calls.four(x.shape, True)) for x in (q, k))
    calls.weigh(ARRAYS, q, k, mask, counts, weights, None, False, settings)
    flat = weights.reshape(b, rows, keys)
    choice = np.zeros(flat.shape, np.float32)
    if flat.size:
        seen = flat.any(axis=2, keepdims=True)
        np.put_along_axis(choice, _chosen(flat, mode, seed)[:, :, None], 1, axis=2)
        choice *= seen
    at = choice.argmax(axis=2) if keys else np.zeros((b, rows), np.int64)
    picked = np.zeros((b, rows, v.shape[-1]), np.float32)
    if keys:
        picked = np.take_along_axis(v.reshape(b, keys, -1), at[:, :, None], axis=1)
        picked = np.where(choice.any(axis=2, keepdims=True), picked, np.float32(0))
    return np.ascontiguousarray(picked.reshape(out_shape)), choice.reshape(whole)


def _chosen(weights: np.ndarray, mode: str, seed: int | None) -> np.ndarray:
    """The number of a key for every query, by its weights (b, l, s)."""
    if mode == "argmax":
        found: np.ndarray = weights.argmax(axis=2)
        return found
    until = weights.astype(np.float64).cumsum(axis=2)
    drawn = np.random.default_rng(seed).random(weights.shape[:2])[:, :, None] * until[:, :, -1:]
    chosen: np.ndarray = (until <= drawn).sum(axis=2).clip(0, weights.shape[2] - 1)
    return chosen


def _additive_lower(n: View, b: Builder) -> Any:
    # Projections are their own operators.
    return False if n.has(3) or n.has(4) else _additive(n, b)


def _run_additive(m: Machine, q: Any, k: Any, v: Any, weight_q: Any, weight_k: Any, *rest: Any, **attributes: Any) -> None:
    calls.additive(m, q, k, v, *rest, **attributes)


_additive = lower_as(_run_additive, 8)
register(
    "AdditiveAttention",
    infer_as(additive_rule),
    run_as(additive, 8),
    _additive_lower,
    Traits(whole="attends to"),
)
# A choice decides by values: it has no kernel.
register(
    "HardAttention",
    infer_as(hard_rule),
    run_as(choose, 5),
    traits=Traits(whole="attends to"),
)
