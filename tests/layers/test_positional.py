"""Positional encodings: their formulas, offsets, caches of multi-head attention, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fastlayers as fl


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def test_sinusoidal() -> None:
    table = fl.functional.sinusoidal_encoding(50, 6)
    for p, i in ((0, 0), (1, 0), (7, 1), (49, 2)):
        angle = p / 10000 ** (2 * i / 6)
        np.testing.assert_allclose(table[p, 2 * i : 2 * i + 2], [math.sin(angle), math.cos(angle)], atol=1e-7)
    assert fl.functional.sinusoidal_encoding(0, 6).shape == (0, 6) and fl.functional.sinusoidal_encoding(3, 0).shape == (3, 0)


@pytest.mark.parametrize("batch_first", [False, True])
def test_added_positions(batch_first: bool, variant: str) -> None:
    x = numbers(2, 5, 6) if batch_first else numbers(5, 2, 6)
    table = fl.functional.sinusoidal_encoding(1600, 6)
    learnt = fl.LearnedPositionalEncoding(1600, 6, batch_first)
    learnt.load_keras([table])
    for layer in (fl.PositionalEncoding(6, batch_first=batch_first), learnt):
        for offset in (0, 3, 510, 1595):
            rows = table[offset : offset + 5]
            np.testing.assert_array_equal(layer(x, offset), x + (rows if batch_first else rows[:, None]))
        np.testing.assert_array_equal(layer(x[0]), x[0] + table[: len(x[0])])
    with pytest.raises(fl.ShapeError, match="below 1600"):
        learnt(x, 1596)


@pytest.mark.parametrize(("interleaved", "dim"), [(False, 8), (True, 8), (False, 4), (True, 6)])
def test_rotary(interleaved: bool, dim: int, variant: str) -> None:
    layer, x = fl.RotaryEmbedding(dim, base=100.0, interleaved=interleaved), numbers(2, 3, 5, 8)
    angles = np.arange(5)[:, None] * 100.0 ** (-2 * np.arange(dim // 2) / dim)
    turned = x.astype(np.float64)
    for i in range(dim // 2):
        p, q = (2 * i, 2 * i + 1) if interleaved else (i, i + dim // 2)
        number = (x[..., p] + 1j * x[..., q]) * np.exp(1j * angles[:, i])
        turned[..., p], turned[..., q] = number.real, number.imag
    np.testing.assert_allclose(layer(x), turned, rtol=0, atol=1e-6)
    beside = np.ascontiguousarray(x.swapaxes(1, 2)).reshape(2, 5, 24)
    got = layer(beside, num_heads=3).reshape(2, 5, 3, 8).swapaxes(1, 2)
    np.testing.assert_array_equal(got, layer(x))
    ids = np.array([[4, 0, 1, 600, 2], [0, 1, 2, 3, 4]])
    moved = layer(x, position_ids=ids)
    np.testing.assert_array_equal(moved[1], layer(x)[1])
    np.testing.assert_array_equal(moved[0, :, 3], layer(x[:1, :, 3:4], 600)[0, :, 0])


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_rotary_attention_with_a_cache(groups: int, variant: str) -> None:
    layer = fl.MultiheadAttention(16, 4, batch_first=True, num_kv_heads=groups, rotary=fl.RotaryEmbedding(4))
    layer.load_state_dict({name: 0.5 * numbers(*shape) for name, shape in layer.tensor_shapes().items()})
    x = numbers(2, 7, 16)
    whole, _ = layer(x, x, x, is_causal=True)
    cache, parts = layer.empty_cache(2), []
    for i in range(7):
        token = x[:, i : i + 1]
        out, _, cache = layer(token, token, token, need_weights=False, is_causal=True, cache=cache)
        parts.append(out)
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, rtol=0, atol=1e-6)
    plain = fl.MultiheadAttention(16, 4, batch_first=True, num_kv_heads=groups)
    plain.load_state_dict(layer.state_dict())
    assert np.abs(plain(x, x, x, is_causal=True)[0] - whole).max() > 1e-3


def test_errors() -> None:
    f, x, table = fl.functional, numbers(1, 2, 3, 8), np.ones((3, 4))
    for call, text in (
        (lambda: f.sinusoidal_encoding(3, 5), "even"),
        (lambda: f.rotary_tables(-1, 4), "length"),
        (lambda: f.rotary_embedding(x, table, np.ones((3, 5))), "sin"),
        (lambda: f.rotary_embedding(x, np.ones((2, 4)), np.ones((2, 4))), "cos"),
        (lambda: f.rotary_embedding(x[0], table, table), "num_heads"),
        (lambda: f.rotary_embedding(x[0], table, table, num_heads=3), "multiple"),
        (lambda: f.rotary_embedding(x, table, table, rotary_dim=10), "even number"),
        (lambda: f.rotary_embedding(x, table, table, rotary_dim=6), "angles"),
        (lambda: f.rotary_embedding(x, table, table, [[0, 1, 3]]), r"expected 0 \.\. 2"),
        (lambda: f.rotary_embedding(x, table, table, [[0, 1]]), "position_ids"),
        (lambda: fl.PositionalEncoding(4)(numbers(2, 3, 5)), "x has shape"),
        (lambda: fl.PositionalEncoding(5), "even"),
    ):
        with pytest.raises(fl.ArgumentError, match=text) as caught:
            call()
        assert (caught.type is fl.ShapeError) == (text not in {"even", "length", r"expected 0 \.\. 2"}), text


def test_tables_beyond_all_memory_are_refused() -> None:
    with pytest.raises(fl.LimitError, match="sinusoidal_encoding: no memory for 1000000000000 positions"):
        fl.functional.sinusoidal_encoding(10**12, 512)
