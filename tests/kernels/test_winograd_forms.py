"""`winograd` along one axis, along two with as many taps, with taps along the depth too, in groups: next to the direct way."""

from __future__ import annotations

import itertools
import os
from functools import cache

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ShapeError
from fastlayers.kernels import dispatch, winograd_points

from ..guard import guarded
from .space import IDENTITY, RELU, Problem, bits, random_problem
from .space import reference as direct
from .test_winograd import LAYOUTS, compiled, run

FORMS = tuple(
    (kernel, tile)
    for kernel in (*(form for k in (3, 5, 7) for form in ((1, 1, k), (1, k, 1), (k, 1, 1))), (1, 5, 5), (1, 7, 7))
    for tile in winograd_points.tiles_of(kernel)
)
# Their taps along the depth are terms of the products.
DEEP = (
    ((3, 3, 3), 4),
    *(
        pytest.param(*form, marks=pytest.mark.exhaustive)
        for form in (((3, 3, 3), 2), ((2, 1, 3), 6), ((5, 3, 1), 4), ((2, 5, 5), 2), ((2, 5, 5), 4), ((2, 7, 7), 2))
    ),
)
EACH = pytest.mark.parametrize(
    ("kernel", "tile"), FORMS + DEEP, ids=lambda v: "x".join(map(str, v)) if isinstance(v, tuple) else f"F{v}"
)
# Of the largest output, by positions along an axis
TOLERANCE = {4: 3e-6, 6: 1e-5, 8: 1e-5}
# x, channels of the result, groups; pads come from the case's number
SIZES = (
    ((1, 1, 1, 1, 1), 1, 1), ((1, 3, 1, 4, 13), 5, 1),
    ((2, 16, 3, 5, 6), 17, 1), ((1, 17, 2, 31, 3), 16, 1), ((3, 33, 5, 2, 7), 70, 1),
    ((1, 40, 1, 1, 601), 36, 1), ((2, 20, 1, 97, 2), 66, 1), ((1, 300, 4, 3, 9), 12, 1), ((2, 64, 2, 11, 12), 64, 2),
    ((1, 96, 7, 6, 13), 48, 3),
    ((1, 6, 13, 7, 5), 9, 3), ((2, 40, 3, 8, 29), 80, 2), ((0, 3, 5, 5, 5), 4, 1), ((1, 0, 5, 5, 5), 4, 1),
    ((1, 4, 5, 5, 5), 0, 2), ((2, 4, 3, 0, 5), 4, 1), ((1, 5, 29, 4, 4), 33, 1), ((2, 10, 11, 13, 19), 18, 1),
)  # fmt: skip


