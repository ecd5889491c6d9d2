"""A random search among the graphs that our own file can hold: those that run, after all passes, with anything of them changed.

Other formats' readers write only attributes that they know of; here every operator, those that only passes make as well, meets
attributes of any kind, constants of any shape and dtype, inputs in any order, and another operator's inputs. What comes of one is
an array or one of our errors. ``python -m tests.model.changed 1000 2000`` tries the seeds from 1000 to 2999 and prints findings.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.errors import ours
from fastlayers.formats import own
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.kernels import dispatch
from fastlayers.model.model import Model, Options
from tests.graph.examples import EXAMPLES
from tests.graph.test_compiled import compiled, inputs
from tests.operators.cases import Case, all_cases

from . import extremes

DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int32", "int64", "bool", "int16", "uint64")
ODD = (None, "x", "", (), (1, 2), True, 2.5, -1, 1 << 70, (99, 0.0, 0.0), ((1,), (2,)), b"x", np.zeros(3, np.float32))
Found = tuple[Graph, list[np.ndarray]]


def _single(case: Case) -> Found:
    """A node whose parameters are constants."""
    names = tuple(None if a is None else f"x{i}" for i, a in enumerate(case.inputs))
    node = Node(case.op, names, tuple(f"y{i}" for i in range(len(case.want))), dict(case.attributes))
    pairs = [(n, np.asarray(a)) for n, a in zip(names, case.inputs, strict=True) if n is not None]
    fed = [(n, a) for n, a in pairs if int(n[1:]) < case.data]
    given = tuple(Value(n, a.shape, a.dtype) for n, a in fed)
    outputs = tuple(Value(n, None, np.dtype(np.void)) for n in node.outputs)
    return Graph(given, outputs, (node,), {n: a for n, a in pairs if int(n[1:]) >= case.data}), [a for _, a in fed]


@cache
def sources() -> list[Found]:
    """Graphs after all passes, and what they are fed."""
    from tests.goldens.tflite_cases import CASES

    found: list[Found] = []
    for case in all_cases():
        graph, feeds = _single(case)
        found.append((graph, feeds))
    for example in EXAMPLES:
        if inputs(example):
            model, given = compiled(example, example.arrays())
            found.append((model._main.whole_graph(), given))
    for content, feeds in CASES.values():
        found.append((fl.load(content)._main.whole_graph(), feeds))
    return [(graph, feeds) for graph, feeds in found if len(graph.nodes) < 60]


@cache
def _vocabulary() -> tuple[list[str], dict[str, list[Any]]]:
    """Operators, and what attributes of each name have been."""
    seen: dict[str, list[Any]] = {}
    ops = set()
    for graph, _ in sources():
        for node in graph.nodes:
            ops.add(node.op)
            for name, value in node.attributes.items():
                if not isinstance(value, Graph):
                    seen.setdefault(name, []).append(value)
    return sorted(ops), seen


def changed(seed: int) -> Found:
    """A graph of which a few things are others."""
    random = np.random.default_rng(seed)

    def one(items: Sequence[Any]) -> Any:
        return items[random.integers(len(items))]

    graph, feeds = one(sources())
    feeds = list(feeds)
    ops, seen = _vocabulary()
    nodes, constants = list(graph.nodes), dict(graph.constants)
    for _ in range(int(random.integers(1, 4))):
        if not nodes:
            break
        at = int(random.integers(len(nodes)))
        node = nodes[at]
        attributes, given, op = dict(node.attributes), list(node.inputs), node.op
        kind = random.integers(10)
        if kind < 4 and attributes:
            name = one(sorted(attributes))
            how = random.integers(6)
            if how == 0:
                attributes[name] = one(ODD)
            elif how == 1:
                del attributes[name]
            elif how == 2 and name in seen:
                attributes[name] = one(seen[name])
            elif not isinstance(attributes[name], Graph):
                attributes[name] = extremes.damaged_attribute(attributes[name], random)
        elif kind == 4:
            name = one(sorted(seen))
            attributes[name] = one(seen[name])
        elif kind == 5 and given:
            i = int(random.integers(len(given)))
            if random.integers(2):
                given[i] = one([*given, *constants, *(v.name for v in graph.inputs), None])
            elif random.integers(2):
                given.append(one([*given, *constants]))
            else:
                j = int(random.integers(len(given)))
                given[i], given[j] = given[j], given[i]
        elif kind == 6 and random.integers(4) == 0:
            op = one(ops)
        elif constants and random.integers(4):
            name = one(sorted({n for n in given if n in constants} or constants))
            if random.integers(3):
                constants[name] = extremes.damaged_array(constants[name], random)
            else:
                with np.errstate(all="ignore"):
                    constants[name] = constants[name].astype(one(DTYPES))
        elif feeds:
            i = int(random.integers(len(feeds)))
            feeds[i] = extremes.damaged_array(feeds[i], random)
            if not random.integers(3) and feeds[i].dtype.kind in "iufb":
                with np.errstate(all="ignore"):
                    feeds[i] = feeds[i].astype(one(DTYPES))
        nodes[at] = Node(op, tuple(given), node.outputs, attributes)
    asked = tuple(
        Value(v.name, (None,) * a.ndim if random.integers(2) else a.shape, a.dtype)
        for v, a in zip(graph.inputs, feeds, strict=True)
    )
    return Graph(asked, graph.outputs, tuple(nodes), constants), [np.array(a, order="C") for a in feeds]


def trial(seed: int) -> Callable[[], Any]:
    """Runs the graph of a seed, as it is or through the passes once more."""
    graph, feeds = changed(seed)
    random = np.random.default_rng(seed ^ 0x5EED)
    optimize = random.integers(4) == 0
    variant = dispatch.variant("reference" if random.integers(8) == 0 else "")

    def go() -> Any:
        options = Options(optimize=bool(optimize), bodies=bool(optimize), rounds=1000, most=extremes.MOST)
        with ours(lambda: "changed"):  # the file's reader does so
            own._check(graph, (), "changed")
        model = Model(graph, options, variant=variant)
        for _ in range(2):
            made = model(*feeds)
        return made

    return go


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for number, said in extremes.search(range(first, first + count), trial, 60, 4).items():
        print(f"---- {number}: {[(n.op, n.attributes) for n in changed(number)[0].nodes][:4]}\n{said}", flush=True)
    print(f"{count} tried")
