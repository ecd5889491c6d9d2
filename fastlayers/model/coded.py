"""Models of strings as models of integers: every string that a graph names has a number, and what comes in or out is looked up.

What is left is a graph of numbers, which runs compiled. A string that the graph does not name has one number more than those,
whichever it is; so a graph that hands strings on to its outputs, or looks into them, runs as it is. ZipMap, which makes dicts
of an output, is done at the end as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.graph import Graph, Node, Value
from ..operators import View
from ..operators.ml.labels import label_table
from ..operators.ml.maps import map_keys, zip_map_run
from . import feeds
from ._branches import made

if TYPE_CHECKING:
    from ..kernels.dispatch import Variant
    from .model import Options

__all__ = ["Coded", "coded"]

# Operators that only move strings, and from which input on.
MOVERS = {
    "ArrayFeatureExtractor": 1, "Concat": 0, "Expand": 1, "Flatten": 1, "Gather": 1, "Identity": 1, "Reshape": 1, "Slice": 1,
    "Split": 1, "Squeeze": 1, "Transpose": 1, "Unsqueeze": 1,
}  # fmt: skip
MOST_HOT = 1 << 22  # elements of the table of a OneHotEncoder
INT64 = np.dtype(np.int64)


class _Refused(Exception):
    """Something of the graph needs the strings themselves."""


class _Writer:
    """Writes the nodes of a graph again, for numbers of strings."""

    def __init__(self, graph: Graph) -> None:
        self.numbers: dict[str, int] = {}
        self.constants = dict(graph.constants)
        self.strings = {v.name: True for v in graph.inputs if v.dtype.kind == "O"}  # whether it may be any string
        self.later: list[tuple[str, Callable[[int], np.ndarray]]] = []  # constants that need the number of others
        self.nodes: list[Node] = []

    def number(self, text: Any) -> int:
        """The number of a string."""
        if not isinstance(text, str):
            raise _Refused
        return self.numbers.setdefault(text, len(self.numbers))

    def node(self, node: Node) -> None:
        """Adds what a node becomes."""
        if any(isinstance(value, (Graph, Node)) for value in node.attributes.values()):
            raise _Refused
        reads = [i for i, name in enumerate(node.inputs) if name in self.strings]
        rule = _RULES.get(node.op)
        if rule is not None:
            rule(self, node, bool(reads))
        elif not reads:
            self.nodes.append(node)
        elif node.op in MOVERS and (node.op == "Concat" or reads == [0]):
            if node.op == "Concat" and len(reads) < len(node.inputs):
                raise _Refused
            self.made(node, any(self.strings[node.inputs[i]] for i in reads))  # type: ignore[index]
            self.nodes.append(node)
        else:
            raise _Refused

    def made(self, node: Node, any_string: bool) -> None:
        """Says that a node's results are strings."""
        self.strings.update(dict.fromkeys((name for name in node.outputs if name), any_string))

    def picked(self, node: Node, table: Callable[[int], np.ndarray]) -> None:
        """The result of a node as rows of a table, by the number of a string; `table` makes it, with the others' row last."""
        name = f"{node.outputs[0]} by number"
        while name in self.constants:
            name += "'"
        self.later.append((name, table))
        self.constants[name] = np.zeros(0, np.int64)
        self.nodes.append(Node("Gather", (name, node.inputs[0]), node.outputs, {"axis": 0}))

    def table(self, values: Mapping[int, Any], other: Any, dtype: Any, width: tuple[int, ...], count: int) -> np.ndarray:
        """A row for each of `count` numbers and one more."""
        table = np.full((count + 1, *width), other, dtype)
        for number, value in values.items():
            table[number] = value
        table.flags.writeable = False
        return table


def _constant(w: _Writer, node: Node, reads: bool) -> None:
    values = np.array([w.number(text) for text in node.attributes.get("values", ())], np.int64)
    try:
        values = values.reshape(node.attributes.get("shape", ()))
    except (TypeError, ValueError):  # which is told where the strings are made
        raise _Refused from None
    values.flags.writeable = False
    w.constants[node.outputs[0]] = values
    w.made(node, False)


