"""Has weights stored in 16 bits, as ``precision="float16"`` and ``"bfloat16"`` ask: those of products and recurrent layers, and
tables of which rows are taken.

before             after
Linear(x, W, b)    Linear(x, W, b, half=1)     1: float16, 2: bfloat16 (`kernels.table.HALVES`)
LSTM(x, W, R)      LSTM(x, W, R, half=1)       and GRU, RNN, in branches too
Conv(x, W, b)      Linear(x, W, b, half=2)     a 1x1 kernel over channels that come last, for bfloat16
Conv(x, W, b)      Conv(x, W, b, half=2)       any other one, where the processor multiplies bfloat16
Gather(W, i)       Embedding(W16, i, half=1)   and Embedding: of large tables, which a product that has the same weights shares

A node of which a weight would become infinite in float16 stays as it is. Weights of convolutions are read once for many pixels:
half of their bytes would save no time. But processors multiply bfloat16 twice as fast. A convolution that is marked is
multiplied so where Winograd's algorithm, in float32, is not expected to save more: see `calls.conv_costs.half_pays`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.graph import Graph, Node, captured
from ..kernels.halves import LARGEST_HALF, STORED, narrowed, widened
from ..kernels.table import HALVES
from ..operators import traits_of
from .few_bits import LEAST, equal, is_lookup

__all__ = ["as_stored", "halved", "rounding"]

_LEAST = 32  # channels of both sides: fewer are bound by reading and writing pixels


def halved(graph: Graph, half: int, native: bool = False, known: Mapping[str, np.ndarray] | None = None) -> Graph:
    """The graph with every such node marked.

    Args:
        half: one of `HALVES`.
        native: whether the processor multiplies bfloat16.
        known: constants of the graphs around it.
    """
    made = dict(graph.constants)
    constants = ChainMap(made, dict(known or {}))
    tables = {str(node.inputs[0]): ("", (0.0, 0.0)) for node in graph.nodes if _is_table(node, constants, half)}

    def table(name: str) -> tuple[str, tuple[float, float]]:
        """The name of a table rounded to 16 bits, and the errors of rounding."""
        if not tables[name][0]:
            stored = f"{name} of 16 bits"
            node = Node("Embedding", (name,), (stored,), {"half": half})
            tables[name] = stored, rounding(node, constants) or (0.0, 0.0)
            made[stored] = narrowed(constants[name], half)
        return tables[name]

    def marked(node: Node) -> Node:
        if half == HALVES["bfloat16"] and node.op == "Conv":
            node = _as_product(node, constants)
        attributes = {
            name: halved(value, half, native, constants) if isinstance(value, Graph) else value
            for name, value in node.attributes.items()
        }
        if str(node.inputs[0] if node.inputs else "") in tables and is_lookup(node):
            name, off = table(str(node.inputs[0]))
            words = {"half": half, "rounded": off, **({"wraps": 1} if node.op == "Gather" else {})}
            return Node("Embedding", (name, node.inputs[1]), node.outputs, words)
        places = traits_of(node.op).halves if node.op != "Embedding" else ()
        weights: list[Any] = [constants.get(node.inputs[i] or "") for i in places if i < len(node.inputs) and node.inputs[i]]
        if places and all(w is not None and w.dtype == np.float32 and _fits(w, half) for w in weights):
            attributes["half"] = half
            if node.op == "Linear" and (same := next((t for t in tables if equal(constants[t], weights[0])), None)) is not None:
                name, attributes["rounded"] = table(same)
                node = Node(node.op, (node.inputs[0], name, *node.inputs[2:]), node.outputs, {})
        if node.op == "Conv":
            weight = constants.get(node.inputs[1] or "")
            attributes.pop("half", None)  # of a file that was saved where the processor multiplies them
            if native and half == HALVES["bfloat16"] and weight is not None and weight.dtype == np.float32:
                attributes["half"] = half
        return Node(node.op, node.inputs, node.outputs, attributes)

    nodes = tuple(map(marked, graph.nodes))
    if tables:
        read = {name for node in nodes for name in (*node.inputs, *captured(node))} | {v.name for v in graph.outputs}
        made = {name: array for name, array in made.items() if name in read}
    return Graph(graph.inputs, graph.outputs, nodes, made, graph.values)


def _is_table(node: Node, known: Mapping[str, np.ndarray], half: int) -> bool:
    """Whether a node looks up rows of a large table whose values fit 16 bits."""
    weight = known.get(node.inputs[0] or "") if is_lookup(node) else None
    large = weight is not None and weight.ndim == 2 and weight.dtype == np.float32 and weight.size >= LEAST
    return large and weight is not None and _fits(weight, half)


def _as_product(node: Node, constants: ChainMap[str, np.ndarray]) -> Node:
    """A convolution as a product of its pixels, with its weights as a constant more; where it is none, the node."""
    get, name = node.attributes.get, node.inputs[1] or ""
    weight = constants.get(name)
    if weight is None or weight.ndim < 3 or weight.size != weight.shape[0] * weight.shape[1] or min(weight.shape[:2]) < _LEAST:
        return node
    if not get("x_last", False) or not get("out_last", False) or get("group", 1) != 1:
        return node
    if any(get("pads") or ()) or any(step != 1 for step in get("strides") or ()):
        return node
    rows = f"{name} of {node.outputs[0]} as rows"
    constants[rows] = weight.reshape(weight.shape[:2])
    kept = {"activation": get("activation")} if get("activation") is not None else {}
    return Node("Linear", (node.inputs[0], rows, *node.inputs[2:]), node.outputs, kept)


def _fits(weight: np.ndarray, half: int) -> bool:
    """Whether what is finite stays so."""
    if half != HALVES["float16"]:
        return True
    size = np.maximum(weight.max(initial=0, where=np.isfinite(weight)), -weight.min(initial=0, where=np.isfinite(weight)))
    return bool(size <= LARGEST_HALF)


def as_stored(graph: Graph) -> Graph:
    """The graph as a file has it: weights that marked nodes alone read are in 16 bits, and each such node has the attribute
    `rounded`, see `rounding`. Weights of convolutions stay: the mark is the processor's there.
    """
    at = {id(node): _places(node) for node in graph.nodes}
    others: set[str | None] = {value.name for value in graph.outputs}
    for node in graph.nodes:
        others.update(name for i, name in enumerate(node.inputs) if i not in at[id(node)])
        others |= captured(node)
    constants, nodes = dict(graph.constants), []
    for node in graph.nodes:
        attributes = {k: as_stored(v) if isinstance(v, Graph) else v for k, v in node.attributes.items()}
        half: Any = attributes.get("half")
        if found := rounding(node, graph.constants):
            attributes["rounded"] = found
        for name in (node.inputs[i] for i in at[id(node)]):
            if name in constants and constants[name].dtype == np.float32 and name not in others:
                constants[name] = narrowed(constants[name], half)
        nodes.append(Node(node.op, node.inputs, node.outputs, attributes))
    return Graph(graph.inputs, graph.outputs, tuple(nodes), constants, graph.values)


def _places(node: Node) -> tuple[int, ...]:
    """Positions of the node's weights that are used as if they had 16 bits."""
    half = node.attributes.get("half")
    if type(half) is not int or half not in STORED or node.op == "Conv":
        return ()
    return tuple(i for i in traits_of(node.op).halves if i < len(node.inputs) and node.inputs[i])


def rounding(node: Node, constants: Mapping[str, np.ndarray]) -> tuple[float, float] | None:
    """Differences of a marked node's weights from what they were: their Frobenius norm over that of the weights, and the largest.
    None where there are none, or they are there in 16 bits alone.
    """
    error = whole = largest = 0.0
    for i in (places := _places(node)):
        weight = constants.get(node.inputs[i] or "")
        if weight is None or weight.dtype != np.float32:
            return None
        for some in np.array_split(weight, max(1, weight.size >> 20)):
            half = node.attributes["half"]
            off = np.abs(some - widened(narrowed(some, half), half))
            error += float(np.square(off).sum(dtype=np.float64))
            whole += float(np.square(some).sum(dtype=np.float64))
            largest = max(largest, float(off.max(initial=0)))
    return (float(np.sqrt(error / whole)) if whole else 0.0, largest) if places else None
