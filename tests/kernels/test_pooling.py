"""Pooling: figures of torch and onnxruntime, awkward shapes in both layouts, NaN in every place, edges of memory, threads."""

from __future__ import annotations

import json
import os
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from tests.guard import guarded, guarded_empty

from ..each import each
from .space import bits

LAYOUTS = pytest.mark.parametrize("channels_last", [False, True], ids=["first", "last"])
KINDS = ("max", "avg", "avg pads")
kinds = pytest.mark.parametrize("kind", KINDS)


class Problem(NamedTuple):
    """Pooling of x (n, c, d, h, w) to `space` windows."""

    x: np.ndarray
    space: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...] = (1, 1, 1)
    dilation: tuple[int, ...] = (1, 1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0, 0, 0)

    @property
    def out_shape(self) -> tuple[int, ...]:
        return (*self.x.shape[:2], *self.space)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def windows(size: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    return max(0, (size + before + after - dilation * (kernel - 1) - 1) // stride + 1)


def problem(
    shape: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...] = (1, 1, 1),
    pads: tuple[int, ...] = (0,) * 6,
    dilation: tuple[int, ...] = (1, 1, 1),
    more: int = 0,
) -> Problem:
    """`more`: windows on each axis beyond those that fit, as rounding up gives, or a caller who wants them."""
    each = zip(shape[2:], kernel, stride, dilation, pads[::2], pads[1::2], strict=True)
    return Problem(numbers(*shape), tuple(windows(*axis) + more for axis in each), kernel, stride, dilation, pads)


def run(kind: str, p: Problem, channels_last: bool = False, edge: str = "") -> np.ndarray:
    """The result, channels-first. A compiled variant's step must give the same bits."""
    x, out = p.x, np.full(p.out_shape, 77, np.float32)
    if channels_last:
        x, out = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.ascontiguousarray(np.moveaxis(out, 1, -1))
    if edge:
        x, out = guarded(x, edge), guarded_empty(out.shape, edge)
    x = x.view()
    x.flags.writeable = False
    name = "max_pool" if kind == "max" else "avg_pool"
    rest = (p.kernel, p.stride, p.dilation, p.pads, *([] if kind == "max" else [kind == "avg pads"]), channels_last)
    dispatch.kernel(name)(x, out, *rest)
    step = dispatch.step(name)
    if step is not None:
        again = np.full_like(out, 77)
        step(x.shape, out.shape, *rest)(x, again)
        np.testing.assert_array_equal(bits(again), bits(out))
    return np.moveaxis(out, -1, 1) if channels_last else out


def close(kind: str, got: np.ndarray, want: np.ndarray, p: Problem) -> None:
    """A maximum is exact. An average may be off by half a unit of each addition, of the factor and of the product."""
    if kind == "max":
        np.testing.assert_array_equal(got, want)
        return
    finite = np.abs(p.x[np.isfinite(p.x)])
    additions = p.kernel[0] * p.kernel[1] + p.kernel[2] + 2
    np.testing.assert_allclose(got, want, rtol=0, atol=additions * 2.0**-24 * max(finite.max(initial=0), 1e-30))


def reference(kind: str, p: Problem) -> np.ndarray:
    with fl.kernels.use("reference"):
        return run(kind, p)


@cache
def golden() -> list[tuple[str, Problem, np.ndarray]]:
    with np.load(Path(__file__).parent.parent / "goldens" / "pooling.npz") as file:
        cases: list[dict[str, Any]] = json.loads(str(file["cases"]))
        return [_golden(case, file[f"{i}.x"], file[f"{i}.y"]) for i, case in enumerate(cases)]


def _golden(case: dict[str, Any], x: np.ndarray, y: np.ndarray) -> tuple[str, Problem, np.ndarray]:
    missing = 5 - x.ndim
    x, y = (a.reshape(*a.shape[:2], *(1,) * missing, *a.shape[2:]) for a in (x, y))
    kernel, stride, dilation = ((1,) * missing + tuple(case[key]) for key in ("kernel", "stride", "dilation"))
    pads = (0,) * (2 * missing) + tuple(p for pair in case["pads"] for p in pair)
    kind = "max" if case["kind"] == "max" else "avg pads" if case.get("include") else "avg"
    return kind, Problem(x, y.shape[2:], kernel, stride, dilation, pads), y


SAME = (0, 0, 1, 1, 1, 1)
# Columns and channels around vectors of 4, 8 and 16; each way to walk a line: neighbours, joined rows, every second, picked ones,
# long windows, pixels, channels as columns, blocks of channels, pieces of rows; the whole image; sizes 0 and 1.
AWKWARD = (
    problem((1, 3, 1, 9, 112), (1, 3, 3), (1, 2, 2), SAME),
    problem((2, 5, 1, 13, 33), (1, 3, 3), (1, 2, 2), (0, 0, 1, 0, 0, 1)),
    problem((1, 2, 1, 8, 64), (1, 2, 2), (1, 2, 2)),
    problem((1, 2, 1, 7, 31), (1, 2, 2), (1, 2, 2), more=1),
    problem((1, 4, 1, 28, 28), (1, 3, 3), pads=SAME),
    problem((1, 193, 1, 3, 141), (1, 2, 3), (1, 1, 2)),  # a last block of one channel
    problem((2, 19, 1, 7, 7), (1, 3, 3), pads=SAME),
    problem((1, 3, 1, 5, 63), (1, 3, 3), pads=SAME),
    problem((1, 3, 1, 5, 64), (1, 3, 3), pads=SAME),
    problem((1, 3, 1, 20, 17), (1, 5, 5), pads=(0, 0, 2, 2, 2, 2)),
    problem((1, 3, 1, 20, 16), (1, 2, 2), pads=(0, 0, 0, 1, 1, 0)),
    problem((1, 3, 1, 20, 15), (1, 3, 3), (1, 2, 1), pads=(0, 0, 1, 1, 2, 2), dilation=(1, 1, 2)),
    problem((1, 3, 1, 12, 9), (1, 9, 9), pads=(0, 0, 4, 4, 4, 4)),
    problem((1, 24, 1, 9, 9), (1, 3, 3), pads=SAME),
    problem((1, 40, 1, 6, 7), (1, 3, 3), (1, 2, 2), SAME),
    problem((1, 130, 1, 5, 141), (1, 3, 3), pads=SAME),
    problem((1, 129, 1, 5, 141), (1, 3, 2), (1, 1, 2), SAME),
    problem((1, 15, 1, 9, 20), (1, 2, 3), (1, 2, 3)),
    problem((1, 1, 1, 9, 40), (1, 3, 5), (1, 2, 3)),
    problem((1, 2, 1, 3, 100), (1, 2, 10), (1, 1, 4), dilation=(1, 1, 3)),
    problem((2, 3, 1, 1, 500), (1, 1, 20), (1, 1, 7)),
    problem((1, 3, 1, 2, 300), (1, 2, 300)),
    problem((1, 3, 1, 2, 300), (1, 2, 290), more=2),
    problem((1, 2, 1, 300, 3), (1, 260, 2), (1, 7, 1)),
    problem((1, 1, 1, 1, 20000), (1, 1, 3), (1, 1, 2), (0, 0, 0, 0, 1, 1)),
    problem((1, 17, 1, 1, 20000), (1, 1, 2), (1, 1, 1)),
    problem((1, 3, 5, 6, 7), (3, 2, 3), (2, 1, 2), (1, 1, 1, 0, 0, 1)),
    problem((1, 20, 4, 5, 8), (2, 3, 3), (1, 1, 1), (2, 2, 1, 1, 1, 1), (2, 1, 1)),
    problem((1, 6, 1, 6, 6), (1, 3, 3), (1, 4, 5), more=1),
    problem((1, 18, 1, 4, 4), (1, 2, 2), pads=(0, 0, 3, 2, 5, 4), more=2),
    problem((2, 70, 1, 7, 7), (1, 7, 7)),
    problem((2, 70, 1, 7, 7), (1, 7, 7), pads=(0, 0, 1, 0, 0, 0)),
    problem((2, 70, 1, 7, 7), (1, 9, 8), pads=SAME),
    problem((1, 3, 3, 4, 5), (3, 4, 5)),
    problem((1, 4, 1, 5, 5), (1, 5, 3), dilation=(1, 1, 2)),
    problem((3, 1, 1, 1, 1), (1, 1, 1)),
    problem((3, 5, 1, 9, 9), (1, 1, 1), (1, 2, 2)),
    problem((0, 3, 1, 5, 5), (1, 2, 2)),
    problem((2, 0, 1, 5, 5), (1, 2, 2)),
    problem((2, 3, 1, 2, 5), (1, 3, 2)),
    problem((2, 3, 1, 0, 5), (1, 3, 2), pads=(0, 0, 2, 2, 0, 0)),
    problem((2, 3, 1, 0, 0), (1, 3, 3), pads=SAME),
)
NUMBERS = pytest.mark.parametrize("i", range(len(AWKWARD)))


@cache
def expected(kind: str, i: int) -> np.ndarray:
    return reference(kind, AWKWARD[i])


@LAYOUTS
@each("i", range(22))
def test_golden(variant: str, i: int, channels_last: bool) -> None:
    kind, p, y = golden()[i]
    close(kind, run(kind, p, channels_last), y, p)


def test_golden_cases_are_all_tried() -> None:
    assert len(golden()) == 22


@NUMBERS
@kinds
def test_awkward_shapes(variant: str, kind: str, i: int) -> None:
    p = AWKWARD[i]
    first, last = run(kind, p, False), run(kind, p, True)
    close(kind, first, expected(kind, i), p)
    close(kind, last, expected(kind, i), p)


@cache
def randoms() -> list[tuple[str, Problem, np.ndarray]]:
    """Problems with what is expected of them; windows may overhang on any side, or are outside of the image."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(60):
        kernel, stride, dilation = (tuple(int(v) for v in rng.integers(1, high, 3)) for high in ((3, 4, 6), (3, 4, 5), (2, 3, 3)))
        shape = (*(int(v) for v in rng.integers(1, (3, 40))), *(int(v) for v in rng.integers(1, (4, 12, 50))))
        p = problem(shape, kernel, stride, tuple(int(v) for v in rng.integers(0, 4, 6)), dilation, int(rng.integers(0, 2)))
        p.x[rng.random(p.x.shape) < 0.01] = np.nan
        found += [(kind, p, reference(kind, p)) for kind in KINDS]
    return found


def test_random_shapes(variant: str) -> None:
    for kind, p, want in randoms():
        for channels_last in (False, True):
            close(kind, run(kind, p, channels_last), want, p)


@LAYOUTS
@kinds
@pytest.mark.parametrize(
    ("size", "kernel", "stride"),
    [((5, 18), 3, 1), ((5, 66), 3, 1), ((6, 35), 3, 2), ((6, 36), 2, 2), ((7, 19), 4, 3), ((4, 40), 20, 3)],
)
def test_nan_in_every_place(
    variant: str, kind: str, size: tuple[int, int], kernel: int, stride: int, channels_last: bool
) -> None:
    """Whichever lane, tap and row NaN comes from, the windows that hold it are NaN, and no other. Every image has one."""
    pad = (kernel - 1) // 2
    places = list(np.ndindex(*size))
    p = problem((len(places), 2, 1, *size), (1, kernel, kernel), (1, stride, stride), (0, 0, pad, pad, pad, pad))
    clean = run(kind, p, channels_last)
    for image, place in enumerate(places):
        p.x[image, 1, 0][place] = -np.nan if image % 2 else np.nan
    got = run(kind, p, channels_last)
    np.testing.assert_array_equal(got[:, 0], clean[:, 0])
    o = np.indices(p.space[1:])
    for image, place in enumerate(places):
        inside = [(s * stride - pad <= at) & (at < s * stride - pad + kernel) for s, at in zip(o, place, strict=True)]
        np.testing.assert_array_equal(np.isnan(got[image, 1, 0]), inside[0] & inside[1])


@LAYOUTS
def test_infinities(variant: str, channels_last: bool) -> None:
    x = numbers(1, 3, 1, 12, 30)
    x[0, 0, 0, 3:9, 4:20] = -np.inf
    x[0, 1, 0, 3, 4] = np.inf
    x[0, 2, 0, 5, 5], x[0, 2, 0, 5, 6] = np.inf, -np.inf
    for stride in (1, 2, 3):
        p = problem(x.shape, (1, 3, 3), (1, stride, stride), SAME)._replace(x=x)
        for kind in KINDS:
            want = reference(kind, p)
            assert np.isinf(want).any() and (kind == "max" or np.isnan(want).any())
            np.testing.assert_allclose(run(kind, p, channels_last), want, rtol=1e-6, atol=1e-6)


def test_windows_outside_of_the_image(variant: str) -> None:
    p = Problem(numbers(1, 2, 1, 3, 3), (1, 6, 7), (1, 2, 2), (1, 2, 2), (1, 1, 1), (0, 0, 4, 2, 4, 2))
    largest, mean, with_pads = (run(kind, p) for kind in KINDS)
    assert np.all(largest[..., 0, :] == -np.inf) and np.isfinite(largest[..., 2, 2]).all()
    assert np.isnan(mean[..., :, 0]).all() and np.isfinite(mean[..., 2, 2]).all()
    assert np.all(with_pads[..., 0, 0] == 0), "pads alone: a mean of zeros"
    assert np.isnan(with_pads[..., 5, :]).all(), "after the pads nothing counts"


@pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
@pytest.mark.parametrize("edge", ["start", "end"])
@LAYOUTS
def test_stays_inside_its_operands(variant: str, channels_last: bool, edge: str) -> None:
    for i, p in enumerate(AWKWARD):
        for kind in ("max", "avg"):
            close(kind, run(kind, p, channels_last, edge), expected(kind, i), p)


# Enough for two threads, cut into several tasks: of planes, of rows, of pieces of rows, of blocks of channels.
LARGE = (
    problem((2, 24, 1, 60, 111), (1, 3, 3), (1, 2, 2), SAME),
    problem((2, 130, 1, 28, 28), (1, 3, 3), (1, 1, 1), SAME),
    problem((1, 1, 1, 300, 700), (1, 3, 3), (1, 1, 1), SAME),
    problem((1, 2, 1, 3, 40000), (1, 2, 5), (1, 1, 3)),
    problem((2, 500, 1, 16, 16), (1, 16, 16)),
)


@cache
def large(kind: str, i: int) -> np.ndarray:
    return reference(kind, LARGE[i])


@LAYOUTS
@pytest.mark.parametrize("i", range(len(LARGE)))
def test_same_bits_for_every_batch_size_and_thread_count(variant: str, i: int, channels_last: bool) -> None:
    p = LARGE[i]
    before = fl.get_num_threads()
    for kind in ("max", "avg"):
        whole = run(kind, p, channels_last)
        close(kind, whole, large(kind, i), p)
        fl.set_num_threads(2)
        try:
            np.testing.assert_array_equal(bits(run(kind, p, channels_last)), bits(whole))
        finally:
            fl.set_num_threads(before)
        alone = [run(kind, p._replace(x=p.x[n : n + 1]), channels_last) for n in range(p.x.shape[0])]
        np.testing.assert_array_equal(bits(np.concatenate(alone)), bits(whole))


def test_levels_and_layouts_agree() -> None:
    """Averages add in one order everywhere, but for long windows along a row."""
    levels = [name for name in fl.kernels.available() if name.startswith("aot/")]
    if not levels:
        pytest.skip("the compiled engine is not built here")
    for i, p in enumerate(AWKWARD):
        results = []
        for name in levels:
            with fl.kernels.use(name):
                for channels_last in (False, True):
                    y = bits(run("avg", p, channels_last))
                    if channels_last and p.kernel[2] < 8:
                        np.testing.assert_array_equal(y, results[-1], err_msg=str(i))
                    results.append(y)
        for layout in (0, 1):
            for y in results[2 + layout :: 2]:
                np.testing.assert_array_equal(y, results[layout], err_msg=str(i))


WINDOWS = ((1, 1, 3), (1, 1, 7), (1, 1, 40), (1, 1, 300), (1, 2, 2), (1, 7, 7), (1, 4, 70), (2, 3, 4), (1, 300, 2), (20, 16, 1))


@pytest.mark.later("reference")
@pytest.mark.without("jit", "cuda")  # the promise is the compiled engine's; a sum of nothing but -0 has either sign there
@LAYOUTS
@each("kernel", WINDOWS)
def test_a_window_alone_has_the_bits_that_it_has_among_others(
    variant: str, kernel: tuple[int, int, int], channels_last: bool
) -> None:
    """Along each axis, whether it is the whole image or not; padding before it may be values."""
    rng = np.random.default_rng(7)
    for axis, channels in product(range(3), (1, 19)):
        for before, stride in ((0, 1), (0, 4), (kernel[axis] - 1, 2)):
            step = min(stride, kernel[axis])
            size = [k + 5 * step * (i == axis) for i, k in enumerate(kernel)]
            steps, pads = [1, 1, 1], [0] * 6
            steps[axis], pads[2 * axis] = step, before
            x = rng.standard_normal((2, channels, *size)).astype(np.float32)
            x[rng.random(x.shape) < 0.2] = -0.0
            many = problem(x.shape, kernel, tuple(steps), tuple(pads))._replace(x=x)
            for kind in ("max", "avg pads"):
                filled = np.pad(
                    x, [(before * (i == axis + 2), 0) for i in range(5)], constant_values=0 if kind != "max" else -np.inf
                )
                whole = bits(run(kind, many, channels_last))
                for o in {0, 1, whole.shape[2 + axis] - 1}:
                    part = np.take(filled, np.arange(kernel[axis]) + o * step, 2 + axis)
                    alone = Problem(part, (1, 1, 1), kernel, tuple(steps))
                    want = np.take(whole, [o], 2 + axis)
                    np.testing.assert_array_equal(bits(run(kind, alone, channels_last)), want, err_msg=f"{axis} {before} {o}")


def test_comparison_can_fail() -> None:
    p = AWKWARD[0]
    for kind in KINDS:
        want = expected(kind, 0)
        close(kind, want, want, p)
        wrong = want.copy()
        wrong[0, 1, 0, 2, 3] += 1e-5
        with pytest.raises(AssertionError):
            close(kind, wrong, want, p)
