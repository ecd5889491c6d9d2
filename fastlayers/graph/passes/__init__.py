"""Rewrites of a graph, one file each; every file's docstring shows the graph before and after. The result computes the same
numbers.

To add a pass: a module with ``apply(net)``, which edits a `_net.Net`; a line in `PASSES`; cases in tests/graph/test_passes.py,
where every
pass is run alone and with all others against the graph as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...operators import Spec
from ..ir import Graph
from . import activations, affine, attention, fold, gates, layer_norm, layout, linear, padding, quantised, residual
from ._net import Net
from .separable import separated

__all__ = ["PASSES", "optimise"]

# In their order. The first is always done; the others change how sums are formed, so `strict` leaves them out.
PASSES = (padding, linear, affine, gates, layer_norm, attention, activations, residual, activations, layout)


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
        net = Net(graph if strict else separated(graph), known or {}, specs or {})
        if not strict and quantised.wanted(graph):
            fold.apply(net, frozenset({"DequantizeLinear"}), room)
            quantised.apply(net)
            net = Net(net.graph(), known or {}, specs or {})
        fold.apply(net, room=room)
        if not strict:
            for change in PASSES:
                change.apply(net)
        return net.graph()
