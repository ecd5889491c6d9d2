"""Heads of encoders: pooling, classification of sequences and tokens, masked words, answers."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import UnsupportedError
from ..source import quote
from .build import Network

__all__ = ["finish"]

Head = Callable[[Network, str], str]


def finish(n: Network, x: str, heads: dict[str, Head]) -> None:
    """Writes the head over the last hidden states, and the outputs that optimum's ONNX has.

    Args:
        n: the network.
        x: (b, t, d).
        heads: what the family has besides "TokenClassification" and "QuestionAnswering", which all have alike.
    """
    n.scope = ""
    n.config.unused("tie_word_embeddings")  # the head of words, below, reads it
    if not n.head:
        n.output("last_hidden_state", x)
    elif n.head in heads:
        n.output("logits", heads[n.head](n, x))
    elif n.head == "QuestionAnswering":
        logits = n.linear("qa_outputs", x, 2)
        for name, part in zip(("start_logits", "end_logits"), n.split(logits, 1, 1), strict=True):
            n.output(name, n.op("Squeeze", part, n.ints(2)))
    elif n.head == "TokenClassification":
        n.output("logits", n.linear("classifier", x))
    else:
        known = sorted({*heads, "QuestionAnswering", "TokenClassification"})
        raise UnsupportedError(
            f"{n.config.where}: the head is {quote(n.head)}: supported of this family are {', '.join(known)}, and none"
        )


def pooled(n: Network, name: str, x: str, kind: str = "tanh") -> str:
    """act(W x + b) of the first token."""
    return n.activation(kind, n.linear(name, n.first(x), n.width(x)))


def words(n: Network, x: str, table: str, layer: str, bias: str = "") -> str:
    """Scores of all words: products with the table of words, and a bias, which may have a name of its own."""
    rows, own = n.config.size("vocab_size"), f"{layer}.weight"
    tied = n.config.flag("tie_word_embeddings", True) or own not in n.weights
    for name, shape in ((own, (rows, n.width(x))), (bias, (rows,)), (f"{layer}.bias", (rows,))):
        if name in n.weights:
            n.weights.raw(name, *shape)
    summand = bias if bias in n.weights else f"{layer}.bias"
    return n.linear(layer, x, rows, bias=summand, weight=table if tied else "")


def classified(n: Network, x: str, kind: str = "tanh", dense: str = "classifier.dense", last: str = "classifier.out_proj") -> str:
    """Scores of labels: a layer over the act(W x + b) of the first token."""
    return n.linear(last, pooled(n, dense, x, kind))
