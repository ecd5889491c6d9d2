"""Initializers that are inputs too: a run may give another value for one, of its own sizes where the file leaves them open."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._locks import Lock
from ..ir.graph import Graph, Value
from ..model.model import Model
from ..model.specs import TensorSpec

__all__ = ["Overridden", "remade"]


def remade(model: Model, graph: Graph) -> Model:
    """A model of another graph, with the options of `model`."""
    made = Model(graph, model._options, model.metadata, variant=model._variant)
    made.num_threads, made._about = model.num_threads, model._about
    return made


class Overridden:
    """A model, and what it is with some of its initializers as inputs. Each such set is made once, when it is first fed.

    `specs` are those that may be given, in the file's order.
    """

    def __init__(self, model: Model) -> None:
        self._model, self._lock = model, Lock()
        self._made: dict[frozenset[str], Model] = {frozenset(): model}
        constants = model._graph.constants
        told: dict[str, Any] = model._about.get("overridable", {})
        self.specs = [
            TensorSpec(name, constants[name].shape if shape is None else shape, constants[name].dtype)
            for name, shape in told.items()
            if name in constants
        ]
        self._names = frozenset(spec.name for spec in self.specs)

    def fed(self, arrays: dict[str, np.ndarray]) -> Model:
        """The model that takes these arrays."""
        given = self._names.intersection(arrays) if self._names else frozenset[str]()
        found = self._made.get(given)
        if found is None:
            with self._lock:
                found = self._made.get(given)
                if found is None:
                    found = self._made[given] = self._with(given)
        return found

    def _with(self, names: frozenset[str]) -> Model:
        graph = self._model._graph
        values = tuple(Value(spec.name, spec.shape, spec.dtype) for spec in self.specs if spec.name in names)
        constants = {name: value for name, value in graph.constants.items() if name not in names}
        return remade(self._model, Graph((*graph.inputs, *values), graph.outputs, graph.nodes, constants, graph.values))
