"""Linear layers and softmax."""

from __future__ import annotations

from ...functional._activation import resolve
from ...graph.ir import Node
from ._base import LOWER, Lowering, after, rule


@rule
def _linear(s: Lowering, node: Node, x: str, weight: str, bias: str | None, residual: str | None) -> None:
    attributes = after(resolve("linear", node.attributes["activation"]))
    s.add("Linear", (x, weight, bias, residual) if residual is not None else (x, weight, bias), node.outputs, **attributes)


LOWER["softmax"] = lambda s, node, x: s.add("Softmax", (x,), node.outputs, axis=node.attributes["dim"])
LOWER["log_softmax"] = lambda s, node, x: s.add("LogSoftmax", (x,), node.outputs, axis=node.attributes["dim"])
