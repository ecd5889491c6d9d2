"""`winograd`: compiled variants against the direct convolution; equality of bits among layouts, threads and batches."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import Activation

from ..guard import guarded
from .space import IDENTITY, RELU, Problem, bits, golden, random_problem
from .space import reference as direct

TILES = pytest.mark.parametrize("tile", [2, 4], ids=["F2", "F4"])
LAYOUTS = tuple(itertools.product((False, True), repeat=2))  # (x_last, out_last)
# Errors may be so much of the largest output: the transforms' constants magnify what float32 rounds, those of tile 4 the most.
# They are at most 7e-7 and 2.2e-6 in all cases of this file, and 5e-7 and 2.2e-6 for 1024 channels.
TOLERANCE = {2: 3e-6, 4: 1e-5}

SIZES = (*range(1, 16), 17, 31)
CHANNELS = (1, 3, 16, 17, 33, 64)
PADS = (0, 1, 2)


class Sizes(NamedTuple):
    """(n, c, h, w) of x, the output's channels, zeros before and after h and w, and slices of depth."""

    x: tuple[int, int, int, int]
    o: int
    pads: tuple[int, int, int, int] = (1, 1, 1, 1)
    d: int = 1


def awkward() -> list[Sizes]:
    """Every size with other channels, batches and pads that leave an output, and sizes at which a cut or a block of K ends."""
    rng = np.random.default_rng(5)
    cases = []
    for i, h in enumerate(SIZES):
        w = SIZES[-1 - i]
        pads = [int(p) for p in rng.choice(PADS, 4)]
        for axis, size in enumerate((h, w)):
            if size + pads[2 * axis] + pads[2 * axis + 1] < 3:
                pads[2 * axis] = 2
        c, o = CHANNELS[i % len(CHANNELS)], CHANNELS[(i * 5 + 2) % len(CHANNELS)]
        cases.append(Sizes((1 + i % 3, c, h, w), o, (pads[0], pads[1], pads[2], pads[3]), (1, 2, 1, 3, 5)[i % 5]))
    return [
        *cases,
        Sizes((1, 257, 4, 5), 31),
        Sizes((1, 512, 7, 7), 97),
        Sizes((3, 5, 33, 29), 70),
        Sizes((9, 20, 13, 11), 18, (0, 2, 2, 1)),
        Sizes((1, 6, 9, 601), 7, (2, 0, 0, 2)),  # rows of tiles in several pieces
        Sizes((1, 2, 5, 6), 3, (7, 9, 5, 6)),  # tiles of nothing but zeros around
        Sizes((2, 18, 13, 30), 35, d=7),  # blocks of some rows, and of some slices
        Sizes((3, 33, 6, 5), 20, d=4),
        Sizes((1, 70, 9, 8), 67, (2, 0, 1, 1), d=3),
        Sizes((2, 5, 7, 7), 6, d=0),
        Sizes((1, 3, 0, 0), 2, (2, 2, 2, 2)),
        Sizes((0, 3, 5, 5), 4),
        Sizes((1, 3, 2, 5), 4, (0, 0, 0, 0)),
        Sizes((1, 0, 5, 5), 4),
        Sizes((1, 3, 5, 5), 0),
    ]


AWKWARD = awkward()
NUMBERS = pytest.mark.parametrize("i", range(len(AWKWARD)))


@cache
def problem(i: int) -> Problem:
    (n, c, h, w), o, pads, d = AWKWARD[i]
    return random_problem(np.random.default_rng(i), (n, c, d, h, w), (o, c, 1, 3, 3), bias=i % 3 > 0, pads=(0, 0, *pads))


@cache
def other(i: int) -> np.ndarray:
    return np.random.default_rng(99).standard_normal(problem(i).out_shape).astype(np.float32)


@cache
def expected(i: int, residual: bool = False, activation: Activation = IDENTITY) -> np.ndarray:
    """The answer of the reference's direct convolution; the residual is `other(i)`."""
    return direct("conv", problem(i), residual=other(i) if residual else None, activation=activation)


