"""Copies, tiles that turn, rows by number, casts, padding: bit for bit the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels.table import KINDS, PAD_MODES

from .calls import agree, numbers, requires_cuda, run

pytestmark = requires_cuda
EXACT = {"rtol": 0, "atol": 0}


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize(
    ("shape", "x_strides", "out_strides"),
    [
        ((5,), (1,), (1,)),
        ((3, 4), (1, 3), (4, 1)),
        ((9, 10), (1, 9), (10, 1)),
        ((2, 9, 33), (297, 1, 9), (297, 33, 1)),
        ((9, 2, 33), (1, 297, 9), (66, 33, 1)),
        ((2, 3, 4), (0, 4, 1), (12, 4, 1)),
        ((3, 4), (-4, -1), (5, 1)),
        ((2, 0), (1, 1), (1, 1)),
        ((), (), ()),
        ((3,), (2,), (3,)),
    ],
    ids=str,
)
def test_copy(shape: tuple[int, ...], x_strides: Any, out_strides: Any, itemsize: int) -> None:
    dtype = np.dtype(f"u{itemsize}")
    x = np.arange(700).astype(dtype)
    out = np.full(800, 77, dtype)
    start = -sum((n - 1) * s for n, s in zip(shape, x_strides, strict=True) if s < 0) + 1 if 0 not in shape else 1
    agree("copy", x, out, shape, start, x_strides, 3, out_strides, itemsize, **EXACT)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 33, 9), (1, 8, 40), (3, 1, 5), (0, 2, 3), (2, 64, 32)], ids=str)
def test_transpose(shape: tuple[int, int, int]) -> None:
    b, r, c = shape
    agree("transpose", numbers(*shape), np.empty((b, c, r), np.float32), **EXACT)


def test_gather_and_embedding() -> None:
    picks = np.array([3, -1, 0, -4, 2, 2], np.int64)
    for dtype in (np.uint8, np.float16, np.float32, np.int64):
        x = np.arange(2 * 4 * 3).reshape(2, 4, 3).astype(dtype)
        agree("gather", x, picks, np.empty((2, 6, 3), dtype), x.itemsize, **EXACT)
    agree("gather", np.empty((2, 4, 0), np.float32), picks, np.empty((2, 6, 0), np.float32), 4, **EXACT)
    agree("embedding", numbers(5, 7), np.array([4, 0, 0, 2]), np.empty((4, 7), np.float32), **EXACT)
    agree("embedding", numbers(5, 7), np.empty(0, np.int64), np.empty((0, 7), np.float32), **EXACT)


@pytest.mark.parametrize("index", [4, -5, 2**40])
def test_an_index_that_is_out_of_range(index: int) -> None:
    out = np.empty((2, 3, 3), np.float32)
    with pytest.raises(fl.ShapeError, match=f"{index} is out of range: expected -4 to 3"):
        agree("gather", numbers(2, 4, 3), np.array([0, index, 1]), out, 4)
    with pytest.raises(fl.ShapeError, match="expected 0 to 4"):
        agree("embedding", numbers(5, 3), np.array([-1]), np.empty((1, 3), np.float32))


@pytest.mark.parametrize("source", sorted(KINDS))
def test_cast(source: str) -> None:
    """To every kind, of values that it holds."""
    values = np.array([0, 1, 2, 100, 7, 0.5, 3.99])
    if source.startswith(("int", "float")):
        values = np.concatenate([values, [-1, -2.5, -100]])
    x = values.astype(source)
    for target in KINDS:
        given = np.abs(x) if target.startswith("u") and x.dtype != bool else x
        agree("cast", given, np.empty(given.shape, target), KINDS[source], KINDS[target], **EXACT)
    if source.startswith("float"):
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 65504, 1e-7], source)
        for target in ("float16", "float32", "float64", "bool"):
            agree("cast", special, np.empty(special.shape, target), KINDS[source], KINDS[target], **EXACT)


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_floats_that_no_integer_holds(source: str) -> None:
    """Ends of the range, of int32 at least (for uint32, uint64: of int64); the rest wraps around; NaN is the lower end."""
    x = np.array([np.nan, np.inf, -np.inf, -1.5, -3.0, 300.7, 60000, -60000, 2.5, 3.5], source)
    if source != "float16":
        x = np.concatenate([x, np.array([3e9, -3e9, 2.0**31, -(2.0**31), 1e30, 2.0**62], source)])
    for target in KINDS:
        if target.startswith("float") or target == "bool":
            continue
        whole = np.int64 if target in ("int64", "uint32", "uint64") else np.int32
        ends = np.iinfo(whole)
        want = [
            ends.min if v != v else ends.max if v >= -float(ends.min) else max(int(max(v, -1e30)), ends.min) for v in x.tolist()
        ]
        if target == "uint64":  # has an upper half of its own
            want = [min(int(v), 2**64 - 1) if 2.0**63 <= v < np.inf else 2**64 - 1 if v > 0 and v == np.inf else w % 2**64
                    for v, w in zip(x.tolist(), want, strict=True)]  # fmt: skip
            whole = np.uint64
        got = run("cuda", "cast", (x, np.empty(x.shape, target), KINDS[source], KINDS[target]))[0]
        np.testing.assert_array_equal(got, np.array(want, whole).astype(target), err_msg=target)


@pytest.mark.parametrize("mode", sorted(PAD_MODES))
def test_pad(mode: str) -> None:
    for shape, pads in (
        ((1, 1, 1, 4, 1), (0, 0, 0, 0, 2, 3)),
        ((2, 2, 3, 4, 3), (1, 0, 2, 1, 0, 3)),
        ((1, 1, 2, 1, 2), (0,) * 6),
    ):
        if mode == "circular" and any(p > n for n, p in zip(np.repeat(shape[1:4], 2), pads, strict=True)):
            continue
        out = (shape[0], *(n + pads[2 * i] + pads[2 * i + 1] for i, n in enumerate(shape[1:4])), shape[4])
        agree("pad", numbers(*shape), np.empty(out, np.float32), pads, PAD_MODES[mode], -1.5, **EXACT)
