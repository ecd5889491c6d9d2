"""`conv`: the reference against torch's numbers, the compiled variants against the reference."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import PAD_MODES, Activation

from ..each import each
from ..guard import guarded
from .space import FIRST, IDENTITY, LAST, RELU, Layout, Problem, bits, golden, random_problem, reference, run

GOLDEN = golden()
EVERY_LAYOUT: tuple[Layout, ...] = (FIRST, LAST, (False, True), (True, False))
LAYOUTS = pytest.mark.parametrize("layout", EVERY_LAYOUT, ids=["first", "last", "first to last", "last to first"])
# Sums of at most a few thousand terms of size 1/sqrt(k): float32 leaves an error of a few 1e-7 of the largest output.
TOLERANCE = 3e-6

# x, weight and the rest of a Problem: sizes around the tiles (6 and 8 rows, 16 columns), blocks of K (256 terms), zero sizes.
AWKWARD = (
    ((1, 3, 1, 7, 9), (16, 3, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((3, 5, 1, 6, 7), (17, 5, 1, 3, 3), {"pads": (0, 0, 1, 0, 0, 2)}),
    ((1, 57, 1, 4, 5), (15, 57, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 257, 1, 2, 3), (31, 257, 1, 1, 1), {}),
    ((2, 256, 1, 1, 1), (33, 256, 1, 1, 1), {}),
    ((1, 8, 1, 13, 13), (16, 8, 1, 5, 5), {"stride": (1, 2, 3), "pads": (0, 0, 2, 2, 2, 2)}),
    ((1, 4, 1, 1, 31), (8, 4, 1, 1, 3), {"dilation": (1, 1, 4), "pads": (0, 0, 0, 0, 8, 0)}),
    ((1, 12, 1, 5, 5), (18, 4, 1, 3, 3), {"groups": 3, "pads": (0, 0, 1, 1, 1, 1)}),
    ((2, 6, 3, 4, 5), (10, 3, 2, 3, 2), {"groups": 2, "stride": (2, 1, 2), "pads": (1, 0, 1, 1, 0, 1)}),
    # Groups of 2, 4 and 8 channels, which share vectors: whole and part ones, widths around 7 and 8, an even and an odd number
    # of rows.
    ((1, 56, 1, 7, 7), (56, 8, 1, 3, 3), {"groups": 7, "pads": (0, 0, 1, 1, 1, 1)}),
    ((2, 16, 1, 6, 15), (16, 8, 1, 3, 3), {"groups": 2, "stride": (1, 2, 2), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 44, 1, 5, 22), (44, 4, 1, 3, 5), {"groups": 11, "pads": (0, 0, 1, 1, 2, 2)}),
    ((1, 48, 1, 6, 45), (48, 8, 1, 3, 3), {"groups": 6, "pads": (0, 0, 1, 1, 1, 1)}),
    ((2, 48, 1, 9, 8), (48, 4, 1, 3, 2), {"groups": 12, "stride": (1, 3, 1), "dilation": (1, 1, 2), "pads": (0, 0, 0, 1, 2, 0)}),
    ((1, 34, 1, 8, 6), (34, 2, 1, 3, 3), {"groups": 17, "dilation": (1, 2, 1), "pads": (0, 0, 2, 2, 1, 1)}),
    ((1, 6, 1, 9, 9), (4, 6, 1, 1, 1), {"stride": (1, 2, 2)}),
    ((1, 6, 1, 4, 4), (4, 6, 1, 1, 1), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 2, 1, 1, 1), (3, 2, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((0, 3, 1, 5, 5), (4, 3, 1, 3, 3), {}),
    ((1, 3, 1, 2, 5), (4, 3, 1, 3, 3), {}),
    ((1, 0, 1, 5, 5), (4, 0, 1, 3, 3), {}),
    ((1, 0, 1, 30, 30), (4, 0, 1, 3, 3), {}),
    ((1, 3, 1, 5, 5), (0, 3, 1, 3, 3), {}),
    ((1, 3, 1, 0, 0), (2, 3, 1, 3, 3), {"pads": (0, 0, 2, 2, 2, 2)}),
    ((2, 1, 1, 9, 11), (5, 1, 1, 3, 4), {}),
    # Rows that are divided, of no whole panels, next to each other.
    ((1, 3, 1, 4, 1041), (8, 3, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((2, 11, 1, 6, 7), (1, 11, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((2, 9, 1, 4, 3), (7, 9, 1, 4, 3), {}),
    # Few channels, whose pixels are read where they are: whole panels, a strip and more, several phases, two blocks of K.
    ((2, 3, 1, 9, 16), (33, 3, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 3, 1, 17, 161), (19, 3, 1, 7, 7), {"stride": (1, 2, 2), "pads": (0, 0, 3, 3, 3, 3)}),
    ((1, 7, 1, 20, 70), (64, 7, 1, 7, 7), {"stride": (1, 4, 3), "dilation": (1, 1, 2)}),
    ((1, 2, 1, 13, 75), (7, 2, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((2, 3, 1, 21, 45), (34, 3, 1, 11, 11), {"stride": (1, 2, 1), "pads": (0, 0, 5, 4, 0, 6)}),
    ((1, 3, 1, 9, 41), (23, 3, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 3, 1, 8, 299), (18, 3, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((2, 4, 2, 9, 36), (34, 2, 2, 3, 3), {"groups": 2, "stride": (1, 1, 2), "pads": (1, 0, 1, 1, 0, 1)}),
    ((1, 31, 1, 1, 260), (37, 31, 1, 1, 11), {"dilation": (1, 1, 2), "pads": (0, 0, 0, 0, 6, 30)}),
    ((1, 9, 1, 1, 1205), (17, 9, 1, 1, 3), {"pads": (0, 0, 0, 0, 1, 1)}),
    # Few results a group, along lines of pixels: rows in one line and apart, several blocks of K, phases of both strides.
    ((2, 8, 1, 9, 20), (1, 8, 1, 5, 5), {"pads": (0, 0, 2, 2, 2, 2)}),
    ((1, 33, 1, 6, 17), (2, 33, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 8, 1, 7, 45), (8, 8, 1, 3, 39), {"pads": (0, 0, 1, 1, 19, 19)}),
    ((2, 40, 1, 7, 7), (30, 4, 1, 3, 3), {"groups": 10, "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 12, 1, 15, 15), (24, 2, 1, 3, 3), {"groups": 6, "stride": (1, 2, 2), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 18, 2, 11, 23), (5, 18, 2, 4, 3), {"stride": (1, 3, 2), "dilation": (1, 2, 3), "pads": (1, 0, 3, 1, 2, 4)}),
    ((1, 20, 1, 3, 3), (36, 20, 1, 1, 1), {"pads": (0, 0, 2, 0, 0, 1)}),
    # Pixels of a 1x1 kernel read where they are: whole panels, with a rest, blocks of K, groups, planes, and one result too many.
    ((2, 9, 1, 12, 12), (40, 9, 1, 1, 1), {}),
    ((1, 9, 1, 11, 13), (33, 9, 1, 1, 1), {}),
    ((1, 300, 1, 10, 15), (20, 300, 1, 1, 1), {}),
    ((1, 12, 1, 13, 13), (99, 4, 1, 1, 1), {"groups": 3}),
    ((1, 5, 2, 9, 16), (64, 5, 1, 1, 1), {}),
    ((2, 7, 1, 24, 25), (65, 7, 1, 1, 1), {}),
    ((1, 10, 1, 1, 2065), (3, 10, 1, 1, 7), {"pads": (0, 0, 0, 0, 3, 3)}),
    ((1, 10, 1, 1, 1100), (3, 10, 1, 1, 7), {"stride": (1, 1, 5), "pads": (0, 0, 0, 0, 30, 3)}),
    ((1, 9, 1, 5, 6), (20, 9, 1, 2, 2), {}),
    # Taps that are in the padding for many outputs, or for all: those are left out, by rows, columns and planes.
    ((2, 20, 1, 13, 11), (16, 20, 1, 3, 3), {"dilation": (1, 6, 5), "pads": (0, 0, 6, 6, 5, 5)}),
    ((2, 64, 1, 9, 10), (32, 32, 1, 3, 3), {"groups": 2, "dilation": (1, 4, 4), "pads": (0, 0, 4, 4, 4, 4)}),
    ((1, 260, 1, 7, 8), (31, 260, 1, 3, 3), {"dilation": (1, 7, 7), "pads": (0, 0, 7, 7, 7, 7)}),
    ((1, 100, 1, 7, 6), (16, 100, 1, 3, 3), {"dilation": (1, 12, 9), "pads": (0, 0, 12, 12, 9, 9)}),
    ((1, 17, 1, 19, 18), (48, 17, 1, 3, 5), {"stride": (1, 2, 3), "dilation": (1, 7, 4), "pads": (0, 0, 9, 5, 3, 12)}),
    ((1, 16, 1, 5, 5), (16, 16, 1, 2, 2), {"dilation": (1, 3, 3), "pads": (0, 0, 9, 7, 8, 9)}),
    ((1, 1, 1, 9, 9), (16, 1, 1, 3, 3), {"dilation": (1, 8, 8), "pads": (0, 0, 8, 8, 8, 8)}),
    ((1, 300, 1, 1, 40), (264, 300, 1, 1, 3), {"dilation": (1, 1, 18), "pads": (0, 0, 0, 0, 18, 18)}),
    ((2, 17, 3, 8, 7), (32, 17, 3, 3, 3), {"dilation": (2, 5, 5), "pads": (2, 2, 5, 5, 5, 5)}),
    ((2, 90, 2, 6, 7), (16, 90, 3, 3, 3), {"pads": (1, 1, 1, 1, 1, 1)}),
    ((1, 16, 5, 3, 4), (16, 16, 3, 2, 2), {"stride": (2, 1, 1), "dilation": (2, 1, 1), "pads": (3, 5, 0, 0, 0, 0)}),
    # Groups whose channels-last pixels are read where they are: whole panels of results and parts of one, in long rows and short.
    ((2, 48, 1, 12, 14), (48, 16, 1, 3, 3), {"groups": 3, "stride": (1, 2, 2), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 50, 1, 9, 7), (64, 25, 1, 3, 3), {"groups": 2, "stride": (1, 2, 2), "pads": (0, 0, 1, 1, 0, 2)}),
    ((2, 48, 1, 7, 6), (52, 24, 1, 3, 3), {"groups": 2, "stride": (1, 2, 1), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 32, 3, 6, 7), (32, 16, 2, 3, 3), {"groups": 2, "stride": (1, 2, 2), "pads": (1, 0, 1, 1, 1, 1)}),
    ((1, 64, 1, 5, 33), (96, 32, 1, 1, 1), {"groups": 2, "stride": (1, 2, 2)}),
    # The last panel half full or less: tiles of all heights, several blocks of K, taps that are left out.
    ((1, 300, 1, 5, 7), (40, 300, 1, 1, 1), {}),
    ((2, 33, 1, 9, 10), (24, 33, 1, 1, 1), {}),
    ((1, 70, 1, 13, 11), (72, 70, 1, 3, 3), {"stride": (1, 2, 2), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 48, 1, 12, 14), (48, 24, 1, 3, 3), {"groups": 2, "stride": (1, 2, 2), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 16, 1, 17, 15), (16, 8, 1, 3, 3), {"groups": 2, "stride": (1, 2, 2), "pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 64, 1, 10, 10), (21, 64, 1, 1, 1), {}),
    # Plain products, whose channels-first pixels are transposed a block of K at a time; patches.
    ((2, 512, 1, 7, 7), (272, 512, 1, 1, 1), {}),
    ((1, 66, 1, 7, 7), (50, 33, 1, 1, 1), {"groups": 2}),
    ((1, 300, 3, 5, 9), (260, 300, 1, 1, 1), {}),
    ((1, 3, 1, 31, 35), (33, 3, 1, 6, 6), {"stride": (1, 5, 6)}),
)


def close(y: np.ndarray, right: np.ndarray) -> None:
    """Equal within TOLERANCE of the largest output; NaN and infinity in the same places."""
    finite = np.abs(right[np.isfinite(right)])
    np.testing.assert_allclose(y, right, rtol=TOLERANCE, atol=TOLERANCE * (finite.max() if finite.size else 0))


def problem(i: int) -> Problem:
    x, weight, rest = AWKWARD[i]
    return random_problem(np.random.default_rng(i), x, weight, bias=i % 3 > 0, **rest)


@LAYOUTS
@each("i", range(len(GOLDEN)))
def test_golden(variant: str, i: int, layout: Layout) -> None:
    case, y = GOLDEN[i]
    assert case.out_shape == y.shape
    close(run("conv", case, layout), y)


@cache
def expected(i: int, residual: bool, activation: Activation) -> np.ndarray:
    """The reference's answer to problem i; the residual is `other(i)`."""
    return reference("conv", problem(i), residual=other(i) if residual else None, activation=activation)


