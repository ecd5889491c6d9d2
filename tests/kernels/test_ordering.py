"""`topk`, `arg_extreme` and `fold`: against plain Python, with equal elements, NaN, infinity and extremes, for every dtype."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import KINDS, REDUCE
from tests.guard import guarded

from ..each import each

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16")


def numbers(dtype: str, seed: int, *shape: int) -> np.ndarray:
    """Few different ones, so that many are equal; extremes among them."""
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        some = [0.0, -0.0, 1.5, -1.5, 2.0, 1e-4, -7.0, math.inf, -math.inf, math.nan, *rng.standard_normal(30)]
        return np.asarray(rng.choice(np.array(some), shape)).astype(dtype)
    info = np.iinfo(dtype)
    some_integers = np.array([info.min, info.max, info.min + 1, 0, 1, 2, 3, 5, 100], dtype)
    return np.asarray(rng.choice(some_integers, shape))


def ordered(column: list[Any], least: bool) -> list[int]:
    """Positions from the best on; NaN is more than all."""

    def key(i: int) -> tuple[bool, Any, int]:
        v = column[i]
        nan = v != v
        return (nan if least else not nan, 0 if nan else v if least else -v, i)

    return sorted(range(len(column)), key=key)


# n and k: none, all, one; around the sizes from which candidates are dropped on the way.
SIZES = [
    (1, 1),
    (1, 0),
    (5, 2),
    (5, 5),
    (63, 3),
    (64, 3),
    (65, 16),
    (65, 17),
    (129, 32),
    (130, 33),
    (1000, 1),
    (1000, 40),
    (1000, 999),
]


def run(x: np.ndarray, k: int, least: bool) -> tuple[np.ndarray, np.ndarray]:
    shape = (x.shape[0], k, x.shape[2])
    out, at = guarded(np.zeros(shape, x.dtype), "end"), guarded(np.zeros(shape, np.int64), "end")
    given = guarded(x, "end")
    given.flags.writeable = False
    dispatch.kernel("topk")(given, out, at, KINDS[x.dtype.name], least)
    return np.array(out), np.array(at)


@each("dtype, least", itertools.product((*INTEGERS, *FLOATS), (False, True)))
def test_the_best_in_their_order(dtype: str, least: bool, variant: str) -> None:
    for n, k in SIZES:
        for outer, inner in ((1, 1), (2, 3), (0, 2)):
            x = numbers(dtype, n + k, outer, n, inner)
            out, at = run(x, k, least)
            for o, i in itertools.product(range(outer), range(inner)):
                assert at[o, :, i].tolist() == ordered(x[o, :, i].tolist(), least)[:k]
            np.testing.assert_array_equal(out.view(np.uint8), np.take_along_axis(x, at, 1).view(np.uint8))


@pytest.mark.without("reference", "jit", "cuda")
@each("kind", ("rising", "falling", "equal", "organ pipe", "alternating"))
def test_orders_that_defeat_pivots(kind: str, variant: str) -> None:
    n = 30000
    x = {
        "rising": np.arange(n), "falling": np.arange(n)[::-1], "equal": np.zeros(n),
        "organ pipe": np.minimum(np.arange(n), n - np.arange(n)), "alternating": np.arange(n) * (-1) ** np.arange(n),
    }[kind].astype(np.float32)[None, :, None]  # fmt: skip
    for k, least in itertools.product((10, 5000, n), (False, True)):
        _, at = run(np.ascontiguousarray(x), k, least)
        assert at[0, :, 0].tolist() == ordered(x[0, :, 0].tolist(), least)[:k]


def test_threads_change_nothing() -> None:
    x = numbers("float32", 9, 7, 3000, 5)
    y = numbers("float64", 9, 700, 300, 1)
    found = []
    before = fl.get_num_threads()
    try:
        for threads in (1, 2, 3):
            fl.set_num_threads(threads)
            out = np.zeros((700, 1))
            with np.errstate(all="ignore"):
                dispatch.kernel("fold")(y, out, REDUCE["sum"], KINDS["float64"])
            found.append((run(x, 100, False)[1].tobytes(), out.tobytes()))
    finally:
        fl.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@each("dtype", (*INTEGERS, "float32", "float64"))
def test_positions_of_extremes(dtype: str, variant: str) -> None:
    for (outer, n, inner), least, last in itertools.product(
        [(1, 1, 1), (3, 40, 1), (2, 7, 31), (2, 7, 32), (1, 9, 65), (0, 2, 3), (2, 3, 0)], (False, True), (False, True)
    ):
        x = numbers(dtype, n, outer, n, inner)
        if n == 7 and dtype.startswith("float"):
            x[np.isnan(x)] = 1
        out = guarded(np.zeros((outer, inner), np.int64), "end")
        dispatch.kernel("arg_extreme")(guarded(x, "end"), out, KINDS[dtype], least, last)
        for o, i in itertools.product(range(outer), range(inner)):
            column = x[o, :, i].tolist()
            nan = [k for k, v in enumerate(column) if v != v]
            best = None if nan else min(column) if least else max(column)
            same = nan or [k for k, v in enumerate(column) if v == best]
            assert out[o, i] == same[-1 if last else 0]


def folded(name: str, column: list[Any], dtype: str) -> Any:
    """By Python's integers; wrapped around at the end."""
    info, count = np.iinfo(dtype), len(column)
    if name in ("max", "min"):
        return max(column, default=int(info.min)) if name == "max" else min(column, default=int(info.max))
    total = {
        "sum": sum(column), "mean": sum(column), "prod": math.prod(column), "sum_square": sum(v * v for v in column),
        "l1": sum(map(abs, column)),
    }[name]  # fmt: skip
    if name == "mean":
        total = int(total / count) if abs(total) < 1 << 50 else total // count
    low = total % (1 << info.bits)
    return low - (1 << info.bits) if info.min and low >> (info.bits - 1) else low


