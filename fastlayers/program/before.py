"""Nodes that reckon with sizes and masks, a few of a decoder's, run in numpy for every call: see `caches`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from ..ir.graph import Graph, Node
from ..operators import FLOAT32, OPERATORS, Spec, View, traits_of
from ..operators.families import CONTROL, SEQUENCES
from .memory import result_bytes

__all__ = ["Before", "asks_sizes", "before"]

MOST_NODES, MOST_VALUES = 128, 1 << 16  # and values of a constant that they read
SMALL = 1 << 22  # where the sizes of a node's inputs have no larger product, its result is as small
_MASK = "PaddingMask"  # it reads the numbers of queries and keys, not their values


class _Step:
    """A node. `alone`: the results' specs alone are wanted; `steered`: values decide sizes; `dtypes`: of the results."""

    __slots__ = ("alone", "dtypes", "infer", "names", "node", "run", "steered")

    def __init__(self, node: Node, alone: bool, constants: Mapping[str, np.ndarray]) -> None:
        operator = OPERATORS[node.op]
        self.node, self.alone, self.names = node, alone, node.inputs
        self.infer, self.run = operator.infer, operator.run
        fixed = all(i >= len(node.inputs) or node.inputs[i] in constants for i in operator.traits.steers)
        self.steered = bool(operator.traits.steers) and not (fixed and operator.traits.sizes in ("same", "reshape", "slice"))
        self.dtypes: list[np.dtype[Any]] | None = None


class Before:
    """Nodes of a graph in order, and the names that they read (`reads`). May run on any number of threads at once."""

    def __init__(self, graph: Graph, nodes: Sequence[tuple[Node, bool]]) -> None:
        self.nodes = [_Step(node, alone, graph.constants) for node, alone in nodes]
        self.reads = frozenset(name for node, _ in nodes for name in node.inputs if name)
        self._constants = {name: array for name, array in graph.constants.items() if name in self.reads}
        self._specs: dict[str, Spec] = {name: Spec(a.shape, a.dtype) for name, a in self._constants.items()}

    def run(self, arrays: Mapping[str, np.ndarray], queries: tuple[int, int], most: int) -> dict[str, np.ndarray]:
        """Values by name: those of the nodes, for these inputs, and the inputs. `queries`: the entries of the batch, and how many
        queries each has; `most`: the bytes that a result may take.
        """
        env, specs = {**self._constants, **arrays}, {**self._specs, **{n: Spec(a.shape, a.dtype) for n, a in arrays.items()}}
        with np.errstate(all="ignore"):
            for step in self.nodes:
                node, dtypes = step.node, step.dtypes
                values = [None if name is None else env.get(name) for name in step.names]
                if node.op == _MASK:
                    specs.update((str(name), Spec((*queries, 1), FLOAT32)) for name in node.inputs[1:3] if name not in specs)
                view = View(node, [None if name is None else specs[name] for name in step.names], values)
                size = math.prod([a.size for a in values if a is not None])
                if dtypes is None or step.alone or step.steered or size > SMALL:
                    found = step.infer(view)
                    if step.alone:
                        specs.update(zip(node.outputs, found, strict=False))
                        continue
                    result_bytes(view, found, most)
                    dtypes = step.dtypes = [spec.dtype for spec in found]
                for name, made, dtype in zip(node.outputs, step.run(view, *values), dtypes, strict=False):  # type: ignore[misc]
                    env[name] = array = np.asarray(made, dtype)
                    specs[name] = Spec(array.shape, dtype)
        return env

    def by_elements(self, names: Sequence[str]) -> bool:
        """Whether these values are made of inputs element by element, whatever the sizes."""
        makers = {name: step for step in self.nodes for name in step.node.outputs}
        left, seen = [*names], set(names)
        while left:
            step = makers.get(left.pop())
            if step is None:
                continue
            traits = traits_of(step.node.op)
            if step.alone or not (traits.elementwise or traits.sizes == "same"):
                return False
            new = {name for name in step.names if name} - seen
            seen |= new
            left += new
        return True


def asks_sizes(node: Node) -> bool:
    """Whether a node asks for the sizes of floats alone."""
    return traits_of(node.op).shape_only or node.op == _MASK


def before(graph: Graph, wanted: Set[str], never: Set[int]) -> Before | None:
    """The nodes that give the `wanted` values; None if it is much, or of another sort than numpy runs in no time. `never`: the
    identities of nodes that it must not be.
    """
    values: set[str] = set(wanted)
    specs: set[str] = set()
    found: list[tuple[Node, bool]] = []
    for node in reversed(graph.nodes):
        alone = values.isdisjoint(node.outputs)
        if alone and specs.isdisjoint(node.outputs):
            continue
        operator = OPERATORS.get(node.op)
        if operator is None or node.op in CONTROL or node.op in SEQUENCES or len(found) == MOST_NODES:
            return None
        traits, named = operator.traits, [(i, name) for i, name in enumerate(node.inputs) if name]
        if alone:
            steered = {name for i, name in named if i in traits.steers}
        else:
            large = any(name in graph.constants and graph.constants[name].size > MOST_VALUES for _, name in named)
            plain = traits.elementwise or traits.moves or traits.shape_only or traits.work == "elements" or node.op == _MASK
            if operator.run is None or traits.volatile or not plain or large or id(node) in never:
                return None
            steered = set() if traits.shape_only else {name for i, name in named if node.op != _MASK or not i}
        values |= steered
        specs |= {name for i, name in named if name not in steered and (node.op != _MASK or i == 3)}
        found.append((node, alone))
    return Before(graph, found[::-1])
