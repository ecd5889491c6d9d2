"""`binary`, `compare` and `where`: torch's figures, error bounds, every way to broadcast, in place, edges of memory, threads."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import pytest

from fastlayers.errors import UnsupportedError
from fastlayers.kernels import dispatch
from fastlayers.kernels.reference import binary as reference
from fastlayers.kernels.table import BINARY, COMPARE, UNARY, Activation
from tests.goldens import make_binary

from ..each import each
from ..guard import guarded
from .space import IDENTITY, RELU, bits

GOLDEN = make_binary.__file__.replace("make_binary.py", "binary.npz")
posix = pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
edges = pytest.mark.parametrize("edge", ["start", "end"])

# Units in the last place by which a result may be off what float64 gives; all others are that, rounded once.
BOUNDS = {"squared_difference": 2.0, "power": 0.51}
EXPONENTS = {1.0: 0.5, 2.0: 0.5, 3.0: 1.5, 0.5: 0.5, -0.5: 1.5, -1.0: 0.5, 0.0: 0.51, 4.0: 0.51, 1.5: 0.51}

Shape = tuple[int, ...]


@cache
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as arrays:
        return dict(arrays)


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape), np.float32)


def anything(seed: int, n: int) -> np.ndarray:
    """Floats of all bit patterns."""
    return np.random.default_rng(seed).integers(0, 2**32, n, np.uint32).view(np.float32)


def blank(*shape: int) -> np.ndarray:
    return np.full(shape, 77, np.float32)


def binary(name: str, a: np.ndarray, b: np.ndarray, out: np.ndarray, activation: Activation = IDENTITY) -> np.ndarray:
    dispatch.kernel("binary")(a, b, out, BINARY[name], activation)
    return out


def exactly(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """In float64, not rounded."""
    with np.errstate(all="ignore"):
        return np.asarray(reference._FUNCTIONS[name](a.astype(np.float64), b.astype(np.float64)))


def within(got: np.ndarray, want: np.ndarray, ulps: float) -> None:
    """NaN and infinities in the same places, all else within so many units in the last place."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        unit = np.ldexp(1.0, np.maximum(np.frexp(want)[1] - 24, -149))
        off = np.where(np.isfinite(rounded), np.abs(got - want) / unit, 0)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    wrong = np.where(np.isfinite(rounded), ~(off <= ulps + 1e-6), ~same)
    assert not wrong.any(), (got[wrong][:5], rounded[wrong][:5], off[wrong][:5])


# ---- what is computed ----


@pytest.mark.parametrize("name", BINARY)
def test_torch(name: str, variant: str) -> None:
    x, want = golden()["x"], golden()[name]
    pairs = np.broadcast_arrays(x[:, None], x[None, :])
    for a, b in ((x[:, None], x[None, :]), (pairs[0].copy(), pairs[1].copy())):
        got = binary(name, np.ascontiguousarray(a), np.ascontiguousarray(b), blank(*want.shape))
        same = slice(2, None) if name == "prelu" else slice(None)  # torch multiplies zeros, by infinity and NaN too
        within(got[same], want[same].astype(np.float64), 0.5 + BOUNDS[name] if name in BOUNDS else 0)


@pytest.mark.parametrize("name", COMPARE)
def test_torch_comparisons(name: str, variant: str) -> None:
    x, want = golden()["x"], golden()[name]
    out = np.ones(want.shape, np.bool_)
    dispatch.kernel("compare")(x[:, None].copy(), x[None, :].copy(), out, COMPARE[name])
    np.testing.assert_array_equal(out, want)


def test_torch_where(variant: str) -> None:
    x = golden()["x"]
    out = blank(*golden()["where"].shape)
    dispatch.kernel("where")(golden()["less"], x[:, None].copy(), x[None, :].copy(), out)
    np.testing.assert_array_equal(out, golden()["where"])


@pytest.mark.parametrize("name", BINARY)
def test_error_bounds(name: str, variant: str) -> None:
    """Any two floats, and pairs whose results are of common size."""
    ulps = 0.5 if variant == "reference" else BOUNDS.get(name, 0.5)
    for a, b in ((anything(1, 40001), anything(2, 40001)), (numbers(3, 40001) * 30, numbers(4, 40001) * 30)):
        within(binary(name, a, b, blank(a.size)), exactly(name, a, b), ulps)