def other(i: int) -> np.ndarray:
    return np.random.default_rng(99).standard_normal(problem(i).out_shape).astype(np.float32)


@LAYOUTS
@each("i", range(len(AWKWARD)))
def test_awkward_sizes(variant: str, i: int, layout: Layout) -> None:
    for activation, residual in ((IDENTITY, None), (RELU, other(i)), (RELU, None), (IDENTITY, other(i))):
        y = run("conv", problem(i), layout, residual, activation)
        close(y, expected(i, residual is not None, activation))


@pytest.mark.parametrize("mode", PAD_MODES.values(), ids=PAD_MODES)
def test_padding_modes(variant: str, mode: int) -> None:
    pads = (1, 2, 3, 2, 4, 1)
    for weight, stride in (((16, 3, 2, 3, 3), (1, 1, 1)), ((5, 3, 2, 3, 3), (1, 1, 1)), ((5, 3, 2, 3, 3), (2, 2, 3))):
        case = random_problem(np.random.default_rng(mode), (2, 3, 3, 5, 6), weight, pads=pads, mode=mode, stride=stride)
        y = reference("conv", case)
        for layout in EVERY_LAYOUT:
            close(run("conv", case, layout), y)


def test_an_activation_with_parameters_comes_last(variant: str) -> None:
    for i in (1, *range(len(AWKWARD) - 11, len(AWKWARD))):
        case = problem(i)
        residual = np.full(case.out_shape, 0.25, np.float32)
        for layout in (FIRST, LAST):
            plain = run("conv", case, layout, residual=residual)
            for code, right in ((2, np.clip(plain, -0.5, 0.75)), (22, np.abs(plain))):
                y = run("conv", case, layout, residual=residual, activation=Activation(code, -0.5, 0.75))
                np.testing.assert_array_equal(y, right, err_msg=str(i))
    case = problem(1)
    case.x[0, 0, 0, 3, 3] = np.nan  # which no limit hides
    right = np.isnan(reference("conv", case))
    for layout in EVERY_LAYOUT:
        clipped = run("conv", case, layout, activation=Activation(2, -0.5, 0.75))
        np.testing.assert_array_equal(np.isnan(clipped), right)


