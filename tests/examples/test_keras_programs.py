"""The programs of two articles on layers (goldens/make_seeds.py), answered by the scripts in examples/ with Keras' numbers."""

from __future__ import annotations

import importlib.util
import json
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl

from ..goldens.seed_inputs import INPUTS, weights
from ..goldens.store import read

FOLDER = Path(__file__).parent.parent.parent / "examples"
GOLDENS = Path(__file__).parent.parent / "goldens"
GOLDEN = read(GOLDENS / "seeds.npz")
# float32 on both sides; the longest sum, over 8192 products of positive values with weights, is Keras' less exact one.
TOLERANCE = 4e-6


class Program(NamedTuple):
    """A program of make_seeds.py: the script that has its network, and which."""

    script: str
    options: dict[str, Any]


# make_seeds.py says in which article and section each of them is.
PROGRAMS = {
    "dense": Program("keras_dense", {}),
    "conv2d": Program("keras_conv2d", {}),
    "conv2d_through_features": Program("keras_conv2d", {"features": True}),
    "lstm": Program("keras_lstm", {}),
    "lstm_sequences": Program("keras_lstm", {"sequences": True}),
    "lstm_state": Program("keras_lstm", {"states": True}),
    "lstm_sequences_state": Program("keras_lstm", {"sequences": True, "states": True}),
    "attention_head": Program("keras_attention_head", {}),
    "attention": Program("keras_attention", {}),
    "additive_attention": Program("keras_additive_attention", {}),
    "dqn": Program("keras_dqn", {}),
    "trpo": Program("keras_trpo", {}),
}


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(name: str) -> list[np.ndarray]:
    return weights(name, [tuple(int(size) for size in shape) for shape in GOLDEN[name]["shapes"]])


def check(result: Any, wanted: list[np.ndarray]) -> None:
    results = result.values() if isinstance(result, dict) else result if isinstance(result, (tuple, list)) else [result]
    for got, want in zip(results, wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * max(1.0, np.abs(want).max()))


def compare(name: str, function: Any) -> None:
    """Calls the function with each set of inputs in turn."""
    calls, want = INPUTS[name](), GOLDEN[name]["outputs"]
    each = len(want) // len(calls)
    for i, inputs in enumerate(calls):
        check(function(*inputs), want[i * each : (i + 1) * each])


def test_every_program_is_tried() -> None:
    assert sorted(PROGRAMS) == sorted(GOLDEN) == sorted(INPUTS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_what_keras_gives(name: str, variant: str) -> None:
    module = script(PROGRAMS[name].script)
    net = module.network(**PROGRAMS[name].options)
    net.load_keras(drawn(name))
    compare(name, net)
    compare(name, fl.compile(net, *module.INPUTS))


@pytest.mark.parametrize("label", [f"{name} {call}" for name in PROGRAMS for call in range(len(INPUTS[name]()))])
def test_exports_of_keras_give_what_keras_gives(label: str, tmp_path: Path) -> None:
    """The same programs as ONNX files that Keras wrote; their weights are put back where make_seeds_onnx.py took them out."""
    name, call = label.split()
    calls = INPUTS[name]()
    with np.load(GOLDENS / "seeds_onnx.npz") as file:
        data, places = bytearray(file[label].tobytes()), json.loads(str(file["weights"]))[label]
    arrays = drawn(name)
    for offset, number, order in places:
        raw = arrays[number].transpose(order).astype("<f4").tobytes()
        assert not any(data[offset : offset + len(raw)])
        data[offset : offset + len(raw)] = raw
    (tmp_path / "model.onnx").write_bytes(data)
    # Keras' torch backend counts ids from the end, too: arithmetic with integers, which has no kernels.
    model = fl.load(tmp_path / "model.onnx", require_native=calls[0][0].dtype != np.int64)
    each = len(GOLDEN[name]["outputs"]) // len(calls)
    inputs = [x.astype(np.int32) if x.dtype == np.int64 else x for x in calls[int(call)]]
    result = model(*inputs)
    check(result, GOLDEN[name]["outputs"][int(call) * each :][:each])


@pytest.mark.parametrize("name", sorted({program.script for program in PROGRAMS.values()}))
def test_scripts_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user runs them, on the file that numpy writes of Keras' list."""
    program = next(p for p, of in PROGRAMS.items() if of == Program(name, {}))
    np.savez(tmp_path / "net.npz", *drawn(program))
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path / "net.npz")])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_filters_are_not_flipped() -> None:
    """The two filters of the articles on their images: sums of products. (The second article's comment has 2.0 where its code
    multiplies with the second filter, and the first article's table with the first.)"""
    line, diagonal = np.zeros((3, 3)), np.eye(3)
    line[1] = 1
    image = np.zeros((3, 3))
    image[1, :2] = 1
    kernels = np.stack([line, diagonal])[:, None]
    for x, want in ((np.eye(3), (1, 3)), (image, (2, 1))):
        got = fl.functional.conv2d(x[None, None], kernels)
        np.testing.assert_array_equal(got.ravel(), want)
    # Neither filter tells itself from its flipped self; this one does.
    uneven = np.arange(9.0).reshape(3, 3)
    assert fl.functional.conv2d(image[None, None], uneven[None, None]).item() == np.sum(image * uneven) == 7
