"""ELECTRA: BERT with narrower tables of words, places and segments."""

from __future__ import annotations

from . import bert, heads
from .build import BATCH, STEPS, Network

__all__ = ["OTHERS", "write"]

PREFIX = "electra."
OTHERS = r"(generator|discriminator)_\w+\..*|classifier\..*|qa_outputs\..*"


def write(n: Network) -> None:
    """Writes the network."""
    c, at = n.config, n.weights.prefix
    c.only(position_embedding_type="absolute")
    ids = n.input("input_ids", BATCH, STEPS)
    mask = n.key_mask(n.input("attention_mask", BATCH, STEPS))
    types = n.input("token_type_ids", BATCH, STEPS)
    width, narrow = c.size("hidden_size"), c.size("embedding_size", 128)
    x = bert.embedded(n, f"{at}embeddings", ids, types, bert.places(n, ids), narrow)
    x = n.linear(f"{at}embeddings_project", x, width) if narrow != width else x
    x = bert.blocks(n, f"{at}encoder.layer", x, mask)
    heads.finish(n, x, {"MaskedLM": masked, "SequenceClassification": lambda n, x: heads.classified(n, x, "gelu")})


def masked(n: Network, x: str) -> str:
    """Scores of all words for every token."""
    y = n.activation("gelu", n.linear("generator_predictions.dense", x, n.config.size("embedding_size", 128)))
    y = n.layer_norm("generator_predictions.LayerNorm", y, n.config.number("layer_norm_eps", 1e-12))
    return heads.words(n, y, f"{n.weights.prefix}embeddings.word_embeddings.weight", "generator_lm_head")
