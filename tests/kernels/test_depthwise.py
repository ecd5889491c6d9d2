"""`depthwise`: the reference against torch's numbers, compiled variants against the reference; equality of bits among them."""

from __future__ import annotations

import os
from functools import cache

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import PAD_MODES, Activation

from ..guard import guarded
from .space import FIRST, IDENTITY, LAST, RELU, Layout, Problem, bits, golden, random_problem, reference, run

GOLDEN = [(case, y) for case, y in golden() if case.depthwise]
LAYOUTS = pytest.mark.parametrize("layout", [FIRST, LAST], ids=["first", "last"])
# One chain of at most 256 float32 terms of size 1/sqrt(k): errors of a few 1e-7 of the largest output.
TOLERANCE = 2e-6
SAME = (0, 0, 1, 1, 1, 1)

# (channels, multiplier), (n, d, h, w), kernel, the rest of a Problem. Channels and columns around vectors of 4, 8, 16 and groups
# of 4 and 8; rows around groups of 4; every special path (3x3, 5x5, 7x7, stride 1 and 2) and the general one; taps around 256;
# zero sizes.
AWKWARD = (
    ((16, 1), (1, 1, 8, 8), (1, 3, 3), {"pads": SAME}),
    ((17, 1), (2, 1, 9, 17), (1, 3, 3), {"pads": SAME}),
    ((33, 1), (1, 1, 7, 7), (1, 3, 3), {"pads": SAME}),
    ((8, 1), (1, 1, 5, 16), (1, 3, 3), {"pads": SAME}),
    ((3, 1), (2, 1, 13, 35), (1, 3, 3), {"pads": (0, 0, 0, 2, 2, 0)}),
    ((1, 1), (1, 1, 3, 3), (1, 3, 3), {"pads": SAME}),
    ((20, 1), (1, 1, 15, 19), (1, 3, 3), {"pads": SAME, "stride": (1, 2, 2)}),
    ((9, 1), (1, 1, 16, 41), (1, 3, 3), {"pads": (0, 0, 0, 1, 0, 1), "stride": (1, 2, 2)}),
    ((24, 1), (1, 1, 10, 12), (1, 5, 5), {"pads": (0, 0, 2, 2, 2, 2)}),
    ((70, 1), (1, 1, 6, 23), (1, 5, 5), {"pads": (0, 0, 2, 2, 2, 2), "stride": (1, 2, 2)}),
    ((16, 1), (1, 1, 20, 20), (1, 5, 5), {"stride": (1, 1, 3)}),
    ((18, 1), (1, 1, 11, 25), (1, 7, 7), {}),
    ((19, 1), (1, 1, 12, 14), (1, 7, 7), {"pads": (0, 0, 3, 3, 3, 3)}),
    ((18, 1), (1, 1, 12, 14), (1, 3, 3), {"pads": (0, 0, 2, 2, 3, 3), "dilation": (1, 2, 3)}),
    ((18, 1), (1, 1, 12, 14), (1, 3, 3), {"pads": (0, 0, 1, 1, 3, 3), "dilation": (1, 1, 3), "stride": (1, 1, 2)}),
    ((5, 3), (1, 1, 9, 11), (1, 3, 3), {"pads": SAME}),
    ((2, 2), (2, 1, 9, 11), (1, 3, 3), {"pads": SAME, "stride": (1, 2, 2)}),
    ((7, 4), (1, 2, 4, 5), (2, 2, 3), {"pads": (1, 1, 0, 1, 1, 1)}),
    ((12, 1), (2, 5, 6, 9), (3, 3, 3), {"pads": (1, 1, 1, 1, 1, 1)}),
    ((17, 1), (1, 4, 5, 8), (3, 2, 3), {"pads": (2, 2, 0, 1, 1, 1), "stride": (2, 1, 2), "dilation": (2, 1, 1)}),
    ((17, 1), (1, 1, 1, 67), (1, 1, 3), {"pads": (0, 0, 0, 0, 2, 0)}),
    ((6, 2), (1, 1, 1, 50), (1, 1, 4), {"stride": (1, 1, 3), "dilation": (1, 1, 2)}),
    ((16, 1), (1, 1, 50, 1), (1, 7, 1), {"pads": (0, 0, 3, 3, 0, 0)}),
    ((3, 1), (1, 1, 1, 9000), (1, 1, 5), {"pads": (0, 0, 0, 0, 2, 2)}),
    ((17, 1), (1, 1, 1, 300), (1, 1, 256), {}),
    ((17, 1), (1, 1, 1, 300), (1, 1, 257), {"pads": (0, 0, 0, 0, 9, 0)}),
    ((18, 1), (1, 1, 19, 21), (1, 17, 17), {"pads": (0, 0, 1, 1, 0, 0)}),
    ((16, 1), (1, 1, 90, 10), (1, 86, 3), {"pads": (0, 0, 1, 1, 1, 1)}),
    ((16, 1), (1, 1, 4, 4), (1, 1, 1), {"stride": (1, 2, 2)}),
    ((16, 1), (1, 1, 1, 1), (1, 5, 5), {"pads": (0, 0, 2, 2, 2, 2)}),
    ((40, 1), (1, 1, 2, 2), (1, 3, 3), {"pads": SAME}),
    ((16, 1), (1, 1, 40, 300), (1, 3, 3), {"pads": SAME}),
    # Planes read where they are: the least columns, tails of vectors, padding on one side and more than a vector of it, repeated
    # channels, tasks of rows.
    ((5, 1), (1, 1, 9, 49), (1, 3, 3), {"pads": SAME, "stride": (1, 2, 2)}),
    ((3, 1), (2, 1, 11, 64), (1, 3, 3), {"pads": (0, 0, 0, 1, 0, 1), "stride": (1, 2, 2)}),
    ((4, 1), (1, 1, 12, 67), (1, 5, 5), {"pads": (0, 0, 2, 2, 2, 2), "stride": (1, 2, 2)}),
    ((3, 1), (1, 1, 9, 53), (1, 5, 5), {"stride": (1, 2, 2)}),
    ((3, 1), (1, 1, 8, 26), (1, 3, 3), {"pads": SAME}),
    ((3, 1), (1, 1, 6, 27), (1, 3, 3), {}),
    ((2, 2), (2, 1, 9, 30), (1, 3, 3), {"pads": SAME}),
    ((3, 1), (1, 1, 4, 20), (1, 3, 3), {"pads": (0, 0, 3, 3, 6, 6)}),
    ((2, 1), (1, 1, 5, 10), (1, 3, 3), {"pads": (0, 0, 4, 1, 45, 7), "stride": (1, 2, 2)}),
    ((2, 1), (1, 1, 7, 3), (1, 5, 5), {"pads": (0, 0, 2, 2, 30, 30), "stride": (1, 2, 2)}),
    ((1, 1), (1, 1, 203, 1100), (1, 3, 3), {"pads": SAME}),
    # Sixteen channels at a time: parts of a block, bands of rows, any kernel, padding on one side, past the input, sequences.
    ((37, 1), (2, 1, 14, 14), (1, 5, 5), {"pads": (0, 0, 2, 2, 2, 2), "stride": (1, 2, 2)}),
    ((16, 1), (1, 1, 100, 18), (1, 3, 3), {"pads": SAME}),
    ((33, 1), (1, 1, 61, 40), (1, 7, 7), {"pads": (0, 0, 3, 3, 3, 3)}),
    ((18, 1), (1, 1, 10, 9), (1, 5, 5), {"pads": (0, 0, 4, 4, 4, 4), "dilation": (1, 2, 2)}),
    ((31, 1), (1, 1, 13, 11), (1, 4, 6), {"pads": (0, 0, 0, 3, 5, 0), "stride": (1, 3, 1)}),
    ((17, 1), (1, 1, 23, 23), (1, 7, 7), {"pads": (0, 0, 3, 2, 0, 3), "stride": (1, 2, 2)}),
    ((20, 1), (1, 1, 3, 2), (1, 3, 3), {"pads": (0, 0, 6, 6, 5, 7), "stride": (1, 2, 1)}),
    ((40, 1), (1, 1, 1, 100), (1, 1, 9), {"pads": (0, 0, 0, 0, 8, 0)}),
    ((24, 1), (2, 1, 2, 33), (1, 2, 5), {"pads": (0, 0, 0, 1, 2, 2)}),
    # The same with several results of each channel: whole and parts of channels in a block, the last of a pixel.
    ((25, 2), (2, 1, 14, 13), (1, 7, 7), {"pads": (0, 0, 3, 3, 3, 3), "stride": (1, 2, 2)}),
    ((16, 2), (1, 1, 60, 20), (1, 3, 3), {"pads": SAME}),
    ((7, 3), (2, 1, 9, 11), (1, 5, 5), {"pads": (0, 0, 2, 2, 0, 2)}),
    ((3, 6), (1, 1, 6, 8), (1, 3, 3), {"pads": SAME, "stride": (1, 2, 2), "dilation": (1, 2, 1)}),
    ((1, 20), (2, 1, 5, 4), (1, 3, 3), {"pads": SAME}),
    ((12, 4), (1, 1, 1, 30), (1, 1, 3), {"pads": (0, 0, 0, 0, 1, 1)}),
    ((5, 1), (0, 1, 4, 4), (1, 3, 3), {}),
    ((5, 1), (1, 1, 2, 4), (1, 3, 3), {}),
    ((0, 1), (1, 1, 4, 4), (1, 3, 3), {}),
    ((3, 0), (1, 1, 4, 4), (1, 3, 3), {}),
    ((40, 1), (1, 1, 0, 0), (1, 3, 3), {"pads": (0, 0, 2, 2, 2, 2)}),
)
NUMBERS = pytest.mark.parametrize("i", range(len(AWKWARD)))


