"""Helpers for rules of operators of other domains: schemas in a line, nodes one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...ir.graph import Node
from ...operators.graphs import GraphBuilder, trimmed
from .schema import NEWEST, Attribute, Schema

__all__ = ["Nodes", "Table", "refuse", "schema"]

# An operator: what its nodes look like, and the rule that turns them into nodes of `operators`.
Table = dict[str, tuple[Schema, Any]]


def schema(least: int, most: int, outputs: int, attributes: str = "") -> Schema:
    """Counts of inputs and outputs, and attributes as the table of ONNX's own operators writes them."""
    found = {}
    for text in attributes.split():
        name, kind = text.rstrip("!").split(":")
        found[name] = Attribute(kind, text.endswith("!"), 0, NEWEST + 1)
    return Schema(1, least, most, outputs, found)


def refuse(node: Node, **wrong: Any) -> None:
    """Raises if one of these is there."""
    for what, given in wrong.items():
        if given:
            raise UnsupportedError(f"{node.op}: {what}")


class Nodes:
    """The nodes that take one's place, in their order."""

    def __init__(self, node: Node, make: GraphBuilder) -> None:
        self.node, self.make, self.made = node, make, list[Node]()

    def constant(self, value: Any, hint: str = "constant") -> str:
        """A constant; a list becomes one of int64."""
        array = np.array(value, np.int64) if isinstance(value, list) else np.asarray(value)
        return self.make.constant(array, f"{self._stem()}/{hint}")

    def _stem(self) -> str:
        return next((o for o in self.node.outputs if o), self.node.op)

    def many(self, op: str, outputs: int, *inputs: str | None, **attributes: Any) -> list[str]:
        """Appends a node of several outputs, and returns their names."""
        names = [self.make.name(f"{self._stem()}/{op}") for _ in range(outputs)]
        self.last(op, *inputs, outputs=tuple(names), **attributes)
        return names

    def add(self, op: str, *inputs: str | None, name: str = "", **attributes: Any) -> str:
        """Appends a node, and returns the name of its output: `name` if that is given."""
        name = name or self.make.name(f"{self._stem()}/{op}")
        self.last(op, *inputs, outputs=(name,), **attributes)
        return name

    def last(self, op: str, *inputs: str | None, outputs: tuple[str, ...] | None = None, **attributes: Any) -> list[Node]:
        """Appends a node that gives the outputs of the one replaced, and returns all."""
        self.made.append(Node(op, trimmed(inputs), self.node.outputs if outputs is None else outputs, attributes))
        return self.made
