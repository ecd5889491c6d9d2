"""Runs a recorded graph once, without passes and without keeping a plan. A compiled model is faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._arguments import as_mapping, as_names
from ..errors import ArgumentError, DTypeError, ShapeError
from ..ir.graph import Graph, Value
from ..kernels import dispatch

__all__ = ["execute"]


def execute(graph: Graph, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Runs a graph under the current kernel variant.

    Args:
        graph: what `trace` made.
        feeds: one array for every input of the graph, by name.
        outputs: names of the values that are wanted, intermediate ones included; the graph's outputs by default.

    Returns:
        The wanted arrays by name, in the order asked for. They are fresh: nothing else holds them.

    Raises:
        ShapeError: a feed has another shape than the input, or an input is missing, or a name is unknown.
        DTypeError: a feed's dtype is of another kind than the input's.
        UnsupportedError: the graph has an operator that is not one of `operators.OPERATORS`.

    >>> import numpy as np, fastlayers as fl
    >>> graph = fl.graph.trace(fl.functional.relu, fl.graph.Input("x", (2,)))
    >>> fl.graph.execute(graph, {"x": np.array([-1.0, 2.0])})
    {'relu': array([0., 2.], dtype=float32)}
    """
    if not isinstance(graph, Graph):
        raise DTypeError(f"execute: graph is of type {type(graph).__name__}: expected what graph.trace returns")
    from ..passes import optimize
    from ..program import Program

    given = _checked(graph, feeds)
    known = {**graph.constants, **given}
    wanted = [value.name for value in graph.outputs] if outputs is None else as_names("execute", "outputs", outputs)
    made = {name for node in graph.nodes for name in node.outputs}
    if unknown := [name for name in wanted if name not in made and name not in known]:
        raise ArgumentError(f"execute: outputs has {unknown}, which the graph does not make: expected some of {sorted(made)}")
    asked = tuple(dict.fromkeys(name for name in wanted if name in made))
    values = {value.name: value for value in (*graph.values.values(), *graph.outputs)}
    results: dict[str, np.ndarray] = {}
    if asked:
        weights = _weights(graph) & given.keys()
        inputs = tuple(value for value in graph.inputs if value.name not in weights)
        constants = {**graph.constants, **{name: given[name] for name in weights}}
        whole = Graph(inputs, tuple(values[name] for name in asked), graph.nodes, constants, graph.values)
        program, arrays = Program(optimize(whole, strict=True), dispatch.variant()), [given[value.name] for value in inputs]
        results.update(zip(asked, program.binding(arrays).run(arrays), strict=True))
    return {name: results[name] if name in made else np.array(known[name], order="C") for name in wanted}


def _weights(graph: Graph) -> set[str]:
    """Names of values on which weights depend: kernels want them as constants, which they are in a single run."""
    from ..operators import traits_of

    found: set[str] = set()
    for node in reversed(graph.nodes):
        wanted = found.isdisjoint(node.outputs)
        places = traits_of(node.op).weights if wanted else range(len(node.inputs))
        found.update(name for i, name in enumerate(node.inputs) if i in places and name is not None)
    return found


def _checked(graph: Graph, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The feeds as arrays; sizes with equal names must be equal."""
    names = [value.name for value in graph.inputs]
    as_mapping("execute", "feeds", feeds)
    if set(feeds) != set(names):
        missing, unknown = [n for n in names if n not in feeds], [n for n in feeds if n not in names]
        raise ArgumentError(f"execute: feeds lack {missing} and have {unknown} too many: expected exactly {names}")
    sizes: dict[str, int] = {}
    return {value.name: _feed(value, feeds[value.name], sizes) for value in graph.inputs}


def _feed(value: Value, given: Any, sizes: dict[str, int]) -> np.ndarray:
    from .arrays import as_array  # functional imports this package

    array = as_array(given, "execute", f"feed {value.name!r}")
    if not np.can_cast(array.dtype, value.dtype, "same_kind") or array.dtype.kind not in "fiub":
        raise DTypeError(
            f"execute: feed {value.name!r} has dtype {array.dtype}: expected one that casts to {value.dtype} within its kind"
        )
    if value.shape is not None:
        fits = len(array.shape) == len(value.shape)
        for dim, size in zip(value.shape, array.shape, strict=False):
            fits &= dim is None or (sizes.setdefault(dim, size) if isinstance(dim, str) else dim) == size
        if not fits:
            known = f" with {sizes}" if sizes else ""
            raise ShapeError(f"execute: feed {value.name!r} has shape {array.shape}: expected {value.shape}{known}")
    return np.require(array, value.dtype, ["C", "A"])
