"""A model loaded for streaming gives the bits of its pieces; any other one's pieces agree with each other. See `walk`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.calls.conv_choice import kernel_for
from fastlayers.model.model import Options
from tests.each import each
from tests.program.graphs import graph, node, normal

from .nets import filled, run
from .walk import PRECISIONS, draw, drawn_kind, faults

SHORT, FEW = 40, 40  # steps of the sequences of the default run, and its cases
EACH = 50  # cases of an item of the exhaustive one


def _walk(seed: int, longest: int, some: slice = slice(None)) -> None:
    precision, streaming = drawn_kind(seed)
    case = draw(seed, longest)
    case = case._replace(sequences=case.sequences[some])
    found = list(faults(case, seed, precision, streaming))
    assert not found, f"{precision}, streaming={streaming}: {found[0]}: {case.told}"


@pytest.mark.without("jit", "cuda", "reference")
@each("seed", range(FEW))
def test_random_networks(variant: str, seed: int) -> None:
    _walk(seed, SHORT, slice(None, None, 3))


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(1000, 1750, EACH))
def test_more_random_networks(first: int) -> None:
    for seed in range(first, first + EACH):
        _walk(seed, 3000)


# What another choice of an algorithm once made differ: Winograd's, in one and two axes; vectors shared by groups, where strict
# precision has finer blocks; windows that are the whole; rows of pixels that are divided, with a residual.
LAYERS: dict[str, tuple[Any, tuple[Any, ...], int]] = {
    "3 taps": (lambda: fl.Conv1d(32, 32, 3), (1, 32, "time"), 200),
    "5 taps, batch": (lambda: fl.Conv1d(64, 64, 5), (2, 64, "time"), 150),
    "7 taps": (lambda: fl.Conv1d(64, 64, 7), (1, 64, "time"), 300),
    "stack": (lambda: fl.Sequential(fl.Conv1d(49, 9, 6), fl.ReLU(), fl.Conv1d(9, 49, 3)), (1, 49, "time"), 200),
    "dilated": (lambda: fl.Conv1d(64, 64, 3, dilation=2), (1, 64, "time"), 200),
    "height": (lambda: fl.Conv2d(32, 32, 3, padding=(0, 1)), (1, 32, "time", 40), 60),
    "width": (lambda: fl.Conv2d(32, 32, 3, padding=(1, 0)), (1, 32, 24, "time"), 60),
    "width, groups": (lambda: fl.Conv2d(64, 64, 3, padding=(1, 0), groups=8), (1, 64, 12, "time"), 90),
    "height, depthwise": (lambda: fl.Conv2d(32, 32, 5, padding=(0, 2), groups=32), (1, 32, "time", 20), 60),
    "volume": (lambda: fl.Conv3d(16, 16, 3, padding=(0, 1, 1)), (1, 16, "time", 8, 8), 20),
    "average of 3": (lambda: fl.AvgPool1d(3), (1, 24, "time"), 3),
    "average of 100": (lambda: fl.AvgPool1d(100, stride=1), (1, 24, "time"), 103),
    "average of a map": (lambda: fl.AvgPool2d((4, 20)), (1, 24, "time", 20), 4),
    "norm of 40": (lambda: fl.LPPool1d(2, 40), (1, 24, "time"), 40),
    "largest of 70": (lambda: fl.MaxPool1d(70, stride=2), (1, 24, "time"), 80),
}  # fmt: skip


@pytest.mark.without("jit", "cuda", "reference")
@each("name", LAYERS)
def test_layers(variant: str, name: str) -> None:
    make, shape, length = LAYERS[name]
    net, axis = filled(make()), shape.index("time")
    x = normal(*(length if d == "time" else d for d in shape))
    cuts = ([length], [1, length - 1], [length // 3, 0, length - length // 3])
    for precision in PRECISIONS:
        for streaming in (True, False):
            model = fl.compile(net, fl.graph.Input("x", shape), precision=precision, streaming=streaming)
            whole, first = model(x), None
            for sizes in cuts:
                got = np.concatenate(run(model.stream(axis="time"), x, sizes, axis)[0], axis)
                first = whole if streaming else got if first is None else first
                assert got.tobytes() == first.tobytes(), f"{precision}, streaming={streaming}, pieces {sizes}"
            near = 2**-8 if precision == "bfloat16" else 1e-4  # of products of bfloat16 or of float32, as the size decides
            np.testing.assert_allclose(whole, first, rtol=0, atol=near * abs(whole).max())


@pytest.mark.without("jit", "cuda", "reference")
def test_loaded_for_streaming(variant: str, tmp_path: Path) -> None:
    """Files, pickles and copies keep it; a file that was saved without it can be loaded for it."""
    net, x, path = filled(fl.Conv1d(32, 32, 3)), normal(1, 32, 300), tmp_path / "net.safetensors"
    for streaming in (True, False):
        model = fl.compile(net, fl.graph.Input("x", (1, 32, "time")), streaming=streaming)
        assert ("winograd" in model.kernel_names({"x": x.shape})) is not streaming
        model.save(path)
        np.testing.assert_array_equal(fl.load(path)(x), model(x))
        again = fl.load(path, streaming=True)
        got = np.concatenate(run(again.stream(), x, [40, 1, 259], 2)[0], 2)
        np.testing.assert_array_equal(got, again(x))


def test_integer_convolutions_of_a_model_for_streaming_can_be_saved(tmp_path: Path) -> None:
    nodes = [
        node("a = QuantizeLinear(x, s, z)"), node("b = DequantizeLinear(a, s, z)"), node("f = DequantizeLinear(w, s, o)"),
        node("c = Conv(b, f)", pads=(2, 0)), node("d = QuantizeLinear(c, s, z)"), node("y = DequantizeLinear(d, s, z)"),
    ]  # fmt: skip
    w = np.round(normal(16, 8, 3) * 40).astype(np.int8)
    constants = {"w": w, "s": np.float32(0.05), "z": np.uint8(120), "o": np.int8(0)}
    model, x = fl.Model(graph({"x": (1, 8, "time")}, nodes, ["y"], constants), Options(streaming=True)), normal(1, 8, 50)
    assert any(n.op == "QLinearConv" for n in model._main.graph.nodes)
    model.save(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(fl.load(tmp_path / "net.safetensors")(x), model(x))


def test_a_direct_convolution_is_chosen_whatever_its_size() -> None:
    """Where the processor multiplies bfloat16 too."""
    rng = np.random.default_rng(0)
    chosen = set()
    for _ in range(300):
        groups = int(rng.choice([1, 1, 2, 4, 16]))
        ig, og, kernel = int(rng.integers(1, 70)), int(rng.integers(1, 70)), tuple(int(k) for k in rng.integers(1, 8, 3))
        kernel = (1, *kernel[1:]) if rng.random() < 0.7 else kernel
        weight = (groups * og, ig, *kernel)
        stride, dilation = (tuple(int(s) for s in rng.integers(1, 4, 3)) for _ in range(2))
        for half in (None, 0, 1, 2):
            found = {
                kernel_for(groups * ig, weight, size, groups, stride, dilation, (0,) * 6, 0, half == 1, True, half=half)
                for size in ((1, 1, 1), (1, 1, 7), (1, 1, 5000), (1, 3, 40), (1, 300, 300), (9, 20, 30))
            }
            assert len(found) == 1, (weight, stride, dilation, groups, half, found)
            chosen |= found
    assert {name for name, _ in chosen} == {"depthwise", "conv", "conv_half"}
