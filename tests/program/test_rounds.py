"""Loops whose sizes change with the iterations: sizes that were bound before are iterated over without Python."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from fastlayers.errors import LimitError, ShapeError, TimeoutError
from fastlayers.ir.graph import Graph
from fastlayers.operators import meter
from fastlayers.operators.meter import Meter

from .graphs import graph, node, normal
from .test_program import program, run

INT, BOOL = np.dtype(np.int64), np.dtype(np.bool_)
YES = {"yes": np.array(True)}
NUMBER, GOING = ((), INT), ((), BOOL)


def growing() -> Graph:
    """Rows of x put below each other, whose sums grow; the numbers of the iterations are a state and a result."""
    nodes = [
        node("j = Unsqueeze(i, first)"), node("r = Gather(x, j)"), node("v2 = Concat(v, r)", axis=0),
        node("s = ReduceSum(v2, first)", keepdims=0), node("k = Identity(i)"), node("l = Identity(i)"),
        node("on = Less(i, last)"),
    ]  # fmt: skip
    inputs = {"i": NUMBER, "c": GOING, "v": ("m", 4), "before": NUMBER}
    body = graph(inputs, nodes, ["on", "v2", "k", "s", "l"])
    top = [node("v9, k9, s9, l9 = Loop(n, yes, v0, zero)", body=body)]
    constants = {"first": [0], "zero": 0, **YES, "v0": np.zeros((0, 4), np.float32)}
    return graph({"x": ("rows", 4), "n": NUMBER, "last": NUMBER}, top, ["v9", "k9", "s9", "l9"], constants)


def bags() -> Graph:
    """Sums of the bags of an embedding, as torch writes them: the sizes of bags are values."""
    nodes = [
        node("a = Gather(starts, i)", axis=0), node("b = Gather(ends, i)", axis=0), node("a1 = Unsqueeze(a, first)"),
        node("b1 = Unsqueeze(b, first)"), node("bag = Slice(x, a1, b1, first)"), node("rows = Gather(w, bag)", axis=0),
        node("s = ReduceSum(rows, first)", keepdims=0), node("on = Identity(c)"),
    ]  # fmt: skip
    body = graph({"i": NUMBER, "c": GOING}, nodes, ["on", "s"])
    inputs = {"x": (("n",), INT), "starts": (("b",), INT), "ends": (("b",), INT)}
    top = [node("size = Shape(starts)"), node("count = Squeeze(size)"), node("y = Loop(count, yes)", body=body)]
    return graph(inputs, top, ["y"], {"w": normal(50, 3), "first": [0], **YES})


def check_growing(made: object, x: np.ndarray, n: int, last: int, **more: object) -> None:
    v, k, s, numbers = run(made, x, np.int64(n), np.int64(last), **more)
    count = min(n, last + 1)
    np.testing.assert_array_equal(v, x[:count])
    np.testing.assert_allclose(s, np.cumsum(x[:count], axis=0), rtol=0, atol=1e-5)
    assert (k.tolist(), numbers.tolist()) == (count - 1, [*range(count)])


def test_a_state_may_grow(variant: str) -> None:
    made, x = program(growing()), normal(9, 4)
    for n, last in ((5, 100), (9, 100), (9, 100), (9, 3), (3, 8), (9, 0), (9, 7)):
        check_growing(made, x, n, last)
    check_growing(made, normal(7, 4), 7, 100)  # rows of another number are of other sizes


def test_sizes_that_are_values(variant: str) -> None:
    made, w, rng = program(bags()), normal(50, 3), np.random.default_rng(0)
    for turn in range(30):  # of them all, more than belong to a binding by their values
        x = rng.integers(0, 50, 40)
        bounds = np.sort(rng.integers(0, 41, 6))
        starts, ends = bounds[:-1], bounds[1:]
        if turn % 10 == 9:
            starts, ends = starts[:1], ends[:1]
        (y,) = run(made, x, starts, ends)
        want = [w[x[a:b]].sum(axis=0) for a, b in zip(starts, ends, strict=True)]
        np.testing.assert_allclose(y, want, rtol=0, atol=1e-4)


def test_sizes_that_are_values_from_many_threads() -> None:
    made, w = program(bags()), normal(50, 3)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            x, bounds = rng.integers(0, 50, 40), np.sort(rng.integers(0, 41, 6))
            (y,) = run(made, x, bounds[:-1], bounds[1:])
            np.testing.assert_allclose(y, [w[x[a:b]].sum(0) for a, b in pairwise(bounds)], 0, 1e-4)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_iterations_are_limited() -> None:
    made, x = program(growing()), normal(9, 4)
    for _ in range(3):
        counted = Meter(9)
        made.in_stages([x, np.array(9), np.array(100)], counted)
        assert counted.rounds == 0
        with pytest.raises(LimitError, match="takes more than 8 iterations"):
            made.in_stages([x, np.array(9), np.array(100)], Meter(8))


def test_what_iterations_make_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    made, x = program(growing()), normal(9, 4)
    check_growing(made, x, 9, 100)
    # Sums of 16 bytes and numbers of 8 in each, and at most 9 rows of 16 bytes that are handed on.
    for most, fails in ((9 * 24, False), (9 * 24 - 1, True), (9 * 16 - 1, True)):
        values = [x, np.array(9), np.array(100)]
        if fails:
            with pytest.raises(LimitError, match=f"more than {most} bytes"):
                made.in_stages(values, Meter(100, most))
        else:
            made.in_stages(values, Meter(100, most))
    monkeypatch.setattr(meter, "MOST_BYTES", 1)
    with pytest.raises(LimitError):
        made.in_stages([x, np.array(9), np.array(100)], Meter(100))


def test_a_deadline_ends_known_sizes() -> None:
    from fastlayers._deadline import Deadline

    made, x = program(growing()), normal(9, 4)
    check_growing(made, x, 9, 100)
    with pytest.raises(TimeoutError), Deadline(0):
        run(made, x, np.int64(9), np.int64(100))
    check_growing(made, x, 9, 100)


def test_a_part_of_another_shape_is_found() -> None:
    """In the second run, whose sizes are known."""
    nodes = [node("v2 = Concat(v, v)", axis=0), node("s = Neg(v)"), node("on = Identity(c)")]
    body = graph({"i": NUMBER, "c": GOING, "v": ("m",)}, nodes, ["on", "v2", "s"])
    made = program(graph({"n": NUMBER, "v0": ("m",)}, [node("v9, y = Loop(n, yes, v0)", body=body)], ["v9", "y"], YES))
    for _ in range(3):
        with pytest.raises(ShapeError, match=r"a part of shape \(6,\) .* after one of shape \(3,\)"):
            run(made, np.int64(2), normal(3))
        v, y = run(made, np.int64(1), normal(3))
        np.testing.assert_array_equal(y, [-normal(3)])
        np.testing.assert_array_equal(v, [*normal(3), *normal(3)])
