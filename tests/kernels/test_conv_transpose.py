"""`conv_transpose`: the reference against torch's numbers, the compiled variants against the reference."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import Activation

from ..each import each
from ..guard import guarded
from .space import FIRST, IDENTITY, LAST, RELU, Layout, Place, bits

EVERY_LAYOUT: tuple[Layout, ...] = (FIRST, LAST, (False, True), (True, False))
LAYOUTS = pytest.mark.parametrize("layout", EVERY_LAYOUT, ids=["first", "last", "first to last", "last to first"])
# Sums of at most some hundred terms of size 1/sqrt(k): float32 leaves an error of a few 1e-7 of the largest output.
TOLERANCE = 3e-6
Triple = tuple[int, ...]


class Problem(NamedTuple):
    """A transposed convolution; arrays channels-first with three space axes. `out`: the wanted size of the result in space."""

    x: np.ndarray
    weight: np.ndarray
    bias: np.ndarray | None
    out: Triple
    stride: Triple = (1, 1, 1)
    dilation: Triple = (1, 1, 1)
    groups: int = 1
    pads: Triple = (0, 0, 0, 0, 0, 0)

    @property
    def out_shape(self) -> Triple:
        return (self.x.shape[0], self.weight.shape[1] * self.groups, *self.out)


def run(
    problem: Problem,
    layout: Layout = FIRST,
    activation: Activation = IDENTITY,
    place: Place = np.ascontiguousarray,
    as_step: bool = False,
) -> np.ndarray:
    """Runs the current variant on a NaN-filled output, or a step of it, twice, after its weights' own object has gone.

    `place` puts every array where it should be; the result is channels-first whatever the layout.
    """
    p, (x_last, out_last) = problem, layout
    bias = None if p.bias is None else place(p.bias)
    packed = dispatch.kernel("conv_transpose_pack")(place(p.weight), bias, p.stride, p.dilation, p.groups)
    x, out = p.x, np.full(p.out_shape, np.nan, np.float32)
    x = place(np.ascontiguousarray(np.moveaxis(x, 1, -1) if x_last else x))
    out = place(np.ascontiguousarray(np.moveaxis(out, 1, -1) if out_last else out))
    x.flags.writeable = False
    if as_step:
        step: Any = dispatch.step("conv_transpose")
        step = step(x.shape, packed, out.shape, p.pads, *layout, activation)
        del packed
        step(x, out)
        step(x, out)
    else:
        dispatch.kernel("conv_transpose")(x, packed, out, p.pads, *layout, activation)
    return np.moveaxis(out, -1, 1) if out_last else out


def close(y: np.ndarray, right: np.ndarray) -> None:
    """Equal within TOLERANCE of the largest output; NaN and infinity in the same places."""
    finite = np.abs(right[np.isfinite(right)])
    np.testing.assert_allclose(y, right, rtol=TOLERANCE, atol=TOLERANCE * (finite.max() if finite.size else 0))


def compiled() -> bool:
    return fl.kernels.info()["operations"]["conv_transpose"] != "reference"


def _golden() -> list[tuple[Problem, np.ndarray]]:
    with np.load(Path(__file__).parent.parent / "goldens" / "conv_transpose.npz") as file:
        return [(_read(case, file, i), _three_axes(file[f"{i}.y"])) for i, case in enumerate(json.loads(str(file["cases"])))]


def _read(case: dict[str, Any], file: Any, i: int) -> Problem:
    axes = len(case["w"]) - 2
    lead, ones = (1,) * (3 - axes), [1] * axes
    pads = [p for p in case.get("padding", [0] * axes) for _ in "ba"]
    return Problem(
        _three_axes(file[f"{i}.x"]),
        _three_axes(file[f"{i}.w"]),
        file.get(f"{i}.b"),
        _three_axes(file[f"{i}.y"]).shape[2:],
        (*lead, *case.get("stride", ones)),
        (*lead, *case.get("dilation", ones)),
        case.get("groups", 1),
        (0,) * (6 - len(pads)) + tuple(pads),
    )


def _three_axes(array: np.ndarray) -> np.ndarray:
    """Adds leading space axes of size 1 to (n, c, ...)."""
    return array.reshape(*array.shape[:2], *(1,) * (5 - array.ndim), *array.shape[2:])


GOLDEN = _golden()


@LAYOUTS
@each("i", range(len(GOLDEN)))
def test_golden(variant: str, i: int, layout: Layout) -> None:
    case, y = GOLDEN[i]
    close(run(case, layout), y)


# x, weight, the result's size in space, the rest of a Problem: outputs around panels of 16 columns, phases merged and alone,
# K around blocks of 256 terms, rows around tiles; crops and gaps at both ends, phases without taps, zero sizes.
AWKWARD: tuple[tuple[Triple, Triple, Triple, dict[str, Any]], ...] = (
    ((1, 3, 1, 5, 6), (3, 16, 1, 4, 4), (1, 10, 12), {"stride": (1, 2, 2), "pads": (0, 0, 1, 1, 1, 1)}),
    ((2, 5, 1, 4, 7), (5, 17, 1, 4, 4), (1, 8, 14), {"stride": (1, 2, 2), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 64, 1, 5, 4), (64, 15, 1, 4, 4), (1, 12, 10), {"stride": (1, 2, 2)}),
    ((1, 65, 1, 3, 8), (65, 31, 1, 4, 4), (1, 6, 16), {"stride": (1, 2, 2), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 8, 1, 6, 17), (8, 3, 1, 3, 3), (1, 11, 33), {"stride": (1, 2, 2), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 8, 1, 6, 7), (8, 3, 1, 4, 6), (1, 12, 22), {"stride": (1, 2, 3), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 4, 1, 1, 40), (4, 1, 1, 1, 32), (1, 1, 300), {"stride": (1, 1, 8), "pads": (0, 0, 0, 0, 13, 0)}),
    ((1, 4, 1, 1, 9), (4, 20, 1, 1, 16), (1, 1, 80), {"stride": (1, 1, 8), "pads": (0, 0, 0, 0, 4, 4)}),
    ((2, 6, 1, 5, 5), (6, 4, 1, 3, 3), (1, 7, 7), {"groups": 2}),
    ((1, 6, 1, 5, 5), (6, 1, 1, 4, 4), (1, 10, 10), {"groups": 6, "stride": (1, 2, 2), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 5, 1, 4, 4), (5, 7, 1, 1, 1), (1, 10, 10), {"stride": (1, 3, 3)}),
    ((1, 5, 1, 4, 4), (5, 7, 1, 2, 2), (1, 13, 12), {"stride": (1, 4, 3), "dilation": (1, 2, 2), "pads": (0, 0, 1, 0, 2, 0)}),
    ((2, 4, 3, 4, 5), (4, 5, 2, 3, 2), (5, 9, 9), {"stride": (2, 2, 2), "pads": (1, 0, 0, 0, 0, 0)}),
    ((1, 4, 3, 4, 5), (4, 18, 3, 2, 3), (6, 4, 11), {"stride": (3, 1, 2), "dilation": (1, 2, 1), "pads": (2, 0, 1, 1, 0, 0)}),
    ((1, 3, 1, 4, 5), (3, 2, 1, 4, 4), (1, 25, 30), {"stride": (1, 2, 2), "pads": (0, 0, -7, -8, -5, -9)}),
    ((1, 3, 1, 4, 5), (3, 20, 1, 4, 4), (1, 25, 30), {"stride": (1, 2, 2), "pads": (0, 0, -7, -8, -5, -9)}),
    ((1, 3, 1, 6, 6), (3, 20, 1, 3, 3), (1, 2, 3), {"stride": (1, 2, 2), "pads": (0, 0, 6, 5, 5, 5)}),
    ((1, 3, 1, 6, 6), (3, 5, 1, 4, 4), (1, 3, 2), {"stride": (1, 2, 2), "pads": (0, 0, 30, 0, 40, 0)}),
    ((1, 3, 2, 2, 2), (3, 5, 2, 2, 2), (6, 5, 7), {"stride": (2, 2, 2), "pads": (-2, 0, 0, 0, -1, 0)}),
    ((1, 300, 1, 2, 3), (300, 40, 1, 2, 2), (1, 4, 6), {"stride": (1, 2, 2)}),
    ((2, 4, 1, 1, 1), (4, 33, 1, 3, 3), (1, 3, 3), {}),
    ((1, 16, 1, 40, 9), (16, 300, 1, 2, 2), (1, 80, 18), {"stride": (1, 2, 2)}),
    ((1, 2, 1, 70, 33), (2, 40, 1, 4, 2), (1, 140, 66), {"stride": (1, 2, 2), "pads": (0, 0, 1, 1, 0, 0)}),
    ((0, 3, 1, 5, 5), (3, 4, 1, 3, 3), (1, 7, 7), {}),
    ((1, 0, 1, 5, 5), (0, 4, 1, 3, 3), (1, 7, 7), {}),
    ((1, 3, 1, 5, 5), (3, 0, 1, 3, 3), (1, 7, 7), {}),
    ((1, 3, 1, 0, 5), (3, 4, 1, 3, 3), (1, 2, 11), {"stride": (1, 2, 2)}),
    ((1, 3, 1, 5, 5), (3, 4, 1, 3, 3), (1, 0, 7), {}),
)
NUMBERS = pytest.mark.parametrize("i", range(len(AWKWARD)))


def problem(i: int) -> Problem:
    x, weight, out, rest = AWKWARD[i]
    rng = np.random.default_rng(i)
    scale = np.sqrt(max(1, weight[0] // rest.get("groups", 1)))
    return Problem(
        rng.standard_normal(x).astype(np.float32),
        (rng.standard_normal(weight) / scale).astype(np.float32),
        rng.standard_normal(weight[1] * rest.get("groups", 1)).astype(np.float32) if i % 3 else None,
        out,
        **rest,
    )


@cache
def expected(i: int, activation: Activation = IDENTITY) -> np.ndarray:
    """The reference's answer to problem i."""
    with fl.kernels.use("reference"):
        return run(problem(i), activation=activation)