def problem(i: int) -> Problem:
    (channels, multiplier), (n, *space), kernel, rest = AWKWARD[i]
    weight = (channels * multiplier, 1, *kernel)
    return random_problem(np.random.default_rng(i), (n, channels, *space), weight, bias=i % 3 > 0, groups=channels, **rest)


@cache
def expected(i: int, residual: bool = False, activation: Activation = IDENTITY) -> np.ndarray:
    """The reference's answer to problem i; the residual is `other(i)`."""
    return reference("depthwise", problem(i), residual=other(i) if residual else None, activation=activation)


def other(i: int) -> np.ndarray:
    return np.random.default_rng(99).standard_normal(problem(i).out_shape).astype(np.float32)


def close(y: np.ndarray, right: np.ndarray) -> None:
    """Equal within TOLERANCE of the largest output; NaN and infinity in the same places."""
    finite = np.abs(right[np.isfinite(right)])
    np.testing.assert_allclose(y, right, rtol=TOLERANCE, atol=TOLERANCE * (finite.max() if finite.size else 0))


def compiled() -> bool:
    return fl.kernels.info()["operations"]["depthwise"] != "reference"


def test_the_golden_file_has_depthwise_cases() -> None:
    assert len(GOLDEN) >= 7


@LAYOUTS
@pytest.mark.parametrize("i", range(len(GOLDEN)))
def test_golden(variant: str, i: int, layout: Layout) -> None:
    case, y = GOLDEN[i]
    close(run("depthwise", case, layout), y)


