"""The elementwise kernels: torch's figures, sizes, edges of memory, special values, threads. Errors in ulp: test_accuracy.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.reference.activation import evaluate
from fastlayers.kernels.table import UNARY, Activation
from tests.goldens import make_activation
from tests.guard import guarded, guarded_empty

from ..each import each

GOLDEN = make_activation.__file__.replace("make_activation.py", "activation.npz")
SIZES = (0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 1009)
# Around the cut into tasks (16384 elements), and enough for two threads.
LARGE = (16383, 16384, 16385, 200003)
GATES = ("identity", "relu", "sigmoid", "tanh", "gelu", "gelu_tanh", "silu", "hardswish", "softsign", "mish", "exp", "erf")

# The bounds of test_accuracy.py are at most 4 ulp, or 2^-22 where a function cancels; the other framework computed in float64.
RTOL, ATOL = 4 * 2.0**-23, 2.0**-22

names = pytest.mark.parametrize("name", sorted(UNARY))


@cache
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as arrays:
        return dict(arrays)


def activation(name: str) -> Activation:
    return Activation(UNARY[name].code, *((-1.0, 2.0) if name == "clip" else UNARY[name].defaults))


def numbers(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(shape).standard_normal(shape) * 4, np.float32)


def blank(*shape: int) -> np.ndarray:
    return np.full(shape, 77, np.float32)


def close(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=RTOL, atol=ATOL)


def same_bits(got: np.ndarray, want: np.ndarray) -> None:
    """Equal, and NaN in the same places (its payload is nobody's business)."""
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


def unary(x: np.ndarray, name: str, out: np.ndarray | None = None) -> np.ndarray:
    out = blank(*x.shape) if out is None else out
    dispatch.kernel("unary")(x, out, activation(name))
    return out


@each("number", range(len(make_activation.CASES)), ids=[c[2] for c in make_activation.CASES])
def test_torch(number: int, variant: str) -> None:
    name, parameters, _, _ = make_activation.CASES[number]
    x = golden()["x"]
    out = blank(*x.shape)
    dispatch.kernel("unary")(x, out, Activation(UNARY[name].code, *parameters))
    close(out, golden()[str(number)])


def test_torch_prelu(variant: str) -> None:
    out = blank(*make_activation.SHAPE)
    dispatch.kernel("prelu")(golden()["p"], golden()["slope"], out)
    close(out, golden()["prelu"])


@pytest.mark.parametrize("axis", [1, 2])
def test_torch_glu(axis: int, variant: str) -> None:
    x, want = golden()["p"], golden()[f"glu.{axis}"]
    outer = math.prod(x.shape[:axis])
    out = blank(outer, want.size // outer)
    dispatch.kernel("gated")(x.reshape(outer, 2, -1), out, Activation(UNARY["sigmoid"].code), 1)
    close(out.reshape(want.shape), want)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3.4028235e38, -3.4028235e38, 1e-45, -1e-45], np.float32)


@names
def test_special_values(name: str, variant: str) -> None:
    """Each in every lane: NaN stays NaN, infinities and zeros as the formula has it."""
    with np.errstate(all="ignore"):
        want = evaluate(SPECIAL, activation(name)).astype(np.float32)
    if name == "softplus":
        want[5] = SPECIAL[5]
    for value, expected in zip(SPECIAL, want, strict=True):
        got = unary(np.full(17, value, np.float32), name)
        assert np.isnan(got[0]) == np.isnan(expected) and (not np.isnan(value) or np.isnan(got[0]))
        same_bits(got, np.full(17, got[0], np.float32))
        np.testing.assert_allclose(got[0], expected, rtol=RTOL, atol=ATOL)


@names
def test_sizes_at_both_edges_of_memory(name: str, variant: str) -> None:
    whole = unary(numbers(1009), name)
    for size in SIZES:
        for edge in ("start", "end"):
            x = guarded(numbers(1009)[:size], edge)
            x.flags.writeable = False
            out = guarded_empty((size,), edge)
            unary(x, name, out)
            same_bits(out, whole[:size])


@names
@each("size", [5, 1009, 16385])
def test_in_place(name: str, size: int, variant: str) -> None:
    x = numbers(size)
    want = unary(x, name)
    assert unary(x, name, x) is x
    same_bits(x, want)


@each("size", LARGE)
@each("name", ["relu", "sigmoid", "mish"])
def test_threads_and_tasks(name: str, size: int, variant: str, threads: int) -> None:
    x = numbers(size)
    got = unary(x, name)
    with np.errstate(all="ignore"):
        close(got, evaluate(x, activation(name)))
    same_bits(got[-33:], unary(np.ascontiguousarray(x[-33:]), name))


