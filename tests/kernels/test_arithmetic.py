"""`arithmetic`, `choose` and `function`: every function of every dtype, extremes, broadcasting, edges of memory, threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import ARITHMETIC, FUNCTIONS, KINDS
from tests.guard import guarded

from ..each import each
from .test_integer import SHAPES

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
OF_BITS = ("and", "or", "xor", "left", "right")
CASES = [(name, dtype) for name in ARITHMETIC for dtype in (*INTEGERS, *FLOATS) if dtype in INTEGERS or name not in OF_BITS]
TESTS = ("is_nan", "is_inf", "is_positive_inf", "is_negative_inf")
WHOLE = ("not", "negative", "abs", "sign", "relu")


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Small ones, and the largest and smallest of all."""
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        rest = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 7.0, -3.0, 1e-3, 6e4, math.inf, -math.inf, math.nan]
        return np.asarray(rng.choice(np.array(rest), shape)).astype(dtype)
    info = np.iinfo(dtype)
    rest = [info.min, info.max, info.min + 1, 0, 0, 1, 2, 3, 7, 40, *((-1, -1, -2, -3, -5) if info.min else (5,))]
    return np.asarray(rng.choice(np.array(rest, dtype), shape))


def c_like(name: str, a: Any, b: Any, dtype: str) -> Any:
    """What two whole numbers give, by Python's integers."""
    bits = np.dtype(dtype).itemsize * 8
    least = int(np.iinfo(dtype).min)
    cut = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    if name == "divide":
        return cut
    if name == "mod":
        return a % b if b else 0
    if name == "fmod":
        return a - cut * b if b else 0
    if name == "power":
        if b >= 0:
            return pow(a, b, 1 << bits)
        return least if a == 0 else (a if b % 2 else 1) if abs(a) == 1 else 0
    if name == "left":
        return a << b if 0 <= b < bits else 0
    if name == "right":
        return a >> b if 0 <= b < bits else -(a < 0)
    return {
        "add": a + b, "subtract": a - b, "multiply": a * b, "minimum": min(a, b), "maximum": max(a, b), "and": a & b, "or": a | b,
        "xor": a ^ b, "prelu": a * b if a < 0 else a, "equal": a == b, "not_equal": a != b, "less": a < b, "less_equal": a <= b,
        "greater": a > b, "greater_equal": a >= b,
    }[name]  # fmt: skip


def wrapped(value: int, dtype: str) -> int:
    """The integer of the dtype with the same lower bits."""
    bits = np.dtype(dtype).itemsize * 8
    low = value % (1 << bits)
    return low - (1 << bits) if dtype.startswith("i") and low >> (bits - 1) else low


FLOAT: dict[str, Callable[..., Any]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    "minimum": np.minimum, "maximum": np.maximum, "mod": np.mod, "fmod": np.fmod, "equal": np.equal,
    "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "prelu": lambda a, b: np.where(a < 0, a * b, a),
}  # fmt: skip


def run(name: str, a: np.ndarray, b: np.ndarray, edge: str = "end") -> np.ndarray:
    given = [guarded(x, edge) for x in (a, b)]
    kind: Any = np.bool_ if ARITHMETIC[name] >= ARITHMETIC["equal"] else a.dtype
    out = guarded(np.zeros(np.broadcast_shapes(a.shape, b.shape), kind), edge)
    dispatch.kernel("arithmetic")(*given, out, ARITHMETIC[name], KINDS[a.dtype.name])
    return np.array(out)


@each("name, dtype", CASES)
def test_every_pair_of_extremes(name: str, dtype: str, variant: str) -> None:
    some = np.unique(numbers((500,), dtype, 0))
    a, b = np.meshgrid(some, some)
    got = run(name, np.ascontiguousarray(a), np.ascontiguousarray(b))
    if dtype in FLOATS:
        with np.errstate(all="ignore"):
            want = FLOAT[name](a, np.array(b))
        # numpy's own powers of vectors are some roundings off
        np.testing.assert_allclose(got, want, rtol=(4 if name == "power" else 0) * np.finfo(dtype).eps)
        return
    exact = [c_like(name, x, y, dtype) for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)]
    if ARITHMETIC[name] >= ARITHMETIC["equal"]:
        assert got.ravel().tolist() == exact
    else:
        assert got.ravel().tolist() == [wrapped(v, dtype) for v in exact]


