"""Attention: encoders' and decoders' shapes."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, load, normal, np


def _rng() -> np.random.Generator:
    return np.random.default_rng(1)


def sdpa(batch: int, heads: int, rows: int, keys: int, d: int, causal: bool = False, groups: int = 0) -> Pair:
    rng = _rng()
    groups = groups or heads
    q, k, v = normal(rng, batch, heads, rows, d), normal(rng, batch, groups, keys, d), normal(rng, batch, groups, keys, d)
    gqa = groups != heads

    def theirs(torch: Any) -> Any:
        tq, tk, tv = (torch.tensor(x) for x in (q, k, v))
        function = torch.nn.functional.scaled_dot_product_attention
        return lambda: function(tq, tk, tv, is_causal=causal, enable_gqa=gqa)

    function = fl.functional.scaled_dot_product_attention
    flops = 4.0 * batch * heads * rows * keys * d / (2 if causal else 1)
    return Pair(lambda: function(q, k, v, is_causal=causal, enable_gqa=gqa), theirs, flops)


def sdpa_mask(batch: int, heads: int, size: int, d: int) -> Pair:
    rng = _rng()
    q, k, v = (normal(rng, batch, heads, size, d) for _ in range(3))
    mask = np.arange(size) < np.linspace(size // 2, size, batch).astype(int)[:, None, None, None]

    def theirs(torch: Any) -> Any:
        tq, tk, tv, tm = (torch.tensor(x) for x in (q, k, v, mask))
        return lambda: torch.nn.functional.scaled_dot_product_attention(tq, tk, tv, tm)

    return Pair(lambda: fl.functional.scaled_dot_product_attention(q, k, v, mask), theirs, 4.0 * batch * heads * size * size * d)


def additive(batch: int, rows: int, keys: int, units: int) -> Pair:
    rng = _rng()
    q, k, scale = normal(rng, batch, rows, units), normal(rng, batch, keys, units), normal(rng, units, fan_in=units)

    def theirs(torch: Any) -> Any:
        tq, tk, ts = (torch.tensor(x) for x in (q, k, scale))

        def run() -> Any:
            scores = (torch.tanh(tq[:, :, None] + tk[:, None]) * ts).sum(3)
            return torch.softmax(scores, 2) @ tk

        return run

    return Pair(lambda: fl.functional.additive_attention(q, k, k, None, None, scale), theirs)


def keras(layer: Any) -> Pair:
    q, v = normal(_rng(), 4, 20, 64), normal(_rng(), 4, 30, 64)
    load(layer)

    def theirs(torch: Any) -> Any:
        tq, tv = torch.tensor(q), torch.tensor(v)
        scale = {name: torch.tensor(array) for name, array in layer.state_dict().items()}.get("scale", 1)

        def run() -> Any:
            if isinstance(layer, fl.Attention):
                scores = tq @ tv.transpose(1, 2)
            else:
                scores = (torch.tanh(tq[:, :, None] + tv[:, None]) * scale).sum(3)
            return torch.softmax(scores, 2) @ tv

        return run

    return Pair(lambda: layer([q, v]), theirs)


def bahdanau() -> Pair:
    """A decoder's step: the encoder's outputs have been projected before."""
    query, value = normal(_rng(), 8, 1, 256), normal(_rng(), 8, 40, 256)
    layer = fl.BahdanauAttention(256, 256, 128)
    state = load(layer, 256)
    keys = layer.keys(value)

    def theirs(torch: Any) -> Any:
        tq, tv, tk = (torch.tensor(x) for x in (query, value, keys))
        weight, v = torch.tensor(state["query_layer.weight"]), torch.tensor(state["v"])

        def run() -> Any:
            scores = (torch.tanh(torch.nn.functional.linear(tq, weight)[:, :, None] + tk[:, None]) * v).sum(3)
            return torch.softmax(scores, 2) @ tv

        return run

    return Pair(lambda: layer(query, value, keys=keys)[0], theirs)


def hard() -> Pair:
    rng = _rng()
    q, k, v = normal(rng, 4, 20, 64), normal(rng, 4, 30, 64), normal(rng, 4, 30, 64)
    return Pair(lambda: fl.functional.hard_attention(q, k, v)[0])


_SDPA = ("scaled_dot_product_attention",)

ROWS = [
    Row(_SDPA, "B1 H12 S128 D64", partial(sdpa, 1, 12, 128, 128, 64)),
    Row(_SDPA, "B1 H12 S512 D64", partial(sdpa, 1, 12, 512, 512, 64)),
    Row(_SDPA, "B1 H12 S512 D64 causal", partial(sdpa, 1, 12, 512, 512, 64, True)),
    Row(_SDPA, "B1 H8 S2048 D64", partial(sdpa, 1, 8, 2048, 2048, 64)),
    Row(_SDPA, "B8 H4 S32 D32", partial(sdpa, 8, 4, 32, 32, 32)),
    Row(_SDPA, "B1 H8 one query, 512 keys D64", partial(sdpa, 1, 8, 1, 512, 64)),
    Row(_SDPA, "B1 H32 over 8, S128 D64 causal", partial(sdpa, 1, 32, 128, 128, 64, True, 8)),
    Row(_SDPA, "B4 H12 S128 D64, boolean mask", partial(sdpa_mask, 4, 12, 128, 64)),
    Row(("additive_attention",), "B1 one query, 50 keys U128", partial(additive, 1, 1, 50, 128)),
    Row(("additive_attention",), "B4 Q64 K64 U128", partial(additive, 4, 64, 64, 128)),
    Row(("BahdanauAttention",), "B8 a step over 40, 256/128", bahdanau),
    Row(("Attention",), "B4 Q20 K30 D64", partial(keras, fl.Attention())),
    Row(("AdditiveAttention",), "B4 Q20 K30 D64", partial(keras, fl.AdditiveAttention(64))),
    Row(("hard_attention",), "B4 Q20 K30 D64", hard),
]
