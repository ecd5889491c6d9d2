"""Convolutions and pools. Values are small integers, so that sums are exact in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import naive
from . import Case, array, case, numbers

I64 = np.int64
RELU = (1, 0.0, 0.0)


def small(*shape: int, seed: int = 0, low: int = -3, high: int = 4) -> np.ndarray:
    """Small integers as float32."""
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(np.float32)


def conv(
    label: str,
    x: Sequence[int],
    w: Sequence[int],
    out: Sequence[int],
    before: Sequence[int] = (),
    bias: bool = True,
    ulp: float = 0,
    native: bool = True,
    **attributes: Any,
) -> Case:
    """Sizes of the result, and how much padding is before the image, are given by hand."""
    axes = len(w) - 2
    image, weight = small(*x), small(*w, seed=1)
    b = small(w[0], seed=2) if bias else None
    ones = (1,) * axes
    y = naive.conv(
        image, weight, b, out, attributes.get("strides", ones), attributes.get("dilations", ones), before or (0,) * axes,
        attributes.get("group", 1),
    )  # fmt: skip
    inputs = [image, weight] if b is None else [image, weight, b]
    return case("Conv", label, inputs, y, native=native, ulp=ulp, **attributes)


CONVS = [
    conv("1 axis", (2, 3, 11), (5, 3, 3), (9,)),
    conv("1 axis, all", (1, 4, 17), (6, 2, 5), (7,), (3,), strides=(2,), dilations=(2,), group=2, pads=(3, 1)),
    conv("pointwise", (2, 3, 5, 4), (7, 3, 1, 1), (5, 4)),
    conv("pointwise, stride", (1, 3, 5, 4), (7, 3, 1, 1), (3, 2), strides=(2, 2), bias=False),
    conv("3x3", (1, 3, 7, 6), (4, 3, 3, 3), (7, 6), (1, 1), pads=(1, 1, 1, 1), ulp=64),
    conv("uneven pads", (1, 2, 6, 7), (3, 2, 3, 2), (7, 9), (2, 0), pads=(2, 0, 1, 3)),
    conv("stride and dilation", (1, 2, 9, 11), (3, 2, 3, 3), (4, 3), (1, 2), strides=(2, 3), dilations=(2, 3), pads=(1, 2, 1, 2)),
    conv("groups", (2, 6, 5, 5), (9, 2, 3, 3), (3, 3), group=3),
    conv("depthwise", (1, 5, 8, 7), (5, 1, 3, 3), (8, 7), (1, 1), group=5, pads=(1, 1, 1, 1)),
    conv("depthwise, times 2", (1, 3, 8, 7), (6, 1, 3, 5), (4, 2), (1, 1), group=3, strides=(2, 2), pads=(1, 1, 1, 0)),
    conv("one group of one", (1, 1, 6, 6), (1, 1, 3, 3), (4, 4), ulp=64),
    conv("3 axes", (1, 2, 4, 5, 3), (3, 2, 2, 3, 2), (4, 3, 3), (1, 0, 1), pads=(1, 0, 1, 0, 0, 0)),
    conv("SAME_UPPER", (1, 2, 6, 5), (3, 2, 3, 2), (3, 3), (0, 0), auto_pad="SAME_UPPER", strides=(2, 2)),
    conv("SAME_LOWER", (1, 2, 6, 5), (3, 2, 3, 2), (3, 3), (1, 1), auto_pad="SAME_LOWER", strides=(2, 2)),
    conv("SAME_UPPER, dilation", (1, 2, 6, 7), (3, 2, 2, 2), (6, 7), (1, 1), auto_pad="SAME_UPPER", dilations=(2, 3)),
    conv("VALID", (1, 2, 6, 5), (3, 2, 3, 2), (4, 4), auto_pad="VALID", bias=False),
    conv("kernel_shape", (1, 2, 6, 5), (3, 2, 3, 2), (4, 4), kernel_shape=(3, 2)),
    conv("no images", (0, 2, 6, 5), (3, 2, 3, 2), (4, 4)),
    conv("taken away", (1, 2, 7, 6), (3, 2, 2, 2), (5, 5), (-1, 0), pads=(-1, 0, 0, 0), native=False),
]  # fmt: skip


def extended() -> list[Case]:
    """What passes add: a residual, an activation, channels last."""
    x, w, b = small(2, 3, 6, 5), small(4, 3, 3, 3, seed=1), small(4, seed=2)
    y = naive.conv(x, w, b, (6, 5), (1, 1), (1, 1), (1, 1))
    pads = (1, 1, 1, 1)
    found = []
    for x_last in (False, True):
        for out_last in (False, True):
            given = np.moveaxis(x, 1, -1) if x_last else x
            want = np.moveaxis(y, 1, -1) if out_last else y
            label = f"last {x_last:d}{out_last:d}"
            layout = {"x_last": x_last, "out_last": out_last, "pads": pads, "native": True, "ulp": 64}
            found += [
                case("Conv", label, [given, w, b], want, **layout),
                case("Conv", f"{label}, relu", [given, w, None], np.maximum(want - (b if out_last else b.reshape(-1, 1, 1)), 0),
                     activation=RELU, **layout),
            ]  # fmt: skip
    residual = small(2, 4, 6, 5, seed=5)
    for label, r in (
        ("residual", residual),
        ("residual that is broadcast", residual[:, :, :1]),
        ("residual of one", residual[0, 0, 0, :1]),
    ):
        want = np.maximum(y + r, 0)
        found.append(case("Conv", label, [x, w, b, r], want, data=1, native=True, activation=RELU, pads=pads, ulp=64))
    deep, v = small(1, 5, 6, 6), small(5, 1, 3, 3, seed=1)
    want = naive.conv(deep, v, None, (6, 6), (1, 1), (1, 1), (1, 1), 5)
    deep, want = np.moveaxis(deep, 1, -1), np.moveaxis(want, 1, -1)
    found.append(case("Conv", "depthwise, last", [deep, v], want, native=True, x_last=True, out_last=True, group=5, pads=pads))
    return found


def transposed(
    label: str,
    x: Sequence[int],
    w: Sequence[int],
    out: Sequence[int],
    before: Sequence[int] = (),
    bias: bool = True,
    **attributes: Any,
) -> Case:
    axes = len(w) - 2
    group, ones = attributes.get("group", 1), (1,) * axes
    image, weight = small(*x), small(*w, seed=1)
    b = small(w[1] * group, seed=2) if bias else None
    y = naive.conv_transpose(
        image, weight, b, out, attributes.get("strides", ones), attributes.get("dilations", ones), before or (0,) * axes, group
    )
    return case("ConvTranspose", label, [image, weight] if b is None else [image, weight, b], y, native=True, **attributes)


TRANSPOSED = [
    transposed("1 axis", (2, 3, 5), (3, 4, 3), (7,)),
    transposed("1 axis, stride", (1, 3, 5), (3, 4, 4), (10,), (1,), strides=(2,), pads=(1, 1)),
    transposed("2 axes", (1, 2, 4, 3), (2, 3, 3, 2), (9, 6), strides=(2, 2), bias=False),
    transposed("pads", (1, 2, 4, 3), (2, 3, 3, 2), (8, 4), (1, 0), strides=(2, 2), pads=(1, 0, 0, 2)),
    transposed("output_padding", (1, 2, 4, 3), (2, 3, 3, 2), (10, 7), strides=(2, 2), output_padding=(1, 1)),
    transposed("dilation and groups", (1, 4, 4, 3), (4, 2, 2, 3), (6, 7), dilations=(2, 2), group=2),
    transposed("output_shape", (1, 2, 4, 3), (2, 3, 3, 3), (8, 8), (1, 1), strides=(2, 3), output_shape=(8, 8)),
    transposed("output_shape, upper", (1, 2, 4, 3), (2, 3, 3, 3), (8, 8), (0, 0), strides=(2, 3), output_shape=(8, 8),
         auto_pad="SAME_UPPER"),
    transposed("SAME_UPPER", (1, 2, 4, 3), (2, 3, 3, 3), (8, 6), (0, 0), strides=(2, 2), auto_pad="SAME_UPPER"),
    transposed("SAME_LOWER", (1, 2, 4, 3), (2, 3, 3, 3), (8, 6), (1, 1), strides=(2, 2), auto_pad="SAME_LOWER"),
    transposed("VALID", (1, 2, 4, 3), (2, 3, 3, 3), (6, 5), auto_pad="VALID"),
    transposed("3 axes", (1, 2, 3, 2, 2), (2, 2, 2, 2, 2), (6, 3, 3), strides=(2, 1, 1)),
    transposed("kernel below the stride", (1, 2, 4), (2, 3, 2), (11,), strides=(3,)),
]  # fmt: skip


def largest(values: np.ndarray) -> np.ndarray:
    return values.max(-1)  # type: ignore[no-any-return]


def mean(values: np.ndarray) -> np.ndarray:
    return values.mean(-1)  # type: ignore[no-any-return]


def norm(values: np.ndarray) -> np.ndarray:
    return np.sqrt((values**2).sum(-1))  # type: ignore[no-any-return]


def pool(
    op: str,
    label: str,
    shape: Sequence[int],
    out: Sequence[int],
    before: Sequence[int] = (),
    after: Sequence[int] = (),
    native: bool = True,
    padding: float | None = None,
    **attributes: Any,
) -> Case:
    x, kernel = small(*shape), attributes["kernel_shape"]
    ones = (1,) * len(kernel)
    function = {"MaxPool": largest, "AveragePool": mean, "LpPool": norm}[op]
    y = naive.pool(
        x,
        kernel,
        function,
        out,
        attributes.get("strides", ones),
        before or (0,) * len(kernel),
        after,
        attributes.get("dilations", ones),
        padding,
    )
    return case(op, label, [x], y, native=native, ulp=0 if op == "MaxPool" else 4, **attributes)


def both(label: str, shape: Sequence[int], out: Sequence[int], before: Sequence[int] = (), **attributes: Any) -> list[Case]:
    return [pool(op, label, shape, out, before, **attributes) for op in ("MaxPool", "AveragePool", "LpPool")]


POOLS = [
    *both("1 axis", (2, 3, 11), (9,), kernel_shape=(3,)),
    *both("2 axes", (1, 3, 7, 6), (3, 3), kernel_shape=(2, 2), strides=(2, 2)),
    *both("overlap", (1, 3, 7, 6), (4, 3), (1, 1), kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    *both("uneven pads", (1, 2, 7, 6), (7, 7), (0, 2), kernel_shape=(2, 3), pads=(0, 2, 1, 1)),
    *both("3 axes", (1, 2, 4, 5, 3), (2, 4, 2), kernel_shape=(2, 2, 2), strides=(2, 1, 1)),
    *both("dilation", (1, 2, 7, 6), (5, 2), kernel_shape=(2, 2), dilations=(2, 4)),
    *both("ceil_mode", (1, 2, 7, 6), (4, 3), kernel_shape=(2, 3), strides=(2, 2), ceil_mode=1),
    *both("ceil_mode, pads", (1, 2, 6, 6), (4, 4), (1, 1), kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1), ceil_mode=1),
    *both("ceil_mode, beginning after", (1, 1, 5, 5), (2, 2), kernel_shape=(1, 1), strides=(3, 3), ceil_mode=1),
    *both("SAME_UPPER", (1, 2, 6, 5), (3, 3), (0, 0), kernel_shape=(3, 2), strides=(2, 2), auto_pad="SAME_UPPER"),
    *both("SAME_LOWER", (1, 2, 6, 5), (3, 3), (1, 1), kernel_shape=(3, 2), strides=(2, 2), auto_pad="SAME_LOWER"),
    *both("VALID", (1, 2, 6, 5), (2, 2), kernel_shape=(3, 2), strides=(2, 2), auto_pad="VALID"),
    *both("whole map", (2, 3, 5, 4), (1, 1), kernel_shape=(5, 4)),
    *both("no images", (0, 2, 6, 5), (4, 4), kernel_shape=(3, 2)),
    pool("AveragePool", "padding counts", (1, 2, 7, 6), (4, 3), (1, 1), (1, 1), padding=0, kernel_shape=(3, 3), strides=(2, 2),
         pads=(1, 1, 1, 1), count_include_pad=1),
    pool("AveragePool", "padding counts, ceil", (1, 2, 6, 6), (4, 4), (1, 1), (1, 1), padding=0, kernel_shape=(3, 3),
         strides=(2, 2),
         pads=(1, 1, 1, 1), count_include_pad=1, ceil_mode=1),
    pool("AveragePool", "padding counts, uneven", (1, 2, 6), (7,), (2,), (1,), padding=0, kernel_shape=(3,), pads=(2, 1),
         count_include_pad=1),
    case("MaxPool", "positions", [array([[[[1, 5, 2], [7, 0, 7], [3, 3, 9]]]])], [[[[7, 7], [7, 9]]]], array([[[[3, 5], [3,
         8]]]], I64),
         kernel_shape=(2, 2)),
    case("MaxPool", "positions by column", [array([[[[1, 5, 2], [7, 0, 7], [3, 3, 9]]]])], [[[[7, 7], [7, 9]]]],
         array([[[[1, 7], [1, 8]]]], I64), kernel_shape=(2, 2), storage_order=1),
    case("MaxPool", "positions of later channels", [array([[[2, 1]], [[0, 3]]])], [[[2]], [[3]]], array([[[0]], [[3]]], I64),
         kernel_shape=(2,)),
    case("MaxPool", "int8", [array([[[-5, -7, 3]]], np.int8)], [[[-5, 3]]], kernel_shape=(2,)),
    case("MaxPool", "last", [np.moveaxis(small(1, 3, 5, 4), 1, -1)],
         np.moveaxis(naive.pool(small(1, 3, 5, 4), (2, 2), largest, (2, 2), (2, 2), (0, 0)), 1, -1), kernel_shape=(2, 2),
              strides=(2, 2),
         x_last=True, native=True),
    case("AveragePool", "last", [np.moveaxis(small(1, 3, 5, 4), 1, -1)],
         np.moveaxis(naive.pool(small(1, 3, 5, 4), (2, 2), mean, (4, 3), (1, 1), (0, 0)), 1, -1), kernel_shape=(2, 2),
              x_last=True, native=True),
    case("LpPool", "p", [[[[1.0, -2.0, 3.0]]]], [[[3, 5]]], kernel_shape=(2,), p=1, native=True),
    case("LpPool", "p of 3", [[[[1.0, -2.0, 3.0]]]], [[[9 ** (1 / 3), 35 ** (1 / 3)]]], kernel_shape=(2,), p=3, native=True,
         ulp=4),
    case("LpPool", "scaled", [[[[1.0, -2.0, 3.0]]]], [[[-1, 6]]], kernel_shape=(2,), strides=(2,), p=1.0, scaled=True,
         ceil_mode=1,
         native=True),
    case("LpPool", "last", [[[[3.0], [4.0], [0.0]]]], [[[5.0], [4.0]]], kernel_shape=(2,), x_last=True, native=True, ulp=2),
    case("AveragePool", "divisor", [[[[1.0, 2.0, 6.0]]]], [[[0.75, 2]]], kernel_shape=(2,), divisor=4, native=True),
]  # fmt: skip

M = numbers(2, 3, 2, 2)
GLOBAL = [
    case("GlobalAveragePool", "plain", [M], M.mean((2, 3), keepdims=True), native=True),
    case("GlobalAveragePool", "1 axis", [numbers(2, 3, 5)], numbers(2, 3, 5).mean(2, keepdims=True), native=True),
    case("GlobalAveragePool", "last", [np.moveaxis(M, 1, -1)], M.mean((2, 3), keepdims=True), native=True, x_last=True),
    case("GlobalMaxPool", "plain", [-M], -M[:, :, :1, :1], native=True),
    case("GlobalMaxPool", "3 axes", [numbers(1, 2, 2, 3, 2)], [[[[[11]]], [[[23]]]]], native=True),
    case("GlobalMaxPool", "last", [np.moveaxis(M, 1, -1)], M[:, :, 1:, 1:], native=True, x_last=True),
    case("GlobalLpPool", "plain", [[[[3.0, -4.0], [0.0, 12.0]]]], [[[5], [12]]], native=True, ulp=2),
    case("GlobalLpPool", "p", [[[[3.0, -4.0], [0.0, 12.0]]]], [[[7], [12]]], p=1, native=True),
    case("GlobalLpPool", "p of 3", [[[[1.0, -2.0], [0.0, 3.0]]]], [[[9 ** (1 / 3)], [3]]], p=3, ulp=2),
]  # fmt: skip

# Our own: bins 0..2, 1..4, 3..5 of 5; steps before a length and under a mask.
T = numbers(2, 3, 2)
BINS = [
    case("AdaptivePool", "mean", [numbers(1, 2, 5)], [[[0.5, 2, 3.5], [5.5, 7, 8.5]]], sizes=(3,), reduce="mean",
         native=True, ulp=2),
    case("AdaptivePool", "max", [numbers(1, 1, 2, 5)], [[[[1, 3, 4], [6, 8, 9]]]], sizes=(0, 3), reduce="max", native=True),
    case("AdaptivePool", "last", [numbers(1, 5, 2)], [[[2, 3], [6, 7], [8, 9]]], sizes=(3,), reduce="max", x_last=True,
         native=True),
    case("TimePool", "mean", [T], [[2, 3], [8, 9]], reduce="mean", batch_first=True, native=True),
    case("TimePool", "lengths", [T, [2, 0]], [[1, 2], [0, 0]], reduce="mean", batch_first=True, native=True),
    case("TimePool", "mask", [T, None, np.array([[True, False, True], [False, True, False]])], [[4, 5], [8, 9]], reduce="max",
         batch_first=True, native=True),
    case("TimePool", "time first", [T, [1, 2, 0]], [[0, 1], [8, 9], [0, 0]], reduce="max", batch_first=False, native=True),
]  # fmt: skip

CASES = [*BINS, *CONVS, *extended(), *TRANSPOSED, *POOLS, *GLOBAL]
