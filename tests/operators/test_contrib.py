"""ONNX Runtime's own operators, node by node, against what it answers; those that it has not got on the CPU by their formulas."""

from __future__ import annotations

import contextlib
from math import erf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastlayers.errors import Error, UnsupportedError
from fastlayers.kernels import dispatch
from fastlayers.program import Program
from tests.goldens.contrib_cases import CASES, ContribCase, small

from ..each import each
from .models import graph, info, model, node, to_graph

GOLDENS = Path(__file__).parent.parent / "goldens" / "contrib.npz"
TOLERANCE = 3e-6  # next to numbers of about 1; their sums are float32 as well


def run(
    op: str,
    inputs: Any,
    outputs: Any,
    constants: Any = (),
    domain: str = "com.microsoft",
    native: bool = False,
    **attributes: Any,
) -> list[np.ndarray]:
    """The node's results; `constants` are positions of inputs that belong to the model."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    given = {n: a for i, (n, a) in enumerate(zip(names, inputs, strict=True)) if a is not None and i not in constants}
    known = {n: a for i, (n, a) in enumerate(zip(names, inputs, strict=True)) if a is not None and i in constants}
    wanted = [o for o in outputs if o]
    proto = graph([node(op, names, outputs, domain, **attributes)], [info(n, a) for n, a in given.items()], wanted, known)
    made = Program(to_graph(model(proto, 21, **{"com.microsoft": 1})), dispatch.variant(), native=native)
    arrays = [np.array(a, order="C") for a in given.values()]
    return list(made.binding(arrays).run(arrays))


@pytest.mark.parametrize("item", CASES, ids=[c.id for c in CASES])
def test_as_onnxruntime_answers(item: ContribCase, variant: str) -> None:
    native = item.native and variant != "reference"
    results = run(item.op, item.inputs, item.outputs, item.constants, item.domain, native, **item.attributes)
    with np.load(GOLDENS) as file:
        for got, name in zip(results, [o for o in item.outputs if o], strict=True):
            want = file[f"{item.id}/{name}"]
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE)


# ---- those that ONNX Runtime has on GPUs alone ----------------------------------------------------------------------------


def gelu(x: np.ndarray) -> np.ndarray:
    return np.asarray(x * (1 + np.vectorize(erf)(x / np.sqrt(2))) / 2)


def near(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE)


def grouped(x: np.ndarray, groups: int, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Of (n, h, w, c), each group of channels of each image by itself."""
    y = np.zeros(x.shape)
    each = x.shape[3] // groups
    for n, g in np.ndindex(x.shape[0], groups):
        part = x[n, :, :, g * each : (g + 1) * each].astype(float)
        y[n, :, :, g * each : (g + 1) * each] = (part - part.mean()) / np.sqrt(part.var() + 1e-5)
    return y * gamma + beta


def test_group_norm(variant: str) -> None:
    x, gamma, beta, skip, bias = small(2, 3, 5, 8), small(8), small(8, by=0.3), small(2, 3, 5, 8, by=0.9), small(8, by=2.2)
    want = grouped(x, 4, gamma, beta)
    (got,) = run("GroupNorm", [x, gamma, beta], ["y"], groups=4, activation=0)
    near(got, want)
    (got,) = run("GroupNorm", [x, gamma, beta], ["y"], groups=4, activation=1)
    near(got, want / (1 + np.exp(-want)))
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    (got,) = run("GroupNorm", [first, gamma, beta], ["y"], groups=4, activation=0, channels_last=0)
    near(got, want.transpose(0, 3, 1, 2))
    got, total = run("SkipGroupNorm", [x, gamma, beta, skip, bias], ["y", "s"], groups=2, activation=0)
    near(total, x + skip + bias)
    near(got, grouped(x + skip + bias, 2, gamma, beta))


def test_sums(variant: str) -> None:
    x, bias, skip = small(2, 3, 8) * 3, small(8), small(2, 3, 8, by=0.9)
    near(run("BiasAdd", [x, bias, skip], ["y"])[0], x + bias + skip)
    left, right = np.split((x + bias).astype(float), 2, -1)
    near(run("BiasSplitGelu", [x, bias], ["y"])[0], left * gelu(right))


# ---- what is refused ------------------------------------------------------------------------------------------------------

_X = small(1, 2, 8)
REFUSED: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Attention", [_X, small(8, 24), small(24)], {"num_heads": 2, "do_rotary": 1}),
    ("Attention", [_X, small(8, 24), small(24), None, small(2, 1, 2, 9, 4), None, np.int32(1)], {"num_heads": 2}),
    ("MultiHeadAttention", [_X, _X, _X, *[None] * 5, np.int32(3)], {"num_heads": 2}),
    ("RotaryEmbedding", [_X, np.array([0]), small(3, 2), small(3, 2)], {"is_packed_batching": 1}),
    ("FusedConv", [small(1, 1, 4, 4), small(1, 1, 3, 3)], {"activation": "Unheard"}),
    ("GroupNorm", [small(1, 2, 2, 4), small(4), small(4)], {"groups": 2, "activation": 7}),
    ("BeamSearch", [_X], {}),
    ("Sampling", [_X], {}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), REFUSED, ids=[f"{op} {i}" for i, (op, *_) in enumerate(REFUSED)])
def test_refused(op: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match=op):
        run(op, [None if a is None else np.asarray(a) for a in inputs], ["y"], **attributes)


WRONG: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("FusedMatMul", [small(2, 3), small(2, 3)], {}),
    ("FusedMatMul", [small(2, 3), np.float32(1)], {}),
    ("MultiHeadAttention", [_X, _X, _X], {"num_heads": 3}),
    ("MultiHeadAttention", [_X, _X, _X, small(9)], {"num_heads": 2}),
    ("MultiHeadAttention", [_X, _X, _X, None, np.ones((1, 3), np.int32)], {"num_heads": 2}),
    ("MultiHeadAttention", [_X, _X, _X, None, None, None, small(1, 2, 3, 5), small(1, 2, 3, 4)], {"num_heads": 2}),
    ("MultiHeadAttention", [_X, _X, _X, None, None, None, small(1, 2, 3, 4)], {"num_heads": 2}),
    ("Attention", [_X, small(7, 24), small(24)], {"num_heads": 2}),
    ("RotaryEmbedding", [_X, np.array([[0, 9]]), small(3, 2), small(3, 2)], {}),
    ("SkipLayerNormalization", [_X, small(1, 3, 8), small(8)], {}),
    ("EmbedLayerNormalization", [np.ones((1, 9), np.int32), None, small(3, 8), small(5, 8), None, small(8), small(8)], {}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), WRONG, ids=[f"{op} {i}" for i, (op, *_) in enumerate(WRONG)])
def test_wrong_inputs_are_errors_of_ours(op: str, inputs: list[Any], attributes: dict[str, Any], variant: str) -> None:
    with pytest.raises(Error):
        run(op, [None if a is None else np.asarray(a) for a in inputs], ["y"], **attributes)


@each("item", CASES, ids=[c.id for c in CASES])
def test_any_input_may_be_missing(item: ContribCase) -> None:
    """A file may leave out what it likes: then the node does without, or the error is ours."""
    for i in range(len(item.inputs)):
        for inputs in (item.inputs[:i], (*item.inputs[:i], None, *item.inputs[i + 1 :])):
            with contextlib.suppress(Error):
                run(item.op, inputs, item.outputs, item.constants, item.domain, **item.attributes)
