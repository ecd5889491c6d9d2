"""Operators with windows over one, two and three axes: every algorithm that a kernel or a rule may choose, and plain numpy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import functional
from fastlayers.calls import conv_choice
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.kernels import dispatch
from fastlayers.kernels.winograd_points import tiles_of
from fastlayers.operators import Spec, View
from fastlayers.operators.reference import run_operator
from fastlayers.program import Program

FLOAT = np.dtype(np.float32)
# float32 leaves a few 1e-7 of the largest output; the transforms of tiles of four up to 4e-6 (test_winograd.py).
TOLERANCE = 1e-5


class Geometry(NamedTuple):
    """Sizes along the spatial axes; pads in front of all of them and then after."""

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    pads: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()

    def attributes(self) -> dict[str, tuple[int, ...]]:
        """Those that are not as they would be anyway."""
        named = {"pads": self.pads, "strides": self.strides, "dilations": self.dilations}
        return {name: value for name, value in named.items() if value}


# More than one number along every axis, kernels of 1 along each axis in turn, and everything that may differ between axes.
GEOMETRIES = (
    Geometry((23,), (3,), (1, 1)),
    Geometry((23,), (1,)),
    Geometry((40,), (5,), (3, 0), (2,), (2,)),
    Geometry((9, 11), (3, 3), (1, 1, 1, 1)),
    Geometry((9, 11), (3, 3), (2, 0, 1, 2)),
    Geometry((9, 11), (1, 3), (0, 1, 0, 1)),
    Geometry((9, 11), (3, 1), (1, 0, 1, 0)),
    Geometry((9, 11), (1, 1)),
    Geometry((9, 11), (1, 1), (), (2, 1)),
    Geometry((12, 13), (3, 3), (1, 0, 2, 1), (2, 1), (1, 2)),
    Geometry((13, 12), (7, 7), (3, 3, 3, 3)),
    Geometry((4, 9, 11), (1, 3, 3), (0, 1, 1, 0, 1, 1)),
    Geometry((4, 9, 11), (1, 3, 3)),
    Geometry((4, 9, 11), (1, 3, 3), (1, 1, 1, 2, 1, 1)),
    Geometry((5, 9, 11), (1, 3, 3), (0, 1, 1, 0, 1, 1), (2, 1, 1)),
    Geometry((4, 9, 11), (1, 3, 3), (0, 1, 1, 0, 1, 1), (1, 2, 2)),
    Geometry((4, 9, 11), (1, 3, 3), (0, 2, 2, 0, 2, 2), (), (3, 2, 2)),
    Geometry((4, 9, 11), (3, 1, 1), (1, 0, 0, 1, 0, 0)),
    Geometry((4, 9, 11), (3, 3, 1), (1, 1, 0, 1, 1, 0)),
    Geometry((4, 9, 11), (3, 1, 3), (1, 0, 1, 1, 0, 1)),
    Geometry((4, 9, 11), (1, 1, 1)),
    Geometry((4, 9, 11), (1, 5, 5), (0, 2, 2, 0, 2, 2)),
    Geometry((4, 9, 11), (1, 7, 7), (0, 3, 3, 0, 3, 3)),
    Geometry((4, 9, 11), (3, 3, 3), (1, 1, 1, 1, 1, 1)),
    Geometry((6, 7, 8), (2, 3, 2), (1, 1, 0, 0, 1, 2), (2, 1, 2), (1, 2, 1)),
)
# Channels in and out, and groups: few, whole panels and more, one by one, one to two, groups of some.
CHANNELS = ((3, 5, 1), (20, 18, 1), (8, 8, 8), (6, 12, 6), (12, 8, 4))
geometries = pytest.mark.parametrize("place", GEOMETRIES, ids=str)


def has_windows_of_padding(place: Geometry) -> bool:
    """A window of padding alone has no largest number and no mean."""
    reach = [(k - 1) * d for k, d in zip(place.kernel * 2, (place.dilations or (1,) * 3) * 2, strict=False)]
    return any(2 * p > r for p, r in zip(place.pads, reach, strict=False))


def is_symmetric(place: Geometry) -> bool:
    """The same padding before and after: torch's arguments have one number for both."""
    return place.pads[: len(place.size)] == place.pads[len(place.size) :]


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def specs(arrays: tuple[np.ndarray, ...]) -> list[Spec | None]:
    return [Spec(a.shape, a.dtype) for a in arrays]


