"""Has weights stored in 16 bits, as ``precision="float16"`` and ``"bfloat16"`` ask: those of products and recurrent layers.

before             after
Linear(x, W, b)    Linear(x, W, b, half=1)     1: float16, 2: bfloat16 (`kernels.table.HALVES`)
LSTM(x, W, R)      LSTM(x, W, R, half=1)       and GRU, RNN, in branches too

A node of which a weight would become infinite in float16 stays as it is. Weights of convolutions are read once for many pixels:
half of their bytes would save no time.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping

import numpy as np

from ..ir.graph import Graph, Node
from ..kernels.halves import LARGEST_HALF
from ..kernels.table import HALVES
from ..operators import traits_of

__all__ = ["halved"]


def halved(graph: Graph, half: int, known: Mapping[str, np.ndarray] | None = None) -> Graph:
    """The graph with every such node marked. `known`: constants of the graphs around it."""
    constants = ChainMap(dict(graph.constants), dict(known or {}))

    def marked(node: Node) -> Node:
        attributes = {
            name: halved(value, half, constants) if isinstance(value, Graph) else value for name, value in node.attributes.items()
        }
        places = traits_of(node.op).halves
        weights = [constants.get(node.inputs[i] or "") for i in places if i < len(node.inputs) and node.inputs[i]]
        if places and all(w is not None and w.dtype == np.float32 and _fits(w, half) for w in weights):
            attributes["half"] = half
        return Node(node.op, node.inputs, node.outputs, attributes)

    return Graph(graph.inputs, graph.outputs, tuple(map(marked, graph.nodes)), graph.constants, graph.values)


def _fits(weight: np.ndarray, half: int) -> bool:
    """Whether what is finite stays so."""
    if half != HALVES["float16"]:
        return True
    size = np.maximum(weight.max(initial=0, where=np.isfinite(weight)), -weight.min(initial=0, where=np.isfinite(weight)))
    return bool(size <= LARGEST_HALF)
