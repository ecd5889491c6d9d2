"""TensorFlow Lite networks against TensorFlow Lite's own interpreter: operator by operator, and small networks."""

from __future__ import annotations

import json
import math
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import fastlayers as fl

from ..each import each
from .tflite_build import Net

GOLDENS = Path(__file__).parent.parent / "goldens" / "tflite.npz"


class Case(NamedTuple):
    content: bytes
    inputs: list[np.ndarray]
    outputs: list[np.ndarray]


@cache
def goldens() -> dict[str, Case]:
    with np.load(GOLDENS) as file:
        index, data = json.loads(str(file["index"])), file["data"].tobytes()
    found, at = {}, 0
    for name, (count, kinds) in index.items():
        arrays = []
        for dtype, *shape in kinds:
            size = math.prod(shape)
            arrays.append(np.frombuffer(data, dtype, size, at).reshape(shape))
            at += size * np.dtype(dtype).itemsize
        found[name] = Case(arrays[0].tobytes(), arrays[1 : 1 + count], arrays[1 + count :])
    return found


def answers(model: fl.Model, case: Case) -> list[np.ndarray]:
    found = model(*case.inputs)
    return list(found) if isinstance(found, tuple) else [found]


def close(got: np.ndarray, want: np.ndarray, quantized: bool = False) -> None:
    """1e-5 of the largest number; integers exactly, or within one step where they stand for reals."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * max(1.0, float(np.abs(want).max(initial=0))))
    elif quantized:
        assert np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0) <= 1
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "as written"])
@each("name", goldens())
def test_the_interpreters_numbers(name: str, optimize: bool) -> None:
    case = goldens()[name]
    for got, want in zip(answers(fl.load(case.content, optimize=optimize), case), case.outputs, strict=True):
        close(got, want, "quantised" in name)


@pytest.mark.parametrize("name", [n for n in goldens() if n.startswith("network")])
def test_every_variant_and_number_of_threads(name: str, variant: str) -> None:
    case = goldens()[name]
    results = [answers(fl.load(case.content, num_threads=threads), case) for threads in (1, 2)]
    for one, two, want in zip(*results, case.outputs, strict=True):
        close(one, want, "quantised" in name)
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", [n for n in goldens() if n.startswith(("network", "LSTM", "RNN", "conv", "quantised conv"))])
def test_own_file_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    case, path = goldens()[name], tmp_path / "model"
    model = fl.load(case.content)
    wanted = answers(model, case)
    model.save(path)
    again = fl.load(path)
    assert (again.inputs, again.outputs, again.metadata) == (model.inputs, model.outputs, model.metadata)
    for got, want in zip(answers(again, case), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    for got, want in zip(answers(fl.load(case.content, precision="strict"), case), case.outputs, strict=True):
        close(got, want, "quantised" in name)


def test_weights_quantized_for_storage_alone() -> None:
    """Next to float activations: exactly what the float32 weights would give, which the interpreter is only near to."""
    rng = np.random.default_rng(3)
    net, scale = Net(), np.array([0.5, 0.25, 2.0], np.float32)
    x, stored = net.tensor((2, 4), name="x"), rng.integers(-127, 128, (3, 4)).astype(np.int8)
    w = net.constant(stored, "w", scale=scale.tolist(), zero=[0, 1, -2])
    four = net.tensor((3, 4), "int4", bytes([0x21, 0x43, 0xF5, 0x08, 0x91, 0x7E]), "four", scale=(0.5,), zero=(1,))
    net.outputs = [net.tensor((2, 3), name="y"), net.tensor((2, 3), name="z")]
    net.op("FULLY_CONNECTED", [x, w], net.outputs[:1])
    net.op("FULLY_CONNECTED", [x, four], net.outputs[1:])
    net.inputs = [x]
    given = rng.normal(size=(2, 4)).astype(np.float32)
    y, z = fl.load(net.file())(given)
    np.testing.assert_allclose(y, given @ ((stored - np.array([[0], [1], [-2]])) * scale[:, None]).T, rtol=1e-5, atol=1e-4)
    nibbles = np.array([[1, 2, 3, 4], [5, -1, -8, 0], [1, -7, -2, 7]])
    np.testing.assert_allclose(z, given @ ((nibbles - 1) * 0.5).T, rtol=1e-5, atol=1e-5)


def test_every_operator_has_a_case() -> None:
    from fastlayers.formats.tflite.graph import RULES
    from fastlayers.formats.tflite.quantized import OWN

    text = b"".join(case.content for case in goldens().values())
    assert text
    tried: Counter[str] = Counter()
    for case in goldens().values():
        tried.update(_operators(case.content))
    assert {*RULES, *OWN} - set(tried) == set()


def _operators(content: bytes) -> list[str]:
    from fastlayers.formats.budget import Budget
    from fastlayers.formats.source import open_source
    from fastlayers.formats.tflite.parse import parse

    budget = Budget(1 << 30, "load")
    model = parse(open_source(content, caller="load", mapped=True, budget=budget), budget)
    return [operator.name for graph in model.subgraphs for operator in graph.operators]
