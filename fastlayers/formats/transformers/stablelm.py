"""StableLM: Llama with LayerNorm, of each head's queries and keys too, and rotary embeddings of a part of each head."""

from __future__ import annotations

import numpy as np

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
    width, heads, eps = c.size("hidden_size"), c.size("num_attention_heads"), c.number("layer_norm_eps", 1e-5)
    head, bias, normed = width // heads, c.flag("use_qkv_bias", False), c.flag("qk_layernorm", False)
    parallel, rope = c.flag("use_parallel_residual", False), parameters(c, partial=0.25)
    d = Decoder(n, heads=heads, kv_heads=c.size("num_key_value_heads", heads), head=head, rope=rope)
    x = n.embedding(f"{at}embed_tokens.weight", d.ids, c.size("vocab_size"), width)
    for i in range(c.layers()):
        name, n.scope = f"{at}layers.{i}", f"layer.{i}/"
        first = n.layer_norm(f"{name}.input_layernorm", x, eps, bias=True)
        q, k, v = project(d, f"{name}.self_attn", first, bias)
        if normed:
            q, k = (heads_norm(n, f"{name}.self_attn.{p}_layernorm", t, head, eps) for p, t in (("q", q), ("k", k)))
        x = n.add(n.linear(f"{name}.self_attn.o_proj", d.attention(q, k, v), width, bias=False), x)
        second = first if parallel else n.layer_norm(f"{name}.post_attention_layernorm", x, eps, bias=True)
        x = n.add(feed_forward(n, f"{name}.mlp", second), x)
    d.finish(n.layer_norm(f"{at}norm", x, eps, bias=True), f"{at}embed_tokens.weight", False)


def heads_norm(n: Network, name: str, x: str, head: int, eps: float) -> str:
    """LayerNorm of each head of (b, t, heads d), each with factors of its own."""
    count = n.width(x) // head
    factors = np.stack([n.weights.take(f"{name}.norms.{i}.weight", head) for i in range(count)])
    y = n.op("LayerNormalization", n.reshape(x, 0, 0, count, head), n.constant(np.ones(head, np.float32)), axis=-1, epsilon=eps)
    return n.reshape(n.mul(y, n.constant(factors, f"{name}.norms")), 0, 0, n.width(x))
