"""Reductions: torch's figures, awkward sizes of all three axes, nothing to reduce, special values, edges of memory, threads."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.reference import reduce as reference
from fastlayers.kernels.table import REDUCE
from tests.guard import guarded, guarded_empty

from ..each import each
from .space import bits

names = pytest.mark.parametrize("name", REDUCE)
# Around vectors of 4, 8 and 16, the 32 lanes of a row, chains of 512, and columns' chains of 256.
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 49, 63, 64, 65, 129, 511, 512, 513, 545, 1100)
OUTER = (1, 3, 16, 17)
INNER = (2, 3, 5, 7, 15, 16, 17, 31, 42, 63, 64, 65, 127, 129, 513)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def data(name: str, *shape: int) -> np.ndarray:
    """Values that the operation can take: positive for a logarithm, near 1 for long products."""
    x = numbers(*shape)
    if name == "log_sum":
        return np.abs(x)
    return np.asarray(x if name != "prod" else 1 + x / 8, np.float32)


def run(name: str, x: np.ndarray, edge: str = "") -> np.ndarray:
    shape = (x.shape[0], x.shape[2])
    out = guarded_empty(shape, edge) if edge else np.full(shape, 77, np.float32)
    x = guarded(x, edge) if edge else x.view()
    x.flags.writeable = False
    dispatch.kernel("reduce")(x, out, REDUCE[name])
    step = dispatch.step("reduce")
    if step is not None:
        again = np.full(shape, 77, np.float32)
        step(x.shape, shape, REDUCE[name])(x, again)
        np.testing.assert_array_equal(bits(again), bits(out))
    return out


def wanted(name: str, x: np.ndarray) -> np.ndarray:
    out = np.empty((x.shape[0], x.shape[2]), np.float32)
    reference.reduce(x, out, REDUCE[name])
    return out


def close(name: str, got: np.ndarray, x: np.ndarray) -> None:
    """Half a unit for every addition that a number goes through, of the sum of magnitudes; what comes after adds its own."""
    want = wanted(name, x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    if name in ("max", "min"):
        np.testing.assert_array_equal(got, want)
        return
    n = x.shape[1]
    depth = (16 + n / 512 if x.shape[2] == 1 else min(n, 256) + n / 256) + 8
    with np.errstate(all="ignore"):
        d = x.astype(np.float64)
        magnitude = np.abs(d).sum(1) / (n if name == "mean" else 1)
        if name in ("sum_square", "l2", "prod"):  # these cancel nothing
            magnitude = np.abs(want) * (n / depth if name == "prod" else 1)
        if name == "log_sum":  # a logarithm turns a share into a difference
            magnitude = magnitude / np.abs(d.sum(1))
        if name == "log_sum_exp":
            spread = np.nan_to_num(np.max(x, axis=1) - np.min(x, axis=1), posinf=0, neginf=0)
            magnitude = 1 + spread / depth
        bound = depth * 2.0**-24 * magnitude + 2.0**-22 * np.abs(want) + 2.0**-126
        error = np.where(got == want, 0, np.abs(got.astype(np.float64) - want))
    assert not np.any(error > bound), f"{name}: {np.nanmax(error / bound):.2f} times the bound"


@cache
def golden() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent.parent / "goldens" / "reduce.npz") as arrays:
        return dict(arrays)


@names
@each("axis", [0, 1, 2])
def test_torch(name: str, axis: int, variant: str) -> None:
    """Columns with NaN, with infinities of either sign, and with nothing but -infinity are among them."""
    x, want = golden()["x"], golden()[f"{name}.{axis}"]
    shape = (math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))
    got = run(name, x.reshape(shape)).reshape(want.shape)
    assert np.isnan(want).any() and np.isfinite(want).any() and np.isinf(want).any()
    np.testing.assert_allclose(got, want, rtol=4e-6, atol=1e-6)


@names
def test_rows(name: str, variant: str) -> None:
    for n, outer in product(LENGTHS, OUTER):
        x = data(name, outer, n, 1)
        for edge in ("start", "end"):
            close(name, run(name, x, edge), x)


@names
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.sampled(3)
def test_columns(name: str, inner: int, variant: str) -> None:
    for n, outer in ((1, 2), (2, 3), (3, 1), (5, 2), (33, 1), (129, 2), (300, 1), (600, 1)):
        x = data(name, outer, n, inner)
        for edge in ("start", "end"):
            close(name, run(name, x, edge), x)


@names
def test_nothing_to_reduce(name: str, variant: str) -> None:
    """The neutral number of the operation, and what the formula makes of it."""
    neutral = {"prod": 1, "max": -np.inf, "min": np.inf, "mean": np.nan, "log_sum": -np.inf, "log_sum_exp": -np.inf}.get(name, 0)
    for outer, inner in ((3, 1), (1, 1), (20, 1), (2, 7), (1, 200), (0, 3), (3, 0), (0, 0)):
        got = run(name, np.empty((outer, 0, inner), np.float32))
        np.testing.assert_array_equal(got, np.full((outer, inner), neutral))
    for shape in ((0, 4, 1), (0, 4, 9), (2, 4, 0)):
        assert run(name, np.empty(shape, np.float32)).size == 0


@names
@pytest.mark.parametrize("inner", [1, 3, 40, 70])
@pytest.mark.sampled(3)
def test_nan_in_every_place(name: str, inner: int, variant: str) -> None:
    """It spoils its own column alone, next to infinity too."""
    for n in (1, 5, 40, 70):
        clean = run(name, data(name, 2, n, inner))
        for place, infinity in product(range(n), (False, True)):
            x = data(name, 2, n, inner)
            if infinity:
                x[1, (place + 3) % n, -1] = np.inf
            x[1, place, -1] = np.nan
            got = run(name, x)
            assert np.isnan(got[1, -1])
            np.testing.assert_array_equal(got[0], clean[0])
            np.testing.assert_array_equal(got[1, :-1], clean[1, :-1])


@names
@each("inner", [1, 3, 40, 70])
def test_infinities(name: str, inner: int, variant: str) -> None:
    for n, values in product((1, 2, 9, 33), ((np.inf,), (-np.inf,), (np.inf, -np.inf), (-np.inf,) * 33)):
        x = data(name, 3, n, inner)
        x[1, : len(values), 0] = values[:n]
        got = run(name, x)
        np.testing.assert_array_equal(np.isinf(got), np.isinf(wanted(name, x)))
        close(name, got, x)


def test_log_sum_exp_of_large_numbers(variant: str) -> None:
    for shift, inner in product((1e4, -1e4, 3e38), (1, 3, 70)):
        x = np.float32(shift) + np.zeros((2, 20, inner), np.float32)
        close("log_sum_exp", run("log_sum_exp", x), x)


@names
@each("shape", [(3001, 40, 1), (1, 70001, 1), (5, 20000, 3), (2, 100, 900), (300, 7, 33), (1, 3000, 130)], ids=str)
def test_threads_and_tasks(name: str, shape: tuple[int, int, int], variant: str, threads: int) -> None:
    x = data(name, *shape) if name != "prod" else np.float32(1) + numbers(*shape) / 512
    got = run(name, x)
    close(name, got, x)
    last = np.ascontiguousarray(x[-1:])  # another cut into tasks and groups
    np.testing.assert_array_equal(bits(run(name, last)), bits(got[-1:]))


@names
@pytest.mark.without("reference")  # numpy's sums promise no order
def test_columns_have_the_bits_of_rows(name: str, variant: str) -> None:
    """However many columns stand next to each other, and wherever a vector or a strip ends among them."""
    for n in (*LENGTHS, 127, 128, 543, 544):
        x = data(name, 2, n, 140) if name != "prod" else np.float32(1) + numbers(2, n, 140) / 64
        rows = run(name, np.ascontiguousarray(x.transpose(0, 2, 1)).reshape(280, n, 1)).reshape(2, 140)
        for inner in (2, 5, 16, 31, 63, 64, 65, 129, 140):
            part = np.ascontiguousarray(x[:, :, :inner])
            np.testing.assert_array_equal(bits(run(name, part)), bits(rows[:, :inner]), f"{n} x {inner}")


def test_levels_agree_where_no_multiply_add_is_fused() -> None:
    levels = [level for level in fl.kernels.available() if level.startswith("aot/")]
    for name, shape in product(("sum", "mean", "prod", "l1"), ((17, 1100, 1), (3, 49, 1), (2, 700, 20), (1, 300, 130))):
        x, results = data(name, *shape), []
        for level in levels:
            with fl.kernels.use(level):
                results.append(bits(run(name, x)))
        for y in results[1:]:
            np.testing.assert_array_equal(y, results[0])


def test_comparison_can_fail() -> None:
    for name in REDUCE:
        x = data(name, 3, 17, 1)
        got = wanted(name, x)
        close(name, got, x)
        got[1] += 1e-4
        with pytest.raises(AssertionError):
            close(name, got, x)
