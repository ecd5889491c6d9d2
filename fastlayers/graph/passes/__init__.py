"""Rewrites of a graph, one file each; every file's docstring shows the graph before and after. The result computes the same
numbers.

To add a pass: a module with ``apply(net)``, which edits a `_net.Net`; a line in `PASSES` with the operators that it looks for;
cases in tests/graph/test_passes.py, where every pass is run alone and with all others against the graph as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..._lazy import imported
from ...operators import Spec
from ..ir import Graph
from . import fold
from ._net import Net

__all__ = ["PASSES", "Pass", "optimise"]


class Pass:
    """A module of this package. It is imported where a graph has what the pass changes: an operator of each of `needs`."""

    def __init__(self, name: str, *needs: str) -> None:
        self.name, self.needs = name, tuple(frozenset(ops.split()) for ops in needs)

    def apply(self, net: Net) -> None:
        """Edits the net as the module says."""
        if not any(ops.isdisjoint(net.ops) for ops in self.needs):
            imported(f"{__package__}.{self.name}").apply(net)


_ACTIVATIONS = Pass("activations", "Conv ConvTranspose Linear Affine Add Sub Mul Div")
# In their order. `strict` leaves them out, since they change how sums are formed.
PASSES = (
    Pass("padding", "Pad"),
    Pass("linear", "Gemm MatMul Linear"),
    Pass("affine", "BatchNormalization Affine Mul Add Sub Div", "BatchNormalization Affine Conv ConvTranspose"),
    Pass("gates", "Mul Div", "Sigmoid HardSigmoid Clip Erf"),
    Pass("layer_norm", "Div LayerNormalization", "Sqrt LayerNormalization"),
    Pass("attention", "MatMul", "Softmax"),
    _ACTIVATIONS,
    Pass("residual", "Add Sum", "Conv Linear"),
    _ACTIVATIONS,
    Pass("layout", "Conv QLinearConv AveragePool"),
)


def optimise(
    graph: Graph, strict: bool = False, known: Mapping[str, np.ndarray] | None = None, specs: Mapping[str, Spec] | None = None
) -> Graph:
    """The graph simplified and with operations fused. Branches of an `If` that is left are as they were: see
    `program.Program.branch`.

    Args:
        graph: with the operators of `operators`.
        strict: constants are folded and nothing else is done.
        known: constants of the graphs around this one, where it is a branch.
        specs: ranks and dtypes of the values of those graphs.
    """
    room = fold.Room(graph)
    with np.errstate(all="ignore"):  # weights may be of any kind, and what comes of them is what would come when it runs
        ops = {node.op for node in graph.nodes}
        if not strict and any(node.op == "Conv" and node.attributes.get("group") != 1 for node in graph.nodes):
            from .separable import separated

            graph = separated(graph)
        net = Net(graph, known or {}, specs or {})
        if not strict and not ops.isdisjoint(("DequantizeLinear", "MatMulInteger")):
            from . import quantised

            fold.apply(net, frozenset({"DequantizeLinear"}), room)
            quantised.apply(net)
            net = Net(net.graph(), known or {}, specs or {})
        fold.apply(net, room=room)
        if not strict:
            for change in PASSES:
                change.apply(net)
        return net.graph()