@NUMBERS
def test_awkward_sizes(variant: str, i: int) -> None:
    for activation, residual in ((IDENTITY, None), (RELU, other(i))):
        first = run("depthwise", problem(i), FIRST, residual, activation)
        last = run("depthwise", problem(i), LAST, residual, activation)
        close(first, expected(i, residual is not None, activation))
        if compiled():
            np.testing.assert_array_equal(bits(first), bits(last))
            for layout in (FIRST, LAST) if dispatch.step("depthwise") else ():
                step = run("depthwise", problem(i), layout, residual, activation, as_step=True)
                np.testing.assert_array_equal(bits(first), bits(step))
        else:
            close(last, first)


@pytest.mark.parametrize("channels", [3, 18])
@pytest.mark.parametrize("mode", PAD_MODES.values(), ids=PAD_MODES)
def test_padding_modes(variant: str, mode: int, channels: int) -> None:
    pads = (1, 2, 3, 2, 4, 1)
    for multiplier, stride in ((1, (1, 1, 1)), (2, (1, 2, 3))):
        shape, weight = (2, channels, 3, 5, 6), (channels * multiplier, 1, 2, 3, 3)
        case = random_problem(np.random.default_rng(mode), shape, weight, groups=channels, pads=pads, mode=mode, stride=stride)
        y = reference("depthwise", case)
        for layout in (FIRST, LAST):
            close(run("depthwise", case, layout), y)


