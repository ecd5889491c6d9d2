"""Programs of graphs: passes over them and the graphs within them, and how their weights are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import imported
from ..errors import ours
from ..ir.graph import Graph
from ..program import Program
from ..program.memory import counted

if TYPE_CHECKING:
    from ..kernels.dispatch import Variant
    from .model import Options

__all__ = ["made", "optimize_branch", "stored"]


def made(graph: Graph, options: Options, variant: Variant, packed: Mapping[str, np.ndarray] | None = None) -> Program:
    """The program of a graph. `packed`: see `Program`."""
    store = partial(stored, options, variant)
    bytes_pay = not (options.half or options.bits) and variant.multiplies_three_bytes()
    simplify = partial(optimize_branch, options.strict, store, bytes_pay)
    if options.strict or options.streaming:
        graph = imported("fastlayers.passes.conv_direct").direct(graph)
    if options.optimize:
        with ours(lambda: "load: simplifying the graph"), counted(options.most):
            graph = imported("fastlayers.passes").optimize(graph, options.strict, bytes_pay=bytes_pay)
    ways = (simplify if options.optimize else None, simplify if options.bodies else None)
    return Program(store(graph), variant, options.native, packed, *ways, options.rounds, options.most)


def stored(options: Options, variant: Variant, graph: Graph, known: Mapping[str, np.ndarray] | None = None) -> Graph:
    """The graph with its weights as the options say; `known` are constants of the graphs around it."""
    with ours(lambda: "load: storing weights in fewer bits"):
        if options.half:
            half = imported("fastlayers.passes.half")
            return half.halved(graph, options.half, variant.multiplies_bfloat16(), known)  # type: ignore[no-any-return]
        if options.bits:
            few = imported("fastlayers.passes.few_bits")
            return few.few_bits(graph, options.bits, options.strict, known)  # type: ignore[no-any-return]
    return graph


def optimize_branch(
    strict: bool, store: Callable[..., Graph], bytes_pay: bool, graph: Graph, known: Mapping[str, np.ndarray],
    specs: Mapping[str, Any],
) -> Graph:  # fmt: skip
    """The passes over a branch of an `If`; `store`: see `stored`, `bytes_pay`: see `optimize`."""
    with ours(lambda: "run: simplifying a branch or a body"):
        graph = imported("fastlayers.passes").optimize(graph, strict, known, specs, bytes_pay)
    return store(graph, known)
