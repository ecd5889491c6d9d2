"""DeBERTa v2 and v3: BERT whose scores have parts for the distance of key and query, each against the other's contents."""

from __future__ import annotations

import math

import numpy as np

from ...errors import LimitError
from . import heads, relative
from .bert import BERT, Names, places
from .build import BATCH, FLOAT32, STEPS, Network

__all__ = ["OTHERS", "write"]

PREFIX = "deberta."
OTHERS = r"(cls|lm_predictions|mask_predictions|pooler|classifier|qa_outputs|(.*\.)?embeddings\.position_embeddings)\..*"
_MOST = 1 << 16  # the largest distance that is looked up


def write(n: Network) -> None:
    """Writes the network."""
    c, at = n.config, n.weights.prefix
    width, count, inner = c.size("hidden_size"), c.size("num_attention_heads"), c.size("intermediate_size")
    c.only(attention_head_size=width // count, legacy=True)
    kind, eps = c.text("hidden_act", "gelu"), c.number("layer_norm_eps", 1e-7)
    ids = n.input("input_ids", BATCH, STEPS)
    given = n.input("attention_mask", BATCH, STEPS)
    mask = n.key_mask(given)
    x = embedded(n, ids, n.op("Unsqueeze", n.cast(given, FLOAT32), n.ints(2)), width, eps)
    first, distance = x, Distances(n, ids, width, count, eps)
    for i in range(c.layers()):
        n.scope = f"layer.{i}/"
        p = Names(*(f"{at}encoder.layer.{i}.{part}" for part in _NAMES))
        q, k, v = (n.linear(part, x, width) for part in p[:3])
        (y,) = n.attention(q, k, v, count, mask=distance.scores(p, q, k, mask), scale=distance.scale)
        y = n.layer_norm(p.attention_norm, n.add(n.linear(p.out, y, width), x), eps, bias=True)
        z = n.linear(p.down, n.activation(kind, n.linear(p.up, y, inner)), width)
        x = n.layer_norm(p.norm, n.add(z, y), eps, bias=True)
        if not i and c.whole("conv_kernel_size", 0, least=0):
            x = convolved(n, first, x, given, eps)
    act = c.text("pooler_hidden_act", "gelu")
    heads.finish(n, x, {
        "MaskedLM": masked,
        "SequenceClassification": lambda n, x: heads.classified(n, x, act, "pooler.dense", "classifier"),
    })  # fmt: skip


_NAMES = BERT._replace(query="attention.self.query_proj", key="attention.self.key_proj", value="attention.self.value_proj")


def embedded(n: Network, ids: str, mask: str, width: int, eps: float) -> str:
    """LayerNorm of the sum of the tables' rows, 0 where there is no token."""
    c, n.scope, name = n.config, "embeddings/", f"{n.weights.prefix}embeddings"
    narrow, kinds = c.size("embedding_size", width), c.whole("type_vocab_size", 0, least=0)
    x = n.embedding(f"{name}.word_embeddings.weight", ids, c.size("vocab_size"), narrow)
    longest = c.size("max_position_embeddings", 512)
    if c.flag("position_biased_input", True):
        x = n.add(x, n.embedding(f"{name}.position_embeddings.weight", places(n, ids), longest, narrow))
    if kinds:
        types = n.input("token_type_ids", BATCH, STEPS)
        x = n.add(x, n.embedding(f"{name}.token_type_embeddings.weight", types, kinds, narrow))
    if narrow != width:
        x = n.linear(f"{name}.embed_proj", x, width, bias=False)
    return n.mul(n.layer_norm(f"{name}.LayerNorm", x, eps, bias=True), mask)


class Distances:
    """Parts of the scores that depend on distances."""

    def __init__(self, n: Network, ids: str, width: int, heads: int, eps: float) -> None:
        c, at = n.config, n.weights.prefix
        self.n, self.heads, self.width = n, heads, width
        parts = c.value("pos_att_type", [])
        parts = [part.strip() for part in parts.lower().split("|")] if isinstance(parts, str) else parts
        if not isinstance(parts, list) or not set(map(str, parts)) <= {"c2p", "p2c", "none", ""}:
            c.wrong("pos_att_type", parts, "of 'c2p' and 'p2c'")
        self.shared = c.flag("share_att_key", False)
        self.parts = [part for part in ("c2p", "p2c") if part in parts]
        self.scale = (width // heads * (1 + len(self.parts))) ** -0.5
        normed = c.text("norm_rel_ebd", "none").lower().split("|")
        longest, buckets = c.whole("max_relative_positions", -1, least=-1), c.whole("position_buckets", -1, least=-1)
        if not c.flag("relative_attention", False):
            self.parts = []
            return
        longest = c.size("max_position_embeddings", 512) if longest < 1 else longest
        span = buckets if buckets > 0 else longest
        if max(longest, span) > _MOST:
            raise LimitError(f"{c.where}: max_relative_positions is {longest}: at most {_MOST} are allowed")
        n.scope = "distances/"
        table = n.parameter(f"{at}encoder.rel_embeddings.weight", 2 * span, width)
        self.table = n.layer_norm(f"{at}encoder.LayerNorm", table, eps, bias=True) if "layer_norm" in normed else table
        # Of the key's place less the query's, which `relative` counts, the other sign.
        rows = n.constant(np.clip(bucket(np.arange(longest, -longest - 1, -1), buckets, longest) + span, 0, 2 * span - 1), "rows")
        which = n.op("Gather", rows, relative.distances(n, ids, longest), axis=0)
        steps = n.mul(places(n, ids), n.constant(np.int64(2 * span)))
        # Places in (t, 2 span) where each query, or each key, has its row.
        self.at = {
            "c2p": n.add(n.op("Unsqueeze", steps, n.ints(1)), which),
            "p2c": n.add(n.op("Unsqueeze", steps, n.ints(0)), which),
        }

    def scores(self, p: Names, q: str, k: str, mask: str) -> str:
        """Summands of the products of queries and keys, the mask of keys among them."""
        n, total = self.n, ""
        own = p.query.rpartition(".")[0]
        names = {
            "c2p": p.key if self.shared else f"{own}.pos_key_proj",
            "p2c": p.query if self.shared else f"{own}.pos_query_proj",
        }
        for part in self.parts:
            turned = n.op("Transpose", self._split(n.linear(names[part], self.table, self.width)), perm=[1, 2, 0])
            mine = n.op("Transpose", self._split(q if part == "c2p" else k, 0, 0), perm=[0, 2, 1, 3])
            products = n.reshape(n.op("MatMul", mine, turned), 0, 0, -1)
            found = n.op("Gather", products, self.at[part], axis=2)
            total = n.add(total, found) if total else found
        return n.bias_mask(mask, n.mul(total, self.scale)) if total else mask

    def _split(self, x: str, *lead: int) -> str:
        return self.n.reshape(x, *(lead or (0,)), self.heads, self.width // self.heads)


def bucket(apart: np.ndarray, buckets: int, longest: int) -> np.ndarray:
    """Distances as such, or from half of the buckets on by their logarithm."""
    if buckets <= 0:
        return apart
    half = buckets // 2
    far = np.where(np.abs(apart) < half, half - 1, np.abs(apart))
    with np.errstate(all="ignore"):
        logs = np.log((far / half).astype(np.float32)) / np.float32(math.log(max(longest - 1, 1) / max(half, 1)) or 1)
    grown = np.ceil(logs * np.float32(half - 1)) + half
    return np.where(far <= half, apart, grown * np.sign(apart)).astype(np.int64)


def convolved(n: Network, x: str, y: str, mask: str, eps: float) -> str:
    """The first block's result, with a convolution over the tokens of its input added."""
    c, name, width = n.config, f"{n.weights.prefix}encoder.conv", n.width(x)
    size, groups = c.size("conv_kernel_size"), c.size("conv_groups", 1)
    weight, bias = n.parameter(f"{name}.conv.weight", width, width // groups, size), n.vector(f"{name}.conv.bias", width)
    pads = [(size - 1) // 2] * 2
    z = n.op("Conv", n.op("Transpose", x, perm=[0, 2, 1]), weight, bias, pads=pads, group=groups, kernel_shape=[size])
    there = n.op("Unsqueeze", n.cast(mask, FLOAT32), n.ints(2))
    z = n.activation(c.text("conv_act", "tanh"), n.mul(n.op("Transpose", z, perm=[0, 2, 1]), there))
    return n.mul(n.layer_norm(f"{name}.LayerNorm", n.add(y, z), eps, bias=True), there)


def masked(n: Network, x: str) -> str:
    """Scores of all words for every token."""
    c = n.config
    y = n.linear("cls.predictions.transform.dense", x, c.size("embedding_size", n.width(x)))
    y = n.layer_norm(
        "cls.predictions.transform.LayerNorm", n.activation(c.text("hidden_act", "gelu"), y), c.number("layer_norm_eps", 1e-7)
    )
    table = f"{n.weights.prefix}embeddings.word_embeddings.weight"
    return heads.words(n, y, table, "cls.predictions.decoder", "cls.predictions.bias")
