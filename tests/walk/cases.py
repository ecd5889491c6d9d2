"""Every operator's examples as walks: data of open sizes, and parameters that an integer input chooses.

A parameter (weights, bounds, tables) is one of two in a list, by the number `k`: it is known when the model is bound and not when
it is loaded, so that whatever a kernel packs of it belongs to one binding.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.operators import OPERATORS
from tests.operators.cases import Case

from .check import Feeds, Step
from .meaning import meaning

__all__ = ["CaseWalk", "batches_of", "walks_of"]


# Their parameters must be a tree, which kernels check and numpy does not.
CHECKED = ("TreeDistribution", "TreeLogProb", "Trees")


class CaseWalk(NamedTuple):
    """A graph around one node, and its steps."""

    graph: Graph
    steps: list[Step]


def walks_of(item: Case) -> Iterator[CaseWalk]:
    """Parameters chosen by an integer input; and, if there are several inputs, all but the first."""
    if OPERATORS[item.op].traits.volatile:
        return
    for first in dict.fromkeys((item.data, min(1, item.data))):
        yield _walk(item, first)


def _walk(item: Case, first: int) -> CaseWalk:
    random = np.random.default_rng(zlib.crc32(f"{item.id} {first}".encode()))
    names = [None if a is None else f"x{i}" for i, a in enumerate(item.inputs)]
    data = {n: a for n, a in zip(names[:first], item.inputs, strict=False) if n is not None and a is not None}
    rest = {n: a for n, a in zip(names[first:], item.inputs[first:], strict=True) if n is not None and a is not None}
    node = Node(item.op, tuple(names), tuple(f"y{i}" for i in range(len(item.want))), item.attributes)
    graph = _graph(node, data, {n: [a, a] for n, a in rest.items()})
    for name, array in rest.items():  # another one where numpy takes it
        for other in () if item.op in CHECKED else _altered(array):
            tried = _graph(node, data, {n: [a, other if n == name else a] for n, a in rest.items()})
            if _means(tried, {**data, "k": np.array(1)}) is not None:
                pairs = {n: list(graph.constants[f"{n} both"]) for n in rest} | {name: [array, other]}
                graph = _graph(node, data, pairs)
                break
    sizes = [data, *_resized(graph, data, random)]
    number = len(sizes)
    order = [(0, 0), (1 % number, 1), (0, 1), (2 % number, 0), (0, 0)]
    steps = []
    for at, k in order:
        feeds = {**sizes[at], "k": np.array(k)}
        steps.append(Step(feeds, _means(graph, feeds)))
    return CaseWalk(graph, steps)


def _graph(node: Node, data: Feeds, pairs: dict[str, list[np.ndarray]]) -> Graph:
    nodes = [Node("Gather", (f"{name} both", "k"), (name,), {"axis": 0}) for name in pairs]
    # What decides a size belongs to a binding: so k is among its key.
    nodes += [Node("Reshape", ("k", "one"), ("k1",), {}), Node("ConstantOfShape", ("k1",), ("sized",), {}), node]
    constants: dict[str, Any] = {f"{name} both": np.stack(pair) for name, pair in pairs.items()} | {"one": np.array([1])}
    inputs = [Value(name, (None,) * array.ndim, array.dtype) for name, array in data.items()]
    inputs.append(Value("k", (), np.dtype(np.int64)))
    outputs = [Value(n, None, np.dtype(np.void)) for n in (*node.outputs, "sized")]
    return Graph(tuple(inputs), tuple(outputs), tuple(nodes), constants)


def _means(graph: Graph, feeds: Feeds) -> dict[str, Any] | None:
    """numpy's values; None where it refuses."""
    try:
        return meaning(graph, feeds)
    except (fl.Error, KeyError):
        return None


def _altered(array: np.ndarray) -> Iterator[np.ndarray]:
    """Other parameters of the same shape and dtype."""
    if array.dtype.kind == "O":
        return
    if array.dtype.kind in "fc":
        yield np.asarray(array * 0.5, array.dtype)
    elif array.size > 1:
        yield np.roll(array.reshape(-1), 1).reshape(array.shape)
    if array.dtype.kind in "iu":
        yield np.asarray(array + 1, array.dtype)
        yield np.asarray(np.maximum(array, 1) - 1, array.dtype)


def _resized(graph: Graph, data: Feeds, random: np.random.Generator, wanted: int = 2) -> Sequence[Feeds]:
    """The data in other sizes that numpy takes: equal sizes change together."""
    sizes = sorted({s for a in data.values() for s in a.shape})
    found: list[Feeds] = []
    for attempt in range(12):
        # At first one size in turn, then several at once.
        changed = [sizes[attempt % len(sizes)]] if sizes and attempt < 6 else [s for s in sizes if random.random() < 0.5]
        to = {s: int(random.choice([s + 1, max(s - 1, 0), 2 * s + 1])) for s in changed}
        made = {name: _taken(array, to) for name, array in data.items()}
        if not changed or _means(graph, {**made, "k": np.array(0)}) is None:
            continue
        found.append(made)
        if len(found) == wanted:
            break
    return found


def _taken(array: np.ndarray, to: dict[int, int]) -> np.ndarray:
    """The array with its sizes changed, its elements repeated."""
    for axis, size in enumerate(array.shape):
        if size in to:
            shape = (*array.shape[:axis], to[size], *array.shape[axis + 1 :])
            array = np.take(array, np.arange(to[size]) % size, axis) if size else np.ones(shape, array.dtype)
    return np.array(array, order="C")


def batches_of(item: Case) -> Iterator[tuple[Graph, Feeds, dict[str, int | None]]]:
    """The node with two samples along each axis of its first input in turn; the axis of each input that is the batch's."""
    if OPERATORS[item.op].traits.volatile or not item.inputs or item.inputs[0] is None:
        return
    random = np.random.default_rng(zlib.crc32(item.id.encode()))
    names = [None if a is None else f"x{i}" for i, a in enumerate(item.inputs)]
    node = Node(item.op, tuple(names), tuple(f"y{i}" for i in range(len(item.want))), item.attributes)
    named = {n: a for n, a in zip(names, item.inputs, strict=True) if n is not None and a is not None}
    data = {n: a for n, a in named.items() if int(n[1:]) < item.data}
    for axis in range(item.inputs[0].ndim):
        axes: dict[str, int | None] = {
            n: axis if a.ndim > axis and a.shape[axis] == item.inputs[0].shape[axis] else None for n, a in data.items()
        }
        feeds = {
            n: a if axes[n] is None else np.take(a, np.arange(2) % max(a.shape[axis], 1), axis) for n, a in data.items() if a.size
        }
        if len(feeds) < len(data):
            continue
        for n, a in feeds.items():
            if a.dtype == np.float32:
                feeds[n] = random.standard_normal(a.shape).astype(np.float32)
        graph = Graph(
            tuple(Value(n, (None,) * a.ndim, a.dtype) for n, a in feeds.items()),
            tuple(Value(n, None, np.dtype(np.void)) for n in node.outputs),
            (node,),
            {n: a for n, a in named.items() if n not in data},
        )
        if _means(graph, feeds) is not None:
            yield graph, feeds, axes