def test_powers(variant: str) -> None:
    """Near the ends of the range, near 1, and of negative values, whose exponents must be whole."""
    ulps = 0.5 if variant == "reference" else BOUNDS["power"]
    rng = np.random.default_rng(0)
    a = np.abs(anything(1, 40001))
    with np.errstate(all="ignore"):
        b = (rng.uniform(-150, 150, a.size) / np.log2(a.astype(np.float64))).astype(np.float32)
    near = (1 + rng.uniform(-1e-3, 1e-3, 40001)).astype(np.float32)
    for base, exponent in (
        (a, b),
        (near, (rng.uniform(-1, 1, 40001) * 1e5).astype(np.float32)),
        (numbers(2, 40001) * 10, rng.integers(-30, 30, 40001).astype(np.float32)),
        (numbers(3, 40001), rng.integers(-30, 30, 40001).astype(np.float32) / 2),
    ):
        got = binary("power", base, exponent, blank(base.size))
        within(got, exactly("power", base, exponent), ulps)
        np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(exactly("power", base, exponent)[got == 0]))


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_constant_exponents(exponent: float, variant: str) -> None:
    a, b = np.concatenate([anything(1, 40001), golden()["x"], numbers(2, 1000) * 100]), np.asarray(exponent, np.float32)
    within(binary("power", a, b, blank(a.size)), exactly("power", a, b), 0.5 if variant == "reference" else EXPONENTS[exponent])


def test_an_exponent_a_row(variant: str) -> None:
    a, b = np.abs(numbers(1, 9, 37)), np.array([[v] for v in EXPONENTS], np.float32)
    within(binary("power", a, b, blank(9, 37)), exactly("power", a, b), 1.5)
    a = np.abs(numbers(2, 9, 1))
    within(binary("power", a, b, blank(9, 37)), np.broadcast_to(exactly("power", a, b), (9, 37)), 1.5)


@each("name", ["relu", "clip", "leaky_relu", "gelu", "sigmoid", "square"])
@each("shapes", [((50, 100), (50, 100)), ((50, 100), (50, 1)), ((1700, 3), (3,)), ((7, 1), (1, 5))])
def test_activation(name: str, shapes: tuple[Shape, Shape], variant: str) -> None:
    """In the kernel's loop or after it: the sum, rounded, then the function."""
    a, b = numbers(1, *shapes[0]), numbers(2, *shapes[1])
    a.reshape(-1)[0] = np.nan
    activation = Activation(UNARY[name].code, *((-0.5, 1.0) if name == "clip" else UNARY[name].defaults))
    want = (a + b).astype(np.float32)
    unary = dispatch.kernel("unary")
    unary(want, want, activation)
    got = binary("add", a, b, blank(*want.shape), activation)
    if variant == "reference":  # which rounds once
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(bits(got), bits(want))


# ---- every way to broadcast ----


