"""Whole ONNX networks against onnxruntime: as written and optimized, in every variant, through the session and our own file."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fastlayers as fl

GOLDENS = Path(__file__).parent.parent / "goldens" / "onnx_models.npz"


@cache
def goldens() -> dict[str, np.ndarray]:
    with np.load(GOLDENS) as arrays:
        return dict(arrays)


NAMES = [key.partition("/")[0] for key in np.load(GOLDENS).files if key.endswith("/file")]
models = pytest.mark.parametrize("name", NAMES)


def data(name: str) -> bytes:
    return goldens()[f"{name}/file"].tobytes()


def arrays(name: str, number: int, side: str) -> dict[str, np.ndarray]:
    prefix = f"{name}/{number}/{side}/"
    return {key.removeprefix(prefix): array for key, array in goldens().items() if key.startswith(prefix)}


def close(got: np.ndarray, want: np.ndarray) -> None:
    """1e-5 of the largest number in float32, 1e-12 in float64; integers exactly."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind == "f":
        tolerance = (1e-5 if want.dtype == np.float32 else 1e-12) * max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, want)


def agrees(model: fl.Model, name: str) -> None:
    # The first sizes again in the end: bindings must not disturb one another.
    for number in (0, 1, 0):
        feeds, wanted = arrays(name, number, "in"), arrays(name, number, "out")
        results = model.run(feeds)
        assert list(results) == list(wanted)
        for key, want in wanted.items():
            close(results[key], want)


@pytest.mark.parametrize("precision", ["default", "strict"])
@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "as written"])
@models
def test_onnxruntime(name: str, optimize: bool, precision: str, variant: str) -> None:
    agrees(fl.load(data(name), optimize=optimize, precision=precision), name)


@models
def test_session(name: str) -> None:
    session = fl.ort.InferenceSession(data(name), providers=["CPUExecutionProvider"])
    feeds, wanted = arrays(name, 1, "in"), arrays(name, 1, "out")
    assert {i.name for i in session.get_inputs()} == set(feeds)
    assert [o.name for o in session.get_outputs()] == list(wanted)
    for got, want in zip(session.run(None, feeds), wanted.values(), strict=True):
        close(got, want)
    last = list(wanted)[-1]
    close(session.run([last], feeds)[0], wanted[last])


@pytest.mark.parametrize("packed", [False, True])
@models
def test_own_file_gives_the_same_bits(name: str, packed: bool, variant: str, tmp_path: Path) -> None:
    model, path = fl.load(data(name)), tmp_path / "model.fastlayers"
    wanted = [model.run(arrays(name, number, "in")) for number in (0, 1)]
    model.save(path, packed)
    for mmap in (True, False):
        again = fl.load(path, mmap=mmap)
        assert again.inputs == model.inputs
        assert again.outputs == model.outputs
        for number in (0, 1):
            for key, got in again.run(arrays(name, number, "in")).items():
                np.testing.assert_array_equal(got, wanted[number][key])


@models
def test_threads_give_the_same_bits(name: str) -> None:
    results = []
    for threads in (1, 2):
        model = fl.load(data(name), num_threads=threads)
        results.append([model.run(arrays(name, number, "in")) for number in (0, 1)])
    for one, two in zip(*results, strict=True):
        for key, array in one.items():
            np.testing.assert_array_equal(array, two[key])


# Operators that must be there once operations are fused, and operators that must not.
FUSED = {
    "classifier": ({"Conv": 4, "Linear": 1}, ("BatchNormalization", "Relu", "Add", "Gemm")),
    "mobile": ({"Conv": 7}, ("BatchNormalization", "Relu", "HardSwish", "Clip", "HardSigmoid", "Add")),
    "inception": ({"Conv": 5, "Affine": 1, "ConvTranspose": 1}, ("Relu", "LeakyRelu", "Tanh")),
    "transformer": (
        {"LayerNormalization": 2, "Linear": 6, "ScaledAttention": 1},
        ("MatMul", "Softmax", "Erf", "Gelu", "Add", "Sqrt", "Div"),
    ),
}


@pytest.mark.parametrize("name", [n for n in NAMES if n.partition(" ")[0] in FUSED])
def test_operations_are_fused(name: str, tmp_path: Path) -> None:
    """As the file that is saved has them, which is the graph that runs."""
    model, path = fl.load(data(name)), tmp_path / "model.fastlayers"
    model.save(path)
    found = Counter(n.op for n in fl.load(path)._graph.nodes)
    wanted, gone = FUSED[name.partition(" ")[0]]
    assert {op: found[op] for op in wanted} == wanted
    assert not [op for op in gone if found[op]]


# What kernels have no part in.
IN_NUMPY = ("doubles", "integers", "shapes")


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(IN_NUMPY)])
def test_kernels_do_it_all(name: str) -> None:
    agrees(fl.load(data(name), require_native=True), name)