@each("name, dtype", [("add", "float64"), ("mod", "int8"), ("multiply", "uint16"), ("less", "uint32"), ("xor", "uint64")])
def test_broadcasting(name: str, dtype: str, variant: str) -> None:
    for (a, b), edge in product(SHAPES, ("start", "end")):
        x, y = numbers(a, dtype, 1), numbers(b, dtype, 2)
        shape = np.broadcast_shapes(a, b)
        want = run(name, np.array(np.broadcast_to(x, shape)), np.array(np.broadcast_to(y, shape)))
        np.testing.assert_array_equal(run(name, x, y, edge), want)


@each("size", (1, 2))
def test_choices(size: int, variant: str) -> None:
    for (a, b), edge in product(SHAPES, ("start", "end")):
        rng = np.random.default_rng(3)
        shape = np.broadcast_shapes(a, b)
        for c in (shape, a, ()):
            holds = guarded(np.asarray(rng.integers(0, 2, c)).astype(np.bool_), edge)
            x, y = (guarded(np.asarray(rng.integers(0, 99, s)).astype(f"i{size}"), edge) for s in (a, b))
            out = guarded(np.zeros(shape, f"i{size}"), edge)
            dispatch.kernel("choose")(holds, x, y, out, size)
            np.testing.assert_array_equal(out, np.where(holds, x, y))


def test_threads_change_nothing() -> None:
    x, y = numbers((700, 300), "float64", 5), numbers((300,), "float64", 6)
    found = []
    before = fl.get_num_threads()
    try:
        for threads in (1, 2, 3):
            fl.set_num_threads(threads)
            tan = np.zeros(x.shape)
            dispatch.kernel("function")(x, tan, FUNCTIONS["tan"], KINDS["float64"])
            found.append((run("divide", x, y).tobytes(), tan.tobytes()))
    finally:
        fl.set_num_threads(before)
    assert found[0] == found[1] == found[2]


# ---- one array ----

OF_ONE = [
    *product(FUNCTIONS, FLOATS), *product((*TESTS, "negative", "abs", "relu"), ("float16",)),
    *((name, dtype) for name, dtype in product(WHOLE, INTEGERS) if name != "negative" or dtype.startswith("i")),
]  # fmt: skip
PLAIN: dict[str, Callable[[np.ndarray], Any]] = {
    "is_nan": np.isnan, "is_inf": np.isinf, "is_positive_inf": np.isposinf, "is_negative_inf": np.isneginf, "not": np.invert,
    "negative": np.negative, "abs": np.abs, "sign": np.sign, "relu": lambda x: np.maximum(x, x.dtype.type(0)),
}  # fmt: skip


@each("name, dtype", [pair for pair in OF_ONE if pair[1] not in FLOATS or pair[0] != "not"])
def test_functions_of_one_array(name: str, dtype: str, variant: str) -> None:
    for n, edge in ((0, "end"), (1, "end"), (63, "start"), (64, "end"), (65, "end"), (16385, "end")):
        x = numbers((n,), dtype, n)
        if name in PLAIN:
            with np.errstate(all="ignore"):
                want = PLAIN[name](x)
        else:
            x = np.concatenate([x, np.linspace(-0.99, 0.99, n), np.linspace(1, 30, n)]).astype(dtype)
            want = np.array([by_math(name, v) for v in x.tolist()], np.float64)
        out = guarded(np.zeros(x.shape, np.bool_ if name in TESTS else dtype), edge)
        given = guarded(x, edge)
        given.flags.writeable = False
        dispatch.kernel("function")(given, out, FUNCTIONS[name], KINDS[dtype])
        ulp = 0 if name in PLAIN else 4 * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(np.array(out), want, rtol=ulp, atol=ulp / 4)


def by_math(name: str, v: float) -> float:
    """As Python's own mathematics has it; NaN where there is none, infinity where it is too large."""
    if name == "sigmoid":
        return 1 / (1 + by_math("exp", -v))
    if name in ("floor", "ceil", "round") and not math.isfinite(v):
        return v
    if name == "reciprocal":
        return math.copysign(math.inf, v) if v == 0 else 1 / v
    if name == "log" and v == 0:
        return -math.inf
    if name == "sinh" and v > 700:
        return math.inf
    function = {"ceil": math.ceil, "floor": math.floor, "round": round}.get(name) or getattr(math, name)
    try:
        return float(function(v))
    except ValueError:
        return math.copysign(math.inf, v) if name == "atanh" and abs(v) == 1 else math.nan
    except OverflowError:
        return math.inf