@LAYOUTS
def test_an_activation_with_parameters_comes_last(variant: str, layout: Layout) -> None:
    for i in (1, 4, 14):
        case = problem(i)
        residual = np.full(case.out_shape, 0.25, np.float32)
        plain = run("depthwise", case, layout, residual)
        clipped = run("depthwise", case, layout, residual, Activation(2, -0.5, 0.75))
        np.testing.assert_array_equal(clipped, np.clip(plain, -0.5, 0.75))


@LAYOUTS
def test_nan_and_infinity_propagate(variant: str, layout: Layout) -> None:
    for i in (1, 4, 6, 12, 14):
        case = problem(i)
        case.x[0, 0, 0, 1, 1] = np.nan
        case.x[0, 1, 0, 3, 4] = np.inf
        case.weight[2, 0, 0, 0, 0] = np.inf  # times the padding's zeros: NaN, on every path
        y = run("depthwise", case, layout)
        close(y, reference("depthwise", case))
        assert np.isnan(y).any() and np.isinf(y).any()
        relu = run("depthwise", case, layout, activation=RELU)
        np.testing.assert_array_equal(np.isnan(relu), np.isnan(y))


@pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
@pytest.mark.parametrize("edge", ["start", "end"])
@LAYOUTS
def test_stays_inside_its_operands(variant: str, layout: Layout, edge: str) -> None:
    for i in range(len(AWKWARD)):
        y = run("depthwise", problem(i), layout, other(i), RELU, place=lambda a: guarded(a, edge))
        close(y, expected(i, True, RELU))


@LAYOUTS
@pytest.mark.parametrize(
    ("channels", "space", "kernel", "stride"),
    [
        (48, (1, 60, 62), (1, 3, 3), (1, 1, 1)),
        (48, (1, 61, 61), (1, 5, 5), (1, 2, 2)),
        (24, (6, 20, 25), (3, 3, 3), (1, 1, 1)),
        (5, (1, 90, 141), (1, 3, 3), (1, 1, 1)),
        (20, (1, 1, 9000), (1, 1, 9), (1, 1, 1)),
        (200, (1, 21, 19), (1, 5, 5), (1, 1, 1)),
        (300, (1, 28, 28), (1, 3, 3), (1, 2, 2)),
    ],
)
@pytest.mark.without("reference")  # numpy's products promise no order of summation
def test_same_bits_for_every_batch_size_and_thread_count(
    variant: str,
    channels: int,
    space: tuple[int, int, int],
    kernel: tuple[int, int, int],
    stride: tuple[int, int, int],
    layout: Layout,
) -> None:
    pads = tuple(k // 2 for k in kernel for _ in "ba")
    rng = np.random.default_rng(0)
    case = random_problem(rng, (3, channels, *space), (channels, 1, *kernel), groups=channels, stride=stride, pads=pads)
    whole = run("depthwise", case, layout)
    close(whole, reference("depthwise", case))
    one = np.concatenate([run("depthwise", case._replace(x=case.x[i : i + 1]), layout) for i in range(3)])
    np.testing.assert_array_equal(bits(whole), bits(one))
    np.testing.assert_array_equal(bits(whole), bits(run("depthwise", case, LAST if layout == FIRST else FIRST)))
    before = fl.get_num_threads()
    fl.set_num_threads(2)
    try:
        np.testing.assert_array_equal(bits(whole), bits(run("depthwise", case, layout)))
    finally:
        fl.set_num_threads(before)


def test_levels_with_fused_multiply_add_agree() -> None:
    levels = [name for name in fl.kernels.available() if name in ("aot/x86_v3", "aot/x86_v4")]
    if len(levels) < 2:
        pytest.skip("needs two such levels on one processor")
    for i in range(0, len(AWKWARD), 3):
        results = []
        for name in levels:
            with fl.kernels.use(name):
                results.append(bits(run("depthwise", problem(i))))
        np.testing.assert_array_equal(*results)


def test_packed_weights_are_copies(variant: str) -> None:
    case = problem(1)
    before = run("depthwise", case)
    weight, bias = case.weight.copy(), case.bias.copy()
    packed = dispatch.kernel("depthwise_pack")(weight, bias, case.stride, case.dilation, case.groups)
    weight[:], bias[:] = np.nan, np.nan
    out = np.empty(case.out_shape, np.float32)
    dispatch.kernel("depthwise")(case.x, packed, out, case.pads, case.mode, False, None, IDENTITY)
    np.testing.assert_array_equal(bits(out), bits(before))
