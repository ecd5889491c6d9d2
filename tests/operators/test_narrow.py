"""Casts to element types that numpy lacks: the nearest number that the type has, and the types followed through a model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fastlayers._codes import float8_values, small_values
from fastlayers.errors import DTypeError, UnsupportedError
from fastlayers.formats.onnx.elements import ELEMENTS
from fastlayers.formats.onnx.graph import to_graph
from fastlayers.ir.graph import Graph, Value
from fastlayers.model.feeds import convert
from fastlayers.model.model import Model
from fastlayers.operators.narrow import NARROW, narrowed

from .models import graph, info, model, node

INF, NAN = np.inf, np.nan
TABLES = {
    17: float8_values(4, 7, "fn"), 18: float8_values(4, 8, "fnuz"), 19: float8_values(5, 15, "ieee"),
    20: float8_values(5, 16, "fnuz"), 23: small_values("FLOAT4E2M1", 4), 27: small_values("FLOAT6E2M3", 6),
    28: small_values("FLOAT6E3M2", 6),
}  # fmt: skip
BITS = {21: (0, 15), 22: (-8, 7), 25: (0, 3), 26: (-2, 1)}


def finite(number: int) -> np.ndarray:
    """The finite values of a type, ascending; where there are two zeros, only one of them."""
    return np.unique(TABLES[number][np.isfinite(TABLES[number])])


def test_names_are_those_of_the_reader() -> None:
    assert {number: kind.name for number, kind in NARROW.items()} == {n: ELEMENTS[n].name for n in range(16, 29)}
    assert all(kind.dtype == ELEMENTS[number].dtype for number, kind in NARROW.items())


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("number", TABLES)
def test_floats_of_the_table(number: int, dtype: type[Any]) -> None:
    """What the type has stays, what is between goes to the nearer one, and from the middle to the even one."""
    values = TABLES[number]
    got = narrowed(values, number, saturate=False)
    np.testing.assert_array_equal(got, values)
    np.testing.assert_array_equal(np.signbit(got[values == 0]), np.signbit(values[values == 0]))
    ordered = finite(number).astype(np.float64)
    if dtype == np.float16:
        ordered = ordered[ordered > 0.01]  # the others are too fine for its own steps
    low, high = ordered[:-1], ordered[1:]
    middle, quarter = (low + high) / 2, (high - low) / 4
    np.testing.assert_array_equal(narrowed((middle - quarter).astype(dtype), number), low)
    np.testing.assert_array_equal(narrowed((middle + quarter).astype(dtype), number), high)
    codes = {float(v): i for i, v in enumerate(values)}
    even = np.array([a if codes[a] % 2 == 0 else b for a, b in zip(low, high, strict=True)])
    np.testing.assert_array_equal(narrowed(middle.astype(dtype), number), even)


@pytest.mark.parametrize("number", TABLES)
def test_floats_beyond_the_table(number: int) -> None:
    largest = float(finite(number)[-1])
    x = np.array([INF, -INF, 1e30, -1e30, NAN], np.float32)
    expected = {"FLOAT8E5M2": INF}.get(NARROW[number].name, NAN)
    nan = NAN if number <= 20 else 0.0
    np.testing.assert_array_equal(narrowed(x, number), [largest, -largest, largest, -largest, nan])
    if number <= 20:
        np.testing.assert_array_equal(narrowed(x, number, saturate=False), [expected, -expected, expected, -expected, NAN])


def test_bfloat16() -> None:
    x = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3.4e38, -3.4e38, INF, NAN, -0.0, 1e-45], np.float32)
    want = np.array([1.0, 1.0, 1 + 2**-6, 1 + 2**-7, INF, -INF, INF, NAN, 0.0, 0.0], np.float32)
    got = narrowed(x, 16)
    np.testing.assert_array_equal(got, want)
    assert np.signbit(got[8])
    assert x[1] == np.float32(1 + 2**-8)
    np.testing.assert_array_equal(narrowed(np.array(5, np.int64), 16), np.float32(5))


@pytest.mark.parametrize(
    ("mode", "saturate", "want"),
    [
        ("up", True, [2**-127, 2**-3, 2**-2, 2.0, 2.0, 2.0, 2.0**127, 2.0**127, NAN]),
        ("down", True, [2**-127, 2**-4, 2**-2, 1.0, 1.0, 1.0, 2.0**127, 2.0**127, NAN]),
        ("nearest", True, [2**-127, 2**-3, 2**-2, 1.0, 2.0, 2.0, 2.0**127, 2.0**127, NAN]),
        ("nearest", False, [NAN, 2**-3, 2**-2, 1.0, 2.0, 2.0, NAN, NAN, NAN]),
    ],
)
def test_scales(mode: str, saturate: bool, want: list[float]) -> None:
    x = np.array([0, 0.1249, 0.25, 1.1, 1.5, 1.6, 3e38, INF, NAN], np.float32)
    np.testing.assert_array_equal(narrowed(x, 24, saturate, mode), np.array(want, np.float32))


@pytest.mark.parametrize("number", BITS)
def test_integers(number: int) -> None:
    low, high = BITS[number]
    whole = np.arange(low, high + 1)
    np.testing.assert_array_equal(narrowed(whole, number), whole)
    size = len(whole)
    for x in (whole + size, whole - 3 * size, (whole + size).astype(np.float32), (whole + size).astype(np.int8)):
        np.testing.assert_array_equal(narrowed(x, number), whole)
    np.testing.assert_array_equal(narrowed(np.array([0.9, -0.9, NAN, INF, 1e300]), number)[:4], [0, 0, 0, 0])


# ---- through a model -------------------------------------------------------------------------------------------------


def typed(name: str, number: int, shape: tuple[int, ...]) -> SimpleNamespace:
    """An input of an element type by number."""
    made = info(name, None, shape, ELEMENTS[number].dtype)
    made.elem_type = number
    return made


def ops(made: Graph) -> list[tuple[str, Any]]:
    return [(n.op, n.attributes.get("to")) for n in made.nodes]


def test_types_are_followed() -> None:
    x, like = info("x", None, (3,), np.float32), typed("like", 19, (3,))
    nodes = [
        node("Reshape", ["like", "shape"], ["a"]),
        node("Where", ["mask", "a", "a"], ["b"]),
        node("Identity", ["b"], ["c"]),
        node("CastLike", ["x", "c"], ["y"]),
        node("Shape", ["c"], ["d"]),
        node("CastLike", ["x", "d"], ["z"]),
    ]
    constants = {"shape": np.array([3]), "mask": np.array([True, False, True])}
    made = to_graph(model(graph(nodes, [x, like], ["y", "z"], constants), 21))
    assert ops(made)[3:] == [("Cast", 19), ("Shape", None), ("CastLike", None)]
    y, z = Model(made)(np.array([1.1, 1e9, -3.4], np.float32), np.zeros(3))
    np.testing.assert_array_equal(y, [1, 57344, -3.5])
    np.testing.assert_array_equal(z, [1, 10**9, -3])


def test_a_cast_that_rounds_is_kept_and_what_the_file_says_comes_first() -> None:
    x = info("x", None, (2,), np.float32)
    nodes = [node("Cast", ["x"], ["y"], to=16), node("Neg", ["y"], ["n"]), node("CastLike", ["x", "n"], ["z"])]
    proto = graph(nodes, [x], ["y", "z"])
    proto.value_info = {"n": SimpleNamespace(name="n", elem_type=1)}
    made = to_graph(model(proto, 21))
    assert ops(made)[-1] == ("CastLike", None)
    y, z = Model(made)(np.array([1.001, 2.0], np.float32))
    np.testing.assert_array_equal(y, [1.0, 2.0])
    np.testing.assert_array_equal(z, np.array([1.001, 2.0], np.float32))


def test_initializers_and_refusals() -> None:
    proto = graph([node("CastLike", ["x", "w"], ["y"])], [info("x", None, (2,), np.float32)], ["y"], {"w": np.zeros(1, np.int8)})
    proto.widened = {"w": "INT4"}
    np.testing.assert_array_equal(Model(to_graph(model(proto, 21)))(np.array([9, -9], np.float32)), np.array([-7, 7], np.int8))
    proto = graph([node("BitCast", ["w"], ["y"], to=2)], [], ["y"], {"w": np.zeros(1, np.int8)})
    proto.widened = {"w": "INT4"}
    with pytest.raises(UnsupportedError, match="BitCast"):
        to_graph(model(proto, 27))
    with pytest.raises(UnsupportedError, match="attribute round_mode='odd', expected 'up'"):
        to_graph(model(graph([node("Cast", ["x"], ["y"], to=24, round_mode="odd")], [typed("x", 1, (1,))], ["y"]), 24))


@pytest.mark.ml_dtypes
def test_inputs_of_ml_dtypes() -> None:
    types = pytest.importorskip("ml_dtypes")
    for number, name, given in (
        (16, "bfloat16", [1.5, -2.0]),
        (17, "float8_e4m3fn", [0.5, 448.0]),
        (22, "int4", [-8, 7]),
        (21, "uint4", [15, 0]),
    ):
        spec = Value("x", (2,), ELEMENTS[number].dtype)
        got = convert(spec, np.array(given, getattr(types, name)))
        assert got.dtype == ELEMENTS[number].dtype
        np.testing.assert_array_equal(got, given)
    with pytest.raises(DTypeError, match="cannot hold"):
        convert(Value("x", (1,), np.dtype(np.uint8)), np.array([-1], types.int4))
    with pytest.raises(DTypeError, match="another int"):
        convert(Value("x", (1,), np.dtype(np.int8)), np.array([-1], types.bfloat16))
