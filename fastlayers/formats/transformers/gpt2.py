"""GPT-2: learned places, and matrices that are stored turned."""

from __future__ import annotations

import numpy as np

from ...errors import FormatError
from .build import Network
from .decoder import Decoder

__all__ = ["OTHERS", "write"]

PREFIX = "transformer."
OTHERS = r"score\.weight|lm_head\.weight|multiple_choice_head\..*"
CAUSAL = True


def write(n: Network) -> None:
    """Writes the network."""
    c, at = n.config, n.weights.prefix
    c.unused("n_ctx")  # as n_positions
    width, heads, layers = c.size("n_embd"), c.size("n_head"), c.layers("n_layer")
    eps, kind, inner = (
        c.number("layer_norm_epsilon", 1e-5),
        c.text("activation_function", "gelu_new"),
        c.size("n_inner", 4 * width),
    )
    scaled, by_layer = c.flag("scale_attn_weights", True), c.flag("scale_attn_by_inverse_layer_idx", False)
    if width % heads:
        raise FormatError(f"{c.where}: n_embd is {width}: expected a multiple of n_head, {heads}")
    d = Decoder(n, heads=heads, kv_heads=heads, head=width // heads, rope=None)
    n.scope = "embeddings/"
    x = n.embedding(f"{at}wte.weight", d.ids, c.size("vocab_size"), width)
    x = n.add(x, n.embedding(f"{at}wpe.weight", d.positions, c.size("n_positions"), width))
    for i in range(layers):
        name, n.scope = f"{at}h.{i}", f"layer.{i}/"
        y = n.layer_norm(f"{name}.ln_1", x, eps, bias=True)
        q, k, v = turned(n, f"{name}.attn.c_attn", y, width, width, width)
        scale = ((width // heads) ** -0.5 if scaled else 1.0) / (i + 1 if by_layer else 1)
        y = d.attention(q, k, v, scale=scale)
        x = n.add(turned(n, f"{name}.attn.c_proj", y, width)[0], x)
        y = turned(n, f"{name}.mlp.c_fc", n.layer_norm(f"{name}.ln_2", x, eps, bias=True), inner)[0]
        x = n.add(turned(n, f"{name}.mlp.c_proj", n.activation(kind, y), width)[0], x)
    d.finish(n.layer_norm(f"{at}ln_f", x, eps, bias=True), f"{at}wte.weight", True)


def turned(n: Network, name: str, x: str, *sizes: int) -> tuple[str, ...]:
    """Linear layers whose matrix (k, n) a checkpoint has, next to each other; one of few bits is (n, k) already."""
    total = sum(sizes)
    if not isinstance(n.weights.arrays.get(f"{name}.weight"), np.ndarray):
        return n.linears(name, x, *sizes)
    matrix, bias = n.weights.matrix(f"{name}.weight", n.width(x), total), n.weights.take(f"{name}.bias", total)
    n.weights.budget.take(matrix.nbytes, f"{n.config.where}: weight {name}")
    made, start = [], 0
    for i, size in enumerate(sizes):
        part = slice(start, start + size)
        made.append(n.product(x, np.ascontiguousarray(matrix[:, part].T), f"{name}.{i}", bias[part]))
        start += size
    return tuple(made)
