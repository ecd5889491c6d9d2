"""Cosines between vectors: products, sums and norms along an axis."""

from __future__ import annotations

from ...functional._checks import axis
from ...functional.similarity import least_norm
from ...graph.ir import Node
from ._base import Lowering, rule


@rule
def _cosine_similarity(s: Lowering, node: Node, x1: str, x2: str) -> None:
    rank = max(s.rank(node, i) for i in (0, 1))
    at = s.ints(axis(node.op, node.attributes["dim"], rank))
    least = s.scalar(least_norm(node.attributes["eps"]))
    product = s.add("Mul", (x1, x2), s.name("product"))
    norms = []
    for i, x in enumerate((x1, x2)):
        if s.shapes[node.inputs[i] or ""] != s.shapes[node.inputs[1 - i] or ""]:
            x = s.add("Expand", (x, s.add("Shape", (product,), s.name("shape"))), s.name("whole"))
        norm = s.add("ReduceL2", (x, at), s.name("norm"), keepdims=0)
        norms.append(s.add("Clip", (norm, least, None), s.name("norm")))
    dot = s.add("ReduceSum", (product, at), s.name("dot"), keepdims=0)
    s.add("Div", (dot, s.add("Mul", norms, s.name("norms"))), node.outputs)
