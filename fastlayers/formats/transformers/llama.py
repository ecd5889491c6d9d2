"""Llama, and families that differ from it in a few words: Mistral, Qwen2, Qwen3."""

from __future__ import annotations

from .build import Network
from .decoder import Decoder

__all__ = ["OTHERS", "feed_forward", "project", "windows", "write"]

PREFIX = "model."
OTHERS = r"lm_head\.weight"


def write(n: Network) -> None:
    """Writes the network."""
    c, kind = n.config, n.config.text("model_type", "llama")
    width, heads = c.size("hidden_size"), c.size("num_attention_heads")
    eps = c.number("rms_norm_eps", 1e-6)
    d = Decoder(n, heads=heads, kv_heads=c.size("num_key_value_heads", heads), head=c.size("head_dim", _head(n)))
    at, layers = n.weights.prefix, c.size("num_hidden_layers")
    bias = c.flag("attention_bias", False)
    if kind == "qwen2":
        bias = True
    spans = windows(n, layers)
    x = n.embedding(f"{at}embed_tokens.weight", d.ids, c.size("vocab_size"), width)
    for i in range(layers):
        name, n.scope = f"{at}layers.{i}", f"layer.{i}/"
        y = n.rms_norm(f"{name}.input_layernorm", x, eps)
        q, k, v = project(d, f"{name}.self_attn", y, bias)
        if kind == "qwen3":
            q, k = (head_norm(n, f"{name}.self_attn.{p}_norm", t, d.head, eps) for p, t in (("q", q), ("k", k)))
        y = d.attention(q, k, v, left_window_size=spans[i])
        x = n.add(n.linear(f"{name}.self_attn.o_proj", y, width, bias=bias and kind != "qwen2"), x)
        y = n.rms_norm(f"{name}.post_attention_layernorm", x, eps)
        x = n.add(feed_forward(n, f"{name}.mlp", y), x)
    d.finish(n.rms_norm(f"{at}norm", x, eps), f"{at}embed_tokens.weight", False)


def _head(n: Network) -> int:
    if n.config.text("model_type", "") == "qwen3":
        return 128
    return max(n.config.size("hidden_size") // n.config.size("num_attention_heads"), 1)


def project(d: Decoder, name: str, x: str, bias: bool) -> tuple[str, str, str]:
    """Queries, keys and values."""
    counts = (("q", d.heads), ("k", d.kv_heads), ("v", d.kv_heads))
    return tuple(d.n.linear(f"{name}.{p}_proj", x, count * d.head, bias=bias) for p, count in counts)  # type: ignore[return-value]


def head_norm(n: Network, name: str, x: str, head: int, eps: float, more: float = 0.0) -> str:
    """RMSNorm of each head of (b, t, heads d)."""
    y = n.rms_norm(name, n.reshape(x, 0, 0, -1, head), eps, more)
    return n.reshape(y, 0, 0, n.width(x))


def feed_forward(n: Network, name: str, x: str, kind: str = "") -> str:
    """down(act(gate x) up x)."""
    c = n.config
    inner, bias = c.size("intermediate_size"), c.flag("mlp_bias", False)
    gate, up = (n.linear(f"{name}.{part}_proj", x, inner, bias=bias) for part in ("gate", "up"))
    y = n.gated(gate, up, kind or c.text("hidden_act", "silu"))
    return n.linear(f"{name}.down_proj", y, n.width(x), bias=bias)


def windows(n: Network, layers: int) -> list[int | None]:
    """Numbers of keys before its own that a query sees, by layer; None: all."""
    c = n.config
    size = c.whole("sliding_window")
    kinds = c.value("layer_types")
    if c.text("model_type", "") == "mistral":
        return [None if size is None else size - 1] * layers
    size = size if c.flag("use_sliding_window", False) else None
    first = c.whole("max_window_layers", 28, least=0)
    if kinds is None:
        kinds = ["sliding_attention" if size is not None and i >= first else "full_attention" for i in range(layers)]
    names = ("full_attention", "sliding_attention")
    if not isinstance(kinds, list) or len(kinds) != layers or not all(k in names for k in kinds):
        c.wrong("layer_types", kinds, f"{layers} of {', '.join(names)}")
    if size is None and "sliding_attention" in kinds:
        c.wrong("sliding_window", size, "an integer, for layer_types has windows")
    return [size - 1 if kind == "sliding_attention" else None for kind in kinds]
