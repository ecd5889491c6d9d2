"""A network over whole sequences as one over pieces; importing this fills the table of rules."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.graph import Graph
from . import _shapes, _steps, _windows  # noqa: F401  # they fill RULES
from .rewrite import Rewriter, Rewritten

__all__ = ["rewritten"]


def rewritten(graph: Graph, times: Mapping[str, int]) -> Rewritten:
    """The graph for pieces. `times` has the axis of time of every input that has one.

    Raises:
        UnsupportedError: a node looks ahead; the error names the first one that does.
    """
    return Rewriter(graph, times).run()