@LAYOUTS
def test_nan_and_infinity_propagate(variant: str, layout: Layout) -> None:
    case = problem(2)
    case.x[0, 3, 0, 1, 1] = np.nan
    case.x[0, 5, 0, 3, 4] = np.inf
    y = run("conv", case, layout)
    close(y, reference("conv", case))
    assert np.isnan(y).any() and np.isinf(y).any()
    relu = run("conv", case, layout, activation=RELU)
    np.testing.assert_array_equal(np.isnan(relu), np.isnan(y))


@pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
@pytest.mark.parametrize("edge", ["start", "end"])
@LAYOUTS
def test_stays_inside_its_operands(variant: str, layout: Layout, edge: str) -> None:
    for i in range(len(AWKWARD)):
        y = run("conv", problem(i), layout, other(i), RELU, place=lambda a: guarded(a, edge))
        close(y, expected(i, True, RELU))


@pytest.mark.without("reference")  # numpy's products promise no order of summation
@pytest.mark.parametrize(
    ("shape", "rest"),
    [
        ((48, 40, 1, 3, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
        ((6, 40, 1, 7, 7), {"pads": (0, 0, 3, 3, 3, 3)}),
        ((48, 40, 1, 3, 3), {"pads": (0, 0, 15, 15, 15, 15), "dilation": (1, 15, 15)}),
    ],
    ids=["many", "few", "dilated"],
)
def test_same_bits_for_every_batch_size_layout_and_thread_count(
    variant: str, shape: tuple[int, ...], rest: dict[str, Any]
) -> None:
    rng = np.random.default_rng(7)
    case = random_problem(rng, (3, 40, 1, 33, 31), shape, **rest)
    whole = run("conv", case)
    one = np.concatenate([run("conv", case._replace(x=case.x[i : i + 1])) for i in range(3)])
    np.testing.assert_array_equal(bits(whole), bits(one))
    before = fl.get_num_threads()
    for threads in (1, 2):
        fl.set_num_threads(threads)
        try:
            for layout in EVERY_LAYOUT:
                np.testing.assert_array_equal(bits(whole), bits(run("conv", case, layout)))
        finally:
            fl.set_num_threads(before)


def padded(case: Problem) -> Problem:
    """The same convolution of an input that has its zeros already."""
    p = case.pads
    return case._replace(x=np.pad(case.x, ((0, 0), (0, 0), p[:2], p[2:4], p[4:])), pads=(0,) * 6)


@pytest.mark.without("reference")  # numpy's products promise no order of summation
def test_same_bits_whether_zeros_are_padding_or_pixels(variant: str) -> None:
    for i in range(len(AWKWARD)):
        for layout in EVERY_LAYOUT:
            y = run("conv", problem(i), layout, other(i), RELU)
            np.testing.assert_array_equal(bits(y), bits(run("conv", padded(problem(i)), layout, other(i), RELU)), err_msg=str(i))


def test_an_infinite_weight_over_padding(variant: str) -> None:
    """Zero times infinity is NaN wherever the zero comes from."""
    for i, (_, weight, rest) in enumerate(AWKWARD):
        if not ((weight[0] == 16 and "dilation" in rest) or (weight[0] > 16 and "groups" in rest and any(rest.get("pads", ())))):
            continue
        case = problem(i)
        case.weight[3, 0, 0, 0, 0] = np.inf
        right = np.isnan(reference("conv", case))
        for layout in (FIRST, LAST):
            y = run("conv", case, layout)
            assert np.isnan(y).any(), i
            np.testing.assert_array_equal(np.isnan(y), right)


@pytest.mark.without("reference")  # steps are the compiled engine's
def test_same_bits_in_every_layout_and_as_a_step(variant: str) -> None:
    for i in range(len(AWKWARD)):
        for residual in (None, other(i)):
            first = run("conv", problem(i), FIRST, residual, RELU)
            for layout in EVERY_LAYOUT:
                for as_step in (False, True) if dispatch.step("conv") else (False,):
                    y = run("conv", problem(i), layout, residual, RELU, as_step=as_step)
                    np.testing.assert_array_equal(bits(y), bits(first))
