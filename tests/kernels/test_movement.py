"""`copy` and `gather` against numpy's views and against loops, `cast` against astype: all exactly."""

from __future__ import annotations

import itertools
import os
from typing import NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ShapeError
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import KINDS

from ..guard import guarded

ITEMS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
items = pytest.mark.parametrize("item", ITEMS, ids=lambda n: f"{n} bytes")
posix = pytest.mark.skipif(os.name != "posix", reason="guard pages need mprotect")
edges = pytest.mark.parametrize("edge", ["start", "end"])


class Views(NamedTuple):
    """What a copy reads and writes, as views of two whole arrays."""

    x: np.ndarray
    out: np.ndarray
    from_: np.ndarray
    to: np.ndarray


def numbers(item: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (*shape, item), np.uint8).view(ITEMS[item]).reshape(shape)


def place(whole: np.ndarray, view: np.ndarray) -> tuple[int, tuple[int, ...]]:
    """Offset and strides of a view in items."""
    item = whole.itemsize
    start = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return start // item, tuple(s // item for s in view.strides)


def run(v: Views, edge: str | None = None) -> np.ndarray:
    """What a copy makes of the output, whose other items keep what they were."""
    arrays = (v.x.copy(), v.out.copy()) if edge is None else (guarded(v.x, edge), guarded(v.out, edge))
    arrays[0].flags.writeable = False
    dispatch.kernel("copy")(*arrays, v.to.shape, *place(v.x, v.from_), *place(v.out, v.to), v.x.itemsize)
    return arrays[1]


def check(v: Views, edge: str | None = None) -> None:
    got = run(v, edge)
    v.to[...] = v.from_
    np.testing.assert_array_equal(got, v.out)


def random_slice(rng: np.random.Generator, view: np.ndarray, steps: tuple[int, ...]) -> np.ndarray:
    """A part of a view with other steps: slice by slice."""
    for axis in range(view.ndim):
        start, step = int(rng.integers(0, view.shape[axis] + 1)), int(rng.choice(steps))
        view = view[(slice(None),) * axis + (slice(start, None, step),)]
    return view


def random_views(seed: int, item: int) -> Views:
    """Two arrays of any rank and a part of each: slices, reversals, permutations and repeated axes of x, slices of out."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(0, 9))
    most = {0: 2, 1: 100, 2: 40, 3: 20, 4: 9, 5: 6, 6: 4, 7: 4, 8: 4}[rank]
    sizes = [int(n) for n in rng.integers(1, most, rank)]
    out = numbers(item, *sizes)
    to = out if rng.integers(2) else random_slice(rng, out, (1, 1, 2, 3))
    axes = rng.permutation(rank)
    shape = [to.shape[i] for i in axes]
    repeated = rng.integers(0, 4, rank) == 0
    grown = [int(n) if r else int(n) * int(rng.integers(1, 3)) for n, r in zip(shape, repeated, strict=True)]
    x = numbers(item, *(1 if r else n for n, r in zip(grown, repeated, strict=True)))[...]
    view = np.broadcast_to(x, grown)
    for axis, (n, big) in enumerate(zip(shape, grown, strict=True)):
        step = big // n if n and rng.integers(2) else 1
        part = slice(0, n * step, step)
        view = view[(slice(None),) * axis + (part,)]
        if rng.integers(4) == 0:
            view = np.flip(view, axis)
    return Views(x, out, view.transpose(np.argsort(axes)), to)


@items
def test_any_two_views(variant: str, item: int) -> None:
    for seed in range(150):
        check(random_views(seed, item))


@posix
@edges
def test_views_at_the_edge_of_memory(variant: str, edge: str) -> None:
    for seed in range(60):
        check(random_views(seed, 2 ** (seed % 4)), edge)


def test_loops() -> None:
    """The oracle of the other tests, numpy's assignment, against loops over the formula."""
    for seed in range(40):
        v = random_views(seed, 4)
        x_offset, x_strides = place(v.x, v.from_)
        out_offset, out_strides = place(v.out, v.to)
        want = v.out.copy().reshape(-1)
        for index in itertools.product(*map(range, v.to.shape)):
            at = out_offset + int(np.dot(index, out_strides))
            want[at] = v.x.reshape(-1)[x_offset + int(np.dot(index, x_strides))]
        with fl.kernels.use("reference"):
            np.testing.assert_array_equal(run(v).reshape(-1), want)


