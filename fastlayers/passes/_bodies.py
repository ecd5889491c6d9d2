"""Infers the results of nodes with their own graphs, so that passes know shapes and dtypes after a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.graph import Graph, Node, free
from ..operators import BOOL, INT64, Spec
from ..operators.control import inferred

__all__ = ["control_infer"]


def control_infer(node: Node, around: Callable[[str], Spec | None]) -> list[Spec | None]:
    """Ranks and dtypes of a node's outputs; None where they cannot be told, or change from round to round. `around`: what is
    known of the values around its graphs.
    """
    if node.op == "If":
        both = zip(*(_unsized(node.attributes[key], [], around) for key in ("then_branch", "else_branch")), strict=True)
        return [a if a == b else None for a, b in both]
    if node.op not in ("Loop", "Scan") or node.attributes.get("batched", 0):
        return [None] * len(node.outputs)
    body: Graph = node.attributes["body"]
    given = [None if name is None else _open(around(name)) for name in node.inputs]
    if node.op == "Loop":
        carried = given[2:]
        shapes = ((1,) * (v.shape is not None and len(v.shape)) for v in body.inputs[:2])
        first = [Spec(shape, dtype) for shape, dtype in zip(shapes, (INT64, BOOL), strict=True)]
        made = _unsized(body, [*first, *carried], around)[1:]
    else:
        carried = given[: len(given) - node.attributes["num_scan_inputs"]]
        parts = [None if s is None or not s.shape else Spec(s.shape[1:], s.dtype) for s in given[len(carried) :]]
        made = _unsized(body, [*carried, *parts], around)
    if made[: len(carried)] != carried:
        return [None] * len(node.outputs)
    grown = [None if s is None or s.shape is None else Spec((None, *s.shape), s.dtype) for s in made[len(carried) :]]
    return [*carried, *grown][: len(node.outputs)]


def _open(spec: Spec | None) -> Spec | None:
    """Rank and dtype alone."""
    return None if spec is None or spec.shape is None else Spec((None,) * len(spec.shape), spec.dtype)


def _unsized(graph: Graph, inputs: Sequence[Spec | None], around: Callable[[str], Spec | None]) -> list[Spec | None]:
    """Ranks and dtypes of a graph's outputs."""
    known = {v.name: spec for v, spec in zip(graph.inputs, inputs, strict=True)}
    known.update((name, around(name)) for name in free(graph))
    return [_open(spec) for spec in inferred(graph, {name: spec for name, spec in known.items() if spec is not None})]
