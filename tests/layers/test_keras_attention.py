"""Keras' attention layers and Bahdanau's: Keras' formulas spelled out, masks, what is returned, hard attention, errors."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import fastlayers as fl


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def keras(scores: np.ndarray, value: np.ndarray, of_query: Any, of_value: Any, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Keras' `_calculate_scores` onwards: one low number is taken off, however many masks forbid a key; in float32."""
    rows, keys = scores.shape[1:]
    valid = np.ones((1, rows, keys), bool) if of_value is None else of_value[:, None, :]
    if causal:
        valid = valid & (np.arange(rows)[:, None] >= np.arange(keys))
    scores = scores.astype(np.float32) - np.float32(1e9) * ~np.broadcast_to(valid, scores.shape)
    weights = np.exp(scores - scores.max(2, keepdims=True).astype(np.float64))
    weights /= weights.sum(2, keepdims=True)
    out = weights @ value
    return out * (1 if of_query is None else of_query[:, :, None]), weights


LAYERS: list[tuple[Any, dict[str, Any]]] = [
    (fl.Attention(), {}),
    (fl.Attention(use_scale=True), {"scale": 0.7}),
    (fl.Attention(score_mode="concat"), {"concat_score_weight": -1.3}),
    (fl.Attention(use_scale=True, score_mode="concat"), {"scale": 0.4, "concat_score_weight": 0.9}),
    (fl.AdditiveAttention(6, use_scale=False), {}),
    (fl.AdditiveAttention(6), {"scale": numbers(6)}),
]


def scored(layer: Any, weights: dict[str, Any], query: np.ndarray, key: np.ndarray) -> np.ndarray:
    q, k = query.astype(np.float64), key.astype(np.float64)
    if isinstance(layer, fl.Attention) and layer.score_mode == "dot":
        return q @ k.swapaxes(1, 2) * weights.get("scale", 1)
    sums = q[:, :, None] + k[:, None]
    if isinstance(layer, fl.AdditiveAttention):
        return (weights.get("scale", 1) * np.tanh(sums)).sum(3)
    return weights["concat_score_weight"] * np.tanh(weights.get("scale", 1) * sums).sum(3)


@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_keras_formula(number: int, variant: str) -> None:
    layer, weights = LAYERS[number]
    layer.load_keras([np.asarray(v) for v in weights.values()])
    query, value, key = numbers(3, 4, 6), numbers(3, 5, 2), numbers(3, 5, 6)
    of_query = np.arange(4) < np.array([[4], [2], [1]])
    of_value = np.arange(5) < np.array([[5], [3], [0]])  # the last sees nothing: uniform weights
    for masked_q, masked_v, causal in product((None, of_query), (None, of_value), (False, True)):
        want, wanted = keras(scored(layer, weights, query, key), value, masked_q, masked_v, causal)
        out, got, scores = layer([query, value, key], [masked_q, masked_v], True, causal, return_scores=True)
        np.testing.assert_allclose(out, want, rtol=0, atol=3e-6)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-6)
        assert scores.shape == got.shape
        np.testing.assert_array_equal(layer([query, value, key], [masked_q, masked_v], use_causal_mask=causal), out)
    with_value = keras(scored(layer, weights, query, key), key, None, None, False)[0]
    np.testing.assert_allclose(layer([query, key]), with_value, rtol=0, atol=3e-6)


