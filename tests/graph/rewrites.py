"""What the tests of passes share: graphs before and after, and that the values stay, whatever the variant."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.ir.graph import Graph, Node
from fastlayers.kernels import dispatch
from fastlayers.passes import PASSES, optimize
from fastlayers.passes._net import Net
from fastlayers.passes.fold import apply as fold
from fastlayers.program import Program
from tests.program.graphs import graph, normal

from .changed import Changed, changes, unharmed

# How many forms of every graph, with one thing changed, must not be harmed either.
CHANGES = 4
FLOAT, I64 = np.float32, np.int64
Made = tuple[Graph, list[np.ndarray]]


def f32(*values: float) -> np.ndarray:
    return np.array(values, FLOAT)


def outputs(made: Graph, given: Sequence[np.ndarray], variant: str, strict: bool = False) -> list[np.ndarray]:
    with fl.kernels.use(variant):
        program = Program(made, dispatch.variant()._replace(strict=strict))
        return list(program.binding(given).run(list(given)))


def default() -> str:
    return dispatch.variant().name


def _identical(before: Sequence[Node | None], after: Sequence[Node | None]) -> bool:
    return len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True))


def _key(form: Graph) -> object:
    """Equal for graphs whose nodes are the same objects and whose constants have the same values."""
    nodes = tuple(map(id, form.nodes))
    return nodes, tuple(sorted((n, a.dtype.str, a.shape, a.tobytes()) for n, a in form.constants.items()))


def same(made: Graph, given: Sequence[np.ndarray]) -> Graph:
    """The graph after all passes. Each pass alone and all of them give what the graph as written gives under the reference."""
    wanted = outputs(made, given, "reference")
    changed = optimize(made)
    forms = [made, optimize(made, strict=True), changed]
    for change in dict.fromkeys(PASSES):
        net = Net(made, {}, {})
        fold(net)
        before = [*net.nodes]
        change.apply(net)
        if _identical(before, net.nodes):  # it may not have been asked, for what it says that it needs is not there
            importlib.import_module(f"fastlayers.passes.{change.name}").apply(net)
            assert _identical(before, net.nodes), f"{change.name} needs less than it says"
        forms.append(net.graph())
    # Most passes leave most graphs as they are: what is the same runs once.
    for form in {_key(form): form for form in forms}.values():
        assert form.inputs == made.inputs
        assert form.outputs == made.outputs
        for variant in ("reference", default()):
            for got, want in zip(outputs(form, given, variant), wanted, strict=True):
                assert (got.shape, got.dtype) == (want.shape, want.dtype)
                if want.dtype.kind == "f" and want.size:
                    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * max(1.0, np.abs(want).max()))
                else:
                    np.testing.assert_array_equal(got, want)
    for other in (Changed(made, list(given), "as it is"), *changes(made, given, CHANGES)):
        unharmed(other)
    return changed


def ops(made: Graph) -> list[str]:
    """The operators, those of trees among them."""
    return [op for n in made.nodes for op in (ops(n.attributes["body"]) if n.op == "Elementwise" else [n.op])]


def check(
    inputs: Mapping[str, tuple[int, ...]],
    nodes: Sequence[Node],
    constants: Mapping[str, Any] | None = None,
    result: Sequence[str] = ("y",),
) -> Graph:
    """The fused graph of nodes whose inputs have these sizes: with the sizes in the graph, and with a name for the first one."""
    given = [normal(*shape, seed=i) for i, shape in enumerate(inputs.values())]
    found = same(graph(inputs, nodes, result, constants), given)
    opened = {name: ("n", *shape[1:]) if shape else () for name, shape in inputs.items()}
    assert sorted(ops(same(graph(opened, nodes, result, constants), given))) == sorted(ops(found))
    return found


def activation(made: Node) -> tuple[int, ...] | None:
    return made.attributes.get("activation")


C = 6
BN = {"s": normal(C) + 2, "t": normal(C, seed=1), "m": normal(C, seed=2), "v": np.abs(normal(C, seed=3)) + 0.5}
CONV = {"w": normal(C, 3, 3, 3) / 5, "b": normal(C, seed=4)}
IMAGE = (2, 3, 7, 6)
PADS = {"pads": (1, 1, 1, 1)}
W, B = normal(5, 4), normal(4)