def random_shapes(seed: int, count: int) -> tuple[list[Shape], Shape]:
    """Shapes that broadcast, of any rank up to 8; the first ones may lack leading axes. Sizes 0 and 1 among them."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(0, 9))
    most = {0: 1, 1: 3000, 2: 80, 3: 30, 4: 12, 5: 7, 6: 5, 7: 4, 8: 4}[rank]
    out = [int(n) for n in rng.integers(1, most + 1, rank)]
    if seed % 17 == 0 and rank:
        out[int(rng.integers(rank))] = 0
    shapes = []
    repeat = rng.choice([0.0, 0.3, 0.7], count)
    for k in range(count):
        shape = [1 if rng.random() < repeat[k] else n for n in out]
        shapes.append(tuple(shape[int(rng.integers(0, rank + 1)) :] if rng.random() < repeat[k] else shape))
    return shapes, tuple(out)


def place(array: np.ndarray, edge: str | None) -> np.ndarray:
    array = array if edge is None else guarded(array, edge)
    array.flags.writeable = False
    return array


def check_broadcast(seed: int, edge: str | None = None) -> None:
    (c, a, b), shape = random_shapes(seed, 3)
    x, y, holds = place(numbers(1, *a), edge), place(numbers(2, *b), edge), place(np.asarray(numbers(3, *c) > 0), edge)
    out = blank(*shape) if edge is None else guarded(blank(*shape), edge)
    name = ("subtract", "prelu")[seed % 2]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(binary(name, x, y, out), np.broadcast_to(exactly(name, x, y).astype(np.float32), shape))
    dispatch.kernel("where")(holds, x, y, out)
    np.testing.assert_array_equal(out, np.broadcast_to(np.where(holds, x, y), shape))
    flags = np.ones(shape, np.bool_) if edge is None else guarded(np.ones(shape, np.bool_), edge)
    dispatch.kernel("compare")(x, y, flags, COMPARE["greater"])
    np.testing.assert_array_equal(flags, np.broadcast_to(x > y, shape))


def test_any_shapes(variant: str) -> None:
    for seed in range(250):
        check_broadcast(seed)


@posix
@edges
def test_shapes_at_the_edge_of_memory(variant: str, edge: str) -> None:
    for seed in range(80):
        check_broadcast(seed, edge)


ROWS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 127, 128, 129, 1009)


@posix
@edges
@pytest.mark.parametrize("name", BINARY)
def test_rows_of_every_length(name: str, variant: str, edge: str) -> None:
    for n in ROWS:
        for a, b in (((n,), (n,)), ((n,), ()), ((), (n,)), ((3, n), (3, 1)), ((3, 1), (3, n)), ((3, n), (n,)), ((1, n), (3, 1))):
            shape = np.broadcast_shapes(a, b)
            x, y = place(np.abs(numbers(n, *a)), edge), place(numbers(n + 1, *b), edge)
            got = binary(name, x, y, guarded(blank(*shape), edge))
            within(got, exactly(name, x, y), BOUNDS.get(name, 0.5) if name != "power" else 1.5)


def test_out_may_be_larger_than_both(variant: str) -> None:
    a, b = numbers(1, 1, 5, 1), numbers(2, 5, 1)
    for shape in ((3, 5, 4), (2, 3, 5, 40)):
        np.testing.assert_array_equal(binary("add", a, b, blank(*shape)), np.broadcast_to(a + b, shape))


@pytest.mark.parametrize("n", [5, 1000, 40000])
def test_in_place(n: int, variant: str) -> None:
    a, b, row = numbers(1, n, 3), numbers(2, n, 3), numbers(3, 3)
    want = a - b
    np.testing.assert_array_equal(binary("subtract", a.copy(), b, blank(n, 3)), want)
    for x, y, out in ((0, 1, 0), (0, 1, 1)):
        arrays = [a.copy(), b.copy()]
        np.testing.assert_array_equal(binary("subtract", arrays[x], arrays[y], arrays[out]), want)
    x = a.copy()
    np.testing.assert_array_equal(binary("multiply", x, x, x), a * a)
    x = a.copy()
    np.testing.assert_array_equal(binary("subtract", row, x, x), row - a)
    x = a.copy()
    dispatch.kernel("where")(row > 0, x, row, x)
    np.testing.assert_array_equal(x, np.where(row > 0, a, row))


LARGE: tuple[tuple[Any, ...], ...] = (
    ((200003,), (200003,)),
    ((300, 701), (701,)),
    ((300, 701), (300, 1)),
    ((20001, 13), (13,)),
    ((20001, 13), (20001, 1)),
    ((60, 1, 70, 3), (41, 1, 3)),
    ((11, 50, 3, 70), (50, 1, 70)),
)


@pytest.mark.parametrize("shapes", LARGE)
def test_large_on_two_threads(shapes: tuple[Shape, Shape], variant: str, threads: int) -> None:
    a, b = numbers(1, *shapes[0]), numbers(2, *shapes[1])
    shape = np.broadcast_shapes(*shapes)
    np.testing.assert_array_equal(binary("multiply", a, b, blank(*shape), RELU), np.maximum(a * b, 0))
    out = np.ones(shape, np.bool_)
    dispatch.kernel("compare")(a, b, out, COMPARE["less"])
    np.testing.assert_array_equal(out, a < b)
    got = blank(*shape)
    dispatch.kernel("where")(a > 0, a, b, got)
    np.testing.assert_array_equal(got, np.where(a > 0, a, b))


def test_many_axes(variant: str) -> None:
    """Axes that are walked alike count as one; of others, there are limits."""
    a = numbers(1, *(2,) * 12)
    b = numbers(2, *(2,) * 5)
    np.testing.assert_array_equal(binary("add", a, b, blank(*a.shape)), a + b)
    b = numbers(2, *(1, 2) * 6)
    if variant in ("reference", "jit"):
        np.testing.assert_array_equal(binary("add", a, b, blank(*a.shape)), a + b)
    else:
        with pytest.raises(UnsupportedError, match="axes"):
            binary("add", a, b, blank(*a.shape))


def test_comparison_can_fail() -> None:
    a = numbers(1, 100)
    want = exactly("multiply", a, a)
    got = (a * a).astype(np.float32)
    got[7] = np.nextafter(got[7], np.float32(9))
    with pytest.raises(AssertionError):
        within(got, want, 0.5)
    got[7] = np.nan
    with pytest.raises(AssertionError):
        within(got, want, 0.5)