@pytest.mark.parametrize("number", range(len(LAYERS)))
def test_compiled(number: int) -> None:
    layer, weights = LAYERS[number]
    layer.load_keras([np.asarray(v) for v in weights.values()])
    given = [numbers(3, 4, 6), numbers(3, 5, 6), np.arange(5) < np.array([[5], [3], [0]])]

    def function(query: Any, value: Any, valid: Any) -> Any:
        return layer([query, value], [None, valid], True, True)

    inputs = (fl.graph.Input(f"x{i}", x.shape, x.dtype) for i, x in enumerate(given))
    model = fl.compile(function, *inputs, require_native=True)
    for a, b in zip(model(*given), layer([given[0], given[1]], [None, given[2]], True, True), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


def test_bahdanau(variant: str) -> None:
    layer = fl.BahdanauAttention(4, 6, 7, bias=True)
    shapes = layer.tensor_shapes()
    layer.load_state_dict({name: numbers(*shape) for name, shape in shapes.items()})
    t, query, value = layer.state_dict(), numbers(2, 3, 4), numbers(2, 5, 6)
    q = query @ t["query_layer.weight"].T + t["query_layer.bias"]
    k = value @ t["value_layer.weight"].T + t["value_layer.bias"]
    scores = (np.tanh(q[:, :, None].astype(np.float64) + k[:, None]) * t["v"]).sum(3)
    scores[1, :, 2:] = -np.inf
    weights = np.exp(scores - scores.max(2, keepdims=True))
    weights /= weights.sum(2, keepdims=True)
    spoilt = value.copy()
    spoilt[1, 2:] = np.nan  # what is after the end has no influence
    for given, keys in ((value, None), (value, layer.keys(value)), (spoilt, None)):
        context, got = layer(query, given, np.array([5, 2]), keys=keys)
        np.testing.assert_allclose(got, weights, rtol=0, atol=3e-6)
        np.testing.assert_allclose(context, weights @ value, rtol=0, atol=5e-6)
    assert (layer(query, value, np.array([0, 5]))[0][0] == 0).all()


def test_hard_attention(variant: str) -> None:
    query, key, value = numbers(2, 3, 4), numbers(2, 50, 4), numbers(2, 50, 5)
    hard = fl.functional.hard_attention
    weights = fl.functional.scaled_dot_product_attention(query, key, value, need_weights=True)[1]
    out, choice = hard(query, key, value)
    np.testing.assert_array_equal(choice.argmax(2), weights.argmax(2))
    np.testing.assert_array_equal(out, np.take_along_axis(value, weights.argmax(2)[:, :, None], 1))
    assert (choice.sum(2) == 1).all()
    a, b, c = (hard(query, key, value, mode="sample", seed=seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    out, choice = hard(query, key, value, lengths=[0, 2], mode="sample", seed=0)
    assert (out[0] == 0).all() and (choice[0] == 0).all() and (choice[1, :, 2:] == 0).all() and (choice[1].sum(1) == 1).all()


def test_samples_follow_the_weights() -> None:
    """10,000 draws: the share of a key with probability p is off by more than 5 sqrt(p (1 - p) / n) once in a million times."""
    query, key = np.zeros((1, 10000, 1)), np.zeros((1, 4, 1))
    mask = np.log(np.array([0.1, 0.2, 0.3, 0.4]))
    choice = fl.functional.hard_attention(query, key, np.zeros((1, 4, 1)), mask, mode="sample", seed=7)[1]
    p = np.exp(mask)
    assert (np.abs(choice[0].mean(0) - p) < 5 * np.sqrt(p * (1 - p) / 10000)).all()


def test_errors() -> None:
    f, x = fl.functional, numbers(2, 3, 4)
    for call, text in (
        (lambda: fl.Attention(score_mode="sum"), "score_mode"),
        (lambda: fl.Attention()([x, x], [None, np.ones((2, 3, 1), bool)]), "mask"),
        (lambda: fl.Attention()([x[0], x[0]]), "expected"),
        (lambda: f.additive_attention(x, numbers(2, 3, 5), x), "units"),
        (lambda: f.additive_attention(x, x, numbers(2, 4, 4)), "a value for every key"),
        (lambda: f.additive_attention(x, x, x, scale=np.ones(3)), "scale"),
        (lambda: f.additive_attention(x, x, x, np.ones((5, 3)), np.ones((5, 4))), "weight_q"),
        (lambda: f.additive_attention(x, x, x, attn_mask=np.ones((2, 3, 4), bool)), "attn_mask"),
        (lambda: f.additive_attention(x, x, x, lengths=[4, 1]), "lengths"),
        (lambda: f.hard_attention(x, x, x, mode="soft"), "mode"),
        (lambda: f.hard_attention(x, x, x, mode="sample"), "seed"),
        (lambda: f.hard_attention(x, numbers(2, 3, 5), x), "one width"),
    ):
        with pytest.raises(fl.ArgumentError, match=text) as caught:
            call()
        assert (caught.type is fl.ShapeError) == (text not in {"lengths", "mode", "seed", "score_mode"}), text
    with pytest.raises(fl.DTypeError, match="inputs"):
        fl.Attention()(x)
    with pytest.raises(fl.DTypeError, match="mask"):
        fl.Attention()([x, x], np.ones((2, 3), bool))
