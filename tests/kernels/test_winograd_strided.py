"""`winograd` with a stride of 2, and along the depth of others, next to the direct way."""

from __future__ import annotations

import itertools
import os
from functools import cache

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.calls.conv_costs import choose
from fastlayers.errors import ShapeError
from fastlayers.kernels import dispatch, winograd_points
from fastlayers.kernels.winograd_points import tiles_of

from ..guard import guarded
from .space import IDENTITY, RELU, Problem, bits, random_problem
from .space import reference as direct
from .test_winograd import LAYOUTS, run

# Kernel, stride and tile; a depth that is no part of the plane's tiles may have a stride too.
FORMS = (
    ((1, 3, 3), (1, 2, 2), 4), ((3, 3, 3), (2, 2, 2), 4),
    *(pytest.param(*form, marks=pytest.mark.exhaustive) for form in (((3, 3, 3), (3, 1, 1), 4), ((2, 1, 3), (2, 1, 1), 6))),
)  # fmt: skip
EACH = pytest.mark.parametrize(("kernel", "stride", "tile"), FORMS, ids=lambda v: str(v).replace(", ", "x").strip("()"))
TOLERANCE = 1e-5  # of the largest output; the worst in this file is 2.6e-6
# x, channels of the result, groups, pads of all axes
SIZES = (
    ((1, 1, 3, 1, 1), 1, 1, 1), ((1, 3, 3, 4, 13), 5, 1, 1), ((2, 16, 3, 5, 6), 17, 1, 0), ((1, 17, 4, 31, 3), 16, 1, 2),
    ((3, 33, 5, 8, 7), 70, 1, 1), ((1, 40, 2, 3, 601), 36, 1, 0), ((2, 64, 3, 16, 17), 64, 2, 1), ((1, 96, 7, 9, 10), 48, 3, 1),
    ((2, 10, 11, 33, 39), 18, 1, 1), ((1, 300, 2, 15, 9), 12, 1, 2), ((0, 3, 5, 5, 5), 4, 1, 1), ((1, 0, 5, 5, 5), 4, 1, 1),
    ((1, 4, 5, 5, 5), 0, 2, 1), ((2, 5, 6, 56, 55), 33, 1, 1),
)  # fmt: skip