def run(
    tile: int,
    p: Problem,
    x_last: bool = False,
    out_last: bool = False,
    residual: np.ndarray | None = None,
    activation: Activation = IDENTITY,
    place: Callable[[np.ndarray], np.ndarray] = np.ascontiguousarray,
) -> np.ndarray:
    """Runs `winograd` of the current variant; `residual` and the result are channels-first whatever the layouts."""
    packed = dispatch.kernel("winograd_pack")(
        place(p.weight), None if p.bias is None else place(p.bias), tile, p.groups, p.stride
    )
    x = place(np.ascontiguousarray(np.moveaxis(p.x, 1, -1)) if x_last else p.x)
    out = np.full(p.out_shape, np.nan, np.float32)
    if out_last:
        out = np.ascontiguousarray(np.moveaxis(out, 1, -1))
        residual = None if residual is None else np.ascontiguousarray(np.moveaxis(residual, 1, -1))
    out = place(out)
    residual = None if residual is None else place(residual)
    x.flags.writeable = False
    dispatch.kernel("winograd")(x, packed, out, p.pads, x_last, out_last, residual, activation)
    return np.moveaxis(out, -1, 1) if out_last else out


def close(y: np.ndarray, right: np.ndarray, tile: int) -> None:
    np.testing.assert_allclose(y, right, rtol=0, atol=TOLERANCE[tile] * np.abs(right).max(initial=0))


def compiled() -> bool:
    return fl.kernels.info()["operations"]["winograd"] != "reference"


@TILES
def test_golden(variant: str, tile: int) -> None:
    same = [
        (case, y)
        for case, y in golden()
        if case.weight.shape[2:] == (1, 3, 3)
        and (case.stride, case.dilation, case.groups, case.mode) == ((1, 1, 1), (1, 1, 1), 1, 0)
    ]
    assert len(same) >= 2
    for case, y in same:
        for x_last, out_last in LAYOUTS:
            close(run(tile, case, x_last, out_last), y, tile)


@pytest.mark.later("reference")  # the goldens hold it
@TILES
@NUMBERS
def test_awkward_sizes_in_all_layouts(variant: str, i: int, tile: int) -> None:
    for activation, residual in ((IDENTITY, None), (RELU, other(i)), (IDENTITY, other(i))):
        results = [run(tile, problem(i), *layout, residual, activation) for layout in LAYOUTS]
        close(results[0], expected(i, residual is not None, activation), tile)
        for y in results[1:]:
            if compiled():
                np.testing.assert_array_equal(bits(y), bits(results[0]))
            else:
                close(y, results[0], tile)


@TILES
@pytest.mark.parametrize("channels", [64, 512])
def test_error_of_many_channels_after_relu(variant: str, channels: int, tile: int) -> None:
    """Numbers of one sign, as they come out of ReLU, add up in the transforms the most."""
    case = random_problem(np.random.default_rng(3), (1, channels, 1, 13, 14), (32, channels, 1, 3, 3), pads=(0, 0, 1, 1, 1, 1))
    case = case._replace(x=np.maximum(case.x, 0))
    close(run(tile, case), direct("conv", case), tile)


@TILES
def test_an_activation_with_parameters_comes_last(variant: str, tile: int) -> None:
    for i in (6, 16):
        residual = np.full(problem(i).out_shape, 0.25, np.float32)
        for layout in LAYOUTS:
            plain = run(tile, problem(i), *layout, residual)
            clipped = run(tile, problem(i), *layout, residual, Activation(2, -0.5, 0.75))
            np.testing.assert_array_equal(clipped, np.clip(plain, -0.5, 0.75))
        close(run(tile, problem(i), activation=Activation(10)), expected(i, activation=Activation(10)), tile)


