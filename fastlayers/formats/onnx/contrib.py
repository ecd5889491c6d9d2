"""Operators of other domains than ONNX's own, as exporters and optimisers write them, in terms of ONNX's and ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import FormatError, UnsupportedError
from ...graph.ir import Graph, Node
from .schema import NEWEST, Attribute, Schema

if TYPE_CHECKING:
    from .canonical import Make, Rule

__all__ = ["MICROSOFT", "PREVIEW"]


def _schema(least: int, most: int, outputs: int, attributes: str = "") -> Schema:
    """Counts of inputs and outputs, and attributes as the table of ONNX's own operators writes them."""
    found = {}
    for text in attributes.split():
        name, kind = text.rstrip("!").split(":")
        found[name] = Attribute(kind, text.endswith("!"), 0, NEWEST + 1)
    return Schema(1, least, most, outputs, found)


# ---- graphs as attributes ----------------------------------------------------------------------------------------------


def _inlined(node: Node, key: str, x: str, make: Make) -> tuple[list[Node], str]:
    """The nodes of a graph of one input and one output, its input being x; and the name of its output."""
    graph: Graph = node.attributes[key]
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise FormatError(
            f"onnx: {node.op}: {key} has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs: expected one of each"
        )
    nodes = [Node("Identity", (make.constant(array, name),), (name,), {}) for name, array in graph.constants.items()]
    nodes.append(Node("Identity", (x,), (graph.inputs[0].name,), {}))
    return [*nodes, *graph.nodes], graph.outputs[0].name


def _flex_attention(node: Node, version: int, make: Make) -> list[Node]:
    """The products, with the graphs put in between."""
    q, k, v = node.inputs
    out, given = node.outputs[0], node.attributes
    attributes = {name: given[name] for name in ("scale", "softmax_precision") if name in given}
    if attributes.get("softmax_precision", 1) not in (1, 10, 11):
        raise UnsupportedError(f"FlexAttention: softmax_precision={attributes['softmax_precision']}")
    if "score_mod" not in given and "prob_mod" not in given:
        return [Node("Attention", (q, k, v), node.outputs, {"softmax_precision": 1, **attributes})]
    scores, weights = make.name(f"{out}/scores"), make.name(f"{out}/weights")
    nodes = [Node("AttentionScores", (q, k), (scores,), attributes)]
    if "score_mod" in given:
        more, scores = _inlined(node, "score_mod", scores, make)
        nodes += more
    nodes.append(Node("Softmax", (scores,), (weights,), {"axis": -1}))
    if "prob_mod" in given:
        more, weights = _inlined(node, "prob_mod", weights, make)
        nodes += more
    return [*nodes, Node("AttentionValues", (weights, v), node.outputs, {})]


Table = dict[str, tuple[Schema, "Rule"]]

PREVIEW: Table = {
    "FlexAttention": (_schema(3, 3, 1, "prob_mod:g scale:f score_mod:g softmax_precision:i"), _flex_attention),
}
MICROSOFT: Table = {}