SIDES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 33)


@posix
@items
def test_transpositions(variant: str, item: int) -> None:
    """Around the blocks, with gaps on both sides."""
    for rows, cols in itertools.product(SIDES, SIDES):
        for gap in (0, 3):
            x, out = numbers(item, 2, cols, rows + gap), numbers(item, 2, rows, cols + gap)
            check(Views(x, out, x[:, :, :rows].transpose(0, 2, 1), out[:, :, :cols]), "end")


@posix
@items
@pytest.mark.parametrize("step", [-3, -2, -1, 0, 1, 2, 3, 4, 5])
def test_steps_of_rows(variant: str, item: int, step: int) -> None:
    for n in (1, 2, 3, 15, 16, 17, 31, 33, 64, 65, 130):
        x = numbers(item, 3, n * max(abs(step), 1) if step else 1)
        view = np.broadcast_to(x, (3, n)) if step == 0 else x[:, ::step]
        for gap in (1, 2):
            out = numbers(item, 3, n * gap)
            check(Views(x, out, view, out[:, ::gap]), "end")


@edges
@posix
def test_rows_of_every_length(variant: str, edge: str) -> None:
    for n in (*range(1, 70), 127, 128, 129, 1000):
        x, out = numbers(1, 4, n + 1), numbers(1, 4, n + 2)
        check(Views(x, out, x[:, :n], out[:, :n]), edge)
        check(Views(x, out, x[:, 1:], out[:, 2:]), edge)


def test_steps_of_out_may_be_negative(variant: str) -> None:
    x, out = numbers(4, 5, 6), numbers(4, 6, 5)
    check(Views(x, out, x.T, out[::-1, ::-1]))


def test_nothing_and_one_item(variant: str) -> None:
    x, out = numbers(4, 3, 4), numbers(4, 3, 4)
    kernel = dispatch.kernel("copy")
    want = out.copy()
    kernel(x, out, (3, 0), 0, (4, 1), 0, (4, 1), 4)
    kernel(x[:0], out, (0,), 0, (1,), 12, (1,), 4)
    np.testing.assert_array_equal(out, want)
    kernel(x, out, (), 5, (), 7, (), 4)
    want[1, 3] = x[1, 1]
    np.testing.assert_array_equal(out, want)


def test_floats_keep_their_bits(variant: str) -> None:
    bits = np.array([0x7F800001, 0xFFC12345, 0x80000000, 1, 0x7FC00000, 0xFF800000] * 8, np.uint32)
    x = bits.view(np.float32).reshape(2, 4, 6)
    out = np.zeros((2, 6, 4), np.float32)
    dispatch.kernel("copy")(x, out, (2, 6, 4), 0, (24, 1, 6), 0, (24, 4, 1), 4)
    np.testing.assert_array_equal(out.view(np.uint32), x.transpose(0, 2, 1).copy().view(np.uint32))


