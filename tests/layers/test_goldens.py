"""Layers and functions against torch, in every variant; the cases and how the values are made are in tests/goldens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from ..each import each
from ..goldens.front_cases import FUNCTIONS, LAYERS, FunctionCase, LayerCase, arrays

GOLDEN = Path(__file__).parent.parent / "goldens" / "front.npz"
# Sums have at most 40 terms and sequences at most 6 steps: float32 stays well within this part of the largest result.
TOLERANCE = 4e-6


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as file:
        return dict(file)


def flat(result: Any) -> list[np.ndarray]:
    return [a for part in result for a in flat(part)] if isinstance(result, tuple) else [result]


def compare(golden: dict[str, np.ndarray], label: str, result: Any) -> None:
    for i, got in enumerate(flat(result)):
        want = golden[f"{label}#{i}"]
        assert got.dtype == np.float32
        assert got.shape == want.shape
        bound = TOLERANCE * max(1.0, np.nanmax(np.abs(want), initial=0.0, where=np.isfinite(want)))
        np.testing.assert_allclose(got, want, rtol=0, atol=bound)
    assert f"{label}#{len(flat(result))}" not in golden


def prepared(case: LayerCase) -> tuple[fl.Layer, list[Any]]:
    """The layer with its weights, and its arguments."""
    layer = getattr(fl, case.name)(*case.args, **case.kwargs)
    shapes = layer.tensor_shapes()
    states = () if case.state is None else (case.state, case.state)
    x, *numbers = arrays(case.label, case.shape, *states, *shapes.values())
    layer.load_state_dict(dict(zip(shapes, numbers[len(states) :], strict=True)))
    return layer, [x] if case.state is None else [x, tuple(numbers[:2])]


@each("case", LAYERS, ids=lambda case: case.label)
def test_layers_give_what_torch_gives(case: LayerCase, variant: str, golden: dict[str, np.ndarray]) -> None:
    layer, arguments = prepared(case)
    compare(golden, case.label, layer(*arguments))
    compare(golden, case.label, layer(*arguments))  # and the second time, on packed weights


@each("case", FUNCTIONS, ids=lambda case: case.label)
def test_functions_give_what_torch_gives(case: FunctionCase, variant: str, golden: dict[str, np.ndarray]) -> None:
    with np.errstate(invalid="ignore"):
        compare(golden, case.label, getattr(fl.functional, case.name)(*arrays(case.label, *case.shapes), **case.kwargs))


@each("case", LAYERS, ids=lambda case: case.label)
def test_recorded_layers_give_what_layers_give(case: LayerCase) -> None:
    layer, arguments = prepared(case)
    inputs = [fl.graph.Input("x", arguments[0].shape)]
    feeds = {"x": arguments[0]}
    if case.state is not None:
        inputs.append((fl.graph.Input("h", case.state), fl.graph.Input("c", case.state)))  # type: ignore[arg-type]
        feeds.update(zip("hc", arguments[1], strict=True))
    graph = fl.graph.trace(layer, *inputs)
    want = flat(layer(*arguments))
    got = list(fl.graph.execute(graph, feeds).values())
    assert [value.shape for value in graph.outputs] == [array.shape for array in want]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["Conv1d", "Conv2d", "Conv3d"])
def test_every_padding_layout_and_rank_is_one_computation(name: str, variant: str) -> None:
    """Channels last, pairs, "same" and no batch give the values of plain padding, channels first."""
    axes = int(name[4])
    rng = np.random.default_rng(axes)
    x = rng.standard_normal((2, 4, *(7, 6, 5)[:axes])).astype(np.float32)
    weights = {"weight": rng.standard_normal((6, 2, *(3,) * axes)), "bias": rng.standard_normal(6)}

    def layer(**kwargs: Any) -> fl.Layer:
        made = getattr(fl, name)(4, 6, 3, stride=2, groups=2, activation="relu", **kwargs)
        made.load_state_dict(weights)
        return made

    want = layer(padding=1)(x)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    np.testing.assert_allclose(np.moveaxis(layer(padding=1, layout="nhwc")(last), -1, 1), want, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(layer(padding=[(1, 1)] * axes)(x), want)
    np.testing.assert_array_equal(layer(padding=(1,) * axes)(x[0]), want[0])
    pads = [(1, 1) if size % 2 else (0, 1) for size in x.shape[2:]]  # TensorFlow's rule for kernel 3, stride 2
    np.testing.assert_array_equal(layer(padding="same")(x), layer(padding=pads)(x))
