"""DistilBERT: BERT without segments, in words of its own."""

from __future__ import annotations

from . import bert, heads
from .build import BATCH, STEPS, Network

__all__ = ["OTHERS", "write"]

PREFIX = "distilbert."
OTHERS = r"(vocab_\w+|pre_classifier|classifier|qa_outputs)\..*"
_EPS = 1e-12
_NAMES = bert.Names(
    "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2",
    "output_layer_norm",
)  # fmt: skip


def write(n: Network) -> None:
    """Writes the network. Sinusoidal places are a table of the checkpoint as learned ones are."""
    c, at = n.config, n.weights.prefix
    c.unused("sinusoidal_pos_embds", "tie_weights_")
    ids = n.input("input_ids", BATCH, STEPS)
    mask = n.key_mask(n.input("attention_mask", BATCH, STEPS))
    width, n.scope = c.size("dim"), "embeddings/"
    x = n.embedding(f"{at}embeddings.word_embeddings.weight", ids, c.size("vocab_size"), width)
    name = f"{at}embeddings.position_embeddings.weight"
    x = n.add(x, n.embedding(name, bert.places(n, ids), c.size("max_position_embeddings"), width))
    x = n.layer_norm(f"{at}embeddings.LayerNorm", x, _EPS, bias=True)
    heads_, inner, kind = c.size("n_heads"), c.size("hidden_dim"), c.text("activation", "gelu")
    for i in range(c.layers("n_layers")):
        n.scope = f"layer.{i}/"
        x = bert.block(
            n, bert.Names(*(f"{at}transformer.layer.{i}.{part}" for part in _NAMES)), x, mask, heads_, inner, kind, _EPS
        )
    heads.finish(n, x, {
        "MaskedLM": masked,
        "SequenceClassification": lambda n, x: heads.classified(n, x, "relu", "pre_classifier", "classifier"),
    })  # fmt: skip


def masked(n: Network, x: str) -> str:
    """Scores of all words for every token."""
    y = n.activation(n.config.text("activation", "gelu"), n.linear("vocab_transform", x, n.width(x)))
    y = n.layer_norm("vocab_layer_norm", y, _EPS)
    return heads.words(n, y, f"{n.weights.prefix}embeddings.word_embeddings.weight", "vocab_projector")
