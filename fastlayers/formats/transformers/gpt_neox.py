"""GPT-NeoX (Pythia): parallel parts, rotary embeddings of a part of each head, queries, keys and values of each head together."""

from __future__ import annotations

import numpy as np

from ...errors import FormatError
from .build import Network
from .decoder import Decoder
from .rotary import parameters

__all__ = ["CAUSAL", "OTHERS", "write"]

PREFIX = "gpt_neox."
OTHERS = r"score\.weight|embed_out\.weight"
CAUSAL = True


def write(n: Network) -> None:
    """Writes the network."""
    c, at = n.config, n.weights.prefix
    width, heads, inner = c.size("hidden_size"), c.size("num_attention_heads"), c.size("intermediate_size")
    eps, kind, bias = c.number("layer_norm_eps", 1e-5), c.text("hidden_act", "gelu"), c.flag("attention_bias", True)
    parallel = c.flag("use_parallel_residual", True)
    if width % heads:
        raise FormatError(f"{c.where}: hidden_size is {width}: expected a multiple of num_attention_heads, {heads}")
    rope = parameters(c, c.number("rotary_emb_base", 1e4), partial=c.number("rotary_pct", 0.25))
    d = Decoder(n, heads=heads, kv_heads=heads, head=width // heads, rope=rope)
    n.scope = "embeddings/"
    x = n.embedding(f"{at}embed_in.weight", d.ids, c.size("vocab_size"), width)
    for i in range(c.layers()):
        name, n.scope = f"{at}layers.{i}", f"layer.{i}/"
        y = n.layer_norm(f"{name}.input_layernorm", x, eps, bias=True)
        y = d.attention(*apart(n, f"{name}.attention.query_key_value", y, heads, bias))
        y = n.add(n.linear(f"{name}.attention.dense", y, width, bias=bias), x)
        z = n.layer_norm(f"{name}.post_attention_layernorm", x if parallel else y, eps, bias=True)
        z = n.activation(kind, n.linear(f"{name}.mlp.dense_h_to_4h", z, inner, bias=True))
        x = n.add(n.linear(f"{name}.mlp.dense_4h_to_h", z, width, bias=True), y)
    x = n.layer_norm(f"{at}final_layer_norm", x, eps, bias=True)
    d.finish(x, f"{at}embed_in.weight", False, name="embed_out")


def apart(n: Network, name: str, x: str, heads: int, bias: bool) -> tuple[str, str, str]:
    """Queries, keys and values of a matrix that has the three of each head together."""
    width = n.width(x)
    if not isinstance(n.weights.raw(f"{name}.weight", 3 * width, width), np.ndarray):
        y = n.reshape(n.linear(name, x, 3 * width, bias), 0, 0, heads, 3 * width // heads)
        return tuple(n.reshape(part, 0, 0, width) for part in n.split(y, *(width // heads,) * 3))  # type: ignore[return-value]
    matrix = n.weights.matrix(f"{name}.weight", 3 * width, width).reshape(heads, 3, -1, width)
    summand = n.weights.take(f"{name}.bias", 3 * width).reshape(heads, 3, -1) if bias else None
    n.weights.budget.take(matrix.nbytes, f"{n.config.where}: weight {name}")
    made = []
    for i in range(3):
        own = None if summand is None else summand[:, i].reshape(-1)
        made.append(n.product(x, np.ascontiguousarray(matrix[:, i].reshape(width, width)), f"{name}.{i}", own))
    return tuple(made)  # type: ignore[return-value]
