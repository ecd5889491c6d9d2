"""Caches that a graph is given and gives back with new keys and values, and the graph that writes these where the cache is.

before                                                      after
out, present = GroupQueryAttention(q, k, v, past, ends)     out = GroupQueryAttention(q, k, v, cache, counts, slots, in_place)

`cache` has room for more keys than there are, so its size, on which bindings depend, changes seldom. The number of keys
is a value: `counts` (b,), with the `slots` (b, g, s) of the new ones and the `places` (b, s) of the queries. What the graph
makes of sizes and masks to get there, a few nodes, is apart: `before` runs in numpy, its results are inputs of `main`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .._tuples import NamedTuple
from ..ir.graph import Graph, Node, Value, captured
from ..operators import FLOAT32, INT64, OPERATORS, Spec, View
from ..operators.attention.in_place import IN_PLACE
from ..operators.reference import run_operator
from .memory import result_bytes

__all__ = ["COUNTS", "PLACES", "SLOTS", "Caches", "find"]

COUNTS, PLACES, SLOTS = "~counts", "~places", "~slots."  # names of inputs, the last with a number of heads after it
MOST_NODES, MOST_VALUES = 64, 1 << 16  # of `before`, and of a constant that it reads

_K, _V, _ENDS, _TOTAL, _POSITIONS = 3, 4, 5, 6, 9  # inputs of GroupQueryAttention


class Caches(NamedTuple):
    """A graph with caches, apart.

    Attributes:
        pasts: positions of the caches among the graph's inputs; `heads`: how many of keys each has.
        presents: where each of them is among the graph's outputs.
        before: nodes that run in numpy; `ends`, `total`: values that say how long sequences are, as GroupQueryAttention has them.
        main: the rest. Of its inputs, `given` are of the graph, by position, `made` are results of `before`; then the three sorts
            above, and the caches.
        results: of each output of the graph: its position among those of `main`; -1: a cache's, -2: a result of `before`.
        steps: the input, by position, whose second axis is the queries'.
    """

    pasts: tuple[int, ...]
    heads: tuple[int, ...]
    presents: tuple[int, ...]
    before: tuple[Node, ...]
    ends: str
    total: str
    main: Graph
    given: tuple[int, ...]
    made: tuple[str, ...]
    results: tuple[int, ...]
    steps: int

    def lengths(self, graph: Graph, arrays: Sequence[np.ndarray], most: int) -> dict[str, np.ndarray]:
        """The values that `before` makes of the graph's inputs, with these inputs and the constants."""
        env = {value.name: array for value, array in zip(graph.inputs, arrays, strict=True)}
        env.update((name, graph.constants[name]) for name in (self.ends, self.total) if name in graph.constants)
        for node in self.before:
            values = [None if name is None else env[name] if name in env else graph.constants[name] for name in node.inputs]
            view = View(node, [None if a is None else Spec(a.shape, a.dtype) for a in values], values)
            specs = OPERATORS[node.op].infer(view)
            result_bytes(view, specs, most)
            made = run_operator(node, view, values, specs)
            for name, array in zip(node.outputs, made, strict=False):
                env[name] = np.asarray(array)
        return env


def find(graph: Graph) -> Caches | None:
    """The caches of a graph; None if it has none that can grow where they are."""
    inputs, outputs = ({v.name: i for i, v in enumerate(values)} for values in (graph.inputs, graph.outputs))
    readers: dict[str, int] = {}
    for node in graph.nodes:
        for name in {name for name in node.inputs if name} | captured(node):
            readers[name] = readers.get(name, 0) + 1
    found = [node for node in graph.nodes if _grows(node, graph, inputs, outputs, readers)]
    ends = {(node.inputs[_ENDS], node.inputs[_TOTAL]) for node in found}
    if len(ends) != 1:
        return None
    first, last = (str(name) for name in ends.pop())
    before = _ancestors(graph, (first, last))
    return None if before is None else _apart(graph, found, before, first, last, inputs, outputs)


