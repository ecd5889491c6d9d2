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
    known = s.constants.get(mask)
    if s.inputs.get(mask) != BOOL and (known is None or known.dtype != BOOL):
        return mask
    return s.add("Where", (mask, s.scalar(0.0), s.scalar(-np.inf)), s.name("mask"))


@rule
def _scaled_dot_product_attention(
    s: Lowering, node: Node, query: str, key: str, value: str, mask: str | None, lengths: str | None
) -> None:
    s.add("DotAttention", (query, key, value, _additive(s, mask), lengths), node.outputs, **node.attributes)
