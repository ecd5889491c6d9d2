"""Users' own operators: called on arrays, recorded, in ONNX files, saved, and wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.model.custom import forget

from ..formats.onnx_build import graph, model, node, value_info

DOMAIN = "com.example"


@pytest.fixture
def swirl() -> Iterator[Callable[..., Any]]:
    """x turned by one place along its last axis, times a factor."""

    @fl.operator("Swirl", DOMAIN)
    def function(x: np.ndarray, *, factor: float = 2.0, places: int = 1) -> np.ndarray:
        """Turns."""
        return np.roll(x, places, axis=-1) * np.float32(factor)

    yield function
    forget("Swirl", DOMAIN)


@pytest.fixture
def pair() -> Iterator[Callable[..., Any]]:
    """Two results, of other shapes than the inputs'."""

    @fl.operator("Pair", infer=lambda a, b: [(a[0],), (*b, 2)])
    def function(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return a.sum(axis=1), np.stack([b, -b], axis=-1)

    yield function
    forget("Pair")


X = np.arange(6, dtype=np.float32).reshape(2, 3)
WANT = np.roll(X, 2, axis=1) * 3


def test_called_on_arrays(swirl: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(swirl(X.astype(np.float64), factor=3.0, places=2), WANT)
    assert swirl(X.astype(int)).dtype == np.float32
    assert swirl.__name__ == "function" and swirl.__doc__ == "Turns."


def test_recorded_beside_kernels(swirl: Callable[..., Any], variant: str) -> None:
    made = fl.compile(
        lambda x: fl.functional.relu(swirl(fl.functional.relu(x), factor=3.0, places=2) - 1.0), fl.graph.Input("x", ("n", 3))
    )
    for n in (2, 1, 0):
        np.testing.assert_array_equal(made(X[:n]), np.maximum(WANT[:n] - 1, 0))
    assert made.outputs[0].shape == ("n", 3)


def test_several_results_and_shapes_of_their_own(pair: Callable[..., Any], variant: str) -> None:
    made = fl.compile(pair, fl.graph.Input("a", ("n", 3)), fl.graph.Input("b", (4,)))
    b = np.arange(4, dtype=np.float32)
    first, second = made(X, b)
    np.testing.assert_array_equal(first, X.sum(axis=1))
    np.testing.assert_array_equal(second, np.stack([b, -b], axis=-1))


def test_in_an_onnx_file(swirl: Callable[..., Any], variant: str) -> None:
    content = model(
        graph(
            [node("Relu", "x", "y"), node("Swirl", "y", "z", domain=DOMAIN, factor=3.0, places=2), node("Neg", "z", "out")],
            inputs=[value_info("x", ("n", 3))],
            outputs=[value_info("out", ("n", 3))],
        ),
        imports=DOMAIN,
    )
    made = fl.load(content)
    np.testing.assert_array_equal(made(X), -WANT)


def test_saved_and_loaded(swirl: Callable[..., Any], tmp_path: Any) -> None:
    made = fl.compile(lambda x: swirl(x, places=2, factor=3.0), fl.graph.Input("x", (2, 3)))
    made.save(tmp_path / "model")
    np.testing.assert_array_equal(fl.load(tmp_path / "model")(X), WANT)


def test_inputs_cannot_be_changed() -> None:
    @fl.operator("Spoils")
    def spoils(x: np.ndarray) -> np.ndarray:
        x[...] = 0
        return x

    try:
        made = fl.compile(spoils, fl.graph.Input("x", (3,)))
        with pytest.raises(ValueError, match="read-only"):
            made(np.ones(3, np.float32))
    finally:
        forget("Spoils")


def test_a_wrong_shape_is_told_and_not_broadcast() -> None:
    @fl.operator("Short")
    def short(x: np.ndarray) -> np.ndarray:
        return x[:1]

    try:
        made = fl.compile(short, fl.graph.Input("x", (3,)))
        with pytest.raises(fl.ShapeError, match="returned the shapes"):
            made(np.ones(3, np.float32))
    finally:
        forget("Short")


@pytest.mark.jit
def test_numba_compiled() -> None:
    numba = pytest.importorskip("numba")

    @fl.operator("Cubed", DOMAIN)
    @numba.njit(nogil=True)
    def cubed(x, scale=1.0):  # type: ignore[no-untyped-def]
        out = np.empty_like(x)
        for i in range(x.size):
            out.flat[i] = x.flat[i] ** 3 * scale
        return out

    try:
        made = fl.compile(lambda x: cubed(x, scale=2.0), fl.graph.Input("x", ("n", 3)))
        np.testing.assert_allclose(made(X), 2 * X**3, rtol=1e-6)
    finally:
        forget("Cubed", DOMAIN)


@pytest.mark.jit
@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
def test_numba_compiles_attributes_however_they_are_written() -> None:
    """By position or by name alone, with a default or an annotation, closed over, of every kind: all are compiled steps."""
    numba = pytest.importorskip("numba")
    one = np.float32(1)

    def by_name(x, *, factor=2.0, shift: int = 0, flags=(1, 2), name="ab"):  # type: ignore[no-untyped-def]
        return x * np.float32(factor) + one * shift * flags[1] * len(name)

    def by_position(x, factor=2.0, shift=0, flags=(1, 2), name="ab"):  # type: ignore[no-untyped-def]
        return x * np.float32(factor) + one * shift * flags[1] * len(name)

    def mixed(x, factor=2.0, *, shift: int, flags=(1, 2), name="ab"):  # type: ignore[no-untyped-def]
        return x * np.float32(factor) + one * shift * flags[1] * len(name)

    for function in (by_name, by_position, mixed):
        operator = fl.operator("Written", DOMAIN, replace=True)(numba.njit(function))
        try:
            made = fl.compile(
                lambda x, f=operator: fl.functional.relu(f(x, factor=0.5, shift=3)),
                fl.graph.Input("x", ("n", 3)),
                require_native=True,
            )
            want = np.maximum(X * np.float32(0.5) + 12, 0)
            np.testing.assert_allclose(made(X), want, rtol=1e-6, err_msg=function.__name__)
            np.testing.assert_allclose(np.maximum(operator(X, factor=0.5, shift=3), 0), want, rtol=1e-6)
        finally:
            forget("Written", DOMAIN)


@pytest.fixture
def scaled() -> Iterator[Callable[..., Any]]:
    """A function that Numba compiled, of two arrays and attributes, with two results; it raises for a negative number."""
    numba = pytest.importorskip("numba")

    @fl.operator("Scaled", DOMAIN, infer=lambda a, b, **_: [a, (a[1], a[0])])
    @numba.njit
    def function(a, b, times=2, scale=1.0, name="x"):  # type: ignore[no-untyped-def]
        if a.min() < 0:
            raise ValueError("a negative number")
        first = np.empty(a.shape, np.float32)
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                first[i, j] = a[i, j] * b[j] * times * scale + len(name)
        return (first[:1] if a.shape[0] == 5 else first), a.T.copy()

    yield function
    forget("Scaled", DOMAIN)


@pytest.mark.jit
@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
def test_numba_compiled_is_a_native_step(scaled: Callable[..., Any]) -> None:
    f, b = fl.functional, np.array([1, 2, 3], np.float32)
    made = fl.compile(
        lambda x: tuple(f.relu(y) for y in scaled(f.relu(x), b, scale=0.5, name="three")), fl.graph.Input("x", ("n", 3)),
        require_native=True,
    )  # fmt: skip
    x = np.abs(X)
    for n in (2, 1):
        first, second = made(x[:n])
        np.testing.assert_allclose(first, x[:n] * b + 5, rtol=1e-6)
        np.testing.assert_array_equal(second, x[:n].T)
    assert "numba" in made.summary([(2, 3)]) and "in numpy: nothing" in made.summary([(2, 3)])
    with ThreadPoolExecutor(4) as pool:
        for first, _ in pool.map(made, [x] * 50):
            np.testing.assert_allclose(first, x * b + 5, rtol=1e-6)


@pytest.mark.jit
@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
def test_errors_of_a_native_step_are_those_of_the_function(scaled: Callable[..., Any]) -> None:
    made = fl.compile(lambda x: scaled(x, np.ones(3))[0], fl.graph.Input("x", ("n", 3)))
    for _ in range(2):
        with pytest.raises(ValueError, match="a negative number"):
            made(-np.ones((2, 3), np.float32))
        with pytest.raises(fl.ShapeError, match="returned the shapes"):
            made(np.ones((5, 3), np.float32))
        np.testing.assert_array_equal(made(np.ones((2, 3), np.float32)), np.full((2, 3), 3))


@pytest.mark.jit
@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
def test_what_numba_cannot_make_a_c_function_of_stays_a_step_of_python() -> None:
    numba = pytest.importorskip("numba")

    @fl.operator("Total", infer=lambda x: ())
    @numba.njit
    def total(x):  # type: ignore[no-untyped-def]
        return x.sum()  # no array

    try:
        made = fl.compile(total, fl.graph.Input("x", (3,)))
        with pytest.warns(RuntimeWarning, match="total runs as a step of Python.*it returns float32: expected arrays of"):
            assert made(np.ones(3, np.float32)) == 3
        assert "in numpy: ::Total" in made.summary()
    finally:
        forget("Total")


def test_a_cell_that_is_run_again(swirl: Callable[..., Any]) -> None:
    x = np.ones((2, 3), np.float32)
    for factor in (3, 5):

        @fl.operator("Swirl", DOMAIN, replace=True)
        def again(x, k=factor):  # type: ignore[no-untyped-def]
            return x * np.float32(k)

        np.testing.assert_array_equal(again(x), factor * x)
        np.testing.assert_array_equal(fl.compile(again, fl.graph.Input("x", (2, 3)))(x), factor * x)


def test_errors(swirl: Callable[..., Any]) -> None:
    with pytest.raises(fl.ArgumentError, match="registered already: expected another name, or replace=True") as caught:
        fl.operator("Swirl", DOMAIN)(lambda x: x)
    assert not isinstance(caught.value, fl.ShapeError)
    for replace in (False, True):
        with pytest.raises(fl.ArgumentError, match=r"FusedConv of domain 'com\.microsoft' is the library's own"):
            fl.operator("FusedConv", "com.microsoft", replace=replace)(lambda x: x)
    with pytest.raises(fl.DTypeError, match="replace is 'yes'"):
        fl.operator("Swirl", DOMAIN, replace="yes")(lambda x: x)  # type: ignore[arg-type]
    with pytest.raises(fl.DTypeError, match="no parameter without a default"):
        fl.operator("None")(lambda: 0)
    with pytest.raises(fl.DTypeError, match="any number"):
        fl.operator("Any")(lambda *x: x)
    with pytest.raises(fl.DTypeError, match="attribute"):
        fl.operator("Wrong")(lambda x, y=None: x)
    with pytest.raises(fl.DTypeError, match="expected strings"):
        fl.operator(3)  # type: ignore[arg-type]
    with pytest.raises(fl.UnsupportedError, match="Swirl"):
        fl.load(
            model(
                graph(
                    [node("Swirl", "x", "y", domain="org.other")], inputs=[value_info("x", (3,))], outputs=[value_info("y", (3,))]
                ),
                imports="org.other",
            )
        )
