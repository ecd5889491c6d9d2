"""From the bytes of an ONNX file to a checked `Model`, or to the tensors in it by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..._tuples import NamedTuple
from ...errors import FormatError, LimitError, UnsupportedError
from .._arrays import Array
from ..budget import Budget
from ..source import Source, quote
from .names import subgraphs
from .order import arrange
from .parse import Parser
from .proto import GraphProto, Model, NodeProto
from .schema import CONSTANT_DTYPES, UNCHANGED

# What onnx 1.23 defines: the versions of the format, and those of ONNX's own operators from the first that is supported on.
OLDEST_IR, NEWEST_IR = 3, 14
# (older ones where all operators of a model are as they were before it).
OLDEST_OPSET, NEWEST_OPSET = 6, 28


def read(source: Source, budget: Budget) -> Model:
    """The model of the file: functions expanded, every graph checked and in an order that can be run.

    Every name of a value stands for one value in the whole model. Arrays are read-only and stay in the file where they can; large
    ones that cannot are paid for here and copied when they are looked up.

    Raises:
        FormatError: the file breaks a rule of the format.
        UnsupportedError: it needs versions or element types that are not supported; the error names all of these.
        LimitError: it would take more memory, nodes or depth than is allowed.
    """
    where = source.where
    model = _parsed(source, budget)
    _check_versions(model, where)
    try:
        graph = model.graph
        if model.functions:
            from .functions import inline

            graph = inline(model, budget, where)
        return model._replace(graph=arrange(graph, budget, where))
    except RecursionError:
        raise LimitError(f"{where}: is nested too deeply: the stack is exhausted") from None


def load_weights(source: Source, budget: Budget) -> dict[str, Array]:
    """Every numeric initializer by its name and every Constant by that of its output, those of inner graphs and functions too.

    Where several graphs give a name, those of inner ones have the path to their graph before it: "If_0.then_branch.weight".
    """
    model = _parsed(source, budget)
    tensors = list(_of_graph(model.graph, ""))
    for function in model.functions:
        tensors.extend(_of_nodes(function.nodes, f"{function.name}."))
    times = Counter(tensor.name for tensor in tensors)
    weights: dict[str, Array] = {}
    for path, name, array in tensors:
        key = f"{path}{name}" if times[name] > 1 else name
        if key in weights:
            raise FormatError(f"{source.where}: two tensors have the name {quote(key)}")
        weights[key] = array
    return weights


def constant(node: NodeProto) -> Array | None:
    """The array that a Constant node gives; None if it gives strings, or is another node."""
    if node.op_type != "Constant" or node.domain or len(node.outputs) != 1:
        return None
    attributes: Mapping[str, Any] = node.attributes
    for key in ("value", "sparse_value"):
        value = attributes.get(key)
        if isinstance(value, np.ndarray) and value.dtype != object:
            return value
    for key, dtype in CONSTANT_DTYPES.items():
        if key in attributes:
            array: Array = np.array(attributes[key], dtype)
            array.flags.writeable = False
            return array
    return None


def _parsed(source: Source, budget: Budget) -> Model:
    parser = Parser(source, budget)
    model = parser.model()
    refused = parser.refused
    if refused:
        raise UnsupportedError("; ".join(refused[:5]) + (f"; ... ({len(refused)} tensors in all)" if len(refused) > 5 else ""))
    return model


def _check_versions(model: Model, where: str) -> None:
    if model.ir_version < 1:
        raise FormatError(f"{where}: has the ir_version {model.ir_version}, expected one from {OLDEST_IR} to {NEWEST_IR}")
    if not OLDEST_IR <= model.ir_version <= NEWEST_IR:
        raise UnsupportedError(
            f"{where}: has the ir_version {model.ir_version}, those from {OLDEST_IR} to {NEWEST_IR} are supported"
        )
    functions = ((f": function {quote(f.name)}", f.opsets, f.nodes) for f in model.functions)
    for owner, opsets, nodes in (("", model.opsets, model.graph.nodes), *functions):
        version = opsets.get("")
        if version is None or OLDEST_OPSET <= version <= NEWEST_OPSET:
            continue
        if version > NEWEST_OPSET or not nodes or not all(node.domain or node.op_type in UNCHANGED for node in nodes):
            raise UnsupportedError(
                f"{where}{owner}: is written for version {version} of ONNX's operators, those from {OLDEST_OPSET} to "
                f"{NEWEST_OPSET} are supported: convert it (onnx.version_converter)"
            )


class _Found(NamedTuple):
    """A tensor, and the path to its graph: "", or ending in "."."""

    path: str
    name: str
    array: Array


def _of_graph(graph: GraphProto, path: str) -> Iterator[_Found]:
    for name, array in graph.initializers.items():
        if array.dtype != object:
            yield _Found(path, name, array)
    yield from _of_nodes(graph.nodes, path)


def _of_nodes(nodes: Iterable[NodeProto], path: str) -> Iterator[_Found]:
    for node in nodes:
        array = constant(node)
        if array is not None:
            yield _Found(path, node.outputs[0], array)
        for key, graph in subgraphs(node):
            yield from _of_graph(graph, f"{path}{node.name or ', '.join(node.outputs)}.{key}.")
