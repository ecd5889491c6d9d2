"""Additive attention, and attention that chooses one value instead of a mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError
from ..graph.ir import Shape
from ..graph.ops import op
from ..graph.record import record
from ..kernels import _dispatch
from ._activation import resolve
from ._arrays import as_float32, empty, optional_float32, optional_int64, optional_mask
from ._attention import (
    ARRAYS,
    Machine,
    Settings,
    additive_mask,
    check_lengths,
    four,
    lengths_rule,
    mask_rule,
    recorded_mask,
    scale_of,
    weigh,
    weighted_sum,
)
from ._checks import differ, integer, same_shape
from .linear import run_linear

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["additive_attention", "hard_attention"]

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
        same_shape(_ADD, "scale", scale, (units[0] if isinstance(units[0], int) else units[1],), "a factor a unit")
    out = (*query[:-1], value[-1])
    results = [out, *([whole] if need_weights else []), *([whole] if need_scores else [])]
    return results if len(results) > 1 else out


def _normal(attributes: dict[str, Any]) -> None:
    for name in ("is_causal", "need_weights", "need_scores"):
        attributes[name] = bool(attributes[name])


def _record(
    query: Any, key: Any, value: Any, weight_q: Any, weight_k: Any, scale: Any, mask: Any, lengths: Any, **values: Any
) -> Any:
    query = query if weight_q is None else record("Linear", query, weight_q, None)
    key = key if weight_k is None else record("Linear", key, weight_k, None)
    results = 1 + values["need_weights"] + values["need_scores"]
    inputs = (query, key, value, None, None, scale, recorded_mask(mask), lengths)
    return record("AdditiveAttention", *inputs, outputs=results, **values)


def _record_hard(query: Any, key: Any, value: Any, mask: Any, lengths: Any, **values: Any) -> Any:
    return record("HardAttention", query, key, value, recorded_mask(mask), lengths, outputs=2, **values)


@op(_ADD, "query key value weight_q weight_k scale attn_mask:mask lengths:int", additive_rule, _record, _normal)
def additive_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight_q: Tensor | None = None,
    weight_k: Tensor | None = None,
    scale: Tensor | None = None,
    attn_mask: Tensor | None = None,
    *,
    lengths: Tensor | None = None,
    is_causal: bool = False,
    need_weights: bool = False,
    need_scores: bool = False,
) -> Any:
    """Attention of Bahdanau: ``softmax(sum(scale * tanh(W_q query + W_k key)) + attn_mask) value``, the sum over the units.

    Sums of queries and keys are never in memory, the scores are. A query that sees no key at all gives zeros.

    Args:
        query: ``(n, l, features)``, or without n; any real dtype.
        key: ``(n, s, features)``.
        value: ``(n, s, e)``.
        weight_q: W_q ``(units, features)``; None where query has been projected already.
        weight_k: W_k ``(units, features)``; None where key has.
        scale: ``(units,)``, Bahdanau's v; None is ones.
        attn_mask: broadcasts to ``(n, l, s)``: booleans, True where a query may attend, or values that are added.
        lengths: ``(n,)``: how many keys each entry of the batch has. Values after them have no influence.
        is_causal: whether query i sees the keys j <= i alone.
        need_weights: whether the weights ``(n, l, s)`` are returned too.
        need_scores: whether the scores ``(n, l, s)``, -infinity where a key is forbidden, are returned too.

    Returns:
        float32 ``(n, l, e)``; if more is asked for, a tuple: the result, the weights, the scores.

    Raises:
        ShapeError: shapes do not fit, or lengths are out of range.
        DTypeError: an argument is complex, or no array of numbers.

    >>> import numpy as np, fastlayers as fl
    >>> q, k, v = np.zeros((1, 2)), np.zeros((3, 2)), np.array([[0.0], [1.0], [8.0]])
    >>> fl.functional.additive_attention(q, k, v)
    array([[3.]], dtype=float32)
    """
    q, k, v = as_float32(query, _ADD, "query"), as_float32(key, _ADD, "key"), as_float32(value, _ADD, "value")
    w_q, w_k = optional_float32(weight_q, _ADD, "weight_q"), optional_float32(weight_k, _ADD, "weight_k")
    factors = optional_float32(scale, _ADD, "scale")
    mask, counts = optional_mask(attn_mask, _ADD, "attn_mask"), optional_int64(lengths, _ADD, "lengths")
    shapes: Any = [None if x is None else x.shape for x in (q, k, v, w_q, w_k, factors, mask, counts)]
    found: Any = additive_rule(*shapes, is_causal, need_weights, need_scores)  # type: ignore[call-arg]
    check_lengths(_ADD, counts, k.shape[-2])
    q, k = _projected(q, w_q), _projected(k, w_k)
    results = [empty(shape) for shape in (found if isinstance(found, list) else [found])]
    run_additive(
        ARRAYS, q, k, v, factors, additive_mask(mask), counts, results, is_causal=bool(is_causal),
        need_weights=bool(need_weights), need_scores=bool(need_scores),
    )  # fmt: skip
    return tuple(results) if isinstance(found, list) else results[0]


def _projected(x: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    if weight is None:
        return x
    packed = _dispatch.kernel("linear_pack")(weight, None)
    return run_linear(_dispatch.kernel("linear"), x, packed, weight.shape[0], None, resolve("linear", None))


def run_additive(
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
        raise ShapeError(f"{_HARD}: mode is {mode!r}: expected 'argmax' or 'sample'")
    if seed is not None:
        integer(_HARD, "seed", seed, 0)
    elif mode == "sample":
        raise ShapeError(f"{_HARD}: mode is 'sample', seed is None: expected an int, so that the choice can be repeated")
    whole = _three(_HARD, query, key, value, attn_mask, lengths)
    if differ(query[-1], key[-1]):
        raise ShapeError(f"{_HARD}: query {query} and key {key}: expected one width")
    scale_of(_HARD, scale, query[-1])
    return [(*query[:-1], value[-1]), whole]


@op(_HARD, "query key value attn_mask:mask lengths:int", hard_rule, _record_hard)
def hard_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *,
    lengths: Tensor | None = None,
    mode: str = "argmax",
    seed: int | None = None,
    scale: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """One value for each query, chosen: ``value[argmax(scores)]``, or drawn with the probabilities ``softmax(scores)``.

    The scores are those of `scaled_dot_product_attention`. A query that sees no key at all gives zeros.

    Args:
        query: ``(n, l, d)``, or without n; any real dtype.
        key: ``(n, s, d)``.
        value: ``(n, s, e)``.
        attn_mask: broadcasts to ``(n, l, s)``: booleans, True where a query may attend, or values that are added.
        lengths: ``(n,)``: how many keys each entry of the batch has.
        mode: ``"argmax"``, the first of the largest; or ``"sample"``.
        seed: for ``"sample"``: the same seed and inputs make the same choices.
        scale: a factor for the scores; None is ``1 / sqrt(d)``.

    Returns:
        ``(out, choice)``, float32: the chosen values ``(n, l, e)``, and ``(n, l, s)`` with 1 at the chosen key and 0 elsewhere.

    Raises:
        ShapeError: shapes do not fit, lengths are out of range, or `mode` is unknown.
        DTypeError: an argument is complex, or no array of numbers.

    >>> import numpy as np, fastlayers as fl
    >>> q, k, v = np.ones((1, 1)), np.array([[0.0], [3.0], [1.0]]), np.array([[5.0], [6.0], [7.0]])
    >>> fl.functional.hard_attention(q, k, v)[0]
    array([[6.]], dtype=float32)
    """
    q, k, v = as_float32(query, _HARD, "query"), as_float32(key, _HARD, "key"), as_float32(value, _HARD, "value")
    mask, counts = optional_mask(attn_mask, _HARD, "attn_mask"), optional_int64(lengths, _HARD, "lengths")
    shapes: Any = [None if x is None else x.shape for x in (q, k, v, mask, counts)]
    found: Any = hard_rule(*shapes, mode, seed, scale)  # type: ignore[call-arg]
    out_shape, whole = found
    check_lengths(_HARD, counts, k.shape[-2])
    b, rows, keys = (1, *whole) if len(whole) == 2 else whole
    weights = empty((b, 1, rows, keys))
    mask = additive_mask(mask)
    factor = scale_of(_HARD, scale, q.shape[-1])
    settings = Settings(1.0 if factor is None else factor)
    mask = None if mask is None else mask.reshape(four(mask.shape, True))
    weigh(ARRAYS, q.reshape(four(q.shape, True)), k.reshape(four(k.shape, True)), mask, counts, weights, None, False, settings)
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
