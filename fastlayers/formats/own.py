"""Our own model file: a safetensors file whose tensors are the weights and whose metadata has the graph as JSON.

``__metadata__`` has "fastlayers" (the version of this layout), "graph", "options" and "metadata" (JSON), so any safetensors
reader can list the weights. Tensors whose names begin with "packed/" are copies of weights as the engine of one version of
fastlayers reads them; "packed" tells it.
JSON of a graph: {"inputs", "outputs": [[name, shape, dtype]], "nodes": [[op, inputs, outputs, attributes]], "constants": {name:
tensor}}.
What JSON lacks is an object of one key: {"tuple": [...]}, {"float": "inf"}, {"array": tensor}, {"graph": {...}}, {"bytes":
"hex"}.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import FormatError, LimitError, UnsupportedError
from ..ir.graph import Graph, Node, Value
from ..ir.names import Names
from ..operators.families import CONTROL
from . import safetensors
from .budget import Budget
from .own_words import unread
from .source import Source, quote

__all__ = ["NAME", "load_graph", "save", "sniff"]

NAME = "fastlayers"
VERSION = 1
# Of tensors and values, by numpy's names.
DTYPES = frozenset(safetensors.DTYPES)
_UNTOLD = np.dtype(np.void).name  # of a value of unknown dtype, such as most outputs of branches
_STRING = "string"
_PACKED = "packed/"
GRAPH = {"inputs", "outputs", "constants", "nodes"}
# What `load` is told again is written, and not read.
OPTIONS = {"optimize", "strict", "native", "bodies", "rounds", "most", "half", "bits", "streaming"}
DEEPEST = 64  # branches in branches
MOST_ITEMS = 1_000_000  # lists, objects and commas in the graph; a node has about twenty
_KINDS = ("tensor", "sequence(tensor)", "optional(tensor)", "optional(sequence(tensor))", "map", "sequence(map)")


# ---- writing ------------------------------------------------------------------------------------------------------------


class _Writer:
    def __init__(self) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self._names: dict[int, str] = {}
        self._unique = Names(mark="~", first=1)

    def tensor(self, array: np.ndarray, hint: str) -> str:
        """The name under which an array is stored; the same array is stored once."""
        known = self._names.get(id(array))
        if known is not None:
            return known
        if array.dtype.name not in DTYPES:
            raise UnsupportedError(f"save: {hint!r} has dtype {array.dtype}, which a safetensors file cannot hold")
        name = self._names[id(array)] = self._unique(hint)
        self.tensors[name] = array
        return name

    def graph(self, graph: Graph) -> dict[str, Any]:
        def value(v: Value) -> list[Any]:
            told = [v.name, None if v.shape is None else list(v.shape), _STRING if v.dtype.kind == "O" else v.dtype.name]
            return told if v.kind == "tensor" else [*told, v.kind]

        return {
            "inputs": [value(v) for v in graph.inputs],
            "outputs": [value(v) for v in graph.outputs],
            "constants": {name: self.tensor(array, name) for name, array in graph.constants.items()},
            "nodes": [
                [n.op, list(n.inputs), list(n.outputs), {k: self.attribute(v, f"{n.op}.{k}") for k, v in n.attributes.items()}]
                for n in graph.nodes
            ],
        }

    def attribute(self, value: Any, hint: str) -> Any:
        if isinstance(value, Graph):
            return {"graph": self.graph(value)}
        if isinstance(value, np.ndarray):
            return {"array": self.tensor(value, hint)}
        if isinstance(value, (tuple, list)):
            return {"tuple": [self.attribute(v, hint) for v in value]}
        if isinstance(value, (bytes, bytearray)):
            return {"bytes": bytes(value).hex()}
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": repr(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise UnsupportedError(f"save: attribute {hint} of type {type(value).__name__} cannot be written")


def save(
    graph: Graph,
    options: Mapping[str, Any],
    metadata: Mapping[str, str],
    path: str | os.PathLike[str],
    packed: Mapping[str, np.ndarray],
) -> None:
    """Writes a graph with its weights; the file appears whole or not at all. `packed` are copies of weights for this version."""
    from .safetensors_write import write

    writer = _Writer()
    described = json.dumps(writer.graph(graph), separators=(",", ":"))
    writer.tensors.update(packed)
    about = {
        "fastlayers": str(VERSION), "packed": _tag(), "graph": described, "options": json.dumps(dict(options)),
        "metadata": json.dumps(dict(metadata)),
    }  # fmt: skip
    # Packed weights first, whose sizes are whole cache lines.
    write(path, writer.tensors, about, first=lambda name: name.startswith(_PACKED))


# ---- reading ------------------------------------------------------------------------------------------------------------


def sniff(source: Source) -> bool:
    """Whether it is a safetensors file with a graph."""
    return safetensors.sniff(source) and b'"fastlayers":' in bytes(source.view[8 : 8 + 128])


def load_graph(source: Source, budget: Budget) -> tuple[Graph, dict[str, str], dict[str, Any]]:
    """Graph, metadata and options."""
    tensors, about = safetensors.load_with_metadata(source, budget)
    where = source.where
    if about.get("fastlayers") != str(VERSION):
        raise UnsupportedError(f"{where}: is a model file of version {about.get('fastlayers')!r}: expected {VERSION}")
    if sum(map(about.get("graph", "").count, "[{,")) > MOST_ITEMS:
        raise LimitError(f"{where}: its graph has more than {MOST_ITEMS} items")
    try:
        described, options, metadata = (json.loads(about[key]) for key in ("graph", "options", "metadata"))
        graph = _Reader(tensors, where).graph(described, 0)
        _check(graph, (), where)
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, (FormatError, UnsupportedError)):
            raise
        raise FormatError(f"{where}: its graph is broken: {type(error).__name__}") from None
    if not isinstance(options, dict) or not isinstance(metadata, dict):
        raise FormatError(f"{where}: options or metadata are no JSON objects")
    for key in (key for key in options if key not in OPTIONS):  # in the file's order: the same word is named each time
        raise UnsupportedError(f"{where}: has the option {quote(key)}={quote(options[key])}, which is not read")
    kept: dict[str, Any] = {key: options[key] for key in ("optimize", "strict", "native", "streaming") if key in options}
    for key, value in kept.items():
        if type(value) is not bool:
            raise FormatError(f"{where}: option {key!r} is {quote(value)}: expected true or false")
    if about.get("packed") == _tag():
        kept["packed"] = {name: array for name, array in tensors.items() if name.startswith(_PACKED)}
    return graph, {str(k): str(v) for k, v in metadata.items()}, kept


def _check(graph: Graph, around: tuple[set[str], ...], where: str) -> None:
    """Raises FormatError for a name that nothing gives, and for bodies that do not fit their nodes."""
    known = {v.name for v in graph.inputs} | set(graph.constants)
    scopes = (known, *around)
    for node in graph.nodes:
        for name in node.inputs:
            if name is not None and not any(name in scope for scope in scopes):
                raise FormatError(f"{where}: its graph reads {quote(name)}, which nothing before it gives")
        if node.op in CONTROL:
            from ..operators.control import check_bodies

            check_bodies(node, f"{where}: {quote(node.op)}")
        for name, given in unread(node.op, node.attributes).items():
            raise UnsupportedError(
                f"{where}: {quote(node.op)} ({quote(next(iter(node.outputs), '-'))}) has {quote(name)}={quote(given)}, "
                "which is not read"
            )
        for value in node.attributes.values():
            if isinstance(value, Graph):
                _check(value, scopes, where)
        twice = known.intersection(node.outputs) - {""}
        if twice:
            raise FormatError(f"{where}: its graph writes {quote(min(twice))} a second time")
        known.update(node.outputs)
    for output in graph.outputs:
        if not any(output.name in scope for scope in scopes):
            raise FormatError(f"{where}: its graph gives {quote(output.name)}, which nothing in it makes")


def _tag() -> str:
    """Tag of the writer that a packed copy must have to be used."""
    from .._version import __version__
    from ..program.weights import PACKED_FORMAT

    return f"{__version__}/{PACKED_FORMAT}"


class _Reader:
    def __init__(self, tensors: Mapping[str, np.ndarray], where: str) -> None:
        self.tensors, self.where = tensors, where

    def tensor(self, name: Any) -> np.ndarray:
        if name not in self.tensors:
            raise FormatError(f"{self.where}: its graph uses a tensor that the file does not have")
        return self.tensors[name]

    def graph(self, data: Any, depth: int) -> Graph:
        if depth > DEEPEST:
            raise FormatError(f"{self.where}: branches are in branches more than {DEEPEST} deep")

        for key in (key for key in data if key not in GRAPH):
            raise UnsupportedError(f"{self.where}: its graph has {quote(key)}={quote(data[key])}, which is not read")

        def value(item: Any) -> Value:
            name, shape, dtype, *kinds = item
            if (dtype not in DTYPES and dtype not in (_UNTOLD, _STRING)) or not isinstance(name, str):
                raise FormatError(f"{self.where}: a value of its graph has no known dtype")
            sizes = None if shape is None else tuple(shape)
            if sizes is not None and not all(d is None or isinstance(d, str) or (type(d) is int and d >= 0) for d in sizes):
                raise FormatError(f"{self.where}: a value of its graph has a size that is none")
            kind = kinds[0] if kinds else "tensor"
            if kind not in _KINDS:
                raise FormatError(f"{self.where}: a value of its graph is of an unknown kind")
            return Value(name, sizes, np.dtype(np.void if dtype == _UNTOLD else object if dtype == _STRING else dtype), kind)

        def names(items: Any) -> tuple[Any, ...]:
            if not all(i is None or isinstance(i, str) for i in items):
                raise FormatError(f"{self.where}: a node of its graph has a name that is none")
            return tuple(items)

        nodes = tuple(
            Node(str(op), names(inputs), names(outputs), {str(k): self.attribute(v, depth) for k, v in attributes.items()})
            for op, inputs, outputs, attributes in data["nodes"]
        )
        constants = {str(name): self.tensor(tensor) for name, tensor in data["constants"].items()}
        return Graph(tuple(map(value, data["inputs"])), tuple(map(value, data["outputs"])), nodes, constants)

    def attribute(self, value: Any, depth: int) -> Any:
        if not isinstance(value, dict):
            return value
        ((key, inner),) = value.items()
        if key == "graph":
            return self.graph(inner, depth + 1)
        if key == "array":
            return self.tensor(inner)
        if key == "tuple":
            return tuple(self.attribute(v, depth) for v in inner)
        if key == "bytes":
            return bytes.fromhex(inner)
        if key == "float":
            return float(inner)
        raise FormatError(f"{self.where}: an attribute of its graph is of an unknown kind")
