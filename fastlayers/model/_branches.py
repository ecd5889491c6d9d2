"""Passes over the graphs within a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._lazy import imported
from ..errors import ours
from ..ir.graph import Graph
from ..passes import optimize

__all__ = ["optimize_branch"]


def optimize_branch(
    strict: bool, half: int, native: bool, graph: Graph, known: Mapping[str, np.ndarray], specs: Mapping[str, Any]
) -> Graph:
    """The passes over a branch of an `If`; `native`: see `passes.half`."""
    with ours(lambda: "run: simplifying a branch or a body"):
        graph = optimize(graph, strict, known, specs)
    return imported("fastlayers.passes.half").halved(graph, half, native, known) if half else graph