def _label(w: _Writer, node: Node, reads: bool) -> None:
    keys, values, other = label_table(View(node, (), ()))
    if (keys.dtype.kind == "O") != reads:
        raise _Refused
    if values.dtype.kind == "O":
        values, other = np.array([w.number(text) for text in values], np.int64), w.number(other)
        w.made(node, False)
    if reads:
        known = dict(zip(map(w.number, keys), values, strict=True))
        w.picked(node, partial(w.table, known, other, values.dtype, ()))
        return
    if node.outputs[0] in w.strings:
        given = {key: value for key, value in node.attributes.items() if key.startswith("keys_")}
        node = Node(
            node.op, node.inputs, node.outputs, {**given, "values_int64s": tuple(values.tolist()), "default_int64": other}
        )
    w.nodes.append(node)


def _mapper(w: _Writer, node: Node, reads: bool) -> None:
    strings, integers = node.attributes.get("cats_strings", ()), node.attributes.get("cats_int64s", ())
    if len(strings) != len(integers):
        raise _Refused
    numbers = [w.number(text) for text in strings]
    if reads:
        known = dict(zip(numbers, integers, strict=True))
        w.picked(node, partial(w.table, known, node.attributes.get("default_int64", -1), INT64, ()))
        return
    other = w.number(node.attributes.get("default_string", "_Unused"))
    made = {"keys_int64s": tuple(integers), "values_int64s": tuple(numbers), "default_int64": other}
    w.made(node, False)
    w.nodes.append(Node("LabelEncoder", node.inputs, node.outputs, made))


def _one_hot(w: _Writer, node: Node, reads: bool) -> None:
    if not reads:
        w.nodes.append(node)
        return
    categories = node.attributes.get("cats_strings")
    if categories is None or node.attributes.get("cats_int64s") is not None or not node.attributes.get("zeros", 1):
        raise _Refused
    numbers, width = [w.number(text) for text in categories], len(categories)
    if width * (len(w.numbers) + width) > MOST_HOT:
        raise _Refused
    rows = dict(zip(numbers, np.eye(width, dtype=np.float32), strict=True))
    w.picked(node, partial(w.table, rows, 0, np.float32, (width,)))


def _grams(w: _Writer, node: Node, reads: bool) -> None:
    given = dict(node.attributes)
    pool = given.pop("pool_strings", None)
    if reads:
        if pool is None or given.get("pool_int64s") is not None:
            raise _Refused
        node = Node(node.op, node.inputs, node.outputs, {**given, "pool_int64s": tuple(map(w.number, pool))})
    w.nodes.append(node)


_RULES: dict[str, Callable[[_Writer, Node, bool], None]] = {
    "StringConstant": _constant, "LabelEncoder": _label, "CategoryMapper": _mapper, "OneHotEncoder": _one_hot,
    "TfIdfVectorizer": _grams,
}  # fmt: skip


