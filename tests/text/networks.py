"""Small networks with random weights, with the inputs and outputs that exported text models have."""

from __future__ import annotations

from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.graph.record import record

__all__ = ["decoder", "encoder"]

F, Input = fl.functional, fl.graph.Input


def _weights(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return lambda *shape: (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


def _heads(x: Any, heads: int) -> Any:
    return F.permute(record("Reshape", x, np.array([0, 0, heads, x.shape[2] // heads])), (0, 2, 1, 3))


def decoder(
    vocabulary: int, width: int = 32, heads: int = 4, groups: int = 2, layers: int = 2, seed: int = 0, most: int = 512
) -> fl.Model:
    """A network in the manner of Llama: token ids and a cache in, logits and the cache out."""
    w, d = _weights(seed), width // heads
    table = w(vocabulary, width) * np.float32(3)
    shapes = ((width, width), (groups * d, width), (groups * d, width), (width, width), (2 * width, width), (width, 2 * width))
    parts = [tuple(w(*shape) for shape in shapes) for _ in range(layers)]
    cos, sin = F.rotary_tables(most, d)

    def step(input_ids: Any, attention_mask: Any, position_ids: Any, *past: Any) -> dict[str, Any]:
        x, found = F.embedding(input_ids, table), {}
        seen = F.unsqueeze(F.unsqueeze(attention_mask > 0, 1), 1)
        for i, (wq, wk, wv, wo, up, down) in enumerate(parts):
            y = F.rms_norm(x, width)
            q = F.rotary_embedding(_heads(F.linear(y, wq), heads), cos, sin, position_ids)
            k = F.rotary_embedding(_heads(F.linear(y, wk), groups), cos, sin, position_ids)
            k, v = F.concat([past[2 * i], k], 2), F.concat([past[2 * i + 1], _heads(F.linear(y, wv), groups)], 2)
            found[f"present.{i}.key"], found[f"present.{i}.value"] = k, v
            a = F.scaled_dot_product_attention(q, k, v, seen, is_causal=True, offset=None, enable_gqa=True)
            x = x + F.linear(record("Reshape", F.permute(a, (0, 2, 1, 3)), np.array([0, 0, width])), wo)
            x = x + F.linear(F.silu(F.linear(F.rms_norm(x, width), up)), down)
        return {"logits": F.linear(F.rms_norm(x, width), table), **found}

    ids = [Input("input_ids", ("n", "t"), np.int64), Input("attention_mask", ("n", "s"), np.int64),
           Input("position_ids", ("n", "t"), np.int64)]  # fmt: skip
    past = [Input(f"past_key_values.{i}.{kind}", ("n", groups, "p", d)) for i in range(layers) for kind in ("key", "value")]
    return fl.compile(step, *ids, *past)


def encoder(
    vocabulary: int, width: int = 32, heads: int = 4, layers: int = 2, seed: int = 0, most: int = 128, labels: int = 0,
    tokens: bool = False,
) -> fl.Model:  # fmt: skip
    """A BERT: last_hidden_state, or logits of `labels` classes of each text, or of each token."""
    w = _weights(seed)
    words, places, kinds, head = w(vocabulary, width) * np.float32(3), w(most, width), w(2, width), w(max(labels, 1), width)
    net = fl.TransformerEncoder(fl.TransformerEncoderLayer(width, heads, 2 * width, activation="gelu", batch_first=True), layers)
    net.load_state_dict({name: w(*shape) + name.endswith(("norm1.weight", "norm2.weight"))
                         for name, shape in net.tensor_shapes().items()})  # fmt: skip

    def step(input_ids: Any, attention_mask: Any, token_type_ids: Any) -> dict[str, Any]:
        ones = record("Add", record("Mul", input_ids, np.array(0)), np.array(1))
        at = record("Sub", record("CumSum", ones, np.array(1)), np.array(1))
        x = F.embedding(input_ids, words) + F.embedding(token_type_ids, kinds) + F.embedding(at, places)
        x = net(x, src_key_padding_mask=attention_mask < 1)
        if not labels:
            return {"last_hidden_state": x}
        return {"logits": F.linear(x if tokens else F.select(x, 1, 0), head)}

    return fl.compile(step, *(Input(name, ("n", "t"), np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")))
