"""The axis of the batch, followed through a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

import numpy as np

from ..errors import ArgumentError, Error, UnsupportedError
from ..ir.graph import Graph, Node, captured
from ..operators import Spec, traits_of
from ..operators.graphs import GraphBuilder
from ._kinds import COUNT, ONE, ROWS, Kind, Mixed, MixedRows, Rows, Size, size, times

__all__ = ["Walk", "batch_axes", "named_axes"]

# Vectors of sizes have few entries.
MOST_ENTRIES = 64


def named_axes(graph: Graph) -> dict[str, int]:
    """The axis of the batch of each input that has one, where the graph names it: the named axis that stands first in an input,
    wherever else it has that name. Empty if there is none, or if it cannot be told.
    """
    names = {value.shape[0] for value in graph.inputs if value.shape and isinstance(value.shape[0], str)}
    if len(names) != 1:
        return {}
    (name,) = names
    found = {}
    for value in graph.inputs:
        at = [i for i, dim in enumerate(value.shape or ()) if dim == name]
        if len(at) > 1:
            return {}
        if at:
            found[value.name] = at[0]
    return found


def batch_axes(graph: Graph, inputs: Mapping[str, int]) -> dict[str, int]:
    """The axis of the batch of every output, if each row of the outputs depends on the same row of the inputs alone.

    Args:
        inputs: the axis of the batch of every input that has one; all others are the same for all rows.

    Raises:
        ArgumentError: an input is unknown or has no such axis.
        UnsupportedError: rows are mixed, or cannot be shown not to be; the message names the first node of that kind.
    """
    walk = Walk(graph, inputs)
    walk.run()
    found = {}
    for value in graph.outputs:
        kind = walk.kinds.get(value.name)
        if isinstance(kind, Mixed):
            raise UnsupportedError(f"batch_axes: {kind.why}")
        if not isinstance(kind, Rows):
            raise UnsupportedError(f"batch_axes: output {value.name!r} has no row for each row of the batch")
        if (kind.each, kind.outer) != (ONE, ONE):
            raise UnsupportedError(f"batch_axes: output {value.name!r} has several entries for each row of the batch")
        found[value.name] = kind.axis
    return found


class Walk(GraphBuilder):
    """The kinds of all values of a graph, in `kinds`; and the entries of integers that are computed of sizes, in `entries`."""

    def __init__(self, graph: Graph, inputs: Mapping[str, int]) -> None:
        super().__init__({name: Spec(a.shape, a.dtype) for name, a in graph.constants.items()})
        self.constants.update(graph.constants)
        self.source = graph
        self.kinds: dict[str, Kind] = {}
        self.entries: dict[str, tuple[Size, ...]] = {}
        if unknown := sorted(set(inputs) - {value.name for value in graph.inputs}):
            raise ArgumentError(f"batch_axes: axes has {unknown}: expected names of inputs")
        batch = set()
        for value in graph.inputs:
            if value.name in inputs:
                axis = inputs[value.name]
                if type(axis) is not int or value.shape is None or not 0 <= axis < len(value.shape):
                    raise ArgumentError(f"batch_axes: {value.name!r} has shape {value.shape}: axis {axis!r:.50} is not one of it")
                batch.add(value.shape[axis])
        for value in graph.inputs:
            # A size of the same name elsewhere is not the number of rows.
            shape = None if value.shape is None else tuple(None if d in batch and isinstance(d, str) else d for d in value.shape)
            if value.name in inputs and shape is not None:
                axis = inputs[value.name]
                shape = (*shape[:axis], ROWS, *shape[axis + 1 :])
                self.kinds[value.name] = Rows(axis)
            self.specs[value.name] = Spec(shape, value.dtype)
            if value.kind != "tensor":
                self.kinds[value.name] = Mixed(f"input {value.name!r} is not a tensor")

    # ---- for rules --------------------------------------------------------------------------------------------------

    def rank_of(self, name: str | None) -> int:
        """The number of axes of a value."""
        rank = self.rank(name)
        if rank is None:
            self.refuse(f"reads {name!r}, whose number of axes is not known")
        return rank

    def dims(self, name: str) -> tuple[Size, ...]:
        """The sizes of a value, the batch's among them."""
        kind, shape = self.kinds.get(name), self.shape(name)
        if shape is None:
            self.refuse(f"reads {name!r}, whose number of axes is not known")
        found = [size(dim, f"{name}:{i}") for i, dim in enumerate(shape)]
        if isinstance(kind, Rows):
            found[kind.axis] = times((kind.outer, Size(1, (ROWS,)), kind.each))
        return tuple(found)

    def numbers(self, name: str | None) -> tuple[Size, ...] | None:
        """The entries of integers, constant ones or computed of sizes; None if they are not known."""
        if name is None:
            return None
        array = self.value(name)
        if array is None:
            return self.entries.get(name)
        if array.size > MOST_ENTRIES or array.dtype.kind not in "iubf":
            return None
        if array.dtype.kind == "f" and not bool(np.all(np.isfinite(array) & (array == np.floor(array)))):
            return None
        return tuple(Size(int(v)) for v in array.reshape(-1))

    def integers(self, name: str | None) -> list[int] | None:
        """The same where all are integers that are known."""
        found = self.numbers(name)
        return [one.factor for one in found] if found is not None and all(one.known for one in found) else None

    def refuse(self, why: str) -> NoReturn:
        """Ends a rule: what the node does to rows, after its name."""
        raise MixedRows(why)

    def set_shape(self, name: str, sizes: Sequence[Size | None]) -> None:
        """Stores a shape that a rule knows beyond the one its operator infers; None: an unknown size."""
        dims = [
            None if s is None or s.counted else s.factor if s.known else s.symbols[0] if s.factor == 1 == len(s.symbols) else None
            for s in sizes
        ]
        self.specs[name] = Spec(tuple(dims), self.dtype(name))

    # ---- the walk ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Goes through the nodes."""
        for node in self.source.nodes:
            with suppress(Error):
                self.append(node)
            try:
                made = self._visit(node)
            except MixedRows as mixed:
                output = next((name for name in node.outputs if name), "-")
                made = [Mixed(f"{node.op} ({output}) {mixed}")] * len(node.outputs)
            self.kinds.update((name, kind) for name, kind in zip(node.outputs, made, strict=False) if name)

    def _visit(self, node: Node) -> Sequence[Kind]:
        from .rules import rule_of
        from .sizes import SIZED

        kinds = [self.kinds.get(name) if name else None for name in node.inputs]
        inner = [self.kinds.get(name) for name in sorted(captured(node))]
        mixed = next((kind for kind in (*kinds, *inner) if isinstance(kind, Mixed)), None)
        if mixed is not None:
            return [mixed] * len(node.outputs)
        if traits_of(node.op).volatile and not self._passes(node):
            self.refuse("draws random values")
        if any(kind is not None for kind in inner):
            self.refuse("has a body that reads rows of the batch")
        if node.op in SIZED and (found := SIZED[node.op](self, node, kinds)) is not None:
            return found
        if all(kind is None for kind in kinds):
            return [None] * len(node.outputs)
        rule = rule_of(node)
        if rule is None:
            self.refuse("is not known to keep rows apart")
        return rule(self, node, kinds)

    def _passes(self, node: Node) -> bool:
        """Whether a Dropout is one of inference."""
        training = node.inputs[2] if len(node.inputs) > 2 else None
        return node.op == "Dropout" and (training is None or self.integers(training) == [0])

    def kept(self, node: Node, entries: Sequence[Size], rank: int) -> Sequence[Kind]:
        """Registers the entries of a node's result, a scalar or a vector."""
        name = node.outputs[0]
        self.entries[name] = tuple(entries)
        shape = () if rank == 0 else (len(entries),)
        self.specs[name] = Spec(shape, self.dtype(name))
        return [COUNT if any(one.counted for one in entries) else None]