@cache
def problem(kernel: tuple[int, ...], stride: tuple[int, ...], i: int) -> Problem:
    x, o, groups, pad = SIZES[i]
    pads = tuple(min(pad, k) if k > 1 else 0 for k in kernel for _ in range(2))
    pads = pads if i % 2 else (*pads[:5], pads[5] + (pads[5] > 0))  # more after than before
    shape = (o, x[1] // groups, *kernel)
    return random_problem(np.random.default_rng(i), x, shape, bias=i % 3 > 0, groups=groups, pads=pads, stride=stride)


@cache
def other(kernel: tuple[int, ...], stride: tuple[int, ...], i: int) -> np.ndarray:
    return np.random.default_rng(99).standard_normal(problem(kernel, stride, i).out_shape).astype(np.float32)


def close(y: np.ndarray, right: np.ndarray) -> None:
    np.testing.assert_allclose(y, right, rtol=0, atol=TOLERANCE * np.abs(right).max(initial=0))


@pytest.mark.later("reference")
@EACH
def test_awkward_sizes_in_all_layouts(variant: str, kernel: tuple[int, ...], stride: tuple[int, ...], tile: int) -> None:
    for i in range(len(SIZES)):
        case, residual, activation = (
            problem(kernel, stride, i),
            (None, other(kernel, stride, i))[i % 2],
            (IDENTITY, RELU)[i // 2 % 2],
        )
        right = direct("conv", case, residual=residual, activation=activation)
        results = [run(tile, case, *layout, residual, activation) for layout in LAYOUTS]
        close(results[0], right)
        for y in results[1:]:
            if "aot" in variant:
                np.testing.assert_array_equal(bits(y), bits(results[0]))
            else:
                close(y, right)


@pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
@pytest.mark.without("reference")
@EACH
def test_stays_inside_its_operands(variant: str, kernel: tuple[int, ...], stride: tuple[int, ...], tile: int) -> None:
    for edge, i in itertools.product(("start", "end"), range(len(SIZES))):
        case = problem(kernel, stride, i)
        for layout in LAYOUTS[i % 2 :: 2]:
            y = run(tile, case, *layout, other(kernel, stride, i), RELU, place=lambda a: guarded(a, edge))  # noqa: B023
            close(y, direct("conv", case, residual=other(kernel, stride, i), activation=RELU))


@EACH
@pytest.mark.without("reference")  # NumPy's products promise no order of summation
def test_same_bits_for_every_batch_size_and_thread_count(
    variant: str, kernel: tuple[int, ...], stride: tuple[int, ...], tile: int
) -> None:
    before = fl.get_num_threads()
    try:
        for (c, d, h, w), o, groups in (((40, 7, 19, 90), 48, 1), ((64, 4, 40, 22), 130, 2), ((8, 17, 30, 50), 17, 1)):
            pads = tuple(k // 2 for k in kernel for _ in range(2))
            x, weight = (3, c, d, h, w), (o, c // groups, *kernel)
            case = random_problem(np.random.default_rng(7), x, weight, groups=groups, pads=pads, stride=stride)
            fl.set_num_threads(1)
            whole = run(tile, case)
            one = np.concatenate([run(tile, case._replace(x=case.x[i : i + 1])) for i in range(3)])
            np.testing.assert_array_equal(bits(whole), bits(one))
            for threads, layout in itertools.product((2, 3), LAYOUTS):
                fl.set_num_threads(threads)
                np.testing.assert_array_equal(bits(whole), bits(run(tile, case, *layout)))
    finally:
        fl.set_num_threads(before)


@EACH
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_the_tiles_that_read_it(
    variant: str, bad: float, kernel: tuple[int, ...], stride: tuple[int, ...], tile: int
) -> None:
    case = random_problem(np.random.default_rng(5), (2, 16, 14, 40, 40), (16, 8, *kernel), groups=2, stride=stride)
    clean = run(tile, case)
    case = case._replace(x=case.x.copy())
    case.x[1, 3, 8, 20, 18] = bad
    right, y = direct("conv", case), run(tile, case)
    hit = ~np.isfinite(right)
    assert hit.any()
    assert not np.isfinite(y[hit]).any()
    touched = np.zeros(case.out_shape, bool)
    spans = [slice(max(-(-(8 - kernel[0] + 1) // stride[0]), 0), 8 // stride[0] + 1)]
    for at, k, step in zip((20, 18), kernel[1:], stride[1:], strict=True):
        first, last = max(-(-(at - k + 1) // step), 0), at // step
        spans.append(slice(first, last + 1) if k == 1 else slice(first // tile * tile, (last // tile + 1) * tile))
    touched[1, :8][(slice(None), *spans)] = True
    assert not (hit & ~touched).any()
    np.testing.assert_array_equal(bits(y[~touched]), bits(clean[~touched]))


@EACH
def test_infinite_weights_meet_padding(variant: str, kernel: tuple[int, ...], stride: tuple[int, ...], tile: int) -> None:
    pads = tuple(k // 2 for k in kernel for _ in range(2))
    case = random_problem(np.random.default_rng(2), (2, 10, 5, 12, 12), (18, 10, *kernel), pads=pads, stride=stride)
    case.weight[3, 4, 0, 0, 1] = np.inf
    hit = ~np.isfinite(direct("conv", case))
    for layout in LAYOUTS:
        assert not np.isfinite(run(tile, case, *layout)[hit]).any()


@EACH
def test_levels_with_fused_multiply_add_agree(kernel: tuple[int, ...], stride: tuple[int, ...], tile: int) -> None:
    levels = [name for name in fl.kernels.available() if name in ("aot/x86_v3", "aot/x86_v4")]
    if len(levels) < 2:
        pytest.skip("needs two such levels on one processor")
    results = []
    for name in levels:
        with fl.kernels.use(name):
            results.append(bits(run(tile, problem(kernel, stride, 6), activation=RELU)))
    np.testing.assert_array_equal(*results)


def test_error_of_many_channels_after_relu(variant: str) -> None:
    case = random_problem(np.random.default_rng(3), (1, 512, 1, 29, 30), (32, 512, 1, 3, 3), stride=(1, 2, 2))
    case = case._replace(x=np.maximum(case.x, 0))
    close(run(4, case), direct("conv", case))


def test_other_strides_are_refused(variant: str) -> None:
    pack = dispatch.kernel("winograd_pack")
    for kernel, stride in (
        ((1, 3, 3), (1, 3, 3)), ((1, 3, 3), (1, 1, 2)), ((1, 3, 3), (2, 1, 1)), ((3, 1, 1), (2, 1, 1)), ((1, 5, 5), (1, 2, 2)),
        ((1, 1, 3), (1, 1, 2)), ((3, 3, 3), (4, 2, 2)),
    ):  # fmt: skip
        assert tiles_of(kernel, stride) == ()
        with pytest.raises(ShapeError, match="winograd_pack: stride is"):
            pack(np.zeros((4, 4, *kernel), np.float32), None, 4, 1, stride)
    for stride in ((0, 2, 2), (1, 2)):
        with pytest.raises(ShapeError, match="winograd_pack: stride is"):
            pack(np.zeros((4, 4, 1, 3, 3), np.float32), None, 4, 1, stride)
    with pytest.raises(ShapeError, match=r"winograd_pack: tile is 2: expected one of \(4,\)"):
        pack(np.zeros((4, 4, 1, 3, 3), np.float32), None, 2, 1, (1, 2, 2))


def test_the_odd_inputs_stay_as_they_are_and_the_even_ones_are_interpolated() -> None:
    rng, points = np.random.default_rng(0), winograd_points.EVEN_POINTS
    taps, x = rng.standard_normal(3), rng.standard_normal(9)
    even = [np.poly1d([q for q in points if q != p], r=True).coeffs[::-1] @ x[0:8:2] for p in points]
    values = np.array([*even, np.poly1d(points, r=True).coeffs[::-1] @ x[::2], *x[1::2]])
    sums = values * (winograd_points.weights_axis(9, 3) @ taps)[[0, 1, 2, 3, 4, 5, 5, 5, 5]]
    outputs = [
        sum(s * p**i for s, p in zip(sums[:4], points, strict=True)) + (sums[4] if i == 3 else 0) + sums[5 + i] for i in range(4)
    ]
    np.testing.assert_allclose(outputs, [x[2 * i : 2 * i + 3] @ taps for i in range(4)], atol=1e-12)


def test_large_maps_are_chosen_and_small_ones_are_not() -> None:
    kernel, stride = (1, 3, 3), (1, 2, 2)
    for size, channels, o in ((28, 64, 128), (28, 128, 128), (56, 64, 64), (80, 32, 64), (14, 256, 256)):
        assert choose((1, size, size), channels, o, kernel, stride=stride) == 4
    for size, channels, o in ((7, 256, 512), (14, 128, 256), (2, 64, 64), (56, 3, 64)):
        assert choose((1, size, size), channels, o, kernel, stride=stride) == 0
    assert choose((4, 28, 28), 64, 128, (3, 3, 3), stride=(2, 2, 2)) == 4
