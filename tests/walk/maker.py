"""Builds graphs whose sizes are open, node by node, together with their meaning at every place of a walk.

A place is one choice of all sizes and integer inputs. A `Maker` holds each value at every place, as numpy has it, so it needs no
algebra of sizes: two axes have one size if they do at every place. It refuses (`Refused`) a node that numpy cannot compute at a
place that matters, or that gives large numbers. Places with a size of 0 may fail: there the model must only fail as a fresh one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node, Value

from .check import Step
from .meaning import node_meaning

__all__ = ["Maker", "Place", "Refused"]

Place = dict[str, int]
Sizes = tuple[int, ...]  # one number a place
MOST = 1 << 16  # elements of a value in a random graph
LARGEST = 50.0  # what a float may be there, so that errors stay small next to it


class Refused(Exception):
    """This node cannot be had."""


class Maker:
    """A graph that grows.

    Args:
        seed: of all that is drawn.
        places: sizes and integers by name, at each place of the walk.
        optional: places that may fail.
        most: elements that a value may have.
        largest: what a float may be.
    """

    def __init__(
        self, seed: int, places: Sequence[Place], optional: Sequence[int] = (), most: int = MOST, largest: float = LARGEST
    ) -> None:
        self.most, self.largest = most, largest
        self.random = np.random.default_rng([7, seed])
        self.places, self.count = list(places), len(places)
        self.optional = frozenset(optional)
        self.values: dict[str, list[np.ndarray | None]] = {}
        self.inputs: list[Value] = []
        self.constants: dict[str, np.ndarray] = {}
        self.nodes: list[Node] = []
        self.exact: set[str] = set()  # values without rounding, on whose values may be decided
        self.steering: list[str] = []  # integer inputs
        self.depth = 0  # of operands that are being made
        self._numbers = itertools.count()

    # ---- leaves -----------------------------------------------------------------------------------------------------

    def size(self, dim: int | str, place: int) -> int:
        """A size by name at a place."""
        return dim if isinstance(dim, int) else self.places[place][dim]

    def input(self, name: str, *dims: int | str, low: int | None = None, high: int = 0, hidden: bool = False) -> str:
        """A float input (normal numbers), or an integer one from `low` to below `high`. `hidden`: sizes have no names."""
        dtype = np.dtype(np.float32 if low is None else np.int64)
        arrays: list[np.ndarray | None] = []
        for i in range(self.count):
            shape = tuple(self.size(d, i) for d in dims)
            drawn = self.random.standard_normal(shape) if low is None else self.random.integers(low, high, shape)
            arrays.append(np.asarray(drawn, dtype).reshape(shape))
        self.inputs.append(Value(name, tuple(None if hidden and isinstance(d, str) else d for d in dims), dtype))
        self.values[name] = arrays
        if low is not None:
            self.exact.add(name)
        return name

    def steer(self, name: str, axes: int) -> str:
        """An integer input of one element that is a size's name at each place."""
        shape = (1,) * axes
        self.inputs.append(Value(name, shape, np.dtype(np.int64)))
        self.values[name] = [np.full(shape, place[name], np.int64) for place in self.places]
        self.exact.add(name)
        self.steering.append(name)
        return name

    def constant(self, array: Any) -> str:
        """A constant of the graph."""
        name = f"c{next(self._numbers)}"
        array = np.array(array)
        array.flags.writeable = False
        self.constants[name] = array
        self.values[name] = [array] * self.count
        return name

    def ints(self, *values: int) -> str:
        """A constant list of integers."""
        return self.constant(np.array(values, np.int64))

    def weights(self, *shape: int, scale: float | None = None) -> str:
        """A constant of normal numbers, by default such that a product keeps the size of its elements."""
        terms = max(int(np.prod(shape[:-1])), 1) if len(shape) < 3 else max(int(np.prod(shape[1:])), 1)
        drawn = self.random.standard_normal(shape) * (terms**-0.5 if scale is None else scale)
        return self.constant(drawn.astype(np.float32))

    # ---- what is known ----------------------------------------------------------------------------------------------

    def live(self, name: str) -> list[np.ndarray]:
        """The value at every place that matters."""
        return [a for i, a in enumerate(self.values[name]) if i not in self.optional and a is not None]

    def rank(self, name: str) -> int:
        """The number of axes."""
        return self.live(name)[0].ndim

    def sizes(self, name: str, axis: int) -> Sizes:
        """The size of an axis at every place that matters."""
        return tuple(int(a.shape[axis]) for a in self.live(name))

    def shape(self, name: str) -> tuple[Sizes, ...]:
        """The sizes of every axis."""
        return tuple(self.sizes(name, i) for i in range(self.rank(name)))

    def same(self, size: int) -> Sizes:
        """A size that is the same at every place."""
        return (size,) * (self.count - len(self.optional))

    def fixed(self, sizes: Sizes) -> int | None:
        """The size, if it is the same at every place."""
        return sizes[0] if len(set(sizes)) == 1 else None

    def kind(self, name: str) -> str:
        """The dtype's kind, as numpy calls it."""
        return self.live(name)[0].dtype.kind

    def pick(self, *choices: Any) -> Any:
        """One of some things."""
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, part: float) -> bool:
        """True so often."""
        return bool(self.random.random() < part)

    # ---- nodes ------------------------------------------------------------------------------------------------------

    def node(self, op: str, *inputs: str | None, outputs: int = 1, exact: bool | None = None, **attributes: Any) -> list[str]:
        """Appends a node. `exact`: whether its results are without rounding; by default, where it does not compute and its
        inputs are.
        """
        names = tuple(f"v{next(self._numbers)}" for _ in range(outputs))
        node = Node(op, inputs, names, attributes)
        made: list[list[np.ndarray | None]] = [[] for _ in names]
        for place in range(self.count):
            results = self._at(node, place)
            for i, found in enumerate(made):
                found.append(None if results is None else np.array(results[i]))
        for found in made:
            if len({(a.ndim, a.dtype) for a in found if a is not None}) != 1:
                raise Refused(f"{op}: ranks or dtypes that change")
        self.nodes.append(node)
        self.values.update(zip(names, made, strict=True))
        if (op in MOVES and all(i is None or i in self.exact or i in self.constants for i in inputs)) if exact is None else exact:
            self.exact.update(names)
        return list(names)

    def _at(self, node: Node, place: int) -> Sequence[np.ndarray] | None:
        given = {name: self.values[name][place] for name in node.inputs if name is not None}
        if node.op == "If":
            given.update((name, arrays[place]) for name, arrays in self.values.items())
            given = {name: array for name, array in given.items() if array is not None}
        elif any(a is None for a in given.values()):
            return None
        try:
            results = node_meaning(node, given)
            if any(r.size > self.most for r in results):
                raise Refused(f"{node.op}: {[r.shape for r in results]}")
            if any(
                r.dtype.kind == "f" and (not np.isfinite(r).all() or np.abs(r).max(initial=0) > self.largest) for r in results
            ):
                raise Refused(f"{node.op}: large values")
        except (fl.Error, Refused, KeyError, IndexError, TypeError, ValueError, np.exceptions.AxisError) as error:
            if place in self.optional:
                return None
            raise Refused(f"{node.op}: {error}") from None
        return results

    def one(self, op: str, *inputs: str | None, **attributes: Any) -> str:
        """A node's only output."""
        return self.node(op, *inputs, **attributes)[0]

    def branches(self, condition: str, then: Callable[[], str], other: Callable[[], str]) -> str:
        """An If between two values, each of whose nodes is in its branch."""
        graphs = []
        for build in (then, other):
            outside, self.nodes = self.nodes, []
            known = set(self.values)
            try:
                result = build()
                if result in known:  # a branch gives what it makes
                    result = self.one("Identity", result)
                value = Value(result, None, self.live(result)[0].dtype)
                own = {name: array for name, array in self.constants.items() if name not in known}
                graphs.append(Graph((), (value,), tuple(self.nodes), own))
            finally:
                self.nodes = outside
                for name in set(self.values) - known:
                    del self.values[name]
                    self.constants.pop(name, None)
                    self.exact.discard(name)
        return self.one("If", condition, then_branch=graphs[0], else_branch=graphs[1])

    # ---- the whole --------------------------------------------------------------------------------------------------

    def graph(self, outputs: Sequence[str]) -> Graph:
        """The graph with these outputs."""
        values = tuple(Value(n, None, self.live(n)[0].dtype) for n in outputs)
        used = {n for node in all_nodes(self.nodes) for n in node.inputs} | set(outputs)
        constants = {n: a for n, a in self.constants.items() if n in used}
        return Graph(tuple(self.inputs), values, tuple(self.nodes), constants)

    def steps(self) -> list[Step]:
        """Inputs and values at every place."""
        found = []
        for place in range(self.count):
            feeds = {v.name: self.values[v.name][place] for v in self.inputs}
            known = {name: arrays[place] for name, arrays in self.values.items()}
            found.append(Step(feeds, None if place in self.optional else known))  # type: ignore[arg-type]
        return found


def all_nodes(nodes: Sequence[Node]) -> list[Node]:
    """Those of branches as well."""
    found = []
    for node in nodes:
        found.append(node)
        for attribute in node.attributes.values():
            if isinstance(attribute, Graph):
                found += all_nodes(attribute.nodes)
    return found


# Nodes that move elements, or compute with integers alone.
MOVES = frozenset(
    {
        "Shape", "Size", "Concat", "Slice", "Gather", "Reshape", "Transpose", "Expand", "Tile", "Range", "Squeeze", "Unsqueeze",
        "Identity", "Cast", "Split", "Pad", "Where", "Equal", "Less", "Greater", "Neg", "Abs", "Relu", "Max", "Min", "OneHot",
        "ConstantOfShape", "EyeLike", "Trilu", "Flatten", "DepthToSpace", "SpaceToDepth", "ReduceMax", "ReduceMin", "Not", "Sign",
    }
)  # fmt: skip
