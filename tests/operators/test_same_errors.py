"""The same bad shapes say the same on every way in: function, recording, layer, program of free sizes, files of two formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.graph import Graph
from tests.formats.onnx_build import graph, model, node, tensor, value_info

F = fl.functional


class Case(NamedTuple):
    """A call of a function of `fl.functional`, the layer that does the same, and what the error says after the name."""

    function: str
    x: tuple[int, ...]
    given: tuple[tuple[int, ...], ...]  # shapes of weight and bias
    options: dict[str, Any]
    text: str
    layer: tuple[Any, ...] = ()
    way: str = ""  # of functions that record several operators: the one that a program, or a file, refuses the sizes in


def _conv(x: tuple[int, ...], weight: tuple[int, ...], text: str, layer: bool = True, **options: Any) -> Case:
    channels = (weight[1] * options.get("groups", 1), weight[0], weight[2:])
    return Case(f"conv{len(x) - 2}d", x, (weight,), options, text, (f"Conv{len(x) - 2}d", *channels) if layer else ())


def _transposed(x: tuple[int, ...], weight: tuple[int, ...], text: str, layer: bool = True, **options: Any) -> Case:
    channels = (weight[0], weight[1] * options.get("groups", 1), weight[2:])
    name = f"conv_transpose{len(x) - 2}d"
    return Case(name, x, (weight,), options, text, (f"ConvTranspose{len(x) - 2}d", *channels) if layer else ())


def _pool(kind: str, x: tuple[int, ...], **options: Any) -> Case:
    text = "x has size 2 along h, 2 with padding: expected at least 5, what a window of 3 with dilation 2 covers"
    if "dilation" not in options:
        text = "x has size 2 along h, 2 with padding: expected at least 3, what a window of 3 with dilation 1 covers"
    name = {"max": "MaxPool2d", "avg": "AvgPool2d", "lp": "LPPool2d"}[kind]
    first = (2,) if kind == "lp" else ()
    return Case(f"{kind}_pool2d", x, (), {"kernel_size": 3, **options}, text, (name, *first, 3))


CASES = {
    "channels": _conv(
        (1, 3, 8, 8), (4, 2, 3, 3),
        "weight has 2 input channels, x (1, 3, 8, 8) has 3 (groups=1): expected weight of shape (o, 3, 3, 3), got (4, 2, 3, 3)",
    ),
    "channels of groups": _conv((1, 3, 8), (4, 1, 3), "x has 3 channels: expected a multiple of groups=2", groups=2),
    "groups of channels": _conv(
        (1, 4, 8), (3, 2, 3), "weight has 3 output channels: expected a multiple of groups=2, got shape (3, 2, 3)", False,
        groups=2,
    ),
    "no kernel": _conv(
        (1, 4, 8), (3, 4, 0), "weight has shape (3, 4, 0): expected a kernel of at least 1 along every axis", False
    ),
    "bias": Case(
        "conv1d", (1, 4, 8), ((3, 4, 3), (4,)), {},
        "bias has shape (4,): expected (3,), one value an output channel of weight (3, 4, 3)",
    ),
    "too small": _conv(
        (1, 2, 9, 2), (4, 2, 3, 5),
        "x has size 2 along w, 4 with padding: expected at least 5, what a window of 5 with dilation 1 covers", padding=1,
    ),
    "too small for the dilation": _conv(
        (1, 2, 4), (4, 2, 3),
        "x has size 4 along l, 4 with padding: expected at least 5, what a window of 3 with dilation 2 covers", dilation=2,
    ),
    "empty": _conv(
        (1, 2, 4, 0, 4), (4, 2, 1, 1, 1),
        "x has size 0 along h, 0 with padding: expected at least 1, what a window of 1 with dilation 1 covers",
    ),
    "too small to mirror": _conv(
        (1, 2, 2, 9), (4, 2, 3, 3),
        "padding (2, 2) along h: expected at most 1 with padding_mode='reflect' and an input of 2",
        padding=2, padding_mode="reflect",
    ),
    "nothing to repeat": _conv(
        (1, 2, 0), (4, 2, 3), "padding (1, 1) along l: expected at most 0 with padding_mode='replicate' and an input of 0",
        padding=1, padding_mode="replicate",
    ),
    "transposed channels": _transposed(
        (1, 3, 8, 8), (4, 2, 3, 3), "weight has 4 input channels, x (1, 3, 8, 8) has 3: expected as many"
    ),
    "transposed groups": _transposed(
        (1, 4, 8), (4, 2, 3), "weight has 4 input channels: expected a multiple of groups=3", False, groups=3
    ),
    "transposed bias": Case(
        "conv_transpose1d", (1, 4, 8), ((4, 2, 3), (2,)), {"groups": 2},
        "bias has shape (2,): expected (4,), one value an output channel of weight (4, 2, 3) with groups=2",
    ),
    "nothing is left": _transposed(
        (1, 2, 2, 2), (2, 3, 3, 3),
        "x has size 2 along h, and 0 positions are left of the result after padding (2, 2): expected at least 1", padding=2,
    ),
    "max": _pool("max", (1, 2, 2, 9), dilation=2),
    "mean": _pool("avg", (1, 2, 2, 9)),
    "norm": Case(
        "lp_pool2d", (1, 2, 2, 9), (), {"norm_type": 2, "kernel_size": 3},
        "x has size 2 along h, 2 with padding: expected at least 3, what a window of 3 with dilation 1 covers",
        ("LPPool2d", 2, 3),
    ),
    "cut off": Case(
        "pad", (1, 2, 3), (), {"pad": (-4, 2)},
        "(-4, 2) cuts more than there is from size 3 along axis 2: expected a size >= 0",
    ),
}  # fmt: skip


def said(call: Any) -> str:
    """The error without the names of what was called."""
    with pytest.raises(fl.ArgumentError) as caught:
        call()
    return str(caught.value)


def program(case: Case) -> Graph:
    """The function recorded for any sizes at all."""
    weights = [np.ones(shape, np.float32) for shape in case.given]
    x = fl.graph.Input("x", ("n", *(f"size{i}" for i in range(1, len(case.x)))))
    names = [x]
    if len(case.given) > 1 or "groups" in case.options or any(0 in shape for shape in case.given):
        # What is wrong whatever x is would be refused here: it comes with the weights, when the program runs.
        weights = [fl.graph.Input(f"w{i}", tuple(f"w{i}_{k}" for k in range(len(shape)))) for i, shape in enumerate(case.given)]
        names += weights
    return fl.graph.trace(lambda x, *w: getattr(F, case.function)(x, *(w or weights), **case.options), *names)


def ways(case: Case, folder: Path) -> Iterator[tuple[str, str]]:
    """What each way says, with its name."""
    x, function = np.ones(case.x, np.float32), getattr(F, case.function)
    weights = [np.ones(shape, np.float32) for shape in case.given]
    yield "function", said(lambda: function(x, *weights, **case.options))
    yield "recording", said(lambda: function(fl.graph.Input("x", case.x), *weights, **case.options))
    if case.layer:
        name, *arguments = case.layer
        options = {k: v for k, v in case.options.items() if k not in ("kernel_size", "norm_type")}
        layer = getattr(fl, name)(*arguments, **options)
        layer.load_state_dict({k: np.ones(shape, np.float32) for k, shape in layer.tensor_shapes().items()})
        yield "layer", said(lambda: layer(x))
    recorded = program(case)
    compiled, path = fl.Model(recorded), folder / "model.safetensors"
    feeds = [x, *weights] if len(recorded.inputs) > 1 else [x]
    yield "program", said(lambda: compiled(*feeds))
    compiled.save(path)
    loaded = fl.load(path)
    yield "own file", said(lambda: loaded(*feeds))
    (made,) = recorded.nodes
    if "padding_mode" not in case.options and made.op != "Pad":  # which ONNX does not have, or has as inputs
        attributes = {k: v for k, v in made.attributes.items() if k not in ("output_padding", "scaled")}
        attributes = {k: list(v) if isinstance(v, tuple) else int(v) for k, v in attributes.items()}
        names = ["x", *(f"w{i}" for i in range(len(weights)))]
        written = graph(
            [node(made.op, " ".join(names), "y", **attributes)], [value_info("x", case.x)], "y",
            [tensor(w, name) for w, name in zip(weights, names[1:], strict=True)],
        )  # fmt: skip
        yield "ONNX", said(lambda: fl.load(model(written, opset=19))(x))


@pytest.mark.parametrize("name", CASES)
def test_every_way_says_the_same(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    found = dict(ways(case, tmp_path))
    assert {"function", "recording", "program", "own file"} <= found.keys()
    assert {way: text for way, text in found.items() if not text.endswith(f": {case.text}")} == {}
