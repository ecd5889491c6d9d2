"""The plain executor: runs a graph node by node through `functional`. It plans nothing; a compiled program is faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._arguments import as_mapping, as_names
from ..errors import DTypeError, ShapeError, UnsupportedError
from .ir import Graph, Node, Value
from .ops import OPS

__all__ = ["execute"]


def execute(graph: Graph, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Runs a graph under the current kernel variant.

    Args:
        graph: what `trace` made.
        feeds: one array for every input of the graph, by name.
        outputs: names of the values that are wanted, intermediate ones included; the graph's outputs by default.

    Returns:
        The wanted arrays by name, in the order asked for. They are fresh: nobody else holds them.

    Raises:
        ShapeError: a feed has another shape than the input, or an input is missing, or a name is unknown.
        DTypeError: a feed's dtype is of another kind than the input's.
        UnsupportedError: the graph has an operation that is neither in `ops.OPS` nor an operator with a reference in numpy.

    >>> import numpy as np, fastlayers as fl
    >>> graph = fl.graph.trace(fl.functional.relu, fl.graph.Input("x", (2,)))
    >>> fl.graph.execute(graph, {"x": np.array([-1.0, 2.0])})
    {'relu': array([0., 2.], dtype=float32)}
    """
    if not isinstance(graph, Graph):
        raise DTypeError(f"execute: graph is of type {type(graph).__name__}: expected what graph.trace returns")
    values: dict[str, Any] = dict(graph.constants)
    values.update(_checked(graph, feeds))
    wanted = [value.name for value in graph.outputs] if outputs is None else as_names("execute", "outputs", outputs)
    made = {name for node in graph.nodes for name in node.outputs}
    if unknown := [name for name in wanted if name not in made and name not in values]:
        raise ShapeError(f"execute: outputs has {unknown}, which the graph does not make: expected some of {sorted(made)}")
    last = {name: i for i, node in enumerate(graph.nodes) for name in (*node.inputs, *node.outputs)}
    for i, node in enumerate(graph.nodes):
        given = [None if name is None else values[name] for name in node.inputs]
        results = OPS[node.op].run(given, node.attributes) if node.op in OPS else _operator(node, given)
        values.update(zip(node.outputs, results, strict=True))
        for name in {*node.inputs, *node.outputs}:
            if name is not None and last[name] == i and name in made and name not in wanted:
                del values[name]
    return {name: values[name] if name in made else np.array(values[name], order="C") for name in wanted}


def _operator(node: Node, given: Sequence[Any]) -> Sequence[np.ndarray]:
    """An operator that was recorded as it is, in numpy."""
    from ..operators import OPERATORS, Spec, View

    found = OPERATORS.get(node.op)
    if found is None or found.run is None:
        raise UnsupportedError(f"execute: the graph has an operation {node.op!r}: expected one of {', '.join(sorted(OPS))}")
    specs = [None if a is None else Spec(a.shape, a.dtype) for a in given]
    view = View(node, specs, given)
    wanted = found.infer(view)
    with np.errstate(all="ignore"):
        made = found.run(view, *given)
    return [np.array(array, spec.dtype, order="C") for array, spec in zip(made, wanted, strict=False)]


def _checked(graph: Graph, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The feeds as arrays; sizes with equal names must be equal."""
    names = [value.name for value in graph.inputs]
    as_mapping("execute", "feeds", feeds)
    if set(feeds) != set(names):
        missing, unknown = [n for n in names if n not in feeds], [n for n in feeds if n not in names]
        raise ShapeError(f"execute: feeds lack {missing} and have {unknown} too many: expected exactly {names}")
    sizes: dict[str, int] = {}
    return {value.name: _feed(value, feeds[value.name], sizes) for value in graph.inputs}


def _feed(value: Value, given: Any, sizes: dict[str, int]) -> np.ndarray:
    from ..functional._arrays import as_array  # functional imports this package

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
    return array
