"""BERT: embeddings of words, places and segments, and blocks with the norm after the sum."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import heads
from .build import BATCH, INT64, STEPS, Network

__all__ = ["BERT", "OTHERS", "Names", "block", "blocks", "embedded", "masked", "padded_places", "places", "write"]


class Names(NamedTuple):
    """Names of a block's layers."""

    query: str
    key: str
    value: str
    out: str
    attention_norm: str
    up: str
    down: str
    norm: str


BERT = Names(
    "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "attention.output.LayerNorm",
    "intermediate.dense", "output.dense", "output.LayerNorm",
)  # fmt: skip

PREFIX = "bert."
OTHERS = r"cls\..*|.*\.pooler\..*|pooler\..*|classifier\..*|qa_outputs\..*|.*\.decoder\.(weight|bias)"


def write(n: Network) -> None:
    """Writes the network."""
    c = n.config
    c.only(position_embedding_type="absolute")
    ids = n.input("input_ids", BATCH, STEPS)
    mask = n.key_mask(n.input("attention_mask", BATCH, STEPS))
    types = n.input("token_type_ids", BATCH, STEPS)
    at = n.weights.prefix
    x = embedded(n, f"{at}embeddings", ids, types, places(n, ids), c.size("hidden_size"))
    x = blocks(n, f"{at}encoder.layer", x, mask)
    heads.finish(n, x, {
        "MaskedLM": masked,
        "SequenceClassification": lambda n, x: n.linear("classifier", heads.pooled(n, f"{at}pooler.dense", x)),
    })  # fmt: skip


def places(n: Network, ids: str) -> str:
    """The places of the tokens, 0 .. t - 1."""
    return n.op("AxisPositions", ids, axis=1)


def padded_places(n: Network, ids: str, pad: int) -> str:
    """Places that are counted from `pad` + 1 on, and `pad` for tokens that are it."""
    real = n.cast(n.op("Not", n.op("Equal", ids, n.constant(np.int64(pad)))), INT64)
    return n.add(n.mul(n.op("CumSum", real, n.constant(np.int64(1))), real), n.constant(np.int64(pad)))


def embedded(n: Network, name: str, ids: str, types: str | None, positions: str, width: int) -> str:
    """LayerNorm of the sum of the three tables' rows; without `types` all tokens are of segment 0."""
    c, n.scope = n.config, "embeddings/"
    eps = c.number("layer_norm_eps", 1e-12)
    x = n.embedding(f"{name}.word_embeddings.weight", ids, c.size("vocab_size"), width)
    kinds = c.whole("type_vocab_size", 2, least=0)
    if types is not None:
        x = n.add(x, n.embedding(f"{name}.token_type_embeddings.weight", types, kinds, width))
    elif kinds:
        x = n.add(x, n.constant(n.weights.take(f"{name}.token_type_embeddings.weight", kinds, width)[0], "segment 0"))
    x = n.add(x, n.embedding(f"{name}.position_embeddings.weight", positions, c.size("max_position_embeddings"), width))
    return n.layer_norm(f"{name}.LayerNorm", x, eps, bias=True)


def blocks(n: Network, name: str, x: str, mask: str | None, names: Names = BERT) -> str:
    """All blocks, one after the other."""
    c = n.config
    heads_, inner = c.size("num_attention_heads"), c.size("intermediate_size")
    kind, eps = c.text("hidden_act", "gelu"), c.number("layer_norm_eps", 1e-12)
    for i in range(c.layers()):
        n.scope = f"layer.{i}/"
        x = block(n, Names(*(f"{name}.{i}.{part}" for part in names)), x, mask, heads_, inner, kind, eps)
    return x


def block(n: Network, p: Names, x: str, mask: str | None, heads_: int, inner: int, kind: str, eps: float) -> str:
    """Attention and feed-forward part, each added to what it gets, then normalized."""
    width = n.width(x)
    q, k, v = (n.linear(part, x, width) for part in p[:3])
    (y,) = n.attention(q, k, v, heads_, mask=mask)
    x = n.layer_norm(p.attention_norm, n.add(n.linear(p.out, y, width), x), eps, bias=True)
    y = n.activation(kind, n.linear(p.up, x, inner))
    return n.layer_norm(p.norm, n.add(n.linear(p.down, y, width), x), eps, bias=True)


def masked(n: Network, x: str, norm: str = "LayerNorm") -> str:
    """Scores of all words for every token."""
    c, at = n.config, n.weights.prefix
    y = n.activation(c.text("hidden_act", "gelu"), n.linear("cls.predictions.transform.dense", x, n.width(x)))
    y = n.layer_norm(f"cls.predictions.transform.{norm}", y, c.number("layer_norm_eps", 1e-12))
    return heads.words(n, y, f"{at}embeddings.word_embeddings.weight", "cls.predictions.decoder", "cls.predictions.bias")