LARGE = {
    "plain": ((1 << 20,), (0,)),
    "one long transposition": ((3, 70001), (1, 0)),
    "the other way round": ((70001, 5), (1, 0)),
    "square": ((700, 701), (1, 0)),
    "heads": ((3, 300, 5, 64), (0, 2, 1, 3)),
    "keys": ((3, 300, 5, 64), (0, 2, 3, 1)),
    "small blocks": ((40, 3, 5, 7, 11, 3), (4, 2, 0, 5, 1, 3)),
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("item", [1, 4, 8])
def test_large_on_two_threads(variant: str, threads: int, name: str, item: int) -> None:
    shape, axes = LARGE[name]
    x = numbers(item, *shape)
    view = x.transpose(axes)
    out = np.zeros(view.shape, x.dtype)
    check(Views(x, out, view, out))


def test_many_axes(variant: str) -> None:
    """Neighbours are merged, so more than eight axes may be given where few of them are apart."""
    x = numbers(2, *(2,) * 12)
    out = np.zeros_like(x)
    check(Views(x, out, x, out))
    view = x.transpose(*range(6, 12), *range(6))
    check(Views(x, out, view, out))


# ---- gather ----

GATHERS = ((1, 5, 7, 3), (3, 4, 1, 9), (2, 1, 16, 2), (1, 100, 64, 40), (4, 7, 5, 0), (0, 3, 2, 2), (2, 3, 0, 2), (5, 9, 33, 11))


@posix
@items
@edges
def test_gather(variant: str, item: int, edge: str) -> None:
    for o, n, inner, m in GATHERS:
        x, indices = numbers(item, o, n, inner), np.random.default_rng(m).integers(-n, n, m)
        out = guarded(np.zeros((o, m, inner), x.dtype), edge)
        dispatch.kernel("gather")(guarded(x, edge), guarded(indices, edge), out, item)
        np.testing.assert_array_equal(out, np.take(x, indices, axis=1))


@posix
def test_gather_rows_of_every_length(variant: str) -> None:
    for inner in (*range(1, 70), 128, 129):
        x, indices = numbers(1, 2, 5, inner), np.array([4, -1, 0, -5, 2, 2])
        out = guarded(np.zeros((2, 6, inner), np.uint8))
        dispatch.kernel("gather")(guarded(x), guarded(indices), out, 1)
        np.testing.assert_array_equal(out, x[:, indices])


@pytest.mark.parametrize("shape", [(1, 50, 40000), (3, 300, 1001), (1000, 50, 1)])
def test_gather_on_two_threads(variant: str, threads: int, shape: tuple[int, int, int]) -> None:
    x, indices = numbers(4, *shape), np.random.default_rng(0).integers(-shape[1], shape[1], 333)
    out = np.zeros((shape[0], 333, shape[2]), np.uint32)
    dispatch.kernel("gather")(x, indices, out, 4)
    np.testing.assert_array_equal(out, x[:, indices])


@pytest.mark.parametrize("index", [5, -6, 2**31, 2**63 - 1, -(2**63)])
def test_gather_refuses_an_index_out_of_range(variant: str, index: int) -> None:
    x, out = numbers(4, 2, 5, 3), numbers(4, 2, 4, 3)
    indices = np.array([0, 4, index, -5])
    want = out.copy()
    with pytest.raises(ShapeError, match=r"(gather|step): index -?\d+ is out of range: expected -?\d+ to -?\d+"):
        dispatch.kernel("gather")(x, indices, out, 4)
    np.testing.assert_array_equal(out, want)
    step = dispatch.step("gather")
    if variant.startswith("aot/"):
        assert step is not None
        with pytest.raises(ShapeError, match=r"(gather|step): index -?\d+ is out of range: expected -?\d+ to -?\d+"):
            step(x.shape, indices.shape, out.shape, 4)(x, indices, out)


def test_gather_of_nothing_has_no_right_index(variant: str) -> None:
    empty = np.zeros((1, 0, 3), np.float32)
    with pytest.raises(ShapeError):
        dispatch.kernel("gather")(empty, np.array([0]), np.zeros((1, 1, 3), np.float32), 4)
    dispatch.kernel("gather")(empty, np.zeros(0, np.int64), np.zeros((1, 0, 3), np.float32), 4)


# ---- cast ----

KIND_NAMES = tuple(KINDS)


def cast(x: np.ndarray, target: str, edge: str | None = None) -> np.ndarray:
    out = np.ones(x.shape, target)
    if edge is not None:
        x, out = guarded(x, edge), guarded(out, edge)
    x.flags.writeable = False
    dispatch.kernel("cast")(x, out, KINDS[x.dtype.name], KINDS[target])
    return out


def whole_range(kind: str) -> np.ndarray:
    """Values of a kind: all there are of one or two bytes, else of every size, with NaN, infinities and subnormal numbers."""
    dtype = np.dtype(kind)
    if kind == "bool":
        return np.array([False, True, True, False] * 150)
    if dtype.itemsize <= 2:
        return np.arange(256**dtype.itemsize, dtype=f"u{dtype.itemsize}").view(dtype)
    bits = np.random.default_rng(0).integers(0, 2**64, 70001, np.uint64)
    if dtype.kind in "iu":  # of every length
        shorter = bits >> np.arange(70001, dtype=np.uint64) % np.uint64(64)
        return (shorter.view(np.int64) * np.tile([1, -1], 35001)[:70001]).astype(dtype)
    common = np.random.default_rng(1).standard_normal(20000) * 10.0 ** np.tile(np.arange(-9, 11), 1000)
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float64)
    with np.errstate(all="ignore"):
        between = (halves[:-1] + halves[1:]) / 2  # the ties of float16
        ties = np.concatenate([halves, between, np.nextafter(between, np.inf), np.nextafter(between, -np.inf)])
        return np.concatenate([bits.view(np.uint32 if kind == "float32" else np.uint64).view(dtype), common, ties]).astype(dtype)


