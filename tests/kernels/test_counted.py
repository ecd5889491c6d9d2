"""Kernels that count what they find, `non_zero`, `compress` and `unique`, and sums of blocks, `col2im`: against plain Python, at
the edges of memory.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from fastlayers.errors import ShapeError, UnsupportedError
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import KINDS
from tests.guard import guarded, guarded_empty

from ..each import each
from .test_ordering import FLOATS, INTEGERS, numbers

pytestmark = pytest.mark.later("reference")


def found(x: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, int]:
    count = np.zeros(1, np.int64)
    dispatch.kernel("non_zero")(guarded(x), out, count, KINDS[x.dtype.name])
    return out, int(count[0])


@each("dtype", (*FLOATS, *INTEGERS, "bool"))
def test_positions_of_what_is_not_zero(dtype: str, variant: str) -> None:
    for seed, shape in enumerate(((1,), (0,), (7,), (33, 5), (3, 4, 5), (2, 0, 3), (1, 1, 17, 2), (4, 300))):
        x = np.ones(shape, bool) if dtype == "bool" else numbers(dtype, seed, *shape)
        x[np.random.default_rng(seed).random(shape) < 0.5] = 0
        if dtype.startswith("float") and x.size:
            x.flat[0] = -0.0
        want = np.array([at for at in itertools.product(*map(range, shape)) if x[at] != 0], np.int64).reshape(-1, x.ndim).T
        out, count = found(x, guarded(np.full(x.ndim * x.size, -1, np.int64)))
        assert count == want.shape[1]
        np.testing.assert_array_equal(out[: want.size].reshape(want.shape), want)


def test_everything_and_nothing(variant: str) -> None:
    for value in (0.0, 1.0, math.nan):
        out, count = found(np.full(100, value, np.float32), np.empty(100, np.int64))
        assert count == (100 if value != 0 else 0)
        np.testing.assert_array_equal(out[:count], np.arange(count))


@pytest.mark.without("reference", "jit")
def test_too_little_room_for_positions(variant: str) -> None:
    with pytest.raises(UnsupportedError, match="a place for each of all positions"):
        dispatch.kernel("non_zero")(np.ones((3, 4)), np.empty(23, np.int64), np.empty(1, np.int64), KINDS["float64"])
    args = np.ones((1, 3, 4)), np.ones(3, bool), np.empty(11), np.empty(1, np.int64)
    with pytest.raises(ShapeError, match="compress: out has 11 elements: expected 12"):
        dispatch.kernel("compress")(*args, 8)


@each("dtype", ("float32", "int8", "float16", "int64", "bool", "complex128"))
def test_rows_of_which_a_condition_holds(dtype: str, variant: str) -> None:
    rng = np.random.default_rng(3)
    for outer, n, inner, given in (
        (1, 7, 1, 7),
        (3, 5, 4, 5),
        (2, 9, 3, 4),
        (2, 4, 5, 9),
        (1, 0, 3, 0),
        (3, 6, 0, 6),
        (1, 300, 1, 300),
    ):
        x = rng.integers(0, 2 if dtype == "bool" else 99, (outer, n, inner)).astype(dtype)
        keep = rng.random(given) < 0.5
        out, count = guarded(np.zeros(outer * min(n, given) * inner, dtype)), np.zeros(1, np.int64)
        dispatch.kernel("compress")(guarded(x), guarded(keep), out, count, x.itemsize)
        rows = [i for i in range(min(n, given)) if keep[i]]
        assert count[0] == len(rows)
        np.testing.assert_array_equal(out[: outer * len(rows) * inner], x[:, rows].reshape(-1))


def different(x: np.ndarray, ordered: bool) -> tuple[list[Any], list[int], list[int], list[int]]:
    """First elements, their positions, which one each is, how often, by loops."""
    groups: dict[Any, list[int]] = {}
    for i, v in enumerate(x.tolist()):
        groups.setdefault("nan" if v != v else v + 0 if isinstance(v, int) else v + 0.0, []).append(i)
    keys = list(groups)
    if ordered:
        keys.sort(key=lambda key: (key == "nan", 0 if key == "nan" else key))
    which = [0] * len(x)
    for g, key in enumerate(keys):
        for i in groups[key]:
            which[i] = g
    return [x[groups[k][0]] for k in keys], [groups[k][0] for k in keys], which, [len(groups[k]) for k in keys]


def run_unique(x: np.ndarray, ordered: bool, wanted: str = "oiwc") -> list[Any]:
    n, count = len(x), np.zeros(1, np.int64)
    room = {"o": np.zeros(n, x.dtype), **{name: np.zeros(n, np.int64) for name in "iwc"}}
    arrays = [guarded(room[name]) if name in wanted else None for name in "oiwc"]
    dispatch.kernel("unique")(guarded(x), *arrays, count, KINDS[x.dtype.name], ordered)
    sizes = [count[0], count[0], n, count[0]]
    return [None if a is None else a[:size] for a, size in zip(arrays, sizes, strict=True)]


@each("dtype", (*FLOATS, *INTEGERS, "bool"))
def test_different_elements(dtype: str, variant: str) -> None:
    for seed, n in enumerate((0, 1, 2, 15, 16, 17, 63, 65, 400)):
        x = np.random.default_rng(seed).random(n) < 0.5 if dtype == "bool" else numbers(dtype, seed, n)
        for ordered in (True, False):
            for got, want in zip(run_unique(x, ordered), different(x, ordered), strict=True):
                np.testing.assert_array_equal(got, np.array(want, got.dtype))


def test_integers_that_are_close_together(variant: str) -> None:
    for dtype, low in (
        ("int64", -(2**63)),
        ("int64", 2**63 - 40),
        ("int32", -3),
        ("uint32", 2**32 - 40),
        ("int8", -20),
        ("uint64", 2**64 - 40),
    ):
        x = (np.random.default_rng(1).integers(0, 40, 300).astype(object) + low).astype(dtype)
        for ordered in (True, False):
            for got, want in zip(run_unique(x, ordered), different(x, ordered), strict=True):
                np.testing.assert_array_equal(got, np.array(want, got.dtype))


def test_what_is_not_wanted(variant: str) -> None:
    x = numbers("float32", 1, 50)
    whole = run_unique(x, False)
    for wanted in ("o", "i", "w", "c", "oc", ""):
        for name, got, want in zip("oiwc", run_unique(x, False, wanted), whole, strict=True):
            assert (got is None) == (name not in wanted)
            if got is not None:
                np.testing.assert_array_equal(got, want)


# ---- sums of blocks ----

BLOCKS: list[Any] = [
    # size, kernel, stride, dilation, pads
    ((1, 6, 5), (1, 2, 3), (1, 1, 1), (1, 1, 1), (0, 0, 0, 0, 0, 0)),
    ((1, 1, 40), (1, 1, 3), (1, 1, 1), (1, 1, 2), (0, 0, 0, 0, 2, 1)),
    ((1, 7, 9), (1, 3, 3), (1, 2, 3), (1, 1, 1), (0, 0, 1, 2, 0, 1)),
    ((4, 5, 6), (2, 2, 2), (1, 2, 1), (2, 1, 3), (1, 1, 0, 1, 3, 0)),
    ((1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), (0, 0, 0, 0, 0, 0)),
    ((1, 2, 2), (1, 3, 4), (1, 1, 1), (1, 1, 1), (0, 0, 4, 4, 5, 5)),  # blocks that are all outside
    ((1, 2, 33), (1, 1, 2), (1, 1, 1), (1, 1, 1), (0, 0, 0, 0, 0, 0)),
    ((5, 7, 19), (4, 5, 3), (1, 1, 1), (1, 1, 1), (0, 0, 0, 0, 0, 0)),  # more rows than are added at once
    ((2, 9, 37), (2, 7, 4), (1, 2, 1), (1, 1, 2), (0, 1, 2, 3, 1, 2)),
]


@each("case", range(len(BLOCKS)))
def test_blocks_add_up(case: int, variant: str, threads: int) -> None:
    size, kernel, stride, dilation, pads = BLOCKS[case]
    places = [
        (s + pads[2 * i] + pads[2 * i + 1] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i, s in enumerate(size)
    ]
    x = np.random.default_rng(case).integers(-9, 9, (3, math.prod(kernel), math.prod(places))).astype(np.float32)
    x[1].fill(np.inf)
    want = np.zeros((3, *size), np.float32)
    for t, tap in enumerate(itertools.product(*map(range, kernel))):
        for p, place in enumerate(itertools.product(*map(range, places))):
            at = tuple(q * s + k * d - b for q, s, k, d, b in zip(place, stride, tap, dilation, pads[::2], strict=True))
            if all(0 <= a < s for a, s in zip(at, size, strict=True)):
                want[(slice(None), *at)] += x[:, t, p]
    out = guarded_empty((3, math.prod(size)))
    dispatch.kernel("col2im")(guarded(x), out, size, kernel, stride, dilation, pads)
    np.testing.assert_array_equal(out.reshape(want.shape), want)


@pytest.mark.without("reference", "jit")
def test_blocks_that_do_not_fit(variant: str) -> None:
    x, out, ones = np.ones((1, 4, 9), np.float32), np.ones((1, 15), np.float32), (1, 1, 1)
    with pytest.raises(ShapeError, match="col2im: blocks of 4 values at 9 places, 15 pixels: expected 4, 9 and 16"):
        dispatch.kernel("col2im")(x, out, (1, 4, 4), (1, 2, 2), ones, ones, (0,) * 6)
