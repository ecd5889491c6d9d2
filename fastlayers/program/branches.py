"""Branches in the forms in which they run: each is simplified when it is first taken, for values around it of some ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._locks import Lock
from ..ir.graph import Graph, Node, free
from ..operators import Spec
from .binder import Prepare

__all__ = ["Branches"]


class Branches:
    """The forms of a graph's branches. May be used from any number of threads at once.

    Args:
        optimize: makes the form of a branch; None if branches run as they are.
        lock: taken while a form is made.
    """

    def __init__(self, optimize: Prepare | None, lock: Lock) -> None:
        self._optimize, self._lock = optimize, lock
        # A branch as written, the names that it reads around it, and its forms, by the identity of the first.
        self._found: dict[int, tuple[Graph, tuple[str, ...], dict[Any, Graph]]] = {}

    def form(self, graph: Graph, constants: Mapping[str, np.ndarray], specs: Mapping[str, Spec]) -> Graph:
        """The form in which a branch runs, made when it is first taken: what is never taken costs nothing."""
        if self._optimize is None:
            return graph
        with self._lock:
            found = self._found.get(id(graph))
            if found is None:
                found = self._found[id(graph)] = (graph, tuple(sorted(free(graph))), {})
            _, names, forms = found
            # Later bindings may have other sizes, so only ranks and dtypes may be relied on.
            ranks = {
                name: Spec(None if s.shape is None else (None,) * len(s.shape), s.dtype)
                for name in names
                if (s := specs.get(name)) is not None
            }
            key = tuple(ranks.items())
            form = forms.get(key)
            if form is None:
                form = forms[key] = self._optimize(graph, constants, ranks)
            return form

    def within(self, graph: Graph, only: bool) -> Graph:
        """The graph with every branch that has been taken in the form in which it runs, if it has one form and that is its `only`
        possible one.
        """
        nodes = []
        for node in graph.nodes:
            branches = {name: value for name, value in node.attributes.items() if isinstance(value, Graph)}
            if branches:
                taken = {}
                for name, value in branches.items():
                    forms = list(self._found[id(value)][2].values()) if id(value) in self._found else []
                    taken[name] = self.within(forms[0] if only and len(forms) == 1 else value, only)
                node = Node(node.op, node.inputs, node.outputs, {**node.attributes, **taken})
            nodes.append(node)
        return Graph(graph.inputs, graph.outputs, tuple(nodes), graph.constants, graph.values)