@NUMBERS
def test_awkward_sizes(variant: str, i: int) -> None:
    for activation in (IDENTITY, RELU):
        first = run(problem(i), FIRST, activation)
        for layout in EVERY_LAYOUT:
            y = run(problem(i), layout, activation)
            close(y, expected(i, activation))
            if compiled():
                np.testing.assert_array_equal(bits(y), bits(first))
                if dispatch.step("conv_transpose"):
                    np.testing.assert_array_equal(bits(y), bits(run(problem(i), layout, activation, as_step=True)))


@LAYOUTS
def test_positions_that_nothing_reaches_hold_the_bias(variant: str, layout: Layout) -> None:
    case = problem(10)  # a 1x1 kernel with stride 3: one output of nine has a tap
    y = run(case, layout)
    alone = np.ones(case.out, bool)
    alone[:, ::3, ::3] = False
    assert case.bias is not None
    np.testing.assert_array_equal(y[:, :, alone], np.broadcast_to(case.bias[None, :, None], y[:, :, alone].shape))


def test_it_is_the_gradient_of_a_convolution(variant: str) -> None:
    """<conv(y), x> = <y, conv_transpose(x)> for the same weights, with stride, dilation, groups and uneven padding."""
    rng = np.random.default_rng(3)
    stride, dilation, groups, pads = (1, 2, 3), (1, 2, 1), 2, (0, 0, 1, 2, 0, 1)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 4, 1, 6, 5), (2, 6, 1, 12, 14)))
    weight = rng.standard_normal((4, 3, 1, 3, 3)).astype(np.float32)
    packed = dispatch.kernel("conv_pack")(weight, None, stride, dilation, groups)
    forward = np.empty(x.shape, np.float32)
    dispatch.kernel("conv")(y, packed, forward, pads, 0, False, False, None, IDENTITY)
    back = run(Problem(x, weight, None, y.shape[2:], stride, dilation, groups, pads))
    np.testing.assert_allclose(np.vdot(back, y), np.vdot(forward, x), rtol=1e-4)


