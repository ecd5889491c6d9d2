"""Stand-ins of a model without a compiled runner, without caches, or closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..ir.graph import Graph
    from ..kernels.dispatch import Variant
    from ..program import Program
    from .model import Options

__all__ = ["Closed", "NoRunner", "coded", "growing"]

# Operators that read or give strings, or maps, and can do without.
CLASSICAL = ("CategoryMapper", "LabelEncoder", "OneHotEncoder", "StringConstant", "TfIdfVectorizer", "ZipMap")
APPENDS = ("Attention", "Concat", "GroupQueryAttention")  # operators that append to a cache


def growing(graph: Graph, program: Program) -> Any:
    """Caches of a model that grow where they are; None, as of most models, if it has none."""
    given = {v.name for v in graph.inputs if v.shape is not None and len(v.shape) == 4}
    if program.gpu is not None or not any(node.op in APPENDS and given.intersection(node.inputs) for node in program.graph.nodes):
        return None
    from .caches import growing

    return growing(graph, program)


def coded(graph: Graph, options: Options, variant: Variant) -> Any:
    """A graph with strings or maps, rewritten to numbers alone; None if it has neither, as most models, or cannot do without."""
    if not any(node.op in CLASSICAL for node in graph.nodes):
        return None
    from .coded import coded

    return coded(graph, options, variant)


class NoRunner:
    """In the place of the compiled engine's fast way in: takes no call."""

    threads = 0

    def run(self, feeds: Any) -> None:
        return None

    def call(self, arrays: Any) -> None:
        return None


class Closed:
    """A stand-in for the graph and program of a closed model: anything that is asked of it is an error."""

    def __getattr__(self, name: str) -> Any:
        raise ArgumentError("the model was closed: load or compile it again")

    def __reduce__(self) -> Any:
        return self.nodes