@cache
def problem(kernel: tuple[int, int, int], i: int) -> Problem:
    """Pads leave an output; along axes without taps there are some too, where the kernel takes them."""
    x, o, groups = SIZES[i]
    pads = []
    for axis, k in enumerate(kernel):
        before, after = (i % k, (i + axis + 1) % k) if k > 1 else (i % 2, i % 3) if axis and kernel[0] == 1 else (0, 0)
        short = k - x[2 + axis] - before - after
        pads += [before, after + (max(short, 0) if k > 1 else 0)]
    shape = (o, x[1] // groups, *kernel)
    return random_problem(np.random.default_rng(i), x, shape, bias=i % 3 > 0, groups=groups, pads=tuple(pads))


@cache
def other(kernel: tuple[int, int, int], i: int) -> np.ndarray:
    return np.random.default_rng(99).standard_normal(problem(kernel, i).out_shape).astype(np.float32)


def close(y: np.ndarray, right: np.ndarray, kernel: tuple[int, ...], tile: int) -> None:
    n = max(winograd_points.sides(kernel, tile))
    np.testing.assert_allclose(y, right, rtol=0, atol=TOLERANCE[n] * np.abs(right).max(initial=0))


@pytest.mark.later("reference")
@EACH
def test_awkward_sizes_in_all_layouts(variant: str, kernel: tuple[int, int, int], tile: int) -> None:
    for i in range(len(SIZES)):
        case, residual, activation = problem(kernel, i), (None, other(kernel, i))[i % 2], (IDENTITY, RELU)[i // 2 % 2]
        right = direct("conv", case, residual=residual, activation=activation)
        results = [run(tile, case, *layout, residual, activation) for layout in LAYOUTS]
        close(results[0], right, kernel, tile)
        for y in results[1:]:
            if compiled() and "aot" in variant:
                np.testing.assert_array_equal(bits(y), bits(results[0]))
            else:
                close(y, right, kernel, tile)


@EACH
def test_error_of_many_channels_after_relu(variant: str, kernel: tuple[int, int, int], tile: int) -> None:
    """Values of one sign, as they come out of ReLU, add up in the transforms the most."""
    channels = 512 if winograd_points.terms_of(kernel) == 1 else 128
    case = random_problem(np.random.default_rng(3), (1, channels, *((7, 13)[k > 1] for k in kernel)), (32, channels, *kernel))
    case = case._replace(x=np.maximum(case.x, 0))
    close(run(tile, case), direct("conv", case), kernel, tile)


@EACH
@pytest.mark.without("reference")  # NumPy's products promise no order of summation
def test_same_bits_for_every_batch_size_and_thread_count(variant: str, kernel: tuple[int, int, int], tile: int) -> None:
    before = fl.get_num_threads()
    try:
        cases = (((40, 3, 9, 70), 48, 1), ((64, 5, 20, 11), 130, 2), ((96, 2, 6, 5), 96, 3))
        if winograd_points.terms_of(kernel) > 1:  # slices of two volumes in one block
            cases += (((8, 11, 9, 20), 17, 1),)
        for (c, d, h, w), o, groups in cases:
            pads = tuple(k // 2 for k in kernel for _ in range(2))
            case = random_problem(np.random.default_rng(7), (3, c, d, h, w), (o, c // groups, *kernel), groups=groups, pads=pads)
            fl.set_num_threads(1)
            whole = run(tile, case)
            one = np.concatenate([run(tile, case._replace(x=case.x[i : i + 1])) for i in range(3)])
            np.testing.assert_array_equal(bits(whole), bits(one))
            for threads, layout in itertools.product((2, 3), LAYOUTS):
                fl.set_num_threads(threads)
                np.testing.assert_array_equal(bits(whole), bits(run(tile, case, *layout)))
    finally:
        fl.set_num_threads(before)


@pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
@pytest.mark.without("reference")
@EACH
def test_stays_inside_its_operands(variant: str, kernel: tuple[int, int, int], tile: int) -> None:
    for edge, i in itertools.product(("start", "end"), range(len(SIZES))):
        case = problem(kernel, i)
        for layout in LAYOUTS[i % 2 :: 2]:
            y = run(tile, case, *layout, other(kernel, i), RELU, place=lambda a: guarded(a, edge))  # noqa: B023
            close(y, direct("conv", case, residual=other(kernel, i), activation=RELU), kernel, tile)


@EACH
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_the_tiles_that_read_it(
    variant: str, bad: float, kernel: tuple[int, int, int], tile: int
) -> None:
    case = random_problem(np.random.default_rng(5), (2, 16, 14, 14, 14), (16, 8, *kernel), groups=2)
    clean = run(tile, case)
    case = case._replace(x=case.x.copy())
    case.x[1, 3, 9, 8, 7] = bad
    right, y = direct("conv", case), run(tile, case)
    hit = ~np.isfinite(right)
    assert hit.any()
    assert not np.isfinite(y[hit]).any()
    touched = np.zeros(case.out_shape, bool)
    spans = [
        slice(at, at + 1) if k == 1 else slice(max(at - k + 1, 0) // tile * tile, (at // tile + 1) * tile)
        for k, at in zip(kernel, (9, 8, 7), strict=True)
    ]
    if winograd_points.terms_of(kernel) > 1:
        spans[0] = slice(9 - kernel[0] + 1, 9 + 1)
    touched[1, :8][(slice(None), *spans)] = True
    assert not (hit & ~touched).any()
    np.testing.assert_array_equal(bits(y[~touched]), bits(clean[~touched]))


@EACH
def test_levels_with_fused_multiply_add_agree(kernel: tuple[int, int, int], tile: int) -> None:
    levels = [name for name in fl.kernels.available() if name in ("aot/x86_v3", "aot/x86_v4")]
    if len(levels) < 2:
        pytest.skip("needs two such levels on one processor")
    for i in (4, 8, 11):
        results = []
        for name in levels:
            with fl.kernels.use(name):
                results.append(bits(run(tile, problem(kernel, i), activation=RELU)))
        np.testing.assert_array_equal(*results)


def test_other_kernels_tiles_and_pads_are_refused(variant: str) -> None:
    pack, winograd = dispatch.kernel("winograd_pack"), dispatch.kernel("winograd")
    for kernel in ((1, 1, 1), (1, 2, 2), (1, 3, 5), (8, 3, 3), (3, 2, 2), (3, 3, 5), (1, 1, 4), (1, 1, 0), (0, 3, 3), (1, 9, 9)):
        with pytest.raises(ShapeError, match="winograd_pack: weight has the kernel"):
            pack(np.zeros((4, 4, *kernel), np.float32), None, 2, 1)
    for kernel, tile in (((1, 1, 3), 3), ((1, 5, 5), 6), ((1, 7, 7), 4), ((7, 1, 1), 4), ((1, 3, 3), 6)):
        with pytest.raises(ShapeError, match=f"winograd_pack: tile is {tile}: expected one of"):
            pack(np.zeros((4, 4, *kernel), np.float32), None, tile, 1)
    packed = pack(np.zeros((4, 4, 3, 1, 1), np.float32), None, 2, 1)
    x = np.zeros((1, 4, 3, 3, 3), np.float32)
    with pytest.raises(ShapeError, match="expected none around slices"):
        winograd(x, packed, np.zeros((1, 4, 1, 5, 3), np.float32), (0, 0, 1, 1, 0, 0), False, False, None, IDENTITY)


@pytest.mark.parametrize("tile", [2, 4])
def test_slices_that_see_nothing_but_padding(variant: str, tile: int) -> None:
    """They are the bias; and slices of one that has neighbours in the padding alone have the bits of a kernel of its tap."""
    weight, bias = np.float32([[[[[1, 2, 3]] * 3] * 3] * 40] * 20), np.arange(20, dtype=np.float32)
    weight *= np.float32([1, 10, 100]).reshape(3, 1, 1)
    for depth in (0, 1, 2):
        case = Problem(np.ones((2, 40, depth, 9, 6), np.float32), weight, bias, pads=(4, 5, 1, 1, 1, 1))
        right = direct("conv", case)
        for layout in LAYOUTS:
            y = run(tile, case, *layout)
            close(y, right, (3, 3, 3), tile)
            for z in (0, 1, *range(depth + 4, depth + 7)):
                np.testing.assert_array_equal(y[:, :, z], np.broadcast_to(bias.reshape(20, 1, 1), y[:, :, z].shape))
    case = random_problem(np.random.default_rng(2), (2, 70, 1, 12, 13), (33, 70, 3, 3, 3), pads=(1, 1, 1, 1, 1, 1))
    flat = case._replace(weight=np.ascontiguousarray(case.weight[:, :, 1:2]), pads=(0, 0, 1, 1, 1, 1))
    if "aot" not in variant:  # others compute volumes directly
        close(run(tile, case), run(tile, flat), (3, 3, 3), tile)
    else:
        np.testing.assert_array_equal(bits(run(tile, case)), bits(run(tile, flat)))


@pytest.mark.parametrize("tile", [2, 4])
def test_infinite_weights_meet_padding_slices(variant: str, tile: int) -> None:
    """Zero times infinity is NaN there too, and slices that no such tap reads keep their bits."""
    clean = random_problem(np.random.default_rng(2), (2, 10, 5, 6, 6), (18, 10, 3, 3, 3), pads=(1, 2, 1, 1, 1, 1))
    case = clean._replace(weight=clean.weight.copy())
    case.weight[3, 4, 0, 1, 1] = np.inf
    hit = ~np.isfinite(direct("conv", case))
    assert hit[:, 3, 0].all() and not hit[:, 4].any()
    for layout in LAYOUTS:
        y = run(tile, case, *layout)
        assert not np.isfinite(y[hit]).any()
        close(y[:, 4:], run(tile, clean)[:, 4:], (3, 3, 3), tile)


def test_weights_axis_is_interpolation() -> None:
    """Products of the three transforms give a convolution's sums, for every form."""
    rng = np.random.default_rng(0)
    for kernel, tile in FORMS:
        n, k = max(winograd_points.sides(kernel, tile)), max(kernel)
        points = [0.0, *winograd_points.POINTS[n]]
        taps, x = rng.standard_normal(k), rng.standard_normal(n)
        columns = [np.poly1d([q for q in points if q != p], r=True).coeffs[::-1] for p in points]
        values = np.array([*(c @ x[: n - 1] for c in columns), np.poly1d(points, r=True).coeffs[::-1] @ x])
        values[0] *= np.sign(np.prod(points[1:]))  # the transform of weights has 1 there
        sums = values * (winograd_points.weights_axis(n, k) @ taps)
        outputs = [
            sum(s * (p**i if i or p else 1.0) / abs(p or 1.0) for s, p in zip(sums[:-1], points, strict=True))
            + (sums[-1] if i == tile - 1 else 0)
            for i in range(tile)
        ]
        np.testing.assert_allclose(outputs, np.correlate(x, taps, "valid"), atol=1e-12)
