"""Softmax and log-softmax: torch's figures, awkward sizes of all three axes, places in memory, special values, threads."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from fastlayers.kernels import dispatch
from fastlayers.kernels.reference import softmax as reference
from tests.goldens import make_activation
from tests.guard import guarded, guarded_empty
from tests.kernels.test_activation import blank, golden, numbers, same_bits

from ..each import each

KERNELS = ("softmax", "log_softmax")
kernels = pytest.mark.parametrize("name", KERNELS)
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 129, 1000)
INNER = (2, 3, 4, 5, 7, 15, 16, 17, 31, 32, 33, 63, 65, 511, 513)


def run(name: str, x: np.ndarray, edge: str = "") -> np.ndarray:
    out = guarded_empty(x.shape, edge) if edge else blank(*x.shape)
    dispatch.kernel(name)(guarded(x, edge) if edge else x, out)
    return out


def close(name: str, got: np.ndarray, x: np.ndarray) -> None:
    """What a softmax may be off by, as a share, and a log-softmax, as a difference, in units of 2^-24: `spread`, since x less its
    largest is rounded to that share of itself and exp passes it on; 16 for exp and the sum, whose chains have 16 terms.
    """
    want = np.empty_like(x)
    getattr(reference, name)(x, want)
    with np.errstate(all="ignore"):
        spread = np.nan_to_num(np.max(x, axis=1, keepdims=True) - x, posinf=0, neginf=0)
        error = np.where(got == want, 0, np.abs(got.astype(np.float64) - want))
        share = (16 + spread) * 2.0**-24
        bound = share * want + 2.0**-126 if name == "softmax" else share + 2.0**-23 * np.abs(want)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert not np.any(error > bound), f"{np.nanmax(error / bound):.2f} times the bound"


@kernels
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_torch(name: str, axis: int, variant: str) -> None:
    """Rows with NaN, with infinity, and with nothing but -infinity are among them."""
    s, want = golden()["s"], golden()[f"{name}.{axis}"]
    shape = (math.prod(s.shape[:axis]), s.shape[axis], math.prod(s.shape[axis + 1 :]))
    got = run(name, s.reshape(shape))
    assert np.isnan(want).any() and np.isfinite(want).any()
    np.testing.assert_allclose(got.reshape(make_activation.SHAPE), want, rtol=4e-6, atol=1e-6)


@kernels
def test_lengths_of_rows(name: str, variant: str) -> None:
    for n, outer in product(LENGTHS, (1, 3)):
        x = numbers(outer, n, 1)
        for edge in ("start", "end"):
            close(name, run(name, x, edge), x)


@kernels
@pytest.mark.parametrize("inner", INNER)
def test_inner_axes(name: str, inner: int, variant: str) -> None:
    for n, outer in ((1, 2), (2, 3), (3, 1), (5, 2), (33, 1), (127, 2)):
        x = numbers(outer, n, inner)
        for edge in ("start", "end"):
            close(name, run(name, x, edge), x)


@kernels
def test_nothing_to_do(name: str, variant: str) -> None:
    for shape in ((0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 3, 1), (3, 0, 1), (0, 0, 0)):
        assert run(name, np.empty(shape, np.float32)).shape == shape


@kernels
@pytest.mark.parametrize("inner", [1, 3, 40])
def test_neighbours_change_nothing(name: str, inner: int, variant: str) -> None:
    """A row gives the same bits alone, among others, and next to rows that hold NaN; no threads' cut shows either."""
    x = numbers(7, 19, inner)
    whole = run(name, x)
    x[::2] = np.nan
    spoilt = run(name, x)
    assert np.isnan(spoilt[::2]).all()
    same_bits(spoilt[1::2], whole[1::2])
    for i in range(1, 7, 2):
        same_bits(run(name, np.ascontiguousarray(x[i : i + 1])), whole[i : i + 1])


@kernels
@pytest.mark.without("reference")  # numpy's sums promise no order
def test_columns_have_the_bits_of_rows(name: str, variant: str) -> None:
    """However many columns stand next to each other, and wherever a vector or a strip ends among them."""
    for n in (*LENGTHS, 24, 255, 257, 600):
        x = numbers(2, n, 600 if n < 40 else 140)
        rows = run(name, np.ascontiguousarray(x.transpose(0, 2, 1)).reshape(-1, n, 1)).reshape(2, -1, n).transpose(0, 2, 1)
        for inner in (2, 5, 16, 31, 32, 33, 63, 65, 129, x.shape[2]):
            part = np.ascontiguousarray(x[:, :, :inner])
            same_bits(run(name, part), np.ascontiguousarray(rows[:, :, :inner]))


@kernels
@pytest.mark.parametrize("inner", [1, 2, 3, 5, 16, 40])
def test_special_values(name: str, inner: int, variant: str) -> None:
    """One column of each slice goes wrong, in any of its places; the others do not notice."""
    for n, value, place in product((2, 9, 33), (np.nan, np.inf), (0, 1, -1)):
        x = numbers(2, n, inner)
        x[0, place, -1] = value
        got = run(name, x)
        assert np.isnan(got[0, :, -1]).all()
        assert np.isfinite(got[0, :, :-1]).all() and np.isfinite(got[1]).all()
    for n in (1, 2, 9, 33):
        x = numbers(2, n, inner)
        x[1, :, 0] = -np.inf
        got = run(name, x)
        assert np.isnan(got[1, :, 0]).all() and np.isfinite(got[0]).all()
        x[1, 0, 0] = -3.0  # the only term that counts
        got = run(name, x)
        np.testing.assert_array_equal(
            got[1, :, 0], [1 if name == "softmax" else 0] + [0 if name == "softmax" else -np.inf] * (n - 1)
        )


@kernels
def test_stable_for_large_numbers(name: str, variant: str) -> None:
    for shift, inner in product((1e4, -1e4, 3e38), (1, 3, 50)):
        x = np.float32(shift) + np.zeros((2, 20, inner), np.float32)
        x[:, 5] = np.nextafter(np.float32(shift), np.float32(-np.inf))
        x[:, 6] = -np.float32(3.4e38)
        close(name, run(name, x), x)


@kernels
@each("shape", [(3001, 40, 1), (5, 40000, 1), (1, 21, 9001), (700, 5, 33), (1, 20000, 9), (3, 2, 30011)], ids=str)
def test_threads_and_tasks(name: str, shape: tuple[int, int, int], variant: str, threads: int) -> None:
    x = numbers(*shape)
    close(name, run(name, x), x)


def test_rows_add_up_to_one(variant: str) -> None:
    for shape in ((50, 1000, 1), (3, 100, 70), (3, 100, 7)):
        got = run("softmax", numbers(*shape)).sum(axis=1, dtype=np.float64)
        np.testing.assert_allclose(got, 1, rtol=1e-6)


def test_comparison_can_fail() -> None:
    x = numbers(2, 9, 1)
    got = np.empty_like(x)
    reference.softmax(x, got)
    close("softmax", got, x)
    got[1, 3] *= 1 + 2e-6
    with pytest.raises(AssertionError, match="times the bound"):
        close("softmax", got, x)