def fitting(x: np.ndarray, target: str) -> np.ndarray:
    """Those that the target can hold: numpy leaves open what becomes of other floats."""
    if x.dtype.kind != "f" or np.dtype(target).kind not in "iu":
        return x
    info = np.iinfo(target)
    with np.errstate(all="ignore"):
        whole = np.trunc(x.astype(np.float64))
    return x[(whole >= info.min) & (whole <= min(info.max, 2**63 - 1025))]


@pytest.mark.parametrize("source", KIND_NAMES)
def test_cast(source: str, variant: str) -> None:
    everything = whole_range(source)
    for target in KIND_NAMES:
        x = fitting(everything, target)
        with np.errstate(all="ignore"):
            want = x.astype(target)
        got = cast(x, target)
        np.testing.assert_array_equal(got, want)
        if want.dtype.kind == "f":
            numbers_alone = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got[numbers_alone]), np.signbit(want[numbers_alone]))


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_cast_of_what_does_not_fit_does_nothing_worse(source: str, variant: str) -> None:
    """No trap, no lane that spoils its neighbours; and NaN stays NaN among floats."""
    x = np.array([np.nan, 1, np.inf, 2, -np.inf, 3, 6e4, 4, -6e4, 5] * 7, source)
    if source != "float16":
        x[6::10], x[8::10] = 3e38, -3e38
    for target in KIND_NAMES:
        got = cast(x, target).reshape(7, 10)
        np.testing.assert_array_equal(got[:, 1::2], np.tile(np.arange(1, 6), (7, 1)).astype(target))
        assert got.dtype.kind != "f" or np.isnan(got[:, 0]).all()


@posix
@edges
def test_cast_sizes_at_the_edge_of_memory(variant: str, edge: str) -> None:
    for source, target in itertools.product(KIND_NAMES, KIND_NAMES):
        for n in (0, 1, 7, 8, 9, 33, 511, 512, 513):
            x = (np.arange(n) % 100).astype(source)
            np.testing.assert_array_equal(cast(x, target, edge), x.astype(target))


@pytest.mark.parametrize(
    ("source", "target"), [("float32", "int64"), ("uint8", "float32"), ("float16", "int8"), ("int64", "int32")]
)
def test_cast_on_two_threads(variant: str, threads: int, source: str, target: str) -> None:
    for shape in ((16384,), (16385,), (70, 3, 4001), ()):
        x = (np.random.default_rng(0).integers(0, 100, shape)).astype(source)
        np.testing.assert_array_equal(cast(np.asarray(x), target), x.astype(target))
