"""Additive attention, and attention that chooses one value instead of a mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph.arrays import as_float32, optional_float32, optional_int64, optional_mask
from ..graph.ops import op
from ..graph.record import record
from ..operators.attention.additive import additive, additive_rule, choose, hard_rule
from ._recorded import recorded_mask

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["additive_attention", "hard_attention"]

_ADD, _HARD = "additive_attention", "hard_attention"


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


@op(_ADD, "query key value weight_q weight_k scale attn_mask:mask lengths:int", additive_rule, _record, _normal, plans=False)
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
        DTypeError: an argument is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> q, k, v = np.zeros((1, 2)), np.zeros((3, 2)), np.array([[0.0], [1.0], [8.0]])
    >>> fl.functional.additive_attention(q, k, v)
    array([[3.]], dtype=float32)
    """
    q, k, v = as_float32(query, _ADD, "query"), as_float32(key, _ADD, "key"), as_float32(value, _ADD, "value")
    w_q, w_k = optional_float32(weight_q, _ADD, "weight_q"), optional_float32(weight_k, _ADD, "weight_k")
    factors = optional_float32(scale, _ADD, "scale")
    mask, counts = optional_mask(attn_mask, _ADD, "attn_mask"), optional_int64(lengths, _ADD, "lengths")
    return additive(
        q, k, v, w_q, w_k, factors, mask, counts, is_causal=is_causal, need_weights=need_weights, need_scores=need_scores
    )


@op(_HARD, "query key value attn_mask:mask lengths:int", hard_rule, _record_hard, plans=False)
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
        DTypeError: an argument is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> q, k, v = np.ones((1, 1)), np.array([[0.0], [3.0], [1.0]]), np.array([[5.0], [6.0], [7.0]])
    >>> fl.functional.hard_attention(q, k, v)[0]
    array([[6.]], dtype=float32)
    """
    q, k, v = as_float32(query, _HARD, "query"), as_float32(key, _HARD, "key"), as_float32(value, _HARD, "value")
    mask, counts = optional_mask(attn_mask, _HARD, "attn_mask"), optional_int64(lengths, _HARD, "lengths")
    return choose(q, k, v, mask, counts, mode, seed, scale)
