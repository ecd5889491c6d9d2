"""Models whose graphs are in order and whose runs are not: one of our errors that names the node, in little memory, and soon.

Every case is loaded and run in a child process with limits, with and without passes, compiled and by the reference, with its
parameters as constants, which are folded at load, and fed at run time. Broken on purpose, any of them takes gigabytes, minutes or
the process.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import LimitError, ShapeError, UnsupportedError
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.model.model import Model, Options
from tests.formats import onnx_build as ob
from tests.formats import tflite_build as tb

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a child process are set as on Linux")
extremes = pytest.importorskip("tests.model.extremes") if sys.platform.startswith("linux") else None

MOST = 64 << 20
HUGE, BIG = 1 << 62, 1 << 40
LEAST32, LEAST64 = -(1 << 31), -(1 << 63)
VARIANTS = tuple(dict.fromkeys((fl.kernels.available()[0], "reference")))


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def one(value: int) -> np.ndarray:
    return np.array(value, np.int64)


X = np.arange(12, dtype=np.float32).reshape(3, 4)
IMAGE = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4)
W = np.ones((2, 2, 3, 3), np.float32)
BOXES, SCORES = np.array([[[0, 0, 1, 1], [0, 0, 2, 2]]], np.float32), f32(0.5, 0.6).reshape(1, 1, 2)
Wrong = tuple[str, list[Any], dict[str, Any]]

# Operator, inputs (the first is data, those after are parameters), attributes.
REFUSED: list[Wrong] = [
    # Values that point outside.
    ("Gather", [X, i64(0, 3)], {}),
    ("Gather", [X, i64(-4)], {}),
    ("Gather", [X, i64(HUGE)], {"axis": 1}),
    ("Gather", [X, i64(LEAST64)], {}),
    ("Gather", [X, np.array([LEAST32], np.int32)], {}),
    ("Gather", [X[:0], i64(0)], {}),
    ("GatherElements", [X, i64(0, 1, 2, 9).reshape(1, 4)], {}),
    ("GatherElements", [X, i64(LEAST64).reshape(1, 1)], {}),
    ("GatherND", [X, i64(0, 4)], {}),
    ("GatherND", [X, i64(HUGE, HUGE)], {}),
    ("ScatterElements", [X, i64(0, 1, 2, 3).reshape(1, 4), f32(1, 2, 3, 4).reshape(1, 4)], {}),
    ("ScatterElements", [X, i64(LEAST64).reshape(1, 1), f32(1).reshape(1, 1)], {"reduction": "add"}),
    ("ScatterND", [X, i64(3).reshape(1, 1), X[:1]], {}),
    ("ScatterND", [X, i64(-4).reshape(1, 1), X[:1]], {"reduction": "max"}),
    ("ReverseSequence", [X, i64(9, 9, 9, 9)], {}),
    ("NonMaxSuppression", [BOXES, SCORES, i64(1), f32(2)], {}),
    # Shapes that nothing can have.
    ("Reshape", [X, i64(-2, 6)], {}),
    ("Reshape", [X, i64(-1, -1)], {}),
    ("Reshape", [X, i64(BIG, BIG)], {}),
    ("Reshape", [X[:0], i64(HUGE, 0)], {"allowzero": 1}),
    ("Reshape", [X, i64(*[1] * 40, -1)], {}),
    ("Unsqueeze", [X, i64(*range(2, 70))], {}),
    ("Expand", [X, i64(1 << 25, 3, 4)], {}),
    ("Expand", [X, i64(HUGE, 3, 4)], {}),
    ("Expand", [X, i64(-1, 3, 4)], {}),
    ("Tile", [X, i64(1 << 30, 1)], {}),
    ("Tile", [X, i64(HUGE, HUGE)], {}),
    ("Tile", [X, i64(-1, 1)], {}),
    ("Pad", [X, i64(0, 0, 1 << 30, 0)], {}),
    ("Pad", [X, i64(HUGE, 0, HUGE, 0)], {}),
    ("Pad", [X, i64(-9, 0, 0, 0)], {}),
    ("Pad", [X, i64(1 << 30, 0, 0, 0)], {"mode": "edge"}),
    ("Pad", [X, i64(1 << 30, 0, 0, 0)], {"mode": "reflect"}),
    ("Pad", [X, i64(1 << 30, 0, 0, 0)], {"mode": "wrap"}),
    ("Slice", [X, i64(0), i64(1), i64(0), i64(0)], {}),
    ("Slice", [X, i64(0), i64(1), i64(HUGE)], {}),
    ("Split", [X, i64(BIG, 3 - BIG)], {}),
    ("OneHot", [i64(0, 1), one(1 << 30), f32(0, 1)], {}),
    ("OneHot", [i64(0, 1), one(BIG), f32(0, 1)], {}),
    ("OneHot", [i64(0, 1), one(-1), f32(0, 1)], {}),
    ("TopK", [X, i64(HUGE)], {}),
    ("TopK", [X, i64(-1)], {}),
    ("Trilu", [X, one(LEAST64), X], {}),
    ("Resize", [IMAGE, None, None, i64(1, 2, 1 << 20, 1 << 20)], {}),
    ("Resize", [IMAGE, None, f32(1, 1, 1e9, 1e9)], {"mode": "linear"}),
    ("Resize", [IMAGE, None, f32(1, 1, np.inf, 1)], {}),
    ("Resize", [IMAGE, None, f32(1, 1, np.nan, 1)], {}),
    ("Resize", [IMAGE, None, None, i64(1, 2, HUGE, HUGE)], {"mode": "cubic"}),
    ("Resize", [IMAGE, None, None, i64(1, 2, -1, 4)], {}),
    ("Upsample", [IMAGE, f32(1, 1, 1e7, 1e7)], {}),
    ("CenterCropPad", [X, i64(BIG, 1)], {}),
    ("Col2Im", [np.ones((1, 9, 4), np.float32), i64(BIG, BIG), i64(3, 3)], {}),
    ("DFT", [np.ones((1, 4, 1), np.float32), one(BIG)], {}),
    ("STFT", [np.ones((1, 16, 1), np.float32), one(0), None, one(4)], {}),
    ("STFT", [np.ones((1, 16, 1), np.float32), one(1), None, one(HUGE)], {}),
    ("DepthToSpace", [IMAGE], {"blocksize": 1 << 31}),
    ("DepthToSpace", [IMAGE], {"blocksize": 0}),
    ("SpaceToDepth", [IMAGE], {"blocksize": 0}),
    ("EyeLike", [np.zeros((1 << 14, 1), np.float32) @ np.zeros((1, 0), np.float32)], {"dtype": 99}),
    ("Einsum", [X, X], {"equation": "ab,cde->ae"}),
    # Weights that would make the result larger than x.
    ("LayerNormalization", [np.ones((2, 4, 3, 1), np.float32), np.ones((4, 3, 5), np.float32)], {"axis": -3}),
    ("RoiAlign", [IMAGE, np.ones((3, 4), np.float32), i64(0)], {}),
    ("RotaryEmbedding", [np.ones((1, 2, 8), np.float32), np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)],
     {"num_heads": BIG}),
    # Windows that are in padding, or are everywhere.
    ("MaxPool", [IMAGE], {"kernel_shape": [1 << 30, 1 << 30], "pads": [(1 << 30) - 1] * 4, "strides": [1 << 30] * 2}),
    ("MaxPool", [IMAGE], {"kernel_shape": [1 << 31, 1]}),
    ("MaxPool", [IMAGE], {"kernel_shape": [3000, 3000], "pads": [2999] * 4, "strides": [1, 1]}),
    ("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "dilations": [1 << 30, 1 << 30], "pads": [1 << 29] * 4}),
    ("MaxPool", [IMAGE], {"kernel_shape": [1 << 28, 1], "auto_pad": "SAME_UPPER"}),
    ("AveragePool", [IMAGE], {"kernel_shape": [3000, 3000], "pads": [2999] * 4, "count_include_pad": 1}),
    ("AveragePool", [IMAGE], {"kernel_shape": [1 << 20, 1 << 20], "pads": [1 << 20] * 4, "strides": [1 << 20] * 2}),
    ("AveragePool", [IMAGE], {"kernel_shape": [HUGE, HUGE]}),
    ("LpPool", [IMAGE], {"kernel_shape": [3000, 3000], "pads": [2999] * 4}),
    ("Conv", [IMAGE, W], {"pads": [1 << 30] * 4, "strides": [1 << 30] * 2}),
    ("Conv", [IMAGE, W], {"pads": [1 << 30] * 4}),
    ("Conv", [IMAGE, W], {"dilations": [HUGE, HUGE]}),
    ("Conv", [IMAGE, W], {"strides": [HUGE, -1]}),
    ("Conv", [IMAGE, W], {"group": HUGE}),
    ("Conv", [IMAGE, W], {"group": 0}),
    ("ConvTranspose", [IMAGE, W], {"strides": [1 << 30, 1 << 30]}),
    ("ConvTranspose", [IMAGE, W], {"output_shape": [1 << 30, 1 << 30]}),
    ("MaxUnpool", [f32(1).reshape(1, 1, 1), one(9).reshape(1, 1, 1)], {"kernel_shape": [2]}),
    ("RoiAlign", [IMAGE, f32(0, 0, 4, 4).reshape(1, 4), i64(0)], {"sampling_ratio": 1 << 30}),
    ("RoiAlign", [IMAGE, f32(0, 0, 4, 4).reshape(1, 4), i64(9)], {}),
    # Heads.
    ("Attention", [np.ones((1, 2, 8), np.float32)] * 3, {"q_num_heads": HUGE, "kv_num_heads": 1}),
    ("Attention", [np.ones((1, 2, 8), np.float32)] * 3, {"q_num_heads": 0, "kv_num_heads": 0}),
    ("Attention", [np.ones((1, 2, 8), np.float32)] * 3, {"q_num_heads": 8, "kv_num_heads": 3}),
]  # fmt: skip

# What is made of no data: shapes are the only input.
MADE: list[Wrong] = [
    ("ConstantOfShape", [i64(1 << 28)], {}),
    ("ConstantOfShape", [i64(HUGE, HUGE)], {}),
    ("ConstantOfShape", [i64(0, HUGE)], {}),
    ("ConstantOfShape", [i64(-1)], {}),
    ("ConstantOfShape", [i64(*[1] * 70)], {}),
    ("Range", [one(0), one(BIG), one(1)], {}),
    ("Range", [one(LEAST64), one((1 << 63) - 1), one(1)], {}),
    ("Range", [one(0), one(1), one(0)], {}),
    ("Range", [np.float32(0), np.float32(1), np.float32(1e-20)], {}),
    ("Range", [np.float32(0), np.float32(np.nan), np.float32(1)], {}),
    ("HannWindow", [one(BIG)], {}),
    ("MelWeightMatrix", [one(1 << 30), one(1 << 30), one(9), np.float32(0), np.float32(1)], {}),
]
NOTHING: list[Wrong] = [("RandomNormal", [], {"shape": [1 << 40]}), ("RandomUniform", [], {"shape": [HUGE, HUGE]})]

# Operator, inputs, attributes: what has numbers, the same by kernels and by the reference, whatever they are.
ANSWERED: list[Wrong] = [
    ("Div", [i64(1, LEAST64, 0), i64(0, -1, 0)], {}),
    ("Div", [np.array([LEAST32, 5], np.int32), np.array([-1, 0], np.int32)], {}),
    ("Mod", [i64(5, LEAST64), i64(0, -1)], {}),
    ("Mod", [i64(5, LEAST64), i64(0, -1)], {"fmod": 1}),
    ("Mod", [np.array([LEAST32], np.int32), np.array([-1], np.int32)], {"fmod": 1}),
    ("BitShift", [np.array([1, 1, 255], np.uint8), np.array([8, 255, 9], np.uint8)], {"direction": "LEFT"}),
    ("BitShift", [np.array([1, 1 << 63], np.uint64), np.array([64, 1 << 63], np.uint64)], {"direction": "RIGHT"}),
    ("Abs", [i64(LEAST64)], {}),
    ("Neg", [i64(LEAST64)], {}),
    ("Pow", [i64(2, -3), i64(70, 1)], {}),
    ("Slice", [X, i64(LEAST64), i64((1 << 63) - 1), i64(0), i64(LEAST64)], {}),
    ("Slice", [X, i64((1 << 63) - 1), i64(LEAST64), i64(0), i64(-1)], {}),
    ("OneHot", [i64(HUGE, LEAST64), one(3), f32(0, 1)], {}),
    ("Trilu", [X, one(LEAST64)], {}),
    ("Trilu", [X, one((1 << 63) - 1)], {}),
    ("CumSum", [X, one(-1)], {}),
    ("NonMaxSuppression", [BOXES, SCORES, i64((1 << 63) - 1)], {}),
    ("NonMaxSuppression", [BOXES, SCORES, i64(LEAST64)], {}),
    ("Resize", [IMAGE, None, f32(1, 1, 1e-30, 1)], {"mode": "linear", "antialias": 1}),
    ("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "dilations": [300, 300], "pads": [300] * 4}),
    ("Attention", [np.ones((1, 2, 8), np.float32)] * 3, {"q_num_heads": 2, "kv_num_heads": 2, "softcap": -float("inf")}),
    # A length out of range is taken for the nearest in it.
    (
        "LSTM",
        [
            np.ones((2, 1, 3), np.float32),
            np.ones((1, 8, 3), np.float32),
            np.ones((1, 8, 2), np.float32),
            None,
            np.array([5], np.int32),
        ],
        {"hidden_size": 2},
    ),
    (
        "LSTM",
        [
            np.ones((2, 1, 3), np.float32),
            np.ones((1, 8, 3), np.float32),
            np.ones((1, 8, 2), np.float32),
            None,
            np.array([LEAST32], np.int32),
        ],
        {"hidden_size": 2},
    ),
    (
        "GRU",
        [
            np.ones((2, 1, 3), np.float32),
            np.ones((1, 6, 3), np.float32),
            np.ones((1, 6, 2), np.float32),
            None,
            np.array([-1], np.int32),
        ],
        {"hidden_size": 2},
    ),
    ("ConvTranspose", [IMAGE, W], {"dilations": [1 << 28] * 2, "pads": [1 << 28] * 4}),
    ("RoiAlign", [IMAGE, f32(0, 0, 1e30, 1e30).reshape(1, 4), i64(0)], {}),
    ("RoiAlign", [IMAGE, f32(np.nan, -np.inf, np.inf, 4).reshape(1, 4), i64(0)], {}),
]
CASTS = [(f32(np.nan, np.inf, -np.inf, 1e30, -1e30, 300.7, -0.5), to) for to in (2, 3, 4, 5, 6, 7, 9, 10, 12, 13)]
SCALES = (0.0, -1.0, np.nan, np.inf, 1e-45, 3e38)


def file(op: str, inputs: list[Any], attributes: dict[str, Any], fed: int) -> tuple[bytes, list[np.ndarray]]:
    """A model of one node; the first `fed` inputs are given to it, the others are constants."""
    names = ["_" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    given = [(n, np.asarray(a)) for i, (n, a) in enumerate(zip(names, inputs, strict=True)) if a is not None and i < fed]
    fixed = [(n, np.asarray(a)) for i, (n, a) in enumerate(zip(names, inputs, strict=True)) if a is not None and i >= fed]
    node = ob.node(op, " ".join(names), "there", **attributes)
    infos = [ob.value_info(n, [f"{n}_{k}" for k in range(a.ndim)], ob.TYPES[a.dtype.str[1:]]) for n, a in given]
    kind = np.asarray(inputs[0]).dtype.str[1:] if inputs and op != "OneHot" else "f4"
    out = [ob.value_info("there", None, ob.TYPES[kind] if op != "NonMaxSuppression" else 7)]
    main = ob.graph([node], infos, out, [ob.tensor(a, n) for n, a in fixed])
    opset = 9 if op == "Upsample" else 23 if op in ("Attention", "RotaryEmbedding") else 20
    return ob.model(main, opset=opset, ir=9), [a for _, a in given]


def ran(content: bytes, feeds: list[np.ndarray], variant: str, optimize: bool, **options: Any) -> Any:
    """Loads it and runs it twice, as the second run goes another way."""
    with fl.kernels.use(variant):
        model = fl.load(content, optimize=optimize, **{"max_bytes": MOST, **options})
        model(*feeds)
        return model(*feeds)


def contained(go: Callable[[], Any]) -> None:
    """Calls it in a child with limits, where only a plain return is well."""
    assert extremes is not None
    found = extremes.search([0], lambda seed: go)
    assert not found, found[0]


def every_way(item: Wrong, check: Callable[..., None], least: int) -> None:
    """Parameters as constants and fed, with and without passes, by kernels and by the reference."""
    op, inputs, attributes = item
    for fed in sorted({least, len(inputs)}):
        content, feeds = file(op, inputs, attributes, fed)
        for variant in VARIANTS:
            for optimize in (True, False):
                check(content, feeds, variant, optimize)


def all_of(items: list[Any], go: Callable[[Any], None]) -> None:
    """Calls it with each in children with limits."""
    assert extremes is not None
    found = extremes.search(range(len(items)), lambda i: lambda: go(items[i]))
    assert not found, "\n".join(f"{items[i]}\n{text}" for i, text in found.items())


def refused(content: bytes, feeds: list[np.ndarray], variant: str, optimize: bool, **options: Any) -> None:
    try:
        made = ran(content, feeds, variant, optimize, **options)
    except (ShapeError, LimitError, UnsupportedError, fl.FormatError):
        return
    raise AssertionError(f"gives {np.shape(made)} with {variant}, optimize={optimize}, {len(feeds)} fed")


def test_what_cannot_be_run() -> None:
    all_of(REFUSED, lambda item: every_way(item, refused, 1))


def test_what_cannot_be_made() -> None:
    all_of(MADE + NOTHING, lambda item: every_way(item, refused, 0))


def test_what_has_an_answer() -> None:
    def go(item: Wrong) -> None:
        found: list[np.ndarray] = []

        def check(content: bytes, feeds: list[np.ndarray], variant: str, optimize: bool) -> None:
            found.append(np.asarray(ran(content, feeds, variant, optimize)))
            np.testing.assert_allclose(found[-1], found[0], rtol=1e-6, atol=1e-6)

        every_way(item, check, 0)
        every_way(item, check, 1)

    all_of(ANSWERED, go)


def test_casts_of_what_an_integer_cannot_hold() -> None:
    """The values are whatever the processor makes of them; the process lives, and booleans and floats are right."""

    def go() -> None:
        for values, to in CASTS:
            for fed in (0, 1):
                content, feeds = file("Cast", [values], {"to": to}, fed)
                for variant in fl.kernels.available():
                    made = ran(content, feeds, variant, True)
                    assert made.shape == values.shape
                    if to == 9:
                        assert made.all()

    contained(go)


@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear", "QLinearMatMul", "QLinearConv"])
def test_scales_and_zero_points_of_no_use(op: str) -> None:
    a = np.arange(16, dtype=np.uint8).reshape(1, 1, 4, 4)

    def go() -> None:
        for scale in SCALES:
            for zero in (0, 255):
                s, z = np.float32(scale), np.uint8(zero)
                inputs: list[Any] = {
                    "QuantizeLinear": [X, s, z],
                    "DequantizeLinear": [a, s, z],
                    "QLinearMatMul": [a[0, 0], s, z, a[0, 0], s, z, s, z],
                    "QLinearConv": [a, s, z, a[:, :, :3, :3], s, z, s, z],
                }[op]
                for fed in (1, len(inputs)):
                    content, feeds = file(op, inputs, {}, fed)
                    for variant in fl.kernels.available():
                        with suppress(fl.Error):
                            ran(content, feeds, variant, True)

    contained(go)


# ---- limits ----------------------------------------------------------------------------------------------------------


def test_the_limit_is_told_and_can_be_raised() -> None:
    content, feeds = file("Expand", [X, i64(1 << 20, 3, 4)], {}, 1)
    for variant in VARIANTS:
        with pytest.raises(LimitError, match=r"Expand \(there\): its result would take 50331648 bytes: more than 1000000"):
            ran(content, feeds, variant, True, max_bytes=1_000_000)
        assert ran(content, feeds, variant, True, max_bytes=200 << 20).shape == (1 << 20, 3, 4)


def test_results_that_live_at_once_count_together() -> None:
    """Each takes 12 MB, and all of them are needed in the end. No elementwise operators: those would become one step."""
    nodes = [ob.node("Expand", "x shape", "v0")]
    nodes += [ob.node("Softmax", f"v{i}", f"v{i + 1}") for i in range(7)]
    nodes += [ob.node("Sum", " ".join(f"v{i}" for i in range(8)), "y")]
    main = ob.graph(nodes, [ob.value_info("x", ["a", "b"])], "y", [ob.tensor(i64(1 << 18, 3, 4), "shape")])
    for optimize in (True, False):
        with pytest.raises(LimitError, match="at once"):
            ran(ob.model(main), [X], VARIANTS[0], optimize, max_bytes=64 << 20)
        assert ran(ob.model(main), [X], VARIANTS[0], optimize, max_bytes=256 << 20).shape == (1 << 18, 3, 4)


def test_what_numpy_takes_on_the_way_counts() -> None:
    """The result is small, but a product of this kind needs all pairs."""
    pytest.importorskip("fastlayers.kernels.aot._engine")
    a = np.ones(6000, np.float32)
    content, feeds = file("Einsum", [a, a, np.ones((6000, 1), np.float32)], {"equation": "a,b,bc->c"}, 3)
    assert ran(content, feeds, "reference", True).tolist() == [6000.0 * 6000]

    from fastlayers.program.memory import counted

    with pytest.raises(MemoryError), counted(1 << 20):
        np.ones(1 << 18)
    with counted(1 << 20):
        for _ in range(20):
            kept = np.ones(3 << 14)  # the one before is given back
        assert kept.nbytes == 3 << 17
        with counted(1), pytest.raises(MemoryError):  # the outer one counts
            np.ones(1 << 17)
    assert np.ones(1 << 18).size == 1 << 18


def test_doubling_graphs() -> None:
    for op in ("Concat", "Expand"):
        nodes = []
        for i in range(60):
            nodes.append(
                ob.node("Concat", f"v{i} v{i}", f"v{i + 1}", axis=0) if op == "Concat" else ob.node("Neg", f"v{i}", f"v{i + 1}")
            )
        if op == "Expand":  # a shape that doubles
            nodes = [ob.node("Concat", f"s{i} s{i}", f"s{i + 1}", axis=0) for i in range(6)] + [ob.node("Expand", "v0 s6", "v60")]
        fixed = [ob.tensor(i64(2), "s0")]
        for constant in (False, True):
            given = [] if constant else [ob.value_info("v0", ["n"])]
            more = [ob.tensor(f32(1, 2), "v0")] if constant else []
            main = ob.graph(nodes, given, "v60", fixed + more)
            for optimize in (True, False):
                with pytest.raises((LimitError, UnsupportedError)):
                    ran(ob.model(main), [] if constant else [f32(1, 2)], VARIANTS[0], optimize)


def _loop(nodes: list[bytes], outputs: str, states: str, extra: list[bytes] | None = None) -> bytes:
    body = ob.graph(
        [*nodes, ob.node("Identity", "c", "c_out")],
        [ob.value_info("i", (), 7), ob.value_info("c", (), 9), *(ob.value_info(s, None) for s in states.split())],
        [ob.value_info("c_out", (), 9), *(ob.value_info(o, None) for o in outputs.split())],
    )
    results = " ".join(f"y{k}" for k in range(len(outputs.split())))
    node = ob.node("Loop", "m go " + " ".join(["x"] * len(states.split())), results, body=body)
    fixed = [ob.tensor(one((1 << 63) - 1), "m"), ob.tensor(np.array(True), "go")]
    return ob.model(ob.graph([*(extra or []), node], [ob.value_info("x", ["n"])], [ob.value_info("y0", None)], fixed))


@pytest.mark.parametrize("optimize", [True, False])
def test_loops_without_end(optimize: bool) -> None:
    endless = _loop([ob.node("Neg", "v", "v_out")], "v_out", "v")
    growing = _loop([ob.node("Concat", "v v", "v_out", axis=0)], "v_out", "v")
    stacking = _loop([ob.node("Neg", "v", "v_out"), ob.node("Identity", "v", "s")], "v_out s", "v")
    for variant in VARIANTS:
        with pytest.raises(LimitError, match="takes more than 500 iterations"):
            ran(endless, [f32(1)], variant, optimize, max_rounds=500)
        with pytest.raises(LimitError):
            ran(growing, [f32(1)], variant, optimize)
        with pytest.raises(LimitError):
            ran(stacking, [np.zeros(1 << 20, np.float32)], variant, optimize)


def test_many_nodes_of_unknown_sizes() -> None:
    """Each of them is a stretch of its own; the work must not grow with the square of their number."""
    count = 400
    nodes = []
    for i in range(count):
        nodes += [ob.node("NonZero", f"v{i}", f"n{i}"), ob.node("Cast", f"n{i}", f"v{i + 1}", to=1)]
    content = ob.model(ob.graph(nodes, [ob.value_info("v0", ["n"])], f"v{count}"))
    for optimize in (True, False):
        contained(lambda optimize=optimize: ran(content, [f32(1, 2)], VARIANTS[0], optimize))  # type: ignore[misc]


def test_a_long_chain() -> None:
    count = 5_000
    content = ob.model(
        ob.graph([ob.node("Neg", f"v{i}", f"v{i + 1}") for i in range(count)], [ob.value_info("v0", ["n"])], f"v{count}")
    )
    contained(lambda: ran(content, [f32(1, 2)], fl.kernels.available()[0], True))


# ---- TensorFlow Lite -------------------------------------------------------------------------------------------------

BHWC = np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2)
I32 = np.int32
SLOW = {"stride_w": 1, "stride_h": 1, "padding": 0}
LITE: list[tuple[str, list[Any], dict[int, Any], dict[str, Any]]] = [
    ("GATHER", [X], {1: np.array([3], I32)}, {}),
    ("GATHER", [X], {1: np.array([LEAST32], I32)}, {}),
    ("GATHER_ND", [X], {1: np.array([[0, 9]], I32)}, {}),
    ("RESHAPE", [X], {1: np.array([(1 << 31) - 1, 2], I32)}, {}),
    ("RESHAPE", [X], {1: np.array([-7, 2], I32)}, {}),
    ("TILE", [X], {1: np.array([(1 << 31) - 1, (1 << 31) - 1], I32)}, {}),
    ("BROADCAST_TO", [X], {1: np.array([1 << 30, 3, 4], I32)}, {}),
    ("PAD", [X], {1: np.array([[0, 1 << 30], [0, 1 << 30]], I32)}, {}),
    ("RESIZE_BILINEAR", [BHWC], {1: np.array([1 << 20, 1 << 20], I32)}, {}),
    ("RESIZE_NEAREST_NEIGHBOR", [BHWC], {1: np.array([-1, 4], I32)}, {}),
    ("RESIZE_BILINEAR", [BHWC], {1: np.array([(1 << 31) - 1, 1], I32)}, {"align_corners": 1}),
    ("MAX_POOL_2D", [BHWC], {}, {"filter_w": (1 << 31) - 1, "filter_h": (1 << 31) - 1, **SLOW}),
    ("MAX_POOL_2D", [BHWC], {}, {"filter_w": 1 << 24, "filter_h": 1 << 24, "stride_w": 1 << 24, "stride_h": 1 << 24}),
    ("AVERAGE_POOL_2D", [BHWC], {}, {"filter_w": 1 << 24, "filter_h": 9, "stride_w": 1, "stride_h": 1, "padding": 0}),
    ("L2_POOL_2D", [BHWC], {}, {"filter_w": 1 << 28, "filter_h": 1 << 28, "stride_w": 1, "stride_h": 1, "padding": 0}),
    ("MAX_POOL_2D", [BHWC], {}, {"filter_w": 2, "filter_h": 2, "stride_w": 0, "stride_h": 0, "padding": 0}),
    ("CONV_2D", [BHWC], {1: np.ones((1, 3, 3, 2), np.float32)}, {"dilation_w": 1 << 30, "dilation_h": 1, **SLOW}),
    ("CONV_2D", [BHWC], {1: np.ones((1, 3, 3, 2), np.float32)}, {"stride_w": -1, "stride_h": 1}),
    ("DEPTH_TO_SPACE", [BHWC], {}, {"block_size": (1 << 31) - 1}),
    ("SPACE_TO_DEPTH", [BHWC], {}, {"block_size": 0}),
    ("ONE_HOT", [np.array([0, 1], I32)], {1: np.array((1 << 31) - 1, I32), 2: np.float32(1), 3: np.float32(0)}, {"axis": -1}),
    ("TOPK_V2", [X], {1: np.array((1 << 31) - 1, I32)}, {}),
    ("SPLIT_V", [X], {1: np.array([1 << 30, 3 - (1 << 30)], I32), 2: np.array(0, I32)}, {"num_splits": 2}),
]  # fmt: skip


def test_tflite() -> None:
    def go(item: tuple[str, list[Any], dict[int, Any], dict[str, Any]]) -> None:
        op, given, fixed, options = item
        results = options.get("num_splits", 2 if op == "TOPK_V2" else 1)
        for fed in {0, len(fixed)}:
            arrays: list[Any] = [*given, *(fixed[i] for i in sorted(fixed))] if fed else given
            content = tb.single(op, arrays, {} if fed else fixed, results, **options)
            for variant in VARIANTS:
                for optimize in (True, False):
                    refused(content, [np.asarray(a) for a in arrays], variant, optimize)

    all_of(LITE, go)


# ---- the search ------------------------------------------------------------------------------------------------------


def test_changed_graphs() -> None:
    assert extremes is not None
    from . import changed

    found = extremes.search(range(500), changed.trial)
    assert not found, found


_IMAGE, _STEPS = np.ones((1, 2, 4, 4), np.float32), np.ones((2, 3, 4), np.float32)
_CODE = (((99, 0.0, 0.0),) * 2,) * 2
INTERNAL: list[tuple[Node, list[np.ndarray], str]] = [
    (Node("Conv", ("x", "a"), ("y",), {"pad_mode": 127}), [_IMAGE, np.ones((3, 2, 1, 1), np.float32)], "pad_mode is 127"),
    (
        Node("Conv", ("x", "a"), ("y",), {"pad_mode": 1, "pads": (4, 0, 0, 0)}),
        [_IMAGE, np.ones((3, 2, 1, 1), np.float32)], "padding (4, 0) along h: expected at most 3 with padding_mode='reflect'",
    ),
    (
        Node("ConvTranspose", ("x", "a", "b"), ("y",), {}),
        [_IMAGE, np.ones((2, 3, 1, 1), np.float32), np.ones(2, np.float32)], "bias has shape (2,): expected (3,)",
    ),
    (Node("AdaptivePool", ("x",), ("y",), {"sizes": (2, 2), "reduce": "prod"}), [_IMAGE], "reduce is 'prod'"),
    (Node("TimePool", ("x",), ("y",), {}), [_STEPS], "reduce is None"),
    (
        Node("Interpolate", ("x",), ("y",), {"sizes": (3, 9), "mode": "cubic", "align_corners": True}),
        [_IMAGE[:, :, :0]], "expected at least one number along each spatial axis",
    ),
    (
        Node("AdditiveAttention", ("x", "x", "x", None, None, None, None, None), ("y",), {"need_scores": True}),
        [_STEPS], "has 1 outputs: expected 2",
    ),
    (
        Node("GRU", ("x", "a", "b"), ("y",), {"options": (_CODE, 0.0, True), "joined": True}),
        [_STEPS, np.ones((1, 6, 4), np.float32), np.ones((1, 6, 2), np.float32)], "expected those of a recurrent layer",
    ),
    (
        Node("LSTM", ("x", "a", "b", None, None, None, None, "c"), ("y",), {}),
        [_STEPS, np.ones((1, 8, 4), np.float32), np.ones((1, 8, 2), np.float32), np.ones((1, 5), np.float32)],
        "P has shape (1, 5): expected (1, 6)",
    ),
]  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("wrong", INTERNAL, ids=lambda wrong: f"{wrong[0].op}: {wrong[2]}")
def test_operators_of_our_own_file(wrong: tuple[Node, list[np.ndarray], str], variant: str) -> None:
    node, (x, *fixed), words = wrong
    constants = dict(zip("abc", fixed, strict=False))
    graph = Graph((Value("x", (None,) * x.ndim, x.dtype),), (Value("y", None, x.dtype),), (node,), constants)

    def go() -> None:
        with fl.kernels.use(variant), pytest.raises(fl.Error, match=re.escape(words)):
            Model(graph, Options(optimize=False))(x)

    contained(go)


@pytest.mark.parametrize("kind", ["nodes", "tflite"])
def test_extremes(kind: str) -> None:
    assert extremes is not None
    found = extremes.search(range(600), extremes.KINDS[kind])
    assert not found, found
