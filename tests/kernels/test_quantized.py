"""Kernels on quantized values: every variant gives the reference's integers, with one thread and with two."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import BINARY, KINDS, REDUCE

from ..guard import guarded

BYTES = ("uint8", "int8")
# (n, i, o), (d, h, w), kernel, groups, and the rest. Sums of 1 to 4 quads and more, rows and columns around tiles, taps that are
# no quads, channels that are no panels, depthwise kernels, nothing at all.
AWKWARD: tuple[Any, ...] = (
    ((1, 4, 16), (1, 1, 12), (1, 1, 1), 1, {}),
    ((1, 1, 1), (1, 1, 1), (1, 1, 1), 1, {}),
    ((1, 5, 17), (1, 1, 13), (1, 1, 1), 1, {}),
    ((2, 8, 33), (1, 3, 25), (1, 1, 1), 1, {}),
    ((1, 12, 65), (1, 1, 7), (1, 1, 1), 1, {}),
    ((1, 67, 300), (1, 1, 5), (1, 1, 1), 1, {}),
    ((1, 600, 47), (1, 1, 3), (1, 1, 1), 1, {}),
    ((1, 3, 8), (1, 9, 11), (1, 3, 3), 1, {"pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 4, 8), (1, 9, 11), (1, 3, 3), 1, {}),
    ((2, 6, 9), (1, 10, 11), (1, 3, 2), 3, {"pads": (0, 0, 0, 2, 1, 0), "stride": (1, 2, 3)}),
    ((1, 4, 5), (3, 8, 9), (2, 3, 3), 1, {"pads": (1, 0, 2, 2, 2, 2), "dilation": (1, 2, 2), "stride": (2, 1, 1)}),
    ((1, 16, 20), (1, 20, 30), (1, 3, 3), 1, {"pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 7, 7), (1, 9, 11), (1, 3, 3), 7, {"pads": (0, 0, 1, 1, 1, 1)}),
    ((2, 33, 33), (1, 12, 9), (1, 5, 4), 33, {"pads": (0, 0, 2, 2, 1, 2), "stride": (1, 2, 1)}),
    ((1, 16, 16), (2, 6, 70), (2, 1, 3), 16, {"dilation": (1, 1, 2)}),
    ((1, 64, 64), (1, 40, 40), (1, 3, 3), 64, {"pads": (0, 0, 1, 1, 1, 1)}),
    ((1, 40, 70), (1, 24, 24), (1, 3, 3), 1, {"pads": (0, 0, 1, 1, 1, 1)}),  # for two threads, and the next
    ((3, 128, 128), (1, 40, 40), (1, 3, 3), 128, {}),
    ((1, 1100, 290), (1, 1, 40), (1, 1, 1), 1, {}),  # more terms and columns than tiles keep
    ((1, 70, 40), (1, 10, 12), (1, 5, 5), 1, {"pads": (0, 0, 2, 2, 2, 2)}),
    ((0, 4, 16), (1, 3, 3), (1, 1, 1), 1, {}),
    ((1, 0, 16), (1, 3, 3), (1, 1, 1), 1, {}),
    ((1, 4, 0), (1, 3, 3), (1, 1, 1), 1, {}),
)
# kinds of x, weights, result; are there zero points of weights, and a scale of x?
KINDS_OF = (
    ("uint8", "int8", "uint8", False, False),
    ("int8", "int8", "int8", False, False),
    ("uint8", "uint8", "uint8", True, False),
    ("int8", "uint8", "int32", True, False),
    ("uint8", "int8", "float32", True, True),
    ("int8", "int8", "uint8", True, True),
)


def any_of(rng: np.random.Generator, kind: str, shape: Any) -> np.ndarray:
    """Bytes among which the extremes are frequent."""
    info = np.iinfo(kind)
    x = rng.integers(info.min, info.max + 1, shape)
    return np.where(rng.random(shape) < 0.3, rng.choice([info.min, info.max], shape), x).astype(kind)


def convolution(i: int, kinds: Any, x_last: bool, out_last: bool, place: Any = np.ascontiguousarray) -> np.ndarray:
    """What the current variant makes of problem i."""
    (n, c, o), space, kernel, groups, rest = AWKWARD[i]
    source, weights, target, zeros, scaled = kinds
    rng = np.random.default_rng(i)
    stride, dilation = rest.get("stride", (1, 1, 1)), rest.get("dilation", (1, 1, 1))
    pads = rest.get("pads", (0,) * 6)
    size = [(space[a] + pads[2 * a] + pads[2 * a + 1] - dilation[a] * (kernel[a] - 1) - 1) // stride[a] + 1 for a in range(3)]
    x = any_of(rng, source, (n, c, *space))
    weight = any_of(rng, weights, (o, c // groups, *kernel))
    zero = any_of(rng, weights, o) if zeros else None
    factor = (rng.uniform(0.5, 2, o) / 2e5).astype(np.float32) if target != "int32" else None
    shift = rng.standard_normal(o).astype(np.float32) if target == "float32" else None
    bias = rng.integers(-(1 << 20), 1 << 20, o).astype(np.int32)
    packed = dispatch.kernel("qconv_pack")(weight, zero, factor, bias, shift, stride, dilation, groups)
    x_zero, x_scale = any_of(rng, source, 1), np.full(1, 1.25, np.float32) if scaled else None
    out = np.full((n, *size, o) if out_last else (n, o, *size), 99, target)
    given = place(np.ascontiguousarray(np.moveaxis(x, 1, -1))) if x_last else place(x)
    value = {"uint8": 131, "int8": -7}.get(target, 0)
    out = place(out)
    dispatch.kernel("qconv")(
        given, packed, x_zero, x_scale, out, pads, x_last, out_last, KINDS[source], KINDS[target], value
    )  # fmt: skip
    return out if not out_last else np.moveaxis(out, -1, 1)


@cache
def expected(i: int, kinds: Any) -> np.ndarray:
    with fl.kernels.use("reference"):
        return convolution(i, kinds, False, False)


def layouts(i: int) -> Any:
    """Whether x and the result have their channels last: depthwise kernels take such data alone."""
    last = ((True, True),)
    return last if AWKWARD[i][3] == AWKWARD[i][0][1] > 1 else (*last, (False, False), (False, True), (True, False))


@pytest.mark.parametrize("i", range(len(AWKWARD)))
@pytest.mark.without("reference")  # the others are compared to it
def test_convolutions_are_exact(i: int, variant: str) -> None:
    for kinds in KINDS_OF:
        for layout in layouts(i):
            got = convolution(i, kinds, *layout, guarded)
            np.testing.assert_array_equal(got, expected(i, kinds), err_msg=f"{AWKWARD[i]} {layout}")


def test_reference_in_all_layouts() -> None:
    with fl.kernels.use("reference"):
        for layout in layouts(9):
            np.testing.assert_array_equal(convolution(9, KINDS_OF[0], *layout), expected(9, KINDS_OF[0]))


@pytest.mark.skipif(not dispatch.levels(), reason="the compiled engine is not built here")
def test_two_threads_give_the_same(threads: int) -> None:
    x, step, zero = floats(400_000), np.full(1, 0.25, np.float32), np.full(1, 7, np.int32)
    made = np.zeros((3, x.size), np.uint8)
    with fl.kernels.use("aot"):
        for i in (i for i, case in enumerate(AWKWARD) if case[0] in ((1, 40, 70), (3, 128, 128))):
            for layout in layouts(i):
                np.testing.assert_array_equal(convolution(i, KINDS_OF[2], *layout), expected(i, KINDS_OF[2]))
        dispatch.kernel("quantize")(x.reshape(1, 1, -1), step, zero, made[0].reshape(1, 1, -1), KINDS["uint8"])
        dispatch.kernel("dynamic_quantize")(x[HARD.size :], made[1, HARD.size :], np.zeros(1, np.float32), np.zeros(1, np.uint8))
        dispatch.kernel("lookup")(made[0], np.arange(255, -1, -1, dtype=np.uint8), made[2])
    assert (made[2] == 255 - made[0]).all()
    want = np.where(np.isnan(x), 0, np.clip(np.rint(x / np.float32(0.25)) + 7, 0, 255))
    np.testing.assert_array_equal(made[0], want)
    assert made[1].max() == 255


def test_reference_of_a_product_by_hand(variant: str) -> None:
    """(x - 1) w, + bias, times 0.5, rounded to even, + 10."""
    packed = dispatch.kernel("qconv_pack")(
        np.array([[1, -1, 2, 0, 0], [127, 0, 0, 0, 3]], np.int8).reshape(2, 5, 1, 1, 1), None, np.full(2, 0.5, np.float32),
        np.array([0, 1], np.int32), None, (1, 1, 1), (1, 1, 1), 1,
    )  # fmt: skip
    x, out = (
        np.array([[2, 1, 3, 255, 0], [255, 0, 1, 1, 2]], np.uint8).reshape(1, 1, 1, 2, 5),
        np.zeros((1, 1, 1, 2, 2), np.uint8),
    )
    kinds = (KINDS["uint8"], KINDS["uint8"], 10)
    dispatch.kernel("qconv")(x, packed, np.ones(1, np.uint8), None, out, (0,) * 6, True, True, *kinds)
    # sums 5 and 125, 255 and 32262
    np.testing.assert_array_equal(out.reshape(2, 2), [[12, 72], [138, 255]])


SIZES = (0, 1, 3, 4, 7, 8, 15, 16, 17, 33, 16385)
HARD = np.array([0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 1e30, -1e30, np.inf, -np.inf, np.nan, 1e-40], np.float32)


def floats(n: int) -> np.ndarray:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32) * 50
    x[: HARD.size] = HARD[:n]
    return x


def both(call: Any) -> tuple[Any, Any]:
    """What the current variant and the reference give."""
    got = call()
    with fl.kernels.use("reference"):
        return got, call()


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16"])
def test_quantize(kind: str, variant: str) -> None:
    for n in SIZES:
        for shape in ((1, 1, n), (2, n, 1), (2, 3, n)):
            c = shape[1]
            step = np.random.default_rng(c).uniform(0.1, 1, c).astype(np.float32)
            step[:1] = 1
            zero = np.arange(c, dtype=np.int32) % 100 + 3

            def call(shape: Any = shape, step: Any = step, zero: Any = zero) -> np.ndarray:
                out = guarded(np.zeros(shape, kind))
                x = guarded(floats(int(np.prod(shape))).reshape(shape))
                dispatch.kernel("quantize")(x, step, zero, out, KINDS[kind])
                return out

            np.testing.assert_array_equal(*both(call))


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16", "int32"])
def test_dequantize(kind: str, variant: str) -> None:
    for n in SIZES:
        for shape in ((1, 1, n), (2, n, 1), (2, 3, n)):
            c = shape[1]
            step = np.random.default_rng(c).uniform(0.1, 1, c).astype(np.float32)
            zero = np.arange(c, dtype=np.int32) % 100

            def call(shape: Any = shape, step: Any = step, zero: Any = zero) -> np.ndarray:
                out = guarded(np.zeros(shape, np.float32))
                x = guarded(any_of(np.random.default_rng(1), kind, shape))
                dispatch.kernel("dequantize")(x, step, zero, out, KINDS[kind])
                return out

            np.testing.assert_array_equal(*both(call))


def test_dynamic_quantize(variant: str) -> None:
    for n in SIZES:
        for x in (floats(n)[::-1].copy()[: max(n - HARD.size, 0)], np.abs(floats(n)[HARD.size :]) + 1, np.zeros(n, np.float32),
                  np.where(np.arange(n) == 2, np.nan, np.arange(n)).astype(np.float32)):  # fmt: skip

            def call(x: np.ndarray = x) -> tuple[np.ndarray, ...]:
                made = guarded(np.zeros(x.shape, np.uint8)), np.zeros(1, np.float32), np.zeros(1, np.uint8)
                dispatch.kernel("dynamic_quantize")(guarded(x), *made)
                return made

            for got, want in zip(*both(call), strict=True):
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("op", ["add", "multiply"])
def test_binary(op: str, kind: str, variant: str) -> None:
    many = 1009 if variant != "reference" else 3  # lines, of which a task has some
    for n in SIZES:
        for a, b in (((1, 1, n), (1, 1, n)), ((2, 3, n), (2, 1, n)), ((2, 3, n), (1, 3, n)), ((2, 3, n), (2, 3, 1)),
                     ((2, 3, n), (1, 1, 1)), ((3, many if n == 33 else 1, n), (3, 1, n))):  # fmt: skip
            options = (KINDS[kind], 3, -5 if kind == "int8" else 200, 7, 0.02, 0.03, 0.04 if op == "add" else 0.0017)

            def call(a: Any = a, b: Any = b, options: Any = options) -> np.ndarray:
                rng, out = np.random.default_rng(1), guarded(np.zeros(a, kind))
                x, y = guarded(any_of(rng, kind, a)), guarded(any_of(rng, kind, b))
                dispatch.kernel("qbinary")(x, y, out, BINARY[op], options)
                return out

            np.testing.assert_array_equal(*both(call))


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("op", ["max", "mean"])
def test_pools(op: str, kind: str, variant: str) -> None:
    for c in (0, 1, 15, 16, 33):
        for size, out_size, kernel, stride, pads, count in (
            ((1, 7, 9), (1, 7, 9), (1, 3, 3), (1, 1, 1), (0, 0, 1, 1, 1, 1), True),
            ((1, 7, 9), (1, 4, 5), (1, 3, 3), (1, 2, 2), (0, 0, 1, 1, 1, 1), False),
            ((2, 4, 5), (1, 2, 3), (2, 3, 2), (1, 2, 2), (0, 0, 0, 0, 0, 0), True),  # windows that overhang
            ((1, 7, 9), (1, 1, 1), (1, 7, 9), (1, 1, 1), (0,) * 6, False),
        ):

            def call(c: int = c, size: Any = size, out_size: Any = out_size, rest: Any = (kernel, stride), pads: Any = pads,
                     count: Any = count) -> np.ndarray:  # fmt: skip
                out = guarded(np.zeros((2, *out_size, c), kind))
                x = guarded(any_of(np.random.default_rng(2), kind, (2, *size, c)))
                options = (4, 0.02, 0.015, 9, count)
                dispatch.kernel("qpool")(x, out, *rest, (1, 1, 1), pads, REDUCE[op], KINDS[kind], options)
                return out

            np.testing.assert_array_equal(*both(call))


def test_lookup(variant: str) -> None:
    table = np.random.default_rng(0).permutation(256).astype(np.uint8)
    for n in SIZES:
        x = any_of(np.random.default_rng(n), "int8", n)
        out = guarded(np.zeros(n, np.int8))
        dispatch.kernel("lookup")(guarded(x), table, out)
        np.testing.assert_array_equal(out.view(np.uint8), table[x.view(np.uint8)])


@pytest.mark.parametrize("kinds", ["uint8 uint8 uint8", "uint8 int8 int8", "int8 uint8 int32", "int8 int8 float32"])
def test_products_of_two_arrays(kinds: str, variant: str) -> None:
    """Sizes about tiles, quads and what a task has; zero points that add to every sum; a batch, or one array for all of it."""
    source, right, target = kinds.split()
    many = [(1, 1), (5, 1), (1, 5), (5, 5)]
    for m, k, n in ((0, 3, 5), (3, 0, 5), (1, 1, 1), (2, 4, 16), (13, 7, 17), (12, 64, 33), (241, 5, 300), (7, 1031, 65)):
        for batches in many if m * k * n < 9000 else many[:1]:
            for zeros in ((0, 0), (3, 128 if right == "uint8" else 0), (-7 if source == "int8" else 200, 5)):

                def call(a: Any = (batches[0], m, k), b: Any = (batches[1], k, n), zeros: Any = zeros) -> np.ndarray:
                    rng, out = np.random.default_rng(3), guarded(np.zeros((max(a[0], b[0]), a[1], b[2]), target))
                    x, y = guarded(any_of(rng, source, a)), guarded(any_of(rng, right, b))
                    options = (*(KINDS[kind] for kind in (source, right, target)), *zeros, 9, 0.0021)
                    dispatch.kernel("qmatmul")(x, y, out, options)
                    return out

                np.testing.assert_array_equal(*both(call))
