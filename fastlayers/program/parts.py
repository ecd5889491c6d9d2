"""The parts of a network that runs in stages, as they were when it ran last: programs between the nodes that run alone, and the
bodies of loops and branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from .._tuples import NamedTuple
from ..ir.graph import Graph, Node
from .program import Program
from .segment import Binding, Segment
from .stages import Stages

__all__ = ["Part", "parts", "times_run"]

DEEPEST = 32  # as deep as graphs may be


class Part(NamedTuple):
    """A part: a binding with steps, of a program; or, without one, a node that runs alone, or did not run. `depth`: in how many
    bodies.
    """

    depth: int
    binding: Binding | None
    node: Node | None
    constants: Mapping[str, np.ndarray]
    note: str
    program: Segment | None = None


def parts(program: Segment, depth: int = 0) -> Iterator[Part]:
    """All parts in the order in which they run, those of bodies after the node whose they are."""
    stages = program.made_stages if isinstance(program, Program) else None
    last = max(program.bindings.values(), key=lambda kept: kept.last_use, default=None)
    if last is not None and not last.staged and (stages is None or stages.parts == {}):
        yield Part(depth, Binding(program, last), None, {}, "", program)
        return
    if stages is None:
        for node in program.graph.nodes:
            yield Part(depth, None, node, program.graph.constants, "(not run)")
        return
    at, nodes = 0, stages.graph.nodes
    while at < len(nodes):
        part = stages.parts.get(at)
        if at not in stages.cuts and part is not None:
            yield from parts(part.program, depth)
            at = part.stop
            continue
        yield Part(depth, None, nodes[at], program.graph.constants, "(alone)" if at in stages.cuts else "(not run)")
        if depth < DEEPEST:
            yield from _bodies(stages, nodes[at], depth + 1)
        at += 1


def times_run(program: Segment) -> int:
    """Number of runs so far of the bindings that a program keeps."""
    return sum(int(b.bound.runs) for b in program.bindings.values() if b.bound is not None)


def _bodies(stages: Stages, node: Node, depth: int) -> Iterator[Part]:
    for graph in node.attributes.values():
        if isinstance(graph, Graph):
            body = stages.bodies.get(graph)
            forms = [] if body is None else body.forms
            if not forms:  # a branch that was not taken
                for inner in graph.nodes:
                    yield Part(depth, None, inner, graph.constants, "(not run)")
            else:
                yield from parts(forms[-1][0], depth)
