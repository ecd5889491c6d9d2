"""ALBERT: BERT with narrow tables, whose layers share their weights."""

from __future__ import annotations

from . import bert, heads
from .build import BATCH, STEPS, Network

__all__ = ["OTHERS", "write"]

PREFIX = "albert."
OTHERS = r"predictions\..*|sop_classifier\..*|(.*\.)?pooler\..*|classifier\..*|qa_outputs\..*"
_NAMES = bert.Names(
    "attention.query", "attention.key", "attention.value", "attention.dense", "attention.LayerNorm", "ffn", "ffn_output",
    "full_layer_layer_norm",
)  # fmt: skip


def write(n: Network) -> None:
    """Writes the network."""
    c, at = n.config, n.weights.prefix
    c.only(position_embedding_type="absolute")
    c.unused("down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks")  # read by no version of it
    ids = n.input("input_ids", BATCH, STEPS)
    mask = n.key_mask(n.input("attention_mask", BATCH, STEPS))
    types = n.input("token_type_ids", BATCH, STEPS)
    x = bert.embedded(n, f"{at}embeddings", ids, types, bert.places(n, ids), c.size("embedding_size", 128))
    x = n.linear(f"{at}encoder.embedding_hidden_mapping_in", x, c.size("hidden_size"))
    layers, groups, inner = c.layers(), c.size("num_hidden_groups", 1), c.size("inner_group_num", 1)
    sizes = c.size("num_attention_heads"), c.size("intermediate_size")
    how = c.text("hidden_act", "gelu_new"), c.number("layer_norm_eps", 1e-12)
    for i in range(layers):
        for j in range(inner):
            n.scope = f"layer.{i}/"
            name = f"{at}encoder.albert_layer_groups.{int(i / (layers / groups))}.albert_layers.{j}"
            x = bert.block(n, bert.Names(*(f"{name}.{part}" for part in _NAMES)), x, mask, *sizes, *how)
    heads.finish(n, x, {
        "MaskedLM": masked,
        "SequenceClassification": lambda n, x: n.linear("classifier", heads.pooled(n, f"{at}pooler", x)),
    })  # fmt: skip


def masked(n: Network, x: str) -> str:
    """Scores of all words for every token."""
    c = n.config
    y = n.activation(c.text("hidden_act", "gelu_new"), n.linear("predictions.dense", x, c.size("embedding_size", 128)))
    y = n.layer_norm("predictions.LayerNorm", y, c.number("layer_norm_eps", 1e-12))
    return heads.words(n, y, f"{n.weights.prefix}embeddings.word_embeddings.weight", "predictions.decoder", "predictions.bias")
