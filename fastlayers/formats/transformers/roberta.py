"""RoBERTa, and XLM-R and CamemBERT, which are the same network: BERT whose places are counted from the padding's number on."""

from __future__ import annotations

from . import bert, heads
from .build import BATCH, STEPS, Network

__all__ = ["OTHERS", "write"]

PREFIX = "roberta."
OTHERS = r"lm_head\..*|(.*\.)?pooler\..*|classifier\..*|qa_outputs\..*"


def write(n: Network) -> None:
    """Writes the network."""
    c, at = n.config, n.weights.prefix
    c.only(position_embedding_type="absolute")
    ids = n.input("input_ids", BATCH, STEPS)
    mask = n.key_mask(n.input("attention_mask", BATCH, STEPS))
    places = bert.padded_places(n, ids, c.whole("pad_token_id", 1, least=0))
    x = bert.embedded(n, f"{at}embeddings", ids, None, places, c.size("hidden_size"))
    x = bert.blocks(n, f"{at}encoder.layer", x, mask)
    heads.finish(n, x, {"MaskedLM": masked, "SequenceClassification": heads.classified})


def masked(n: Network, x: str, norm: str = "layer_norm") -> str:
    """Scores of all words for every token."""
    y = n.activation("gelu", n.linear("lm_head.dense", x, n.width(x)))
    y = n.layer_norm(f"lm_head.{norm}", y, n.config.number("layer_norm_eps", 1e-12))
    return heads.words(n, y, f"{n.weights.prefix}embeddings.word_embeddings.weight", "lm_head.decoder", "lm_head.bias")