class Coded:
    """A model's graph of numbers, and how its callers' values become those and back. As the compiled engine's fast way in, it
    takes calls of the usual kind that it has seen the sizes of, and as `Growing` all others. Any number of threads may use it
    at once.
    """

    def __init__(self, graph: Graph, options: Options, variant: Variant) -> None:
        self._outer = graph
        zipped = {node.outputs[0]: node for node in graph.nodes if node.op == "ZipMap"}
        last = {v.name: zipped.get(v.name) for v in graph.outputs}
        writer = _Writer(graph)
        for node in graph.nodes:
            if node.op != "ZipMap":
                writer.node(node)
            elif node.outputs[0] not in last or node.inputs[0] in writer.strings:
                raise _Refused
        if any(name in zipped for node in graph.nodes for name in node.inputs) or not (zipped or writer.strings):
            raise _Refused
        self._numbers, strings = writer.numbers, writer.strings
        for name, table in writer.later:
            writer.constants[name] = table(len(self._numbers))
        inputs = tuple(v._replace(dtype=INT64) if v.name in strings else v for v in graph.inputs)
        self._maps: list[tuple[int, View]] = []  # outputs that become dicts
        self._texts: list[int] = []  # and strings
        outputs: list[Value] = []
        for i, value in enumerate(graph.outputs):
            zip_map = last[value.name]
            if zip_map is not None:
                self._maps.append((i, View(zip_map, (), ())))
                value = Value(str(zip_map.inputs[0]), None, np.dtype(np.float32))
            elif value.name in strings:
                if strings[value.name]:
                    raise _Refused
                self._texts.append(i)
                value = value._replace(dtype=INT64)
            outputs.append(value)
        if len({v.name for v in outputs}) != len(outputs) or {v.name for v in outputs} & {v.name for v in inputs}:
            raise _Refused
        self._coded = [i for i, v in enumerate(graph.inputs) if v.name in strings]
        self._texts_by_number = np.array([*self._numbers, ""], object)[:-1]
        values = {name: v for name, v in graph.values.items() if name not in strings and name not in zipped}
        numbers = Graph(inputs, tuple(outputs), tuple(writer.nodes), writer.constants, values)
        self._program = made(numbers, options, variant)
        self._inputs = self._program.graph.inputs
        self._names, self._out_names = tuple(v.name for v in inputs), tuple(v.name for v in graph.outputs)
        self._runner = self._program.runner
        self._codes: Callable[[Any, dict[str, int]], np.ndarray | None] = _codes
        self._dicts: Any = None
        if variant.steps:
            from ..kernels.aot.classical import codes, dicts

            self._codes, self._dicts = codes, dicts

    @property
    def threads(self) -> int:
        """The most threads of a call; 0 for no limit of its own."""
        return 0 if self._runner is None else int(self._runner.threads)

    @threads.setter
    def threads(self, number: int) -> None:
        if self._runner is not None:
            self._runner.threads = number

    def run(self, feeds: Any, threads: int | None = None) -> Any:
        """Outputs by name for inputs by name, or None where this is no call of the usual kind. With `threads` (as a `Growing`):
        a list of outputs for a list of inputs.
        """
        if threads is not None:
            return self._any(feeds, threads)
        if type(feeds) is not dict or len(feeds) != len(self._names):
            return None
        try:
            found = self.call([feeds[name] for name in self._names])
        except KeyError:
            return None
        return None if found is None else dict(zip(self._out_names, found, strict=True))

    def call(self, arrays: Sequence[Any]) -> Sequence[Any] | None:
        """Outputs for inputs by position, or None."""
        if self._runner is None:
            return None
        if self._coded:
            if len(arrays) != len(self._names):
                return None
            arrays = list(arrays)
            for i in self._coded:
                arrays[i] = self._codes(arrays[i], self._numbers)
        found = self._runner.call(tuple(arrays))
        return None if found is None else self._decoded(found)

    def _any(self, given: Sequence[Any], threads: int) -> Sequence[Any] | None:
        """Outputs for anything that a caller may pass; errors name the values of the original graph."""
        arrays = []
        for outer, value, item in zip(self._outer.inputs, self._inputs, given, strict=True):
            array = feeds.convert(outer, item)
            arrays.append(feeds.convert(value, self._codes(array, self._numbers)) if outer.dtype.kind == "O" else array)
        binding = self._program.binding(arrays)
        return None if binding.staged else self._decoded(binding.run(arrays, None, threads))

    def _decoded(self, found: Sequence[Any]) -> Sequence[Any]:
        results = list(found)
        for i in self._texts:
            results[i] = self._texts_by_number.take(results[i])
        for i, view in self._maps:
            scores, keys = results[i], map_keys(view)
            plain = self._dicts is not None and scores.dtype == np.float32 and scores.shape[1:] == (len(keys),)
            results[i] = self._dicts(scores, keys) if plain else zip_map_run(view, scores)[0]
        return tuple(results)


def _codes(array: Any, numbers: dict[str, int]) -> np.ndarray | None:
    """The number of each string of an array, one more than all for others; None for what is no array of strings."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "OU":
        return None
    other, items = len(numbers), array.reshape(-1).tolist()
    if array.dtype.kind == "O" and not all(type(item) is str for item in items):
        return None
    found: np.ndarray = np.array([numbers.get(item, other) for item in items], np.int64).reshape(array.shape)
    return found


def coded(graph: Graph, options: Options, variant: Variant) -> Coded | None:
    """The graph of numbers that a graph with strings or maps is; None if it needs those themselves."""
    if any(v.kind != "tensor" for v in graph.inputs) or any(v.kind not in ("tensor", "sequence(map)") for v in graph.outputs):
        return None
    try:
        return Coded(graph, options, variant)
    except _Refused:
        return None
