"""Users' own operators: called on arrays, recorded, in ONNX files, saved, and wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
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
            [
                node("Relu", "x", "y"),
                node("Swirl", "y", "z", domain=DOMAIN, factor=3.0, places=2),
                node("Neg", "z", "out"),
            ],
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


def test_numba_compiled() -> None:
    numba = pytest.importorskip("numba", reason="Numba is not installed")

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


def test_errors(swirl: Callable[..., Any]) -> None:
    with pytest.raises(fl.ShapeError, match="registered already"):
        fl.operator("Swirl", DOMAIN)(lambda x: x)
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
                    [node("Swirl", "x", "y", domain="org.other")],
                    inputs=[value_info("x", (3,))],
                    outputs=[value_info("y", (3,))],
                ),
                imports="org.other",
            )
        )
