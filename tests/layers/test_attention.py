"""Attention layers: torch's numbers, masks, caches, other names of weights, errors."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from ..each import each
from ..goldens.transformer_cases import CASES, Case, arrays, made

GOLDEN = Path(__file__).parent.parent / "goldens" / "attention_layers.npz"
# Sums have at most 12 terms, stacks at most three layers, each of which normalizes: float32 stays well within this.
TOLERANCE = 1e-5


@cache
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as file:
        return dict(file)


def flat(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [a for part in result if part is not None for a in flat(part)]
    return [result]


def numbers(*shape: int) -> np.ndarray:
    return arrays(str(shape), shape)[0]


def loaded(layer: Any) -> Any:
    shapes = layer.tensor_shapes()
    layer.load_state_dict(dict(zip(shapes, arrays(repr(layer), *shapes.values()), strict=True)))
    return layer


def prepared(case: Case) -> tuple[fl.Layer, list[np.ndarray], dict[str, Any]]:
    layer = getattr(fl, case.name)(*case.args, **case.kwargs)
    shapes = layer.tensor_shapes()
    inputs = arrays(case.label, *case.shapes, *shapes.values())
    x, weights = inputs[: len(case.shapes)], inputs[len(case.shapes) :]
    layer.load_state_dict(dict(zip(shapes, weights, strict=True)))
    return layer, x, {name: made(value) for name, value in case.call.items()}


@each("case", CASES, ids=lambda case: case.label)
def test_layers_give_what_torch_gives(case: Case, variant: str) -> None:
    layer, x, keywords = prepared(case)
    for _ in range(2):  # the second time on packed weights
        found = flat(layer(*x, **keywords))
        assert f"{case.label}#{len(found)}" not in golden()
        for i, got in enumerate(found):
            want = golden()[f"{case.label}#{i}"]
            assert got.dtype == np.float32 and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_compiled_layers_give_what_layers_give(case: Case) -> None:
    """Masks are inputs as well."""
    layer, x, keywords = prepared(case)
    masks = {name: value for name, value in keywords.items() if isinstance(value, np.ndarray)}
    plain = {name: value for name, value in keywords.items() if name not in masks}

    def function(*symbols: Any) -> Any:
        result = layer(*symbols[: len(x)], **dict(zip(masks, symbols[len(x) :], strict=True)), **plain)
        return tuple(flat(result))

    given = [*x, *masks.values()]
    model = fl.compile(function, *(fl.graph.Input(f"x{i}", a.shape, a.dtype) for i, a in enumerate(given)), require_native=True)
    got = model.run({f"x{i}": a for i, a in enumerate(given)})
    for a, b in zip(got.values(), flat(layer(*x, **keywords)), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("kwargs", [{}, {"num_kv_heads": 2}, {"head_dim": 3, "v_head_dim": 5, "bias": False}], ids=str)
def test_token_by_token_with_a_cache(kwargs: dict[str, Any], variant: str) -> None:
    layer = loaded(fl.MultiheadAttention(8, 4, batch_first=True, **kwargs))
    x = numbers(2, 9, 8)
    whole, _ = layer(x, x, x, is_causal=True, need_weights=False)
    cache, parts = layer.empty_cache(2), []
    for start, end in ((0, 1), (1, 2), (2, 6), (6, 9)):
        part = x[:, start:end]
        out, weights, cache = layer(part, part, part, is_causal=True, cache=cache)
        assert weights.shape == (2, end - start, end)
        parts.append(out)
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("norm_first", "batch_first"), list(product((False, True), repeat=2)))
def test_decoding_with_a_cache(norm_first: bool, batch_first: bool, variant: str) -> None:
    layer = fl.TransformerDecoderLayer(8, 2, 12, norm_first=norm_first, batch_first=batch_first)
    net = loaded(fl.TransformerDecoder(layer, 2, fl.LayerNorm(8)))
    encoder = loaded(fl.TransformerEncoder(fl.TransformerEncoderLayer(8, 2, 12, batch_first=batch_first), 2))
    axis = 1 if batch_first else 0
    tgt, memory = (numbers(*((2, n, 8) if batch_first else (n, 2, 8))) for n in (6, 5))
    lengths = np.array([5, 3])
    whole = net(tgt, memory, tgt_is_causal=True, memory_lengths=lengths)
    coded = encoder(tgt, is_causal=True)
    cache, own, parts, coding = net.start(memory), encoder.empty_cache(2), [], []
    for i in range(6):
        token = np.take(tgt, [i], axis)
        out, cache = net(token, memory, tgt_is_causal=True, memory_lengths=lengths, cache=cache)
        code, own = encoder(token, is_causal=True, cache=own)
        parts.append(out)
        coding.append(code)
    np.testing.assert_allclose(np.concatenate(parts, axis), whole, rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.concatenate(coding, axis), coded, rtol=0, atol=1e-5)
    mask = fl.Transformer.generate_square_subsequent_mask(6)
    np.testing.assert_allclose(encoder(tgt, mask), coded, rtol=0, atol=1e-6)


def test_padding_never_changes_what_is_valid(variant: str) -> None:
    """Lengths, boolean masks and numbers say the same; NaN in the padding does no harm with lengths."""
    layer = loaded(fl.TransformerEncoderLayer(8, 2, 12, batch_first=True))
    x, lengths = numbers(3, 7, 8), np.array([7, 1, 4])
    behind = np.arange(7) >= lengths[:, None]
    want = layer(x, lengths=lengths)
    spoilt = np.where(behind[:, :, None], np.float32(np.nan), x)
    for got in (
        layer(x, src_key_padding_mask=behind),
        layer(x, src_key_padding_mask=np.where(behind, -np.inf, 0)),
        layer(spoilt, lengths=lengths),
        *(np.concatenate([layer(x[i : i + 1, :n]), x[i : i + 1, n:]], 1).repeat(3, 0) for i, n in ((0, 7),)),
    ):
        np.testing.assert_allclose(got[0], want[0], rtol=0, atol=1e-6)
        if got.shape == want.shape and not np.array_equal(got[1], got[0]):
            np.testing.assert_allclose(got[~behind], want[~behind], rtol=0, atol=1e-6)


def test_grouped_heads_are_repeated_heads(variant: str) -> None:
    layer = loaded(fl.MultiheadAttention(12, 6, num_kv_heads=2, batch_first=True))
    tensors = layer.state_dict()
    each = {name: tensors[name].reshape(2, 1, 2, 12).repeat(3, 1).reshape(12, 12) for name in ("k_proj_weight", "v_proj_weight")}
    bias = tensors["in_proj_bias"]
    parts = [bias[:12], *(bias[i : i + 4].reshape(2, 1, 2).repeat(3, 1).reshape(-1) for i in (12, 16))]
    full = fl.MultiheadAttention(12, 6, batch_first=True)
    weights = np.concatenate([tensors["q_proj_weight"], *each.values()])
    full.load_state_dict(
        {
            **{n: tensors[n] for n in ("out_proj.weight", "out_proj.bias")},
            "in_proj_weight": weights,
            "in_proj_bias": np.concatenate(parts),
        }
    )
    x = numbers(2, 5, 12)
    for a, b in zip(layer(x, x, x), full(x, x, x), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


def test_a_query_that_sees_nothing(variant: str) -> None:
    layer = loaded(fl.MultiheadAttention(8, 2, batch_first=True))
    x = numbers(1, 3, 8)
    out, weights = layer(x, x, x, attn_mask=np.array([[False] * 3, [True] * 3, [False] * 3]))
    np.testing.assert_array_equal(weights[0, 1], 0)
    np.testing.assert_allclose(out[0, 1], layer.state_dict()["out_proj.bias"], rtol=0, atol=1e-7)


def test_other_names_of_the_same_weights() -> None:
    layer = loaded(fl.MultiheadAttention(8, 2))
    tensors = layer.state_dict()
    q, k, v = np.split(tensors["in_proj_weight"], 3)
    a, b, c = np.split(tensors["in_proj_bias"], 3)
    back = {"weight": tensors["out_proj.weight"], "bias": tensors["out_proj.bias"]}
    for names, output in (
        (("query", "key", "value"), "dense"),
        (("self.query", "self.key", "self.value"), "output.dense"),
        (("q_proj", "k_proj", "v_proj"), "o_proj"),
        (("q_proj", "k_proj", "v_proj"), "out_proj"),
    ):
        given = {f"{n}.weight": w for n, w in zip(names, (q, k, v), strict=True)} | {
            f"{n}.bias": w for n, w in zip(names, (a, b, c), strict=True)
        }
        other = fl.MultiheadAttention(8, 2)
        other.load_state_dict(given | {f"{output}.{n}": w for n, w in back.items()})
        for name, array in other.state_dict().items():
            np.testing.assert_array_equal(array, tensors[name])
    keras = fl.MultiheadAttention(8, 2)
    keras.load_keras(
        [x for w, bias in ((q, a), (k, b), (v, c)) for x in (w.T.reshape(8, 2, 4), bias.reshape(2, 4))]
        + [back["weight"].T.reshape(2, 4, 8), back["bias"]]
    )
    for name, array in keras.state_dict().items():
        np.testing.assert_array_equal(array, tensors[name])


def test_bert_names_of_an_encoder() -> None:
    net = loaded(fl.TransformerEncoder(fl.TransformerEncoderLayer(8, 2, 12, activation="gelu"), 1))
    t = {name.removeprefix("layers.0."): array for name, array in net.state_dict().items()}
    given = {}
    for ending in ("weight", "bias"):
        for part, array in zip(("query", "key", "value"), np.split(t[f"self_attn.in_proj_{ending}"], 3), strict=True):
            given[f"layer.0.attention.self.{part}.{ending}"] = array
        given[f"layer.0.attention.output.dense.{ending}"] = t[f"self_attn.out_proj.{ending}"]
        for ours, theirs in (
            ("norm1", "attention.output.LayerNorm"),
            ("linear1", "intermediate.dense"),
            ("linear2", "output.dense"),
            ("norm2", "output.LayerNorm"),
        ):
            given[f"layer.0.{theirs}.{ending}"] = t[f"{ours}.{ending}"]
    other = fl.TransformerEncoder(fl.TransformerEncoderLayer(8, 2, 12, activation="gelu"), 1)
    other.load_state_dict(given)
    x = numbers(3, 2, 8)
    np.testing.assert_array_equal(other(x), net(x))


def test_layers_of_a_stack_have_weights_of_their_own() -> None:
    layer = loaded(fl.TransformerEncoderLayer(8, 2, 12))
    net = loaded(fl.TransformerEncoder(layer, 2))
    tensors = net.state_dict()
    assert not np.array_equal(tensors["layers.0.linear1.weight"], tensors["layers.1.linear1.weight"])
    assert not np.array_equal(tensors["layers.0.linear1.weight"], layer.state_dict()["linear1.weight"])


@pytest.mark.parametrize("activation", ["relu", "gelu", "swiglu", "geglu", "reglu", "glu"])
def test_feed_forward(activation: str, variant: str) -> None:
    layer = loaded(fl.FeedForward(6, 10, activation))
    t, x = layer.state_dict(), numbers(3, 6)
    first = x @ t["linear1.weight"].T + t["linear1.bias"]
    name = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu", "glu": "sigmoid"}.get(activation, activation)
    function = getattr(fl.functional, name)
    inner = function(first) if name == activation else function(x @ t["gate.weight"].T + t["gate.bias"]) * first
    np.testing.assert_allclose(layer(x), inner @ t["linear2.weight"].T + t["linear2.bias"], rtol=0, atol=1e-5)


def test_threads(variant: str) -> None:
    layer = loaded(fl.TransformerEncoderLayer(64, 4, 128, batch_first=True))
    x, before, found = numbers(2, 150, 64), fl.get_num_threads(), []
    try:
        for threads in (1, 2):
            fl.set_num_threads(threads)
            found.append(layer(x, is_causal=True))
    finally:
        fl.set_num_threads(before)
    np.testing.assert_array_equal(*found)


def test_errors() -> None:
    layer = loaded(fl.MultiheadAttention(8, 2, batch_first=True))
    x = numbers(2, 5, 8)
    wrong: list[tuple[Any, str]] = [
        (lambda: fl.MultiheadAttention(8, 3), "multiple"),
        (lambda: fl.MultiheadAttention(8, 4, num_kv_heads=3), "multiple"),
        (lambda: layer(numbers(2, 5, 7), x, x), r"query has shape \(2, 5, 7\)"),
        (lambda: layer(x, x, x, key_padding_mask=np.zeros((3, 5), bool)), "key_padding_mask has shape"),
        (lambda: layer(x, x, x, attn_mask=np.zeros((3, 5, 5), bool)), "attn_mask has shape"),
        (lambda: layer(x, x, x, attn_mask=np.zeros((4, 5), bool)), "attn_mask has shape"),
        (lambda: layer(x, x, x, lengths=[1, 6]), "lengths"),
        (lambda: layer(x, x, x, lengths=[1]), "lengths has shape"),
        (lambda: layer(x, x, x, cache=layer.empty_cache(3)), "cache has keys"),
        (lambda: layer(x, numbers(1, 5, 8), numbers(1, 5, 8)), "batches"),
        (lambda: fl.TransformerEncoder(fl.TransformerEncoderLayer(8, 2), -1), "num_layers"),
        (lambda: fl.FeedForward(3)(numbers(2, 4)), "FeedForward: x has shape"),
    ]
    for call, text in wrong:
        with pytest.raises(fl.ArgumentError, match=text) as caught:
            call()
        assert (caught.type is fl.ShapeError) == (text not in {"multiple", "lengths", "num_layers"}), text
    for call in (lambda: fl.MultiheadAttention(8, 2, add_bias_kv=True), lambda: fl.MultiheadAttention(8, 2, add_zero_attn=True)):
        with pytest.raises(fl.UnsupportedError):
            call()
    with pytest.raises(fl.DTypeError):
        fl.TransformerEncoder(3, 2)  # type: ignore[arg-type]
    with pytest.raises(fl.WeightsError, match="called without weights"):
        fl.MultiheadAttention(8, 2)(x, x, x)


def test_errors_of_the_function() -> None:
    function = fl.functional.scaled_dot_product_attention
    q, k, v = numbers(2, 4, 5, 8), numbers(2, 2, 7, 8), numbers(2, 2, 7, 3)
    for change, text in (
        ({}, "enable_gqa"),
        ({"key": numbers(2, 3, 7, 8), "value": numbers(2, 3, 7, 3), "enable_gqa": True}, "multiple"),
        ({"key": numbers(2, 4, 7, 9), "value": numbers(2, 4, 7, 3)}, "one width"),
        ({"enable_gqa": True, "attn_mask": np.ones((5, 8), bool)}, "attn_mask"),
        ({"enable_gqa": True, "lengths": [1, 2, 3]}, "lengths"),
        ({"enable_gqa": True, "lengths": [1, 8]}, r"0 \.\. 7"),
        ({"num_heads": 2}, "with num_heads"),
        ({"num_kv_heads": 2}, "without num_heads"),
        ({"query": numbers(8), "key": numbers(8), "value": numbers(8)}, "two to four axes"),
    ):
        with pytest.raises(fl.ArgumentError, match=text) as caught:
            function(**{"query": q, "key": k, "value": v, **change})  # type: ignore[arg-type]
        assert (caught.type is fl.ShapeError) == (text not in {r"0 \.\. 7", "without num_heads"}), text
    with pytest.raises(fl.DTypeError, match="need_weights"):
        function(q, q, q, need_weights="all")
    with pytest.raises(fl.DTypeError, match="lengths"):
        function(q, q, q, lengths=np.ones(2))


def test_a_compiled_step_with_a_cache_of_any_length() -> None:
    layer = loaded(fl.MultiheadAttention(8, 2, batch_first=True))

    def step(x: Any, keys: Any, values: Any) -> Any:
        out, _, cache = layer(x, x, x, need_weights=False, is_causal=True, cache=(keys, values))
        return (out, *cache)

    shapes = {"x": (1, "t", 8), "keys": (1, "s", 8), "values": (1, "s", 8)}
    model = fl.compile(step, *(fl.graph.Input(name, shape) for name, shape in shapes.items()), require_native=True)
    x, (keys, values), parts = numbers(1, 7, 8), layer.empty_cache(1), []
    for start, end in ((0, 1), (1, 4), (4, 5), (5, 7)):
        out, keys, values = model(x[:, start:end], keys, values)
        parts.append(out)
    whole, _ = layer(x, x, x, need_weights=False, is_causal=True)
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, rtol=0, atol=1e-6)


def test_a_compiled_encoder_of_any_size_with_lengths() -> None:
    layer = loaded(fl.TransformerEncoderLayer(8, 2, 12, batch_first=True))
    inputs = fl.graph.Input("x", ("n", "t", 8)), fl.graph.Input("lengths", ("n",), np.int64)
    model = fl.compile(lambda x, lengths: layer(x, lengths=lengths), *inputs, require_native=True)
    for n, t in ((1, 3), (3, 20), (2, 1)):
        x, lengths = numbers(n, t, 8), np.arange(n) % t + 1
        np.testing.assert_allclose(model(x, lengths), layer(x, lengths=lengths), rtol=0, atol=1e-6)
