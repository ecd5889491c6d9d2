"""Attention: operators of our own, which take masks as numbers."""

from __future__ import annotations

import numpy as np

from ...graph.ir import Node
from ._base import Lowering, rule

BOOL = np.dtype(np.bool_)


def _additive(s: Lowering, mask: str | None) -> str | None:
    """A mask as numbers: where booleans are False, -infinity."""
    if mask is None:
        return None
    if s.dtype(mask) != BOOL:
        return mask
    return s.add("Where", (mask, s.scalar(0.0), s.scalar(-np.inf)), s.name("mask"))


@rule
def _scaled_dot_product_attention(
    s: Lowering, node: Node, query: str, key: str, value: str, mask: str | None, lengths: str | None
) -> None:
    s.add("DotAttention", (query, key, value, _additive(s, mask), lengths), node.outputs, **node.attributes)


@rule
def _additive_attention(
    s: Lowering,
    node: Node,
    query: str,
    key: str,
    value: str,
    weight_q: str | None,
    weight_k: str | None,
    scale: str | None,
    mask: str | None,
    lengths: str | None,
) -> None:
    if weight_q is not None:
        query = s.add("Linear", (query, weight_q, None), s.name("query"))
    if weight_k is not None:
        key = s.add("Linear", (key, weight_k, None), s.name("key"))
    inputs = (query, key, value, None, None, scale, _additive(s, mask), lengths)
    s.add("AdditiveAttention", inputs, node.outputs, **node.attributes)


@rule
def _hard_attention(s: Lowering, node: Node, query: str, key: str, value: str, mask: str | None, lengths: str | None) -> None:
    s.add("HardAttention", (query, key, value, _additive(s, mask), lengths), node.outputs, **node.attributes)


@rule
def _rotary_embedding(s: Lowering, node: Node, x: str, cos: str, sin: str, position_ids: str | None) -> None:
    attributes = {"interleaved": int(node.attributes["interleaved"]), "num_heads": node.attributes["num_heads"] or 0}
    s.add("RotaryEmbedding", (x, cos, sin, position_ids), node.outputs, **attributes)
