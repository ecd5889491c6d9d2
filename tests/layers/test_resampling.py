"""Resampling as layers and functions: figures of torch, both layouts, edges of memory, NaN, threads, errors."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.resize_tables import torch_tables

from ..each import each
from ..goldens import resize_cases as grid
from ..goldens.front_cases import FunctionCase, LayerCase, arrays
from ..goldens.resampling_cases import FUNCTIONS, LAYERS
from ..guard import guarded, guarded_empty

f = fl.functional
GOLDEN = Path(__file__).parent.parent / "goldens" / "resampling_layers.npz"
# At most 16 taps of weight 1 or so, each rounded once.
TOLERANCE = 4e-6


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as file:
        return dict(file)


def compare(function: Any, x: np.ndarray, want: np.ndarray, axes: int) -> None:
    """In both layouts."""
    np.testing.assert_allclose(function(x, "nchw"), want, rtol=TOLERANCE, atol=TOLERANCE)
    channel = x.ndim - axes - 1
    turned = function(np.moveaxis(x, channel, -1), "nhwc")
    np.testing.assert_allclose(np.moveaxis(turned, -1, channel), want, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.label)
def test_layers_give_what_torch_gives(case: LayerCase, variant: str, golden: dict[str, np.ndarray]) -> None:
    (x,) = arrays(case.label, case.shape)
    axes = 2 if "Pixel" in case.name else x.ndim - 2
    compare(lambda x, layout: getattr(fl, case.name)(*case.args, **case.kwargs, layout=layout)(x), x, golden[case.label], axes)


@each("case", FUNCTIONS, ids=lambda case: case.label)
def test_functions_give_what_torch_gives(case: FunctionCase, variant: str, golden: dict[str, np.ndarray]) -> None:
    (x,) = arrays(case.label, *case.shapes)
    axes = 2 if "pixel" in case.name else x.ndim - 2
    compare(lambda x, layout: getattr(f, case.name)(x, **case.kwargs, layout=layout), x, golden[case.label], axes)


def agree(case: grid.Torch, got: np.ndarray, want: np.ndarray, text: str) -> None:
    """Whether a result has in every row what torch has: the same elements, or sums of the same ones."""
    exact = "nearest" in case.mode
    rows = np.broadcast_to(want.astype(np.float32) * (1 if exact else grid.STEP), (got.size // len(want), len(want)))
    np.testing.assert_allclose(got.reshape(rows.shape), rows, rtol=0, atol=0 if exact else grid.TOLERANCE, err_msg=text)


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_every_size_and_scale_as_torch(every: int) -> None:
    """A dense grid of sizes and scales, some of which leave an axis its size, or double it."""
    found = grid.golden("torch")
    for i, case in enumerate(grid.TORCH):
        for pair, want in list(grid.cut(found.pop(grid.label(case._asdict())), grid.torch_pairs(case.mode)))[i % every :: every]:
            x, arguments, text = case.x(pair.size), case.arguments(pair), f"{case} {pair}"
            agree(case, f.interpolate(x, **arguments), want, text)
            if pair.scale is None:
                continue
            np.testing.assert_array_equal(
                f.interpolate(x, **case.arguments(pair, recompute=True)),
                f.interpolate(x, **case.arguments(pair._replace(scale=None))),
                err_msg=f"recomputed: {text}",
            )
    assert not found


def test_recorded_and_layers_as_torch(variant: str) -> None:
    found = grid.golden("torch")
    for i, case in enumerate(grid.TORCH):
        cases = list(grid.cut(found[grid.label(case._asdict())], grid.torch_pairs(case.mode)))
        kept = [(pair, want) for pair, want in cases if pair.out in (pair.size, 2 * pair.size) and pair.scale not in (None, 1, 2)]
        for pair, want in (*kept[i :: max(len(kept) // 2, 1)], cases[9 * i % len(cases)]):
            x, arguments, text = case.x(pair.size), case.arguments(pair), f"{case} {pair}"
            layer = fl.Upsample(**arguments)
            last = np.moveaxis(x, 1, -1)
            agree(case, layer(x), want, text)
            agree(case, fl.compile(layer, x)(x), want, text)
            agree(case, fl.Upsample(**arguments, layout="nhwc")(last), want, text)
            agree(case, fl.compile(fl.Upsample(**arguments, layout="nhwc"), last)(last), want, text)


# Rows around vectors of 4, 8 and 16 and windows of two; up, down, far down; channels below and above those taken as positions.
SHAPES = (
    ((1, 1), (3, 5)), ((2, 3), (5, 31)), ((5, 8), (9, 15)), ((3, 15), (7, 33)), ((4, 16), (4, 40)), ((6, 17), (11, 17)),
    ((5, 31), (3, 64)), ((7, 32), (13, 90)), ((3, 33), (6, 16)), ((20, 70), (7, 9)), ((2, 200), (5, 450)),
)  # fmt: skip


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("inner", [1, 3, 15, 16, 37])
def test_kernel_at_edges_of_memory(mode: str, inner: int, variant: str, threads: int) -> None:
    for size, out in SHAPES:
        rng = np.random.default_rng(zlib.crc32(repr((size, out, inner)).encode()))
        axes = (None, *torch_tables(size, out, mode, False))
        x = rng.standard_normal((2, 1, *size, inner)).astype(np.float32)
        with fl.kernels.use("reference"):
            want = np.empty((2, 1, *out, inner), np.float32)
            dispatch.kernel("resize")(x, dispatch.kernel("resize_pack")(axes, x.shape[1:]), want)
        packed = dispatch.kernel("resize_pack")(axes, x.shape[1:])
        for edge in ("start", "end"):
            y = guarded_empty(want.shape, edge)
            dispatch.kernel("resize")(guarded(x, edge), packed, y)
            np.testing.assert_allclose(y, want, rtol=TOLERANCE, atol=TOLERANCE, err_msg=str((size, out)))
            if mode == "nearest":
                np.testing.assert_array_equal(y, want)
        step = dispatch.step("resize")
        if step is not None:
            again = np.empty_like(want)
            step(x.shape, packed, want.shape)(x, again)
            np.testing.assert_array_equal(again, y)


def test_many_taps_of_three_axes(variant: str, threads: int) -> None:
    """Tables of any number of taps, some of weight 0, in every axis."""
    rng = np.random.default_rng(0)
    sizes, outs = (4, 9, 35), (3, 11, 41)
    axes = []
    for size, out in zip(sizes, outs, strict=True):
        weight = rng.standard_normal((11, out)).astype(np.float32)
        weight[rng.random(weight.shape) < 0.3] = 0
        axes.append((rng.integers(0, size, (11, out)), weight))
    for inner in (1, 2, 19):
        x = rng.standard_normal((1, *sizes, inner)).astype(np.float32)
        made = []
        for name in ("reference", dispatch.current()):
            with fl.kernels.use(name):
                y = np.full((1, *outs, inner), np.nan, np.float32)
                dispatch.kernel("resize")(x, dispatch.kernel("resize_pack")(tuple(axes), x.shape[1:]), y)
                made.append(y)
        np.testing.assert_allclose(made[1], made[0], rtol=1e-4, atol=1e-5 * float(np.abs(made[0]).max()))


def test_nan_and_infinity_reach_what_reads_them(variant: str) -> None:
    x = np.zeros((1, 1, 1, 40), np.float32)
    x[..., 10], x[..., 30] = np.nan, np.inf
    got = f.interpolate(x, size=(1, 80), mode="bilinear")[0, 0, 0]
    np.testing.assert_array_equal(np.isnan(got).nonzero()[0], [19, 20, 21, 22])
    np.testing.assert_array_equal(np.isinf(got).nonzero()[0], [59, 60, 61, 62])
    # Of weight 0: the first output is on the first pixel.
    y = np.array([[[1.0, np.nan, 2.0]]], np.float32)
    assert f.interpolate(y, size=5, mode="linear", align_corners=True)[0, 0, 0] == 1


def test_threads_change_no_bit(variant: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 5, 61, 47)).astype(np.float32)
    before = fl.get_num_threads()
    made = []
    for count in (1, 2):
        fl.set_num_threads(count)
        made.append([f.interpolate(x, scale_factor=2.3, mode=mode) for mode in ("nearest", "bilinear", "bicubic")])
    fl.set_num_threads(before)
    for a, b in zip(*made, strict=True):
        np.testing.assert_array_equal(a, b)


X = np.zeros((1, 4, 6, 6), np.float32)
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: f.interpolate(X, 2, mode="lanczos"), fl.ArgumentError, "interpolate: mode is 'lanczos'"),
    (
        lambda: f.interpolate(X, 2, mode="linear"),
        fl.ArgumentError,
        "interpolate: mode is 'linear', x has 2 spatial axes: expected 1",
    ),
    (lambda: f.interpolate(X), fl.ArgumentError, "interpolate: size is None, scale_factor None: expected one of them"),
    (lambda: f.interpolate(X, 2, 2), fl.ArgumentError, "interpolate: size is 2, scale_factor 2: expected one of them"),
    (lambda: f.interpolate(X, 0), fl.ArgumentError, "interpolate: size is 0: expected at least 1"),
    (lambda: f.interpolate(X, (1, 2, 3)), fl.ArgumentError, "interpolate: size is .* of length 3"),
    (lambda: f.interpolate(X, scale_factor=-1), fl.ArgumentError, "interpolate: scale_factor is -1: expected a positive number"),
    (lambda: f.interpolate(X, scale_factor=0.1), fl.ShapeError, "interpolate: scale_factor .* expected sizes of at least 1"),
    (lambda: f.interpolate(X, 2, align_corners=True), fl.ArgumentError, "interpolate: align_corners is True with mode='nearest'"),
    (lambda: f.interpolate(X, 2, antialias=True), fl.UnsupportedError, "interpolate: antialias is True"),
    (lambda: f.interpolate(X, 2, recompute_scale_factor=True), fl.ArgumentError, "interpolate: recompute_scale_factor"),
    (lambda: f.interpolate(X[:, :, :0], 2), fl.ShapeError, "interpolate: x has shape .*at least one number"),
    (lambda: f.interpolate(X[0, 0], 2), fl.ShapeError, "interpolate: x has shape"),
    (lambda: f.interpolate(X, 2, layout="hwc"), fl.ArgumentError, "interpolate: layout is 'hwc'"),
    (lambda: f.pixel_shuffle(X, 3), fl.ShapeError, "pixel_shuffle: x has shape .*4 channels: expected a multiple of 9"),
    (lambda: f.pixel_shuffle(X, 0), fl.ArgumentError, "pixel_shuffle: upscale_factor is 0"),
    (lambda: f.pixel_unshuffle(X, 4), fl.ShapeError, "pixel_unshuffle: x has shape .*6 rows: expected a multiple of 4"),
    (lambda: f.pixel_unshuffle(X[0, 0], 2), fl.ShapeError, "pixel_unshuffle: x has shape"),
    (lambda: fl.Upsample(), fl.ArgumentError, "Upsample: size is None, scale_factor None"),
    (lambda: fl.Upsample(2, mode="cubic"), fl.ArgumentError, "Upsample: mode is 'cubic'"),
    (lambda: fl.PixelShuffle(1.5), fl.DTypeError, "PixelShuffle: upscale_factor is 1.5"),
]


def test_a_result_beyond_all_memory_is_refused() -> None:
    with pytest.raises(fl.LimitError, match="no memory"):
        fl.functional.interpolate(np.ones((1, 1, 2, 2)), scale_factor=1e12)


@pytest.mark.parametrize(("call", "kind", "text"), WRONG, ids=[text[:50] for _, _, text in WRONG])
def test_wrong_arguments(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()
