"""Blocks that a graph repeats: bound as copies of the first of them, they do what each would do that was bound for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.errors import Error
from fastlayers.graph import Graph
from fastlayers.kernels import dispatch
from fastlayers.program import Program

from .graphs import graph, node, normal

pytestmark = pytest.mark.skipif(not dispatch.current().startswith("aot/"), reason="the engine is not compiled")

SIZES = [(2, 3), (2, 4), (1, 9), (3, 1), (0, 5), (2, 3), (1, 64), (5, 7), (1, 1), (3, 0), (2, 17), (16, 16), (1, 127), (2, 4)]


def weights(i: int, *more: str) -> dict[str, np.ndarray]:
    """Those of a block: matrices w, u, vectors b, g."""
    return {
        f"w{i}": normal(8, 8, seed=i),
        f"u{i}": normal(8, 8, seed=i + 40),
        f"b{i}": normal(8, seed=i),
        f"g{i}": normal(8, seed=i + 9),
    }


def encoder(count: int = 6) -> Graph:
    """Products, a normalization, and a residual; the first block reads an input."""
    nodes, constants, x = [], {}, "x"
    for i in range(count):
        constants |= weights(i)
        nodes += [
            node(f"h{i} = Linear({x}, w{i}, b{i})"), node(f"l{i} = LayerNormalization(h{i}, g{i}, b{i})", axis=-1, epsilon=1e-5),
            node(f"y{i} = Linear(l{i}, u{i}, b{i}, {x})"),
        ]  # fmt: skip
        x = f"y{i}"
    return graph({"x": ("n", "t", 8)}, nodes, [x], constants)


def hidden() -> Graph:
    """As `encoder`, and results of single blocks: outputs, parts of one, and read by what follows."""
    made = encoder(7)
    nodes = [*made.nodes, node("all = Concat(y2, y4, y6)", axis=0), node("late = Add(l3, h5)")]
    return graph({"x": ("n", "t", 8)}, nodes, ["y6", "y1", "all", "late", "y3"], made.constants)


def masked() -> Graph:
    """All blocks read a second input, and what is made of it before them; one in the middle is another."""
    nodes, constants, x = [node("m = Neg(mask)")], {}, "x"
    for i in range(9):
        constants |= weights(i)
        nodes += [
            node(f"s{i} = Softmax({x})", axis=-1), node(f"a{i} = Add(s{i}, m)"), node(f"p{i} = Mul(a{i}, mask)"),
            node(f"y{i} = Linear(p{i}, {f'w{i}, b{i}' if i != 4 else f'w{i}, -'})"),
        ]  # fmt: skip
        x = f"y{i}"
    return graph({"x": ("n", "t", 8), "mask": ("n", "t", 8)}, nodes, [x], constants)


def in_place() -> Graph:
    """Elementwise results that may take their operand's memory, views, and sizes that are computed."""
    nodes, x, constants = [], "x", {"minus": np.array([-1]), "c": normal(8)}
    for i in range(8):
        nodes += [
            node(f"r{i} = Relu({x})"), node(f"a{i} = Add(r{i}, c)"), node(f"f{i} = Reshape(a{i}, minus)"),
            node(f"e{i} = Sigmoid(f{i})"), node(f"z{i} = Shape({x})"), node(f"q{i} = Reshape(e{i}, z{i})", allowzero=1),
            node(f"y{i} = Softmax(q{i})", axis=-1),
        ]  # fmt: skip
        x = f"y{i}"
    return graph({"x": ("n", "t", 8)}, nodes, [x, "e5"], constants)


def by_sizes() -> Graph:
    """Each block has a constant that is made for the sizes."""
    nodes, x = [], "x"
    for i in range(8):
        nodes += [node(f"t{i} = Trilu({x})"), node(f"y{i} = Softmax(t{i})", axis=-1)]
        x = f"y{i}"
    return graph({"x": ("n", "t", 8)}, nodes, [x], {})


def shared() -> Graph:
    """Some blocks have another's weights, and numbers that say how a node is lowered."""
    nodes, constants, x = [], {"axis": np.array([1])}, "x"
    for i in range(8):
        constants |= {**weights(i), f"k{i}": np.array([4 if i == 6 else 0]), f"n{i}": np.array([8])}
        nodes += [
            node(f"h{i} = Linear({x}, w{i // 3}, b{i})"), node(f"t{i} = Softmax(h{i})", axis=-1),
            node(f"p{i} = Slice(t{i}, k{i}, n{i}, two)"), node(f"c{i} = Concat(p{i}, {x})", axis=-1),
            node(f"o{i} = Slice(c{i}, k0, n{i}, two)"), node(f"y{i} = Linear(o{i}, u{i}, b{i})"),
        ]  # fmt: skip
        x = f"y{i}"
    constants["two"] = np.array([2])
    return graph({"x": ("n", "t", 8)}, nodes, [x], constants)


