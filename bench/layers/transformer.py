"""Multi-head attention and transformer layers: BERT's sizes, steps of a decoder."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, load, normal, np


def _like(torch: Any, net: Any, state: dict[str, np.ndarray]) -> Any:
    net.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    return net.eval()


def _rng() -> np.random.Generator:
    return np.random.default_rng(1)


def multihead(batch: int, steps: int, width: int, heads: int, need_weights: bool) -> Pair:
    x = normal(_rng(), batch, steps, width)
    layer = fl.MultiheadAttention(width, heads, batch_first=True)
    state = load(layer, width)

    def theirs(torch: Any) -> Any:
        net, tx = _like(torch, torch.nn.MultiheadAttention(width, heads, batch_first=True), state), torch.tensor(x)
        return lambda: net(tx, tx, tx, need_weights=need_weights)[0]

    flops = 2.0 * batch * steps * (4 * width * width + 2 * steps * width)
    return Pair(lambda: layer(x, x, x, need_weights=need_weights)[0], theirs, flops)


def encoder(batch: int, steps: int, width: int, heads: int, inner: int, layers: int = 1, **kwargs: Any) -> Pair:
    x = normal(_rng(), batch, steps, width)
    layer: Any = fl.TransformerEncoderLayer(width, heads, inner, batch_first=True, **kwargs)
    if layers > 1:
        layer = fl.TransformerEncoder(layer, layers)
    state = load(layer, width)

    def theirs(torch: Any) -> Any:
        net = torch.nn.TransformerEncoderLayer(width, heads, inner, batch_first=True, **kwargs)
        if layers > 1:
            net = torch.nn.TransformerEncoder(net, layers)
        net, tx = _like(torch, net, state), torch.tensor(x)
        return lambda: net(tx)

    flops = 2.0 * layers * batch * steps * (4 * width * width + 2 * steps * width + 2 * width * inner)
    return Pair(lambda: layer(x), theirs, flops)


def decoder(steps: int, memory: int, width: int, heads: int, inner: int, layers: int = 1) -> Pair:
    x, m = normal(_rng(), 1, steps, width), normal(_rng(), 1, memory, width)
    layer: Any = fl.TransformerDecoderLayer(width, heads, inner, batch_first=True)
    if layers > 1:
        layer = fl.TransformerDecoder(layer, layers)
    state = load(layer, width)

    def theirs(torch: Any) -> Any:
        net = torch.nn.TransformerDecoderLayer(width, heads, inner, batch_first=True)
        if layers > 1:
            net = torch.nn.TransformerDecoder(net, layers)
        net, tx, tm = _like(torch, net, state), torch.tensor(x), torch.tensor(m)
        mask = torch.nn.Transformer.generate_square_subsequent_mask(steps)
        return lambda: net(tx, tm, tgt_mask=mask, tgt_is_causal=True)

    return Pair(lambda: layer(x, m, tgt_is_causal=True), theirs)


def step(before: int, width: int, heads: int, inner: int) -> Pair:
    """One token of an encoder layer with a cache; torch, which has none, computes it from the same keys and values."""
    x, old = normal(_rng(), 1, 1, width), tuple(normal(_rng(), 1, before, width) for _ in range(2))
    layer = fl.TransformerEncoderLayer(width, heads, inner, batch_first=True)
    state = load(layer, width)

    def theirs(torch: Any) -> Any:
        net = _like(torch, torch.nn.TransformerEncoderLayer(width, heads, inner, batch_first=True), state)
        tx, (tk, tv) = torch.tensor(x), (torch.tensor(a) for a in old)
        attn, function = net.self_attn, torch.nn.functional

        def run() -> Any:
            q, k, v = function.linear(tx, attn.in_proj_weight, attn.in_proj_bias).chunk(3, -1)
            k, v = torch.cat([tk, k], 1), torch.cat([tv, v], 1)
            q, k, v = (a.unflatten(-1, (heads, -1)).transpose(1, 2) for a in (q, k, v))
            y = net.norm1(tx + attn.out_proj(function.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)))
            return net.norm2(y + net.linear2(function.relu(net.linear1(y))))

        return run

    return Pair(lambda: layer(x, is_causal=True, cache=old)[0], theirs)


def whole() -> Pair:
    x, y = normal(_rng(), 1, 32, 512), normal(_rng(), 1, 32, 512)
    layer = fl.Transformer(512, 8, 2, 2, batch_first=True)
    state = load(layer, 512)

    def theirs(torch: Any) -> Any:
        net = _like(torch, torch.nn.Transformer(512, 8, 2, 2, batch_first=True), state)
        tx, ty = torch.tensor(x), torch.tensor(y)
        return lambda: net(tx, ty)

    return Pair(lambda: layer(x, y), theirs)


def feed_forward(steps: int, width: int, inner: int, activation: str) -> Pair:
    x = normal(_rng(), 1, steps, width)
    layer = fl.FeedForward(width, inner, activation)
    state = load(layer, width)

    def theirs(torch: Any) -> Any:
        t = {name: torch.tensor(array) for name, array in state.items()}
        tx, function = torch.tensor(x), torch.nn.functional

        def run() -> Any:
            y = function.linear(tx, t["linear1.weight"], t["linear1.bias"])
            if activation == "swiglu":
                y = function.silu(function.linear(tx, t["gate.weight"], t["gate.bias"])) * y
            else:
                y = getattr(function, activation)(y)
            return function.linear(y, t["linear2.weight"], t["linear2.bias"])

        return run

    return Pair(lambda: layer(x), theirs, 2.0 * steps * width * inner * (3 if activation == "swiglu" else 2))


_MHA, _ENCODER = ("MultiheadAttention",), ("TransformerEncoderLayer",)

ROWS = [
    Row(_MHA, "B1 S128 768/12", partial(multihead, 1, 128, 768, 12, False)),
    Row(_MHA, "B1 S512 768/12", partial(multihead, 1, 512, 768, 12, False)),
    Row(_MHA, "B1 S128 768/12 weights", partial(multihead, 1, 128, 768, 12, True)),
    Row(_MHA, "B8 S16 64/4", partial(multihead, 8, 16, 64, 4, False)),
    Row(_ENCODER, "B1 S128 768/12/3072", partial(encoder, 1, 128, 768, 12, 3072, activation="gelu")),
    Row(_ENCODER, "B1 S128 768/12/3072 norm first", partial(encoder, 1, 128, 768, 12, 3072, norm_first=True)),
    Row(_ENCODER, "B4 S32 384/12/1536", partial(encoder, 4, 32, 384, 12, 1536, activation="gelu")),
    Row(_ENCODER, "one token after 256, 512/8/2048", partial(step, 256, 512, 8, 2048)),
    Row(("TransformerEncoder",), "B1 S64 256/4/1024, 2 layers", partial(encoder, 1, 64, 256, 4, 1024, 2)),
    Row(("TransformerDecoderLayer",), "T64 S128 512/8/2048", partial(decoder, 64, 128, 512, 8, 2048)),
    Row(("TransformerDecoder",), "T32 S32 256/4/1024, 2 layers", partial(decoder, 32, 32, 256, 4, 1024, 2)),
    Row(("Transformer",), "S32 T32 512/8/2048, 2 + 2 layers", whole),
    Row(("FeedForward",), "S128 768/3072 gelu", partial(feed_forward, 128, 768, 3072, "gelu")),
    Row(("FeedForward",), "S128 512/1376 swiglu", partial(feed_forward, 128, 512, 1376, "swiglu")),
]
