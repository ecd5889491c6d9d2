"""ModernBERT: rotary embeddings, norms before the parts, gated feed-forward parts, and windows in most layers."""

from __future__ import annotations

from . import heads
from .bert import places
from .build import BATCH, FLOAT32, STEPS, Network
from .rotary import Rotary, parameters

__all__ = ["OTHERS", "write"]

PREFIX = "model."
OTHERS = r"(head|decoder|classifier)\..*"
_THETA = {"full_attention": ("global_rope_theta", 160000.0), "sliding_attention": ("local_rope_theta", 10000.0)}


def write(n: Network) -> None:
    """Writes the network."""
    c, at = n.config, n.weights.prefix
    c.only(position_embedding_type="absolute", embedding_norm=True)
    c.unused("classifier_pooling", "classifier_bias", "classifier_activation", "decoder_bias")  # heads read these
    width, heads_, inner = c.size("hidden_size"), c.size("num_attention_heads"), c.size("intermediate_size")
    layers, eps, shift = c.layers(), c.number("norm_eps", 1e-5), c.flag("norm_bias", False)
    bias, more, kind = c.flag("attention_bias"), c.flag("mlp_bias"), c.text("hidden_activation", "gelu")
    every, reach = c.whole("global_attn_every_n_layers", 3), c.size("local_attention", 128) // 2
    kinds = c.value("layer_types", ["sliding_attention" if i % every else "full_attention" for i in range(layers)])
    if not isinstance(kinds, list) or len(kinds) != layers or not all(k in _THETA for k in kinds):
        c.wrong("layer_types", kinds, f"{layers} of {', '.join(_THETA)}")
    ids = n.input("input_ids", BATCH, STEPS)
    given = n.input("attention_mask", BATCH, STEPS)
    mask = n.key_mask(given)
    at_places = places(n, ids)
    words = {layer: parameters(c, c.number(old, theta), layer) for layer, (old, theta) in _THETA.items()}
    turn = {layer: Rotary(n, width // heads_, words[layer], at_places) for layer in sorted(set(kinds))}
    n.scope = "embeddings/"
    x = n.embedding(f"{at}embeddings.tok_embeddings.weight", ids, c.size("vocab_size"), width)
    x = n.layer_norm(f"{at}embeddings.norm", x, eps, shift)
    for i, layer in enumerate(kinds):
        name, n.scope = f"{at}layers.{i}", f"layer.{i}/"
        y = n.layer_norm(f"{name}.attn_norm", x, eps, shift) if i else x
        q, k, v = n.linears(f"{name}.attn.Wqkv", y, width, width, width, bias=bias)
        q, k = (turn[layer](t, heads_) for t in (q, k))
        span = reach if layer == "sliding_attention" else None
        (y,) = n.attention(q, k, v, heads_, mask=mask, left_window_size=span, right_window_size=span)
        x = n.add(n.linear(f"{name}.attn.Wo", y, width, bias), x)
        y = n.layer_norm(f"{name}.mlp_norm", x, eps, shift)
        y = n.gated(kind, *n.linears(f"{name}.mlp.Wi", y, inner, inner, bias=more))
        x = n.add(n.linear(f"{name}.mlp.Wo", y, width, more), x)
    x = n.layer_norm(f"{at}final_norm", x, eps, shift)
    n.scope = ""
    heads.finish(n, x, {
        "MaskedLM": lambda n, x: heads.words(n, transformed(n, x), f"{at}embeddings.tok_embeddings.weight", "decoder"),
        "SequenceClassification": lambda n, x: n.linear("classifier", transformed(n, pooled(n, x, given))),
        "TokenClassification": lambda n, x: n.linear("classifier", transformed(n, x)),
    })  # fmt: skip


def transformed(n: Network, x: str) -> str:
    """The layer that comes before a head's."""
    c = n.config
    y = n.linear("head.dense", x, n.width(x), c.flag("classifier_bias", False))
    y = n.activation(c.text("classifier_activation", "gelu"), y)
    return n.layer_norm("head.norm", y, c.number("norm_eps", 1e-5), c.flag("norm_bias", False))


def pooled(n: Network, x: str, mask: str) -> str:
    """The first token, or the mean of those that are there."""
    kind = n.config.text("classifier_pooling", "cls")
    if kind not in ("cls", "mean"):
        n.config.wrong("classifier_pooling", kind, "'cls' or 'mean'")
    if kind == "cls":
        return n.first(x)
    there = n.op("Unsqueeze", n.cast(mask, FLOAT32), n.ints(2))
    total = n.op("ReduceSum", n.mul(x, there), n.ints(1), keepdims=0)
    return n.op("Div", total, n.op("ReduceSum", there, n.ints(1), keepdims=0))
