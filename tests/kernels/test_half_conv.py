"""Convolutions with weights of 16 bits: every variant next to the reference, whose weights are rounded by numpy."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ArgumentError
from fastlayers.kernels import dispatch
from fastlayers.kernels.halves import rounded
from fastlayers.kernels.reference import conv as reference
from fastlayers.kernels.table import HALVES, UNARY, Activation

from ..guard import guarded
from .space import Layout, Place, Problem
from .test_halves import BRAIN, normal

IDENTITY, RELU, SILU = (Activation(UNARY[name].code) for name in ("identity", "relu", "silu"))
LAYOUTS = tuple(itertools.product((False, True), repeat=2))


def problem(
    c: int, o: int, size: tuple[int, ...], kernel: tuple[int, ...], stride: int = 1, pad: int = 0, dilation: int = 1,
    groups: int = 1, mode: int = 0, batch: int = 2,
) -> Problem:  # fmt: skip
    """x is such that no processor rounds it any more."""

    def three(step: int) -> tuple[int, ...]:
        return tuple(step if k > 1 or kernel == (1, 1, 1) else 1 for k in kernel)

    pads = tuple(pad if k > 1 or kernel == (1, 1, 1) else 0 for k in kernel for _ in "ba")
    x, weight = rounded(normal(batch, c, *size), BRAIN), normal(o, c // groups, *kernel, seed=1)
    return Problem(x, weight, normal(o, seed=2), three(stride), three(dilation), groups, pads, mode)


# Channels: one, odd ones, edges of panels and of blocks of K; kernels of one tap, rows, planes and volumes; strides, dilations
# and pads; columns that are no panel, and more panels than a tile has; pixels of many tiles, and of one.
PROBLEMS = [
    problem(1, 16, (1, 7, 9), (1, 3, 3), pad=1), problem(15, 17, (1, 6, 5), (1, 3, 3), pad=1),
    problem(16, 16, (1, 9, 8), (1, 3, 3), pad=1, stride=2), problem(17, 31, (1, 5, 6), (1, 3, 3), pad=1, dilation=2),
    problem(31, 65, (1, 4, 4), (1, 3, 3)), problem(32, 130, (1, 8, 7), (1, 3, 3), pad=1, batch=1),
    problem(3, 24, (1, 23, 21), (1, 7, 7), pad=3, stride=2), problem(3, 32, (1, 16, 17), (1, 4, 4), stride=4),
    problem(64, 40, (1, 13, 11), (1, 1, 1), stride=2), problem(33, 18, (1, 5, 5), (1, 1, 1)),
    problem(40, 16, (1, 1, 1), (1, 1, 1)), problem(300, 20, (1, 3, 4), (1, 1, 1), pad=1),
    problem(64, 48, (1, 6, 6), (1, 3, 3), pad=1, groups=4), problem(34, 32, (1, 6, 7), (1, 5, 5), pad=2, groups=2, stride=2),
    problem(48, 48, (1, 9, 14), (1, 3, 3), pad=1, groups=6), problem(40, 40, (1, 8, 13), (1, 3, 3), pad=1, groups=10, stride=2),
    problem(64, 64, (1, 7, 15), (1, 3, 5), pad=1, groups=8, dilation=2), problem(32, 32, (1, 5, 8), (1, 3, 3), pad=1, groups=16),
    problem(8, 16, (5, 6, 7), (3, 3, 3), pad=1), problem(5, 19, (4, 3, 6), (2, 1, 3), pad=1, stride=2),
    problem(16, 32, (1, 1, 40), (1, 1, 5), pad=2, dilation=3), problem(20, 16, (1, 30, 32), (1, 3, 3), pad=1, batch=1),
    problem(6, 16, (1, 7, 7), (1, 3, 3), pad=2, mode=1), problem(4, 0, (1, 3, 3), (1, 3, 3), pad=1),
    problem(4, 16, (1, 3, 3), (1, 3, 3), pad=1, batch=0), problem(0, 16, (1, 3, 3), (1, 3, 3), pad=1),
]  # fmt: skip


def conv(
    case: Problem, layout: Layout, half: int, residual: np.ndarray | None = None, act: Activation = IDENTITY,
    place: Place = np.ascontiguousarray,
) -> np.ndarray:  # fmt: skip
    """Of the current variant; arrays channels-first, and of the kernel's where `place` puts them."""
    pack = dispatch.kernel("conv_half_pack")(case.weight, case.bias, case.stride, case.dilation, case.groups, half)
    x, out = case.x, np.full(case.out_shape, np.nan, np.float32)
    if layout[0]:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    if layout[1]:
        out = np.ascontiguousarray(np.moveaxis(out, 1, -1))
        residual = None if residual is None else np.ascontiguousarray(np.moveaxis(residual, 1, -1))
    x, out, residual = place(x), place(out), None if residual is None else place(residual)
    dispatch.kernel("conv")(x, pack, out, case.pads, case.mode, *layout, residual, act)
    return np.moveaxis(out, -1, 1) if layout[1] else out


