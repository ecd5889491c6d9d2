"""From a recorded function of layers, whose nodes are functions of `functional`, to a graph of operators, which programs run.

One small function an operation, in `LOWER`, in the file of its family; a test fails while an operation of `graph.OPS` has none.
"""

from __future__ import annotations

from ...graph.ir import Graph
from . import (  # noqa: F401  (they fill LOWER)
    attention,
    conv,
    elementwise,
    embedding,
    further,
    hierarchical,
    layout,
    normalisation,
    pooling,
    product,
    recurrent,
    regions,
    resampling,
    similarity,
    spectral,
)
from ._base import LOWER, Lowering

__all__ = [
    "LOWER", "lower",
]  # fmt: skip


def lower(graph: Graph) -> Graph:
    """The same graph in the vocabulary of `operators`."""
    return Lowering(graph).run()