GRAPHS: dict[str, Any] = {f.__name__: f for f in (encoder, hidden, masked, in_place, by_sizes, shared)}
COPIED = {"encoder": 1, "hidden": 1, "masked": 2, "in_place": 1}  # regions, of which there is one at least that is copied


def feeds_of(made: Graph, n: int, t: int) -> list[np.ndarray]:
    return [normal(n, t, 8, seed=i) for i in range(len(made.inputs))]


def places(made: Program, feeds: list[np.ndarray]) -> Any:
    return [[(space, offset if space != 1 else 0) for space, offset in call] for call in made.binding(feeds).bound.places()]


@pytest.mark.parametrize("name", GRAPHS)
def test_as_if_bound_for_itself(name: str) -> None:
    """Bits and places are those of a program that was never bound to other sizes, in whatever order they come."""
    made = GRAPHS[name]()
    walked, copied = Program(made, dispatch.variant()), 0
    order = np.random.default_rng(len(name)).permutation(len(SIZES) * 2)
    for n, t in [SIZES[i % len(SIZES)] for i in order]:
        walked.bindings.clear()
        feeds, anew = feeds_of(made, n, t), Program(made, dispatch.variant())
        assert places(walked, feeds) == places(anew, feeds), (n, t)
        assert list(walked.binding(feeds).bound.counts) == list(anew.binding(feeds).bound.counts)
        copied += len(walked._traces[0].copies)
        for threads in (1, 2):
            want = anew.binding(feeds).run(feeds, None, threads)
            for got, expected in zip(walked.binding(feeds).run(feeds, None, threads), want, strict=True):
                np.testing.assert_array_equal(got.view(np.int32), expected.view(np.int32))
    if name in COPIED:
        assert copied >= 10 * COPIED[name]  # or this test says nothing


def test_blocks_without_records_get_them_where_they_are_no_copies() -> None:
    """One input reaches all blocks, the other only some: what was copied before is then bound node by node, and copied again."""
    nodes, constants, x = [], {}, "x"
    for i in range(6):
        constants |= weights(i)
        nodes += [node(f"h{i} = Linear({x}, w{i}, b{i})"), node(f"y{i} = Softmax(h{i})", axis=-1)]
        x = f"y{i}"
    nodes.append(node("last = Concat(y3, y5, z)", axis=0))
    made = graph({"x": ("n", 8), "z": ("m", 8)}, nodes, ["last", "y4"], constants)
    walked, expanded = Program(made, dispatch.variant()), []
    for n, m in [(3, 2), (4, 2), (5, 2), (5, 3), (6, 3), (6, 9), (2, 9), (2, 2), (7, 1)]:
        feeds, anew = [normal(n, 8), normal(m, 8)], Program(made, dispatch.variant())
        assert places(walked, feeds) == places(anew, feeds), (n, m)
        for got, want in zip(walked.binding(feeds).run(feeds), anew.binding(feeds).run(feeds), strict=True):
            np.testing.assert_array_equal(got, want)
        trace = walked._traces[0]
        if n == 6 and m == 3:  # what else may not know it
            assert trace.route.blocks is not None
            trace.route.blocks.likes.clear()
        expanded.append(not trace.copies)
        if n == 6 and m == 9:  # only the last node was bound again; now the copies' own records are asked for
            for copies in list(trace.copies):
                trace.expand(copies)
            assert all(record is not None for record in trace.records)
    assert expanded[2:4] == [False, False]


def test_errors_are_those_of_sizes_that_come_first() -> None:
    made = masked()
    walked = Program(made, dispatch.variant())
    for n, t in SIZES[:6]:
        walked.binding(feeds_of(made, n, t))
    assert walked._traces[0].copies
    wrong = [normal(3, 4, 8), normal(2, 5, 8)]
    with pytest.raises(Error) as first:
        Program(made, dispatch.variant()).binding(wrong)
    with pytest.raises(Error) as later:
        walked.binding(wrong)
    assert (type(later.value), str(later.value)) == (type(first.value), str(first.value))


def test_ledgers_balance() -> None:
    made = encoder()
    walked = Program(made, dispatch.variant())
    for n, t in SIZES:
        walked.binding(feeds_of(made, n, t))
    assert walked._traces[0].copies and walked.bindings.ledger.nbytes > 20_000
    walked.bindings.clear()
    walked._traces = ()
    assert walked.bindings.ledger.nbytes == 0