def test_any_rank(variant: str) -> None:
    for shape in ((), (2, 3), (1, 2, 3, 2, 1, 2)):
        x = numbers(*shape)
        same_bits(unary(x, "tanh").ravel(), unary(x.ravel(), "tanh"))


PLANES = (
    (0, 3, 5),
    (2, 0, 5),
    (2, 3, 0),
    (1, 1, 1),
    (3, 5, 1),
    (1, 17, 1),
    (2, 3, 2),
    (3, 37, 9),
    (2, 3, 63),
    (2, 3, 64),
    (1, 1, 129),
)


@each("shape", PLANES, ids=str)
@each("edge", ["start", "end"])
def test_prelu(shape: tuple[int, int, int], edge: str, variant: str) -> None:
    x, slope = numbers(*shape), numbers(shape[1])
    out = guarded_empty(shape, edge)
    dispatch.kernel("prelu")(guarded(x, edge), guarded(slope, edge), out)
    same_bits(out, np.where(x >= 0, x, slope[:, None] * x))


def test_prelu_special_values(variant: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -1.0], np.float32).reshape(1, 5, 1)
    for slope in (0.0, 0.5, -2.0, np.nan):
        out = blank(1, 5, 1)
        dispatch.kernel("prelu")(x, np.full(5, slope, np.float32), out)
        with np.errstate(invalid="ignore"):
            same_bits(out, np.where(x >= 0, x, np.float32(slope) * x))


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("gate", [0, 1])
def test_gated(name: str, gate: int, variant: str) -> None:
    for outer, inner in ((0, 4), (3, 0), (1, 1), (5, 1), (3, 7), (2, 16), (1, 33), (7, 101)):
        x = numbers(outer, 2, inner)
        for edge in ("start", "end"):
            out = guarded_empty((outer, inner), edge)
            dispatch.kernel("gated")(guarded(x, edge), out, activation(name), gate)
            want = x[:, 1 - gate] * evaluate(x[:, gate], activation(name))
            # the product multiplies the function's absolute error
            np.testing.assert_allclose(out, want, rtol=2 * RTOL, atol=ATOL * np.max(np.abs(x), initial=1))


BIG: dict[str, Callable[[], tuple[Any, ...]]] = {
    "prelu planes": lambda: (numbers(3, 70, 1201), numbers(70), blank(3, 70, 1201)),
    "prelu rows": lambda: (numbers(300, 70, 11), numbers(70), blank(300, 70, 11)),
    "prelu columns": lambda: (numbers(3001, 70, 1), numbers(70), blank(3001, 70, 1)),
    "gated": lambda: (numbers(61, 2, 3001), blank(61, 3001), activation("silu"), 1),
}


@pytest.mark.parametrize("case", BIG)
def test_tasks_of_the_others(case: str, variant: str, threads: int) -> None:
    """Tasks begin and end within rows and planes here."""
    kernel = case.split()[0]
    arguments = BIG[case]()
    dispatch.kernel(kernel)(*arguments)
    got = next(
        a for a in arguments if isinstance(a, np.ndarray) and (a.size == 0 or a is arguments[{"prelu": 2, "gated": 1}[kernel]])
    )
    with fl.kernels.use("reference"):
        arguments = BIG[case]()
        dispatch.kernel(kernel)(*arguments)
    want = arguments[{"prelu": 2, "gated": 1}[kernel]]
    np.testing.assert_allclose(got, want, rtol=RTOL, atol=ATOL * 8)


def test_reference_in_float64() -> None:
    """The oracle against the mathematical library, number by number."""
    x = np.linspace(-30, 30, 601).astype(np.float32)
    formulas: dict[str, Callable[[float], float]] = {
        "erf": math.erf,
        "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
        "gelu": lambda v: v * math.erfc(-v / math.sqrt(2)) / 2,
        "gelu_tanh": lambda v: v / (1 + math.exp(-2 * math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))) if v > -9 else 0.0,
        "softplus": lambda v: v if v > 20 else math.log1p(math.exp(v)),
        "mish": lambda v: v * math.tanh(math.log1p(math.exp(v))),
        "silu": lambda v: v / (1 + math.exp(-v)),
        "elu": lambda v: v if v > 0 else math.expm1(v),
    }
    for name, formula in formulas.items():
        got = evaluate(x, activation(name))
        np.testing.assert_allclose(got, [formula(float(v)) for v in x], rtol=1e-13, atol=1e-40 if name != "gelu_tanh" else 1e-25)