def test_an_activation_with_parameters_comes_last(variant: str) -> None:
    for i in (0, 5, 9):
        plain, clipped = run(problem(i)), run(problem(i), activation=Activation(2, -0.25, 0.5))
        np.testing.assert_array_equal(clipped, np.clip(plain, -0.25, 0.5))


@LAYOUTS
def test_nan_and_infinity_stay_where_they_belong(variant: str, layout: Layout) -> None:
    for i in (1, 3, 5, 9):
        case = problem(i)
        case.x[0, 0, 0, 0, 1] = np.nan
        case.x[0, 1, 0, 2, 3] = np.inf
        with fl.kernels.use("reference"):
            right = run(case)
        y = run(case, layout)
        close(y, right)
        assert np.isnan(y).any() and np.isinf(y).any() and np.isfinite(y).any()


@pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
@pytest.mark.parametrize("edge", ["start", "end"])
@LAYOUTS
def test_stays_inside_its_operands(variant: str, layout: Layout, edge: str) -> None:
    for i in range(len(AWKWARD)):
        close(run(problem(i), layout, RELU, place=lambda a: guarded(a, edge)), expected(i, RELU))


@pytest.mark.without("reference")  # numpy's products promise no order of summation
def test_same_bits_for_every_batch_size_and_thread_count(variant: str) -> None:
    rng = np.random.default_rng(7)
    for o, k in ((40, 4), (3, 4), (24, 3)):
        x, weight = rng.standard_normal((3, 48, 1, 33, 31)), rng.standard_normal((48, o, 1, k, k))
        pads = (0, 0, 1, 1, 1, 1)
        case = Problem(x.astype(np.float32), weight.astype(np.float32), None, (1, 66, 62), (1, 2, 2), pads=pads)
        whole = run(case)
        one = np.concatenate([run(case._replace(x=case.x[i : i + 1])) for i in range(3)])
        np.testing.assert_array_equal(bits(whole), bits(one))
        before = fl.get_num_threads()
        fl.set_num_threads(2)
        try:
            for layout in EVERY_LAYOUT:
                np.testing.assert_array_equal(bits(whole), bits(run(case, layout)))
        finally:
            fl.set_num_threads(before)


def test_levels_with_fused_multiply_add_agree() -> None:
    names = [name for name in dispatch.available() if name in ("aot/x86_v3", "aot/x86_v4")]
    if len(names) < 2:
        pytest.skip("needs two such levels")
    results = []
    for name in names:
        with fl.kernels.use(name):
            results.append([run(problem(i)) for i in range(len(AWKWARD))])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(bits(a), bits(b))
