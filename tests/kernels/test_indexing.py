"""`pick`, `scatter`, `one_hot` and `reverse_sequence`: against loops over the formula, indices out of range, edges of memory."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ShapeError, UnsupportedError
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import KINDS, SCATTER
from fastlayers.operators.calls import strides_of
from tests.guard import guarded

from ..each import each

edges = pytest.mark.parametrize("edge", ["start", "end"])
DTYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ITEMS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}


class Where:
    """A grid, and the axes that indices are of, in an array of the shape `data`."""

    def __init__(
        self, data: tuple[int, ...], shape: tuple[int, ...], axes: tuple[int, ...], along: tuple[int | None, ...]
    ) -> None:
        strides = strides_of(data)
        self.data, self.shape, self.axes, self.along = data, shape, axes, along
        self.steps = tuple(0 if a is None else strides[a] for a in along)
        self.size, self.stride = tuple(data[a] for a in axes), tuple(strides[a] for a in axes)

    def indices(self, rng: np.random.Generator) -> np.ndarray:
        """Some of them counted from the end."""
        found = [rng.integers(-n, n, self.shape) for n in self.size]
        return np.stack(found, axis=-1)

    def rows(self, indices: np.ndarray) -> list[int]:
        """The formula, position by position."""
        found = []
        for p in itertools.product(*map(range, self.shape)):
            at = {a: p[i] for i, a in enumerate(self.along) if a is not None}
            for k, a in enumerate(self.axes):
                at[a] = int(indices[(*p, k)]) % self.data[a]
            found.append(int(np.ravel_multi_index([at.get(a, 0) for a in range(len(self.data))], self.data)))
        return found


# GatherElements along each axis, with fewer indices than there are elements; GatherND with tuples and batches; one position.
PLACES = [
    Where((5, 7, 3), (4, 9, 3), (1,), (0, None, 2)),
    Where((5, 7, 3), (9, 6, 2), (0,), (None, 1, 2)),
    Where((5, 7, 3), (5, 7, 600), (2,), (0, 1, None)),
    Where((4, 6), (11,), (0, 1), (None,)),
    Where((3, 4, 5, 6), (3, 2, 7), (1, 2), (0, None, None)),
    Where((2, 3, 4, 5), (13,), (0, 1, 2, 3), (None,)),
    Where((1000,), (1030,), (0,), (None,)),
    Where((3,), (), (0,), ()),
    Where((70, 40, 9), (70, 33, 9), (1,), (0, None, 2)),
]


@cache
def drawn(i: int) -> tuple[np.ndarray, list[int]]:
    """Indices for a place, and the rows that they name."""
    indices = PLACES[i].indices(np.random.default_rng(i))
    return indices, PLACES[i].rows(indices)


def pick(w: Where, x: np.ndarray, indices: np.ndarray, edge: str = "end") -> np.ndarray:
    out = guarded(np.zeros((math.prod(w.shape), x.shape[1]), x.dtype), edge)
    given = guarded(x, edge), guarded(indices, edge)
    for array in given:
        array.flags.writeable = False
    dispatch.kernel("pick")(*given, out, w.shape, w.steps, w.size, w.stride, x[0].nbytes)
    return np.array(out)


@edges
def test_rows_are_picked(edge: str, variant: str) -> None:
    rng = np.random.default_rng(0)
    for (i, w), (item, dtype), inner in itertools.product(enumerate(PLACES), ITEMS.items(), (1, 3, 20)):
        x = rng.integers(0, 256, (math.prod(w.data), inner * item), np.uint8).view(dtype)
        indices, rows = drawn(i)
        np.testing.assert_array_equal(pick(w, x, indices, edge), x[rows])


def scatter(
    w: Where, x: np.ndarray, indices: np.ndarray, updates: np.ndarray, op: str, edge: str = "end", over: bool = False
) -> Any:
    given = [guarded(a, edge) for a in (x, indices, updates)]
    out = given[0] if over else guarded(np.zeros_like(x), edge)
    source = KINDS.get(x.dtype.name, 0)
    dispatch.kernel("scatter")(*given, out, w.shape, w.steps, w.size, w.stride, x[0].nbytes, SCATTER[op], source)
    return np.array(out)


@each("op, dtype", itertools.product(SCATTER, DTYPES))
def test_rows_are_scattered_one_after_the_other(op: str, dtype: str, variant: str) -> None:
    rng = np.random.default_rng(1)
    function: Any = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[op]
    for (i, w), (inner, over) in itertools.product(enumerate(PLACES), ((1, False), (3, True))):
        if math.prod(w.shape) > 2000 and dtype not in ("float32", "int64"):
            continue
        x, updates = (rng.integers(0, 200, (n, inner)).astype(dtype) for n in (math.prod(w.data), math.prod(w.shape)))
        if dtype.startswith("float") and updates.size > 1:
            updates[0], updates[-1] = np.nan, np.inf
        indices, rows = drawn(i)
        want = x.copy()
        with np.errstate(all="ignore"):
            for row, update in zip(rows, updates, strict=True):
                want[row] = function(want[row], update)
        np.testing.assert_array_equal(scatter(w, x, indices, updates, op, over=over), want)


@each("w", PLACES)
def test_indices_out_of_range(w: Where, variant: str) -> None:
    x = np.ones((math.prod(w.data), 2), np.float32)
    for k, n in enumerate(w.size):
        for wrong in (n, -n - 1, 2**62, -(2**63)):
            indices = np.zeros((*w.shape, len(w.size)), np.int64)
            indices.reshape(-1, len(w.size))[-1, k] = wrong
            with pytest.raises(ShapeError, match=f"index {wrong} is out of range: expected {-n} to {n - 1}"):
                pick(w, x, indices)
            updates, out = np.zeros((math.prod(w.shape), 2), np.float32), x.copy()
            with pytest.raises(ShapeError, match=f"index {wrong} is out of range"):
                dispatch.kernel("scatter")(
                    out, indices, updates, out, w.shape, w.steps, w.size, w.stride, 8, SCATTER["add"], KINDS["float32"]
                )
            np.testing.assert_array_equal(out, x)  # nothing was written


@pytest.mark.without("reference", "jit", "cuda")
def test_a_step_says_which_index_is_out_of_range(variant: str) -> None:
    make = dispatch.step("pick")
    assert make is not None
    step = make((24, 1), (5, 2), (5, 1), (5,), (0,), (4, 6), (6, 1), 4)
    x, out = np.zeros((24, 1), np.float32), np.zeros((5, 1), np.float32)
    indices = np.array([[0, 0], [3, 5], [-4, -6], [1, 6], [9, 9]])
    with pytest.raises(ShapeError, match="index 6 is out of range: expected -6 to 5"):
        step(x, indices, out)


@pytest.mark.without("reference", "jit", "cuda")
def test_rows_that_the_arrays_do_not_have_are_refused(variant: str) -> None:
    x, at, out = np.zeros((24, 1), np.float32), np.zeros((5, 2), np.int64), np.zeros((5, 1), np.float32)
    pick, scatter = dispatch.kernel("pick"), dispatch.kernel("scatter")
    with pytest.raises(ShapeError, match="may name row"):
        pick(x, at, out, (5,), (0,), (4, 7), (6, 1), 4)
    with pytest.raises(ShapeError, match="indices: expected"):
        pick(x, at, out, (6,), (0,), (4, 6), (6, 1), 4)
    with pytest.raises(ShapeError, match="out has"):
        pick(x, at, out[:4], (5,), (0,), (4, 6), (6, 1), 4)
    with pytest.raises(ShapeError, match="updates have"):
        scatter(x, at, out[:4], x, (5,), (0,), (4, 6), (6, 1), 4, 0, 0)
    with pytest.raises(UnsupportedError, match="at most 8"):
        pick(x, at, out, (1,) * 9, (0,) * 9, (4, 6), (6, 1), 4)


def test_threads_change_nothing() -> None:
    rng = np.random.default_rng(2)
    w = Where((300, 50, 20), (300, 70, 20), (1,), (0, None, 2))
    x, updates = rng.standard_normal((300000, 1)).astype(np.float32), rng.standard_normal((420000, 1)).astype(np.float32)
    indices = w.indices(rng)
    found = []
    before = fl.get_num_threads()
    try:
        for threads in (1, 2, 3):
            fl.set_num_threads(threads)
            found.append((pick(w, x, indices).tobytes(), scatter(w, x, indices, updates, "add").tobytes()))
    finally:
        fl.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@each("item", ITEMS)
def test_one_hot(item: int, variant: str) -> None:
    rng = np.random.default_rng(3)
    for outer, n, inner in ((0, 3, 2), (1, 1, 1), (5, 7, 1), (3, 4, 9), (2, 0, 3), (40, 1000, 1)):
        at = rng.integers(-n - 2, n + 2, (outer, inner))
        values = np.array([7, 9], ITEMS[item])
        out = guarded(np.zeros((outer, n, inner), ITEMS[item]), "end")
        dispatch.kernel("one_hot")(guarded(at, "end"), guarded(values, "end"), out, item)
        for o, k, i in itertools.product(range(outer), range(n), range(inner)):
            assert out[o, k, i] == (9 if at[o, i] in (k, k - n) else 7)


@each("batch_first", (False, True))
def test_reverse_sequence(batch_first: bool, variant: str) -> None:
    for batch, time, width in ((1, 1, 1), (3, 5, 1), (4, 70, 33), (0, 3, 2), (2, 3, 0)):
        x = np.arange(batch * time * width, dtype=np.int16).reshape((batch, time, width) if batch_first else (time, batch, width))
        lengths = np.arange(batch, dtype=np.int64) % (time + 1)
        out = guarded(np.zeros_like(x), "end")
        dispatch.kernel("reverse_sequence")(guarded(x, "end"), lengths, out, batch_first, 2 * width)
        for b, t in itertools.product(range(batch), range(time)):
            from_ = int(lengths[b]) - 1 - t if t < lengths[b] else t
            np.testing.assert_array_equal(out[(b, t) if batch_first else (t, b)], x[(b, from_) if batch_first else (from_, b)])
    for wrong in (-1, 4):
        x = np.zeros((2, 3) if batch_first else (3, 2), np.float32)
        with pytest.raises(ShapeError, match=f"length {wrong} is out of range: expected 0 to 3"):
            dispatch.kernel("reverse_sequence")(x, np.array([1, wrong]), x.copy(), batch_first, 4)


def test_positions_that_reach_each_others_rows_are_not_cut() -> None:
    """Every position of the grid names one row: each sum is of all updates, in their order."""
    n = 2_000_000
    updates = np.random.default_rng(4).standard_normal((n, 1)).astype(np.float32)
    indices, x = np.arange(n)[::-1].copy(), np.zeros((2 * n, 1), np.float32)
    found = set()
    before = fl.get_num_threads()
    try:
        for threads in (1, 2, 2, 3, 3):
            fl.set_num_threads(threads)
            out = np.zeros_like(x)
            where = (n,), (1,), (n,), (1,), 4
            dispatch.kernel("scatter")(x, indices, updates, out, *where, SCATTER["add"], KINDS["float32"])
            found.add(out.tobytes())
    finally:
        fl.set_num_threads(before)
    assert len(found) == 1
