"""How far elementwise functions are from float64, over all floats, on every level: the bounds of csrc/vmath.h and unary.h."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from fastlayers.kernels import dispatch
from fastlayers.kernels.reference.activation import evaluate
from fastlayers.kernels.table import UNARY, Activation
from tests.each import each

STRIDE = 20011  # a prime: 215,000 of the 2^32 bit patterns, each exponent with another set of low bits
DENSE = 400  # neighbours on either side of a point where something changes
# Ends of the range where exp, sigmoid, log and their results stop being normal; clamps; and where a function changes its formula.
POINTS = (
    *(0.0, 2.0**-126, 2.0**-149, 1.0, 2.0, 3.0, 6.0, 20.0, 0.5, 3.4028235e38),
    *(88.72284, 87.33655, 103.97208, 104.5, 89.0, 88.0, 60.0, 40.0, 17.32868, 16.63554),
    *(0.78539819, 1.5707964, 3.1415927, 22.0, 355.0, 1e5, 2.0**23, 2.0**24, 2.0**28, 2.5, 8388607.5),
    *(0.34657359, 1.03972077, 0.17328680, 0.70710678, 1.41421356, 0.41421357, 0.875, 1.2374369, 4.0, 3.9192059, 9.010913),
)


class Bound(NamedTuple):
    """The error is at most `ulps` units in the last place (`unfused` without fused multiply-adds), plus `absolute`."""

    ulps: float
    unfused: float
    absolute: float = 0.0


BOUNDS: dict[str, Bound] = {
    "exp": Bound(1.05, 1.0),
    "log": Bound(0.85, 0.9),
    "sigmoid": Bound(2.5, 2.5),
    "tanh": Bound(2.5, 2.5),
    "erf": Bound(1.5, 1.6),
    "sqrt": Bound(0.5, 0.5),
    "identity": Bound(0, 0),
    "relu": Bound(0, 0),
    "clip": Bound(0, 0),
    "leaky_relu": Bound(0.5, 0.5),
    "elu": Bound(1.5, 1.5),
    "selu": Bound(2.0, 2.0),
    "silu": Bound(3.0, 3.0, 2.0**-140),
    # The exponent of a small result, and the argument of the sigmoid, have lost digits: the error is that of results near 1.
    "gelu": Bound(3.0, 3.0, 2.0**-24),
    "gelu_tanh": Bound(3.0, 3.0, 2.0**-23),
    "mish": Bound(4.0, 4.0, 2.0**-140),
    "softplus": Bound(2.5, 2.5),
    "softsign": Bound(1.5, 1.5),
    "hardsigmoid": Bound(0.5, 0.5, 2.0**-24),
    "hardswish": Bound(2.5, 2.5),
    "square": Bound(0.5, 0.5),
    "negative": Bound(0, 0),
    "abs": Bound(0, 0),
    "reciprocal": Bound(0.5, 0.5),
    "floor": Bound(0, 0),
    "ceil": Bound(0, 0),
    "round": Bound(0, 0),
    "sign": Bound(0, 0),
    "sin": Bound(0.51, 0.51),
    "cos": Bound(0.51, 0.51),
    "celu": Bound(1.5, 1.5),
    "shrink": Bound(0.5, 0.5),
    "threshold": Bound(0, 0),
    "tanhshrink": Bound(1.0, 1.0, 2.0**-22),  # near 0 it is what the hyperbolic tangent is off by
    "logsigmoid": Bound(2.5, 2.5),
    "quick_gelu": Bound(3.0, 3.0, 2.0**-23),
}
# With the defaults, but for: ELU as expm1 alone, and softplus as the logarithm alone.
PARAMETERS = {"elu": (1.0,), "softplus": (1.0, math.inf), "clip": (0.0, 6.0)}


def activation(name: str) -> Activation:
    return Activation(UNARY[name].code, *PARAMETERS.get(name, UNARY[name].defaults))


def neighbours(point: float) -> np.ndarray:
    bits = int(np.float32(point).view(np.uint32))
    return np.arange(max(bits - DENSE, 0), bits + DENSE, dtype=np.uint32).view(np.float32)


@cache
def points() -> np.ndarray:
    """Every kind of float: both signs, zeros, subnormals, infinities, NaN with payloads."""
    near = np.concatenate([neighbours(p) for p in POINTS])
    small = np.logspace(-8, 2, 20000, dtype=np.float32)
    strided = np.arange(0, 2**32, STRIDE, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([strided, near, -near, small, -small, np.array([np.inf, -np.inf, np.nan], np.float32)])
    x.flags.writeable = False
    return x


@cache
def wanted(name: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return evaluate(points(), activation(name))


def unit(values: np.ndarray) -> np.ndarray:
    """The distance of neighbouring float32 values at the size of `values`, subnormal ones included."""
    exponent = np.frexp(values)[1]
    return np.asarray(np.ldexp(1.0, np.maximum(exponent - 24, -149)))


def assert_within(got: np.ndarray, want: np.ndarray, ulps: float, absolute: float) -> None:
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        finite = np.isfinite(rounded) & np.isfinite(got)
        special = ~finite & ~(np.isnan(rounded) & np.isnan(got)) & (rounded != got)
        # A result beyond the largest float by less than the bound may be either.
        special &= ~((np.abs(want) < 3.4028237e38) & (np.abs(got) > 3.4028233e38) & ~np.isnan(got))
        error = np.abs(got.astype(np.float64) - want) - absolute
        excess = np.where(finite, error / unit(want), 0)
    x = points()
    assert not special.any(), f"at {x[special][:4]}: got {got[special][:4]}, expected {want[special][:4]}"
    worst = int(np.argmax(excess))
    assert excess[worst] <= ulps, (
        f"{excess[worst]:.3f} units at {float(x[worst]).hex()}: {got[worst]!r}, expected {want[worst]!r}"
    )


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_error_over_all_floats(name: str, variant: str) -> None:
    bound = BOUNDS[name]
    ulps = {"reference": 0.5, "aot/x86_v1": bound.unfused}.get(variant, bound.ulps)
    got = np.full(points().shape, 77, np.float32)
    dispatch.kernel("unary")(points(), got, activation(name))
    # float64 itself is off by a little more than nothing
    assert_within(got, wanted(name), ulps + 1e-6, 0 if variant == "reference" else bound.absolute)


# Errors that lean to one side add up over layers where others cancel. As a share of the results, by their sizes; SELU's factors
# are floats that its definition rounds, and an unfused hard sigmoid rounds twice.
LEAN = 3e-9
LEANING = {"selu": 6e-9, "hardsigmoid": 5e-9}


@each("name", sorted(BOUNDS))
def test_errors_do_not_lean_to_one_side(name: str, variant: str) -> None:
    # of one size, so that no few results outweigh all others
    x = np.random.default_rng(3).uniform(0.25, 3.5, 1 << 16).astype(np.float32)
    x = x if name in ("log", "sqrt") else np.concatenate([x, -x])
    got, want = np.empty_like(x), evaluate(x, activation(name))
    dispatch.kernel("unary")(x, got, activation(name))
    assert abs(np.sum((got - want) * want)) <= LEANING.get(name, LEAN) * np.sum(want**2)


def test_every_function_has_a_bound() -> None:
    assert BOUNDS.keys() == UNARY.keys()


@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_odd_functions_stay_within_one_and_keep_the_sign(name: str, variant: str) -> None:
    got = np.empty(points().shape, np.float32)
    dispatch.kernel("unary")(points(), got, activation(name))
    real = ~np.isnan(points())
    assert np.all(np.abs(got[real]) <= 1)
    np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(points()[real]))
    assert np.all(got[points() > 10] == 1)


@pytest.mark.parametrize("name", ["exp", "sigmoid", "softplus", "log"])
def test_no_lane_depends_on_its_place_or_its_neighbours(name: str, variant: str) -> None:
    """The same number, in every lane of whole vectors and of remainders, next to NaN and infinities, gives the same bits."""
    kernel = dispatch.kernel("unary")
    x = points()[:: len(points()) // 37][:37].copy()
    x[:4] = (np.nan, np.inf, -np.inf, 0)
    alone = np.empty_like(x)
    for i in range(x.size):
        kernel(x[i : i + 1], alone[i : i + 1], activation(name))
    for start in range(x.size):
        got = np.empty(x.size - start, np.float32)
        kernel(np.ascontiguousarray(x[start:]), got, activation(name))
        np.testing.assert_array_equal(got.view(np.uint32), alone[start:].view(np.uint32))


def test_comparison_can_fail() -> None:
    want = wanted("tanh")
    got = want.astype(np.float32)
    place = int(np.flatnonzero(np.isfinite(got) & (np.abs(got) > 0.1))[1000])
    got[place] = np.nextafter(np.nextafter(got[place], np.float32(2)), np.float32(2))
    with pytest.raises(AssertionError, match="units at"):
        assert_within(got, want, 1.0, 0)
    got[place] = np.nan
    with pytest.raises(AssertionError, match="expected"):
        assert_within(got, want, 1.0, 0)