@TILES
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_stay_in_the_tiles_that_read_them(variant: str, bad: float, tile: int) -> None:
    """Where the direct sum is NaN or infinite, so is the output; tiles whose inputs have neither are not touched."""
    i = next(i for i, sizes in enumerate(AWKWARD) if sizes.x[0] == 3 and min(sizes.x[2:]) > 4 * 4)
    case = problem(i)
    clean = run(tile, case)
    case = case._replace(x=case.x.copy())
    case.x[1, 2, 0, 9, 6] = bad
    hit = ~np.isfinite(direct("conv", case))
    touched = np.zeros(case.out_shape, bool)
    rows, cols = (
        [t for t in range(size // tile + 1) if t * tile <= at + before < t * tile + tile + 2]
        for at, before, size in zip((9, 6), case.pads[2::2], case.out_shape[3:], strict=True)
    )
    for r, c in itertools.product(rows, cols):
        touched[1, :, 0, r * tile : (r + 1) * tile, c * tile : (c + 1) * tile] = True
    assert not (hit & ~touched).any()
    for layout in LAYOUTS:
        y = run(tile, case, *layout)
        assert not np.isfinite(y[hit]).any()
        np.testing.assert_array_equal(bits(y[~touched]), bits(clean[~touched]))
        relu = run(tile, case, *layout, activation=RELU)
        np.testing.assert_array_equal(np.isnan(relu), np.isnan(y))


@pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
@pytest.mark.parametrize("edge", ["start", "end"])
@TILES
@pytest.mark.without("reference")  # numpy does
def test_stays_inside_its_operands(variant: str, tile: int, edge: str) -> None:
    for i in range(len(AWKWARD)):
        for layout in LAYOUTS:
            y = run(tile, problem(i), *layout, other(i), RELU, place=lambda a: guarded(a, edge))
            close(y, expected(i, True, RELU), tile)


@TILES
@pytest.mark.without("reference")  # numpy's products promise no order of summation
def test_slices_of_depth_are_images(variant: str, tile: int) -> None:
    """The bits of a volume are those of its slices as images of a batch, in every layout."""
    for sizes, o in (((2, 20, 3, 11, 9), 33), ((1, 65, 8, 14, 14), 64), ((2, 16, 5, 40, 3), 16)):
        n, c, d, h, w = sizes
        case = random_problem(np.random.default_rng(8), sizes, (o, c, 1, 3, 3), pads=(0, 0, 1, 1, 1, 1))
        flat = case._replace(x=np.ascontiguousarray(np.moveaxis(case.x, 2, 1)).reshape(n * d, c, 1, h, w))
        wanted = np.moveaxis(run(tile, flat).reshape(n, d, o, h, w), 1, 2)
        for layout in LAYOUTS:
            np.testing.assert_array_equal(bits(run(tile, case, *layout)), bits(wanted))


@TILES
@pytest.mark.parametrize(
    ("x", "o"), [((3, 40, 33, 31), 48), ((5, 64, 14, 14), 130), ((2, 9, 20, 300), 33), ((3, 300, 7, 7), 64)], ids=str
)
@pytest.mark.without("reference")  # numpy's products promise no order of summation
def test_same_bits_for_every_batch_size_and_thread_count(variant: str, x: tuple[int, int, int, int], o: int, tile: int) -> None:
    n, c, h, w = x
    case = random_problem(np.random.default_rng(7), (n, c, 1, h, w), (o, c, 1, 3, 3), pads=(0, 0, 1, 1, 1, 1))
    before = fl.get_num_threads()
    try:
        fl.set_num_threads(1)
        whole = run(tile, case)
        one = np.concatenate([run(tile, case._replace(x=case.x[i : i + 1])) for i in range(n)])
        np.testing.assert_array_equal(bits(whole), bits(one))
        for threads, layout in itertools.product((2, 3), LAYOUTS):
            fl.set_num_threads(threads)
            np.testing.assert_array_equal(bits(whole), bits(run(tile, case, *layout)))
    finally:
        fl.set_num_threads(before)


@TILES
def test_levels_with_fused_multiply_add_agree(tile: int) -> None:
    levels = [name for name in fl.kernels.available() if name in ("aot/x86_v3", "aot/x86_v4")]
    if len(levels) < 2:
        pytest.skip("needs two such levels on one processor")
    for i in range(0, len(AWKWARD), 3):
        results = []
        for name in levels:
            with fl.kernels.use(name):
                results.append(bits(run(tile, problem(i), residual=other(i), activation=RELU)))
        np.testing.assert_array_equal(*results)


@TILES
def test_packed_weights_are_copies(variant: str, tile: int) -> None:
    case = problem(7)
    assert case.bias is not None
    before = run(tile, case)
    weight, bias = case.weight.copy(), case.bias.copy()
    packed = dispatch.kernel("winograd_pack")(weight, bias, tile, 1)
    weight[:], bias[:] = np.nan, np.nan
    out = np.empty(case.out_shape, np.float32)
    dispatch.kernel("winograd")(case.x, packed, out, case.pads, False, False, None, IDENTITY)
    np.testing.assert_array_equal(bits(out), bits(before))