SHAPES = [(1, 1, 1), (3, 31, 1), (2, 32, 1), (2, 100, 1), (2, 7, 31), (1, 5, 33), (0, 3, 2), (2, 3, 0)]


@each("name, dtype", itertools.product(("sum", "mean", "max", "min", "prod", "sum_square", "l1"), INTEGERS))
def test_reductions_of_integers(name: str, dtype: str, variant: str) -> None:
    for outer, n, inner in SHAPES:
        x = numbers(dtype, n, outer, n, inner)
        if name == "mean":  # sums that 64 bits hold
            x = x % x.dtype.type(50)
        out = guarded(np.zeros((outer, inner), dtype), "end")
        dispatch.kernel("fold")(guarded(x, "end"), out, REDUCE[name], KINDS[dtype])
        for o, i in itertools.product(range(outer), range(inner)):
            assert out[o, i] == folded(name, x[o, :, i].tolist(), dtype)


@each("name", ("sum", "mean", "max", "min", "prod", "sum_square", "l1", "l2", "log_sum"))
def test_reductions_of_doubles(name: str, variant: str) -> None:
    plain: dict[str, Any] = {
        "sum": math.fsum, "mean": lambda v: math.fsum(v) / len(v), "max": max, "min": min, "prod": math.prod,
        "sum_square": lambda v: math.fsum(a * a for a in v), "l1": lambda v: math.fsum(map(abs, v)),
        "l2": lambda v: math.sqrt(math.fsum(a * a for a in v)), "log_sum": lambda v: math.log(math.fsum(v)),
    }  # fmt: skip
    for outer, n, inner in SHAPES:
        x = np.random.default_rng(n).random((outer, n, inner)) + 0.5
        out = guarded(np.zeros((outer, inner)), "end")
        dispatch.kernel("fold")(guarded(x, "end"), out, REDUCE[name], KINDS["float64"])
        want = [[plain[name](x[o, :, i].tolist()) for i in range(inner)] for o in range(outer)]
        np.testing.assert_allclose(out, np.reshape(np.array(want, np.float64), out.shape), rtol=n * 2.0**-52)


@each("name", ("max", "min"))
def test_reductions_of_booleans_and_nan(name: str, variant: str) -> None:
    x = np.array([[[True], [False]], [[True], [True]], [[False], [False]]])
    out = np.zeros((3, 1), np.bool_)
    dispatch.kernel("fold")(x, out, REDUCE[name], KINDS["bool"])
    assert out[:, 0].tolist() == ([True, True, False] if name == "max" else [False, True, False])
    for n in (2, 31, 33, 70):
        for at in range(n):
            y = np.ones((1, n, 1))
            y[0, at] = np.nan
            made = np.zeros((1, 1))
            dispatch.kernel("fold")(y, made, REDUCE[name], KINDS["float64"])
            assert math.isnan(made[0, 0])
