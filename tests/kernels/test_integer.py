"""`integer` and `running_sum`: every function of every dtype, broadcasting, extremes that wrap around, edges of memory."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import INTEGER, KINDS
from tests.guard import guarded

DTYPES = ("bool", "int32", "int64")
PLAIN = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "equal": np.equal, "not_equal": np.not_equal,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
}  # fmt: skip
OF_BOOLEANS = ("and", "or", "xor", "equal", "not_equal")
CASES = [(name, dtype) for name in INTEGER for dtype in DTYPES if dtype != "bool" or name in OF_BOOLEANS]
# Pairs of shapes: equal, one number, rows, columns, both repeated, long, empty, rows too short to be walked.
SHAPES = [
    ((5,), (5,)), ((1000,), ()), ((), (33,)), ((7, 20), (20,)), ((7, 1), (1, 20)), ((3, 5, 7), (3, 1, 7)), ((4, 1, 3), (1, 6, 1)),
    ((40, 2), (40, 1)), ((2, 1, 1, 9), (1, 4, 9, 1)), ((0, 3), (3,)), ((), ()), ((70000,), (70000,)),
]  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Small ones, and the largest and smallest of all."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    info = np.iinfo(dtype)
    rest = np.array([info.min, info.max, info.min + 1, -1, 0, 1, 7, -3, 1 << 20], dtype)
    return np.asarray(rng.choice(rest, shape))


def run(name: str, a: np.ndarray, b: np.ndarray, edge: str = "end") -> np.ndarray:
    given = [guarded(x, edge) for x in (a, b)]
    kind: Any = np.bool_ if INTEGER[name] >= INTEGER["equal"] else a.dtype
    out = guarded(np.zeros(np.broadcast_shapes(a.shape, b.shape), kind), edge)
    dispatch.kernel("integer")(*given, out, INTEGER[name], KINDS[a.dtype.name])
    return np.array(out)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_numpys_results(name: str, dtype: str, variant: str) -> None:
    for (a, b), edge in product(SHAPES, ("start", "end")):
        x, y = numbers(a, dtype, 1), numbers(b, dtype, 2)
        with np.errstate(all="ignore"):
            want = PLAIN[name](x, y)
        got = run(name, x, y, edge)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_over_an_operand(variant: str) -> None:
    x, y = numbers((50, 30), "int64", 3), numbers((30,), "int64", 4)
    with np.errstate(all="ignore"):
        want = x + y
    dispatch.kernel("integer")(x, y, x, INTEGER["add"], KINDS["int64"])
    np.testing.assert_array_equal(x, want)


def test_threads_change_nothing() -> None:
    x, y = numbers((700, 300), "int32", 5), numbers((300,), "int32", 6)
    found = []
    before = fl.get_num_threads()
    try:
        for threads in (1, 2, 3):
            fl.set_num_threads(threads)
            found.append(run("multiply", x, y))
    finally:
        fl.set_num_threads(before)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_running_sums(dtype: str, variant: str) -> None:
    for shape, exclusive, reverse, edge in product(
        ((2, 5, 1), (1, 1, 4), (3, 0, 2), (0, 3, 1), (2, 33, 3), (2, 4, 16), (1, 5, 37)),
        (False, True),
        (False, True),
        ("start", "end"),
    ):
        x = numbers(shape, "int32", 7).astype(dtype) if dtype != "float32" else numbers(shape, "int32", 7).astype(dtype) / 3
        out = guarded(np.zeros(shape, x.dtype), edge)
        dispatch.kernel("running_sum")(guarded(x, edge), out, KINDS[dtype], exclusive, reverse)
        want = np.zeros(shape, dtype)
        with np.errstate(all="ignore"):
            for o, i in np.ndindex(shape[0], shape[2]):
                total = np.zeros(1, dtype)
                for k in range(shape[1])[:: -1 if reverse else 1]:
                    want[o, k, i] = (total if exclusive else total + x[o, k, i])[0]
                    total = total + x[o, k, i]
        np.testing.assert_array_equal(out, want)