def wanted(case: Problem, half: int, residual: np.ndarray | None = None, act: Activation = IDENTITY) -> np.ndarray:
    pack = reference.conv_half_pack(case.weight, case.bias, case.stride, case.dilation, case.groups, half)
    out = np.full(case.out_shape, np.nan, np.float32)
    reference.conv(case.x, pack, out, case.pads, case.mode, False, False, residual, act)
    return out


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_convolutions_agree_with_the_reference(variant: str, half: int) -> None:
    for case in PROBLEMS:
        residual = normal(*case.out_shape, seed=3)
        for i, (r, act) in enumerate(((None, IDENTITY), (residual, RELU), (residual, SILU))):
            want = wanted(case, half, r, act)
            for layout in LAYOUTS if i == 1 else LAYOUTS[3 * (i > 0) :][:1]:
                # float32 sums of at most 300 terms of magnitude 1
                message = f"{case.x.shape} {case.weight.shape} {layout}"
                np.testing.assert_allclose(conv(case, layout, half, r, act), want, rtol=3e-5, atol=3e-5, err_msg=message)


def test_a_sample_has_the_same_bits_in_every_batch_and_with_any_threads(variant: str) -> None:
    for case, layout in itertools.product(
        (problem(48, 48, (1, 15, 14), (1, 3, 3), pad=1, groups=6, batch=5),
         problem(17, 40, (1, 19, 20), (1, 3, 3), pad=1, stride=2, batch=5),
         problem(64, 100, (1, 9, 9), (1, 3, 3), pad=1, batch=5),
         problem(40, 36, (1, 9, 9), (1, 1, 1), stride=2, batch=5)), LAYOUTS
    ):  # fmt: skip
        fl.set_num_threads(1)
        whole = conv(case, layout, BRAIN, None, RELU)
        one = conv(case._replace(x=np.ascontiguousarray(case.x[3:4])), layout, BRAIN, None, RELU)
        np.testing.assert_array_equal(one, whole[3:4])
        fl.set_num_threads(2)
        np.testing.assert_array_equal(conv(case, layout, BRAIN, None, RELU), whole)
        np.testing.assert_array_equal(conv(case, (True, True), BRAIN, None, RELU), whole)


def test_rounding_x_too_stays_within_its_bound(variant: str) -> None:
    case = problem(24, 32, (1, 9, 9), (1, 3, 3), pad=1)
    case = case._replace(x=normal(*case.x.shape, seed=7), bias=None)
    sizes = wanted(case._replace(x=np.abs(case.x), weight=np.abs(case.weight)), 0)
    assert (np.abs(conv(case, (True, True), BRAIN) - wanted(case, BRAIN)) <= 2**-8 * sizes + 1e-4).all()


@pytest.mark.parametrize("channels", [3, 16, 31])
def test_nan_and_infinity_stay_where_they_are_read(variant: str, channels: int) -> None:
    """No pair of terms has one of a pixel that another tap reads, or of none."""
    for kernel, stride in (((1, 3, 3), 1), ((1, 3, 3), 2), ((1, 1, 1), 2), ((1, 1, 2), 1)):
        case = problem(channels, 16, (1, 8, 9), kernel, stride, pad=kernel[2] // 2)
        case.x[0, channels - 1, 0, 4, 4], case.x[0, 0, 0, 7, 8], case.x[1, 0, 0, 0, 0] = np.nan, np.inf, -np.inf
        want = wanted(case, BRAIN)
        for layout in LAYOUTS:
            found = conv(case, layout, BRAIN)
            np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
            np.testing.assert_array_equal(found[np.isinf(want)], want[np.isinf(want)])
    case = problem(16, 16, (1, 8, 14), (1, 3, 3), pad=1, groups=2)
    case.x[0, 3, 0, 4, 4], case.x[1, 9, 0, 7, 13] = np.nan, np.inf
    found, want = conv(case, (True, True), BRAIN), wanted(case, BRAIN)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(want))
    case = problem(channels, 17, (1, 5, 5), (1, 3, 3), pad=1)
    case.weight[3, 0, 0, 1, 1], case.weight[16, 0, 0, 0, 0] = np.nan, np.inf
    found, want = conv(case, (True, True), BRAIN), wanted(case, BRAIN)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(want))


@pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
@pytest.mark.parametrize("edge", ["start", "end"])
def test_stays_inside_its_operands(variant: str, edge: str) -> None:
    for i, case in enumerate(PROBLEMS):
        want = wanted(case, BRAIN, None, RELU)
        found = conv(case, LAYOUTS[3 - i % 2], BRAIN, None, RELU, lambda a: guarded(a, edge))
        np.testing.assert_allclose(found, want, rtol=3e-5, atol=3e-5)


def test_a_half_that_there_is_not(variant: str) -> None:
    with pytest.raises(ArgumentError, match="half is 7"):
        dispatch.kernel("conv_half_pack")(normal(2, 2, 1, 1, 1), None, (1, 1, 1), (1, 1, 1), 1, 7)