def node(op: str, count: int, **attributes: Any) -> Node:
    return Node(op, tuple(f"x{i}" for i in range(count)), ("y",), attributes)


def plain(op: str, arrays: tuple[np.ndarray, ...], **attributes: Any) -> np.ndarray:
    """What the rule's own numpy says."""
    made = node(op, len(arrays), **attributes)
    return np.asarray(run_operator(made, View(made, specs(arrays), [None] * len(arrays)), arrays)[0])


def kernels(op: str, arrays: tuple[np.ndarray, ...], **attributes: Any) -> np.ndarray:
    """What a program makes of it: all inputs but the first are constants."""
    made = node(op, len(arrays), **attributes)
    given = (Value("x0", arrays[0].shape, arrays[0].dtype),)
    constants = {f"x{i}": a for i, a in enumerate(arrays) if i}
    graph = Graph(given, (Value("y", None, np.dtype(np.void)),), (made,), constants)
    return np.asarray(Program(graph, dispatch.variant()).binding([arrays[0]]).run([arrays[0]])[0])


def close(got: np.ndarray, want: np.ndarray, what: str) -> None:
    assert got.shape == want.shape, what
    np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * np.abs(want).max(initial=0), err_msg=what)


def last(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


@cache
def convolution(place: Geometry, channels: tuple[int, int, int], op: str) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """x, weights and bias, and the answer."""
    c, o, groups = channels
    shape = (o, c // groups, *place.kernel) if op == "Conv" else (c, o // groups, *place.kernel)
    arrays = random(2, c, *place.size), random(*shape, seed=1), random(o, seed=2)
    return arrays, plain(op, arrays, group=groups, **place.attributes())


def tiles(calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[int | None]:
    """Forces every answer of the choice between direct and Winograd's algorithm; ends after the first where none is asked for."""
    own = conv_choice.choose
    for tile in (None, 0, 2, 4, 6):
        calls.clear()

        def choose(*given: Any, forced: int | None = tile) -> int:
            calls.append(given)
            return own(*given) if forced is None else forced if forced in tiles_of(given[3], given[6]) else 0

        monkeypatch.setattr(conv_choice, "choose", choose)
        yield tile
        if not calls:
            return


@geometries
def test_convolutions(place: Geometry, variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for channels in CHANNELS:
        arrays, want = convolution(place, channels, "Conv")
        for x_last, out_last in itertools.product((False, True), repeat=2):
            x, right = last(arrays[0]) if x_last else arrays[0], last(want) if out_last else want
            for tile in tiles([], monkeypatch):
                options = {"group": channels[2], "x_last": x_last, "out_last": out_last, **place.attributes()}
                got = kernels("Conv", (x, *arrays[1:]), **options)
                close(got, right, f"channels {channels}, last {x_last} {out_last}, tile {tile}")


def test_the_choice_is_asked_where_winograd_can_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above would not force it: kernels along one axis and square ones, padded along these alone, nothing else."""
    asked = []
    for place in GEOMETRIES:
        calls: list[Any] = []
        arrays, _ = convolution(place, (20, 18, 1), "Conv")
        next(tiles(calls, monkeypatch))
        kernels("Conv", arrays, **place.attributes())
        if calls:
            asked.append((place.size, place.pads))
    steps = [(1, 1, 1, *(p.strides or (1,) * len(p.kernel)))[-3:] for p in GEOMETRIES]
    able = [p for p, step in zip(GEOMETRIES, steps, strict=True) if tiles_of((1, 1, 1, *p.kernel)[-3:], step) and not p.dilations]
    padded_between = (1, 1, 1, 2, 1, 1)  # slices of (1, 3, 3)
    assert asked == [(p.size, p.pads) for p in able if p.pads != padded_between]
    assert len(asked) == len(able) - 1 >= 8


@geometries
def test_transposed_convolutions(place: Geometry, variant: str) -> None:
    for channels in CHANNELS:
        arrays, want = convolution(place, channels, "ConvTranspose")
        for layout in itertools.product((False, True), repeat=2):
            x, right = last(arrays[0]) if layout[0] else arrays[0], last(want) if layout[1] else want
            options = {"group": channels[2], "x_last": layout[0], "out_last": layout[1], **place.attributes()}
            close(kernels("ConvTranspose", (x, *arrays[1:]), **options), right, f"channels {channels}, last {layout}")


POOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "largest": ("MaxPool", {}),
    "mean": ("AveragePool", {}),
    "mean with padding": ("AveragePool", {"count_include_pad": 1}),
    "norm": ("LpPool", {"p": 2}),
    "sum of sizes": ("LpPool", {"p": 1}),
}


@cache
def pooled(place: Geometry, kind: str, c: int) -> tuple[np.ndarray, np.ndarray]:
    """x and the answer."""
    op, options = POOLS[kind]
    x = random(2, c, *place.size)
    return x, plain(op, (x,), kernel_shape=place.kernel, **place.attributes(), **options)


@pytest.mark.parametrize("place", [place for place in GEOMETRIES if not has_windows_of_padding(place)], ids=str)
def test_pools(place: Geometry, variant: str) -> None:
    for kind, c, x_last in itertools.product(POOLS, (3, 65), (False, True)):
        x, want = pooled(place, kind, c)
        op, options = POOLS[kind]
        made = {"kernel_shape": place.kernel, "x_last": x_last, "out_last": x_last, **place.attributes(), **options}
        got = kernels(op, (last(x) if x_last else x,), **made)
        close(got, last(want) if x_last else want, f"{kind}, {c} channels, last {x_last}")


@geometries
def test_quantized_convolutions(place: Geometry, variant: str) -> None:
    """Exact: bytes and their sums are whole numbers."""
    rng = np.random.default_rng(5)
    for c, o, groups in CHANNELS:
        x = rng.integers(0, 256, (2, c, *place.size)).astype(np.uint8)
        w = rng.integers(-128, 128, (o, c // groups, *place.kernel)).astype(np.int8)
        arrays = x, w, np.array(128, np.uint8), np.array(0, np.int8)
        want = plain("ConvInteger", arrays, group=groups, **place.attributes())
        np.testing.assert_array_equal(kernels("ConvInteger", arrays, group=groups, **place.attributes()), want)


LAYERS = {1: (fl.Conv1d, functional.conv1d), 2: (fl.Conv2d, functional.conv2d), 3: (fl.Conv3d, functional.conv3d)}


@pytest.mark.parametrize("place", [place for place in GEOMETRIES if is_symmetric(place)], ids=str)
def test_layers_and_functions(place: Geometry, variant: str) -> None:
    """A layer called, compiled, and as a function; padding is the same on both sides."""
    axes = len(place.size)
    ones = (1,) * axes
    options: Any = {"padding": place.pads[:axes] or 0, "stride": place.strides or ones, "dilation": place.dilations or ones}
    for channels in CHANNELS[1:4]:
        (x, w, b), want = convolution(place, channels, "Conv")
        layer_class, function = LAYERS[axes]
        layer: Any = layer_class(channels[0], channels[1], place.kernel, groups=channels[2], **options)
        layer.load_state_dict({"weight": w, "bias": b})
        close(layer(x), want, "layer")
        close(function(x, w, b, groups=channels[2], **options), want, "function")
        close(fl.compile(layer, fl.graph.Input("x", ("n", *x.shape[1:])))(x), want, "compiled")
