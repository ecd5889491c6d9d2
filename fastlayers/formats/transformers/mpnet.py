"""MPNet: RoBERTa with biases of scores by distance, the same in all layers, and without segments."""

from __future__ import annotations

from . import bert, heads, relative, roberta
from .build import BATCH, STEPS, Network

__all__ = ["OTHERS", "write"]

PREFIX = "mpnet."
OTHERS = roberta.OTHERS
_PAD = 1  # whatever the configuration says
_NAMES = bert.BERT._replace(
    query="attention.attn.q", key="attention.attn.k", value="attention.attn.v", out="attention.attn.o",
    attention_norm="attention.LayerNorm",
)  # fmt: skip


def write(n: Network) -> None:
    """Writes the network."""
    c, at = n.config, n.weights.prefix
    ids = n.input("input_ids", BATCH, STEPS)
    mask = n.key_mask(n.input("attention_mask", BATCH, STEPS))
    c.words["type_vocab_size"] = 0
    x = bert.embedded(n, f"{at}embeddings", ids, None, bert.padded_places(n, ids, _PAD), c.size("hidden_size"))
    c.only(relative_attention_num_buckets=32)
    apart = relative.bias(n, f"{at}encoder.relative_attention_bias.weight", ids, c.size("num_attention_heads"), 32)
    x = bert.blocks(n, f"{at}encoder.layer", x, n.bias_mask(mask, apart), _NAMES)
    heads.finish(n, x, {"MaskedLM": roberta.masked, "SequenceClassification": heads.classified})
