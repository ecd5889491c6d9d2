"""OLMo-2: Llama with norms after the parts, and of all queries and all keys."""

from __future__ import annotations

from .build import Network
from .decoder import Decoder
from .llama import feed_forward, project
from .rotary import parameters

__all__ = ["CAUSAL", "OTHERS", "write"]

PREFIX = "model."
OTHERS = r"score\.weight|lm_head\.weight"
CAUSAL = True


def write(n: Network) -> None:
    """Writes the network."""
    c, at = n.config, n.weights.prefix
    width, heads, eps = c.size("hidden_size"), c.size("num_attention_heads"), c.number("rms_norm_eps", 1e-5)
    head, bias = c.size("head_dim", max(width // heads, 1)), c.flag("attention_bias", False)
    d = Decoder(n, heads=heads, kv_heads=c.size("num_key_value_heads", heads), head=head, rope=parameters(c))
    x = n.embedding(f"{at}embed_tokens.weight", d.ids, c.size("vocab_size"), width)
    for i in range(c.layers()):
        name, n.scope = f"{at}layers.{i}", f"layer.{i}/"
        q, k, v = project(d, f"{name}.self_attn", x, bias)
        q, k = (n.rms_norm(f"{name}.self_attn.{p}_norm", t, eps) for p, t in (("q", q), ("k", k)))
        y = n.linear(f"{name}.self_attn.o_proj", d.attention(q, k, v), width, bias=bias)
        x = n.add(n.rms_norm(f"{name}.post_attention_layernorm", y, eps), x)
        x = n.add(n.rms_norm(f"{name}.post_feedforward_layernorm", feed_forward(n, f"{name}.mlp", x), eps), x)
    d.finish(n.rms_norm(f"{at}norm", x, eps), f"{at}embed_tokens.weight", False)