def _grows(node: Node, graph: Graph, inputs: Mapping[str, int], outputs: Mapping[str, int], readers: Mapping[str, int]) -> bool:
    """Whether a node appends to two inputs of the graph, and the results are outputs, which nothing else has to do with."""
    if node.op != "GroupQueryAttention" or len(node.inputs) <= _TOTAL or len(node.outputs) != 3:
        return False
    given, rest = node.attributes, (*node.inputs, *(None,) * 12)
    pasts, presents = node.inputs[_K : _V + 1], node.outputs[1:]
    if any(name in outputs or name not in inputs or readers.get(name or "") != 1 for name in pasts) or pasts[0] == pasts[1]:
        return False
    if any(graph.inputs[inputs[str(name)]].dtype != FLOAT32 for name in pasts) or rest[10] or rest[11]:
        return False
    if any(name not in outputs or readers.get(name) for name in presents):
        return False
    return bool(node.inputs[_ENDS] and node.inputs[_TOTAL]) and not given.get("smooth_softmax", 0)


def _ancestors(graph: Graph, names: Sequence[str]) -> list[Node] | None:
    """The nodes that values are made by; None if they are many, or not of the sort that numpy runs in no time."""
    wanted, found = set(names), []
    for node in reversed(graph.nodes):
        if not wanted.intersection(node.outputs):
            continue
        operator = OPERATORS.get(node.op)
        sizes = [graph.constants[name].size for name in node.inputs if name is not None and name in graph.constants]
        if operator is None or operator.run is None or operator.traits.volatile or max(sizes, default=0) > MOST_VALUES:
            return None
        wanted.update(name for name in node.inputs if name)
        found.append(node)
    return found[::-1] if len(found) <= MOST_NODES else None


def _apart(
    graph: Graph,
    found: Sequence[Node],
    before: Sequence[Node],
    ends: str,
    total: str,
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
) -> Caches | None:
    early = set(map(id, before))
    heads: dict[str | None, int] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if id(node) in early:
            continue
        if node in found:
            groups = int(node.attributes.get("kv_num_heads", 0))
            heads.update(dict.fromkeys(node.inputs[_K : _V + 1], groups))
            left = [*node.inputs, *(None,) * 12][:10]
            left[_ENDS], left[_TOTAL], left[_POSITIONS] = COUNTS, None, left[_POSITIONS] or PLACES
            attributes = {**node.attributes, "in_place": IN_PLACE}
            node = Node(node.op, (*left, None, None, f"{SLOTS}{groups}"), node.outputs[:1], attributes)
        nodes.append(node)
    presents = {name: str(past) for node in found for name, past in zip(node.outputs[1:], node.inputs[_K : _V + 1], strict=True)}
    reads = {name for node in nodes for name in node.inputs if name}.union(*map(captured, nodes))
    made = tuple(name for node in before for name in node.outputs if name in reads)
    results = tuple(v for v in graph.outputs if v.name not in presents and not any(v.name in node.outputs for node in before))
    reads |= {v.name for v in results}
    given = tuple(i for i, v in enumerate(graph.inputs) if v.name in reads and v.name not in heads)
    queries = [i for i in given if (shape := graph.inputs[i].shape) is not None and len(shape) in (2, 3)]
    if not queries or not results:
        return None
    pasts = [inputs[str(name)] for name in heads]
    back = {past: outputs[name] for name, past in presents.items()}
    own = [Value(COUNTS, (None,), INT64), Value(PLACES, (None, None), INT64)]
    own += [Value(f"{SLOTS}{g}", (None, None, None), INT64) for g in dict.fromkeys(heads.values())]
    unknown = [Value(name, None, np.dtype(np.void)) for name in made]
    taken = (*(graph.inputs[i] for i in given), *unknown, *own, *(graph.inputs[i] for i in pasts))
    main = Graph(taken, results, tuple(nodes), graph.constants, graph.values)
    places = {v.name: i for i, v in enumerate(results)}
    return Caches(
        tuple(pasts), tuple(heads.values()), tuple(back[graph.inputs[i].name] for i in pasts), tuple(before), ends, total, main,
        given, made, tuple(-1 if v.name in presents else places.get(v.name, -2) for v in graph.outputs), queries[0],
    )  # fmt: skip
