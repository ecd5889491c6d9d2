"""The values between a network's inputs and outputs: their names, and graphs that give some of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._arguments import shown
from ..errors import ArgumentError
from ..ir.graph import Graph, Value

__all__ = ["value_names", "with_outputs"]

# Names come from files: up to so many of them, and to such a length, it is looked for what is like another.
MOST_NAMES, LONGEST = 5000, 200
MOST_SHOWN = 5


def value_names(graph: Graph) -> list[str]:
    """Every value that the graph's own nodes make, in their order."""
    return [name for node in graph.nodes for name in node.outputs if name]


def with_outputs(graph: Graph, names: Sequence[str]) -> Graph:
    """The graph with other values as its outputs.

    Raises:
        ArgumentError: the graph has no value of such a name, or a name comes twice.
    """
    known = {v.name: v for v in (*graph.inputs, *graph.outputs)}
    made = dict.fromkeys(value_names(graph))
    wanted = []
    for name in names:
        if name not in made and name not in known and name not in graph.constants:
            outputs = [v.name for v in graph.outputs]
            more = f" and {len(outputs) - MOST_SHOWN} more" if len(outputs) > MOST_SHOWN else ""
            raise ArgumentError(
                f"run: outputs has {shown(name)}, which is not a value of the graph: expected some of its outputs "
                f"[{', '.join(map(shown, outputs[:MOST_SHOWN]))}]{more}, or of the {len(made)} values between, which "
                f"`Model.value_names` lists{_like(name, list(made))}"
            )
        spec = known.get(name) or graph.values.get(name)
        wanted.append(spec._replace(name=name) if spec else Value(name, None, np.dtype(np.float32)))
    if len(set(names)) != len(names):
        raise ArgumentError(f"run: outputs has a name twice: {list(names)}")
    return Graph(graph.inputs, tuple(wanted), graph.nodes, graph.constants, graph.values)


def _like(name: str, made: Sequence[str]) -> str:
    """Values that could have been meant: those that have the name in theirs, then those that are spelled like it."""
    if len(name) > LONGEST or len(made) > MOST_NAMES:
        return ""
    from difflib import get_close_matches

    short = [other for other in made if len(other) <= LONGEST]
    found = sorted((other for other in short if name.lower() in other.lower()), key=len)[:3]
    found += [other for other in get_close_matches(name, short, 3) if other not in found]
    return f"; near to it: {', '.join(map(repr, found[:3]))}" if found else ""
