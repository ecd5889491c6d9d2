"""Mixtures of experts: each token's feed-forward part is a weighted sum of a few of many. All are computed, and weighted with 0
where they were not chosen.
"""

from __future__ import annotations

import numpy as np

from .build import Network

__all__ = ["mixture"]


def mixture(n: Network, layer: str, x: str) -> str:
    """The sum of the chosen experts of (b, t, d), weighted by the softmax of the router's scores."""
    c, mixtral = n.config, n.config.text("model_type", "") == "mixtral"
    name = f"{layer}.block_sparse_moe" if mixtral and f"{layer}.block_sparse_moe.gate.weight" in n.weights else f"{layer}.mlp"
    count = c.size("num_local_experts" if mixtral or "num_experts" not in c.words else "num_experts", 8 if mixtral else 128)
    inner = c.size("intermediate_size") if mixtral else c.size("moe_intermediate_size")
    chosen = c.size("num_experts_per_tok", 2 if mixtral else 8)
    if chosen > count:
        c.wrong("num_experts_per_tok", chosen, f"at most {count}, the number of experts")
    scores = n.op("Softmax", n.linear(f"{name}.gate", x, count, bias=False), axis=-1)
    best, which = n.many("TopK", 2, scores, n.ints(chosen), axis=-1)
    if mixtral or c.flag("norm_topk_prob", False):
        best = n.op("Div", best, n.op("ReduceSum", best, n.ints(-1), keepdims=1))
    hot = n.op("OneHot", which, n.constant(np.int64(count)), n.constant(np.array([0, 1], np.float32)), axis=-1)
    weights = n.op("ReduceSum", n.mul(hot, n.op("Unsqueeze", best, n.ints(-1))), n.ints(2), keepdims=0)
    total, kind = "", c.text("hidden_act", "silu")
    parts = ("w1", "w3", "w2") if f"{name}.experts.0.w1.weight" in n.weights else ("gate_proj", "up_proj", "down_proj")
    for i in range(count):
        gate, up = (n.linear(f"{name}.experts.{i}.{part}", x, inner, bias=False) for part in parts[:2])
        y = n.linear(f"{name}.experts.{i}.{parts[2]}", n.gated(kind, gate, up), n.width(x), bias=False)
        y = n.mul(y, n.slice(weights, -1, i, i + 1))
        total = n.add(total, y) if total else y
    return total
