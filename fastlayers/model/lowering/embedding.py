"""Tables whose rows are picked by number."""

from __future__ import annotations

from ...graph.ir import Node
from ._base import Lowering, rule


@rule
def _embedding(s: Lowering, node: Node, ids: str, weight: str) -> None:
    s.add("Embedding", (weight, ids), node.outputs)
