"""Calls that newcomers make, held wrong: each error says what to do. A line a call, with the kind and words of its error."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers import functional as F

from .each import each

X = np.zeros((1, 4), np.float32)
WEIGHTS = {"0.weight": np.ones((3, 4)), "0.bias": np.zeros(3), "2.weight": np.ones((2, 3)), "2.bias": np.zeros(2)}


def network() -> fl.Sequential:
    net = fl.Sequential(fl.Linear(4, 3), fl.ReLU(), fl.Linear(3, 2))
    net.load_state_dict(WEIGHTS)
    return net


NET = network()
MODEL = fl.compile(NET, fl.graph.Input("x", ("n", 4)))
LAZY: Any = fl  # whose missing names a type checker would find


def zipped(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"\x80\x02}q\x00.")
    return file.getvalue()


def begun(before: str) -> dict[str, Any]:
    return {before + name: array for name, array in WEIGHTS.items()}


def compiled(function: Callable[..., Any]) -> fl.Model:
    return fl.compile(function, fl.graph.Input("x", ("n", 4)))


class Module:
    """A network of torch, to judge by its methods."""

    def state_dict(self) -> None: ...

    def named_parameters(self) -> None: ...


class Keras:
    """A network of Keras."""

    def get_weights(self) -> None: ...


class Forest:
    """A model of scikit-learn."""

    def get_params(self) -> None: ...

    def fit(self) -> None: ...


FILES = {
    "net.onnx.gz": gzip.compress(b"\x08\x07"),
    "net.zip": zipped("net/model.onnx", "README"),
    "script.pt": zipped("net/data.pkl", "net/code/__torch__.py"),
    "graph.pb": b"\n\x1d\n\x01x\x12\x0bPlaceholder",
    "net.xml": b'<?xml version="1.0"?>\n<net name="m">',
    "net.ort": b"\x1c\0\0\0ORTM" + bytes(40),
    "forest.pkl": b"\x80\x04}.",
    "saved/saved_model.pb": b"\x08\x01\x12\x05abcde",
    "exported/model.onnx": b"",
    "empty/notes": b"",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


TOLD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # What is no file to read.
    "a folder": (lambda: fl.load("empty"), fl.FormatError, "without config.json: expected a checkpoint of transformers"),
    "a folder with a model": (lambda: fl.load("exported"), fl.FormatError, "load one of its files: 'model.onnx'"),
    "a SavedModel": (lambda: fl.load("saved"), fl.FormatError, "python -m tf2onnx.convert"),
    "a folder of weights": (lambda: fl.load_weights("exported"), IsADirectoryError, "'model.onnx'"),
    "a URL": (lambda: fl.load("https://example.com/net.onnx"), FileNotFoundError, "nothing is downloaded: fetch the file"),
    "a hub's name": (lambda: fl.load("Qwen/Qwen2.5-0.5B"), FileNotFoundError, "hf download Qwen/Qwen2.5-0.5B"),
    "a hub's short name": (lambda: fl.load("bert-base-uncased"), FileNotFoundError, "hf download bert-base-uncased"),
    "a hub's texts": (lambda: fl.text.Encoder("sentence/MiniLM-L6-v2"), fl.ArgumentError, "hf download sentence/MiniLM-L6-v2"),
    "an example's name": (lambda: fl.load("silero_vad"), FileNotFoundError, "fastlayers.example('silero_vad')"),
    "a network of torch": (lambda: fl.load(Module()), fl.DTypeError, "torch.onnx.export"),  # type: ignore[arg-type]
    "one to compile": (lambda: compiled(Module()), fl.DTypeError, "torch.onnx.export"),  # type: ignore[arg-type]
    "a network of Keras": (lambda: fl.load(Keras()), fl.DTypeError, "model.save('net.keras')"),  # type: ignore[arg-type]
    "a forest": (lambda: fl.load(Forest()), fl.DTypeError, "skl2onnx.to_onnx"),  # type: ignore[arg-type]
    "a layer": (lambda: fl.load(NET), fl.DTypeError, "fastlayers.compile"),  # type: ignore[arg-type]
    "weights by name": (lambda: fl.load(WEIGHTS), fl.DTypeError, "load_state_dict"),  # type: ignore[arg-type]
    "a path to Model": (lambda: fl.Model("net.onnx"), fl.DTypeError, "fastlayers.load reads files"),  # type: ignore[arg-type]
    ".pb": (lambda: fl.load("graph.pb"), fl.UnsupportedError, "python -m tf2onnx.convert"),
    ".pb in a SavedModel": (lambda: fl.load("saved/saved_model.pb"), fl.FormatError, "python -m tf2onnx.convert"),
    ".xml": (lambda: fl.load("net.xml"), fl.UnsupportedError, "OpenVINO's, which is not read: load the ONNX file"),
    ".ort": (lambda: fl.load("net.ort"), fl.UnsupportedError, "load the ONNX file that it was made of"),
    "TorchScript": (lambda: fl.load("script.pt"), fl.UnsupportedError, "which is not run: export the network as ONNX"),
    "gzip": (lambda: fl.load("net.onnx.gz"), fl.UnsupportedError, "gzip-compressed: decompress it first"),
    "a zipped model": (lambda: fl.load("net.zip"), fl.UnsupportedError, "unpack it, and load that"),
    "a pickle": (lambda: fl.load("forest.pkl"), fl.UnsupportedError, "never unpickled: save the model as ONNX"),
    # What is no array.
    "a picture's name": (lambda: MODEL("cat.jpg"), fl.DTypeError, "files are not opened"),
    "the same to a function": (lambda: F.relu("cat.jpg"), fl.DTypeError, "files are not opened"),
    "the same to a layer": (lambda: NET("cat.jpg"), fl.DTypeError, "files are not opened"),
    "nothing": (lambda: MODEL(None), fl.DTypeError, "input 'x' is None of type NoneType: expected an array of float32"),
    "a dict": (lambda: MODEL({"x": X}), fl.DTypeError, "`run` takes them by name"),
    # Habits.
    "onnxruntime's run": (lambda: MODEL.run(None, {"x": X}), fl.DTypeError, "here it is model.run({'x': x})"),  # type: ignore[arg-type]
    "its names": (lambda: MODEL.run(["y"], {"x": X}), fl.DTypeError, "model.run({'x': x}, ['y'])"),  # type: ignore[arg-type]
    "its inputs": (lambda: LAZY.load(fl.example("silero_vad")).get_inputs(), AttributeError, "inputs and outputs are attributes"),
    "its session": (lambda: LAZY.InferenceSession, AttributeError, "it is fastlayers.ort.InferenceSession"),
    "a misspelt input": (lambda: MODEL(y=X), fl.ArgumentError, "lacks ['x'] and has ['y'], which is no input"),
    "Keras' predict": (lambda: MODEL.predict(X), AttributeError, "call it: model(x)"),  # type: ignore[attr-defined]
    "a layer's predict": (lambda: NET.predict(X), AttributeError, "call it: net(x)"),  # type: ignore[attr-defined]
    "Keras' weights": (lambda: NET.set_weights([]), AttributeError, "load_keras takes"),  # type: ignore[attr-defined]
    "Dense": (lambda: LAZY.Dense, AttributeError, "it is fastlayers.Linear"),
    "Conv2D": (lambda: LAZY.Conv2D, AttributeError, "it is fastlayers.Conv2d"),
    "Conv2DTranspose": (lambda: LAZY.Conv2DTranspose, AttributeError, "it is fastlayers.ConvTranspose2d"),
    "GlobalAveragePooling2D": (lambda: LAZY.GlobalAveragePooling2D, AttributeError, "it is fastlayers.GlobalAvgPool"),
    "BatchNormalization": (lambda: LAZY.BatchNormalization, AttributeError, "it is fastlayers.BatchNorm1d or"),
    "a function": (lambda: LAZY.relu, AttributeError, "it is fastlayers.functional.relu"),
    "nn": (lambda: LAZY.nn, AttributeError, "layers are in fastlayers itself"),
    "eval": (lambda: NET.eval(), AttributeError, "leave it out"),  # type: ignore[attr-defined]
    "a model's eval": (lambda: MODEL.eval(), AttributeError, "leave it out"),  # type: ignore[attr-defined]
    "cuda": (lambda: NET.cuda(), AttributeError, "device='cuda'"),  # type: ignore[attr-defined]
    "a list of layers": (lambda: fl.Sequential([fl.ReLU()]), fl.DTypeError, "Sequential(*layers)"),
    "channels_last": (lambda: fl.Conv2d(3, 4, 3, layout="channels_last"), fl.ArgumentError, "channels_last is 'nhwc'"),
    "channels_first": (lambda: fl.Conv1d(3, 4, 3, layout="channels_first"), fl.ArgumentError, "channels_first is 'nchw'"),
    "a Symbol's view": (lambda: compiled(lambda x: x.view(-1)), AttributeError, "it is reshape"),
    "a Symbol's relu": (lambda: compiled(lambda x: x.relu()), AttributeError, "it is fastlayers.functional.relu"),
    "numpy's median": (lambda: compiled(lambda x: np.median(x)), fl.UnsupportedError, "sum, mean, max and min with axis"),
    # State dicts.
    "module.": (lambda: NET.load_state_dict(begun("module.")), fl.WeightsError, "prefix='module.' would find them"),
    "layers.": (lambda: NET.load_state_dict(begun("a.layers."), prefix="a."), fl.WeightsError, "prefix='a.layers.' would"),
    "a level above": (lambda: NET.load_state_dict({"state_dict": WEIGHTS}), fl.WeightsError, "in weights['state_dict']"),
    "a level below": (
        lambda: fl.Sequential({"net": NET}).load_state_dict(WEIGHTS), fl.WeightsError, "expected {'net.' + name: array}",
    ),
    "a path": (lambda: NET.load_state_dict("net.pt"), fl.DTypeError, "as load_weights reads a file"),  # type: ignore[arg-type]
    # Options.
    "format": (lambda: fl.load(b"", format="pytorch"), fl.ArgumentError, "expected one of onnx, tflite"),
    "timeout": (lambda: MODEL(X, timeout=-1), fl.ArgumentError, "timeout is -1: expected a number of seconds"),
    "threads": (lambda: fl.set_num_threads(-1), fl.ArgumentError, "expected an integer from 1 to 256, got -1"),
    "precision": (lambda: fl.load(b"", precision="fp16"), fl.ArgumentError, "'float16', 'bfloat16'"),
    "weights": (lambda: fl.load(b"", weights="q4"), fl.ArgumentError, "'int8', 'int4'"),
    "open sizes": (lambda: MODEL.summary(), fl.ArgumentError, "such as model.summary({'x': (1, 4)})"),
}  # fmt: skip


@each("name", TOLD)
def test_the_error_says_what_to_do(name: str, folder: Path) -> None:
    call, kind, words = TOLD[name]
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)
    assert kind not in (fl.ArgumentError, fl.DTypeError) or type(caught.value) is kind


def test_what_works_now() -> None:
    np.testing.assert_array_equal(MODEL(x=X), MODEL(X))
    np.testing.assert_array_equal(F.softmax(X, axis=1), F.softmax(X, 1))


def test_attributes_that_fail_by_themselves_say_so() -> None:
    class Broken(fl.Layer):
        @property
        def size(self) -> int:
            return self.missing  # type: ignore[attr-defined,no-any-return]

    with pytest.raises(AttributeError, match="'Broken' object has no attribute 'missing'"):
        _ = Broken().size
    assert not hasattr(MODEL, "nothing") and not hasattr(fl, "nothing")


def test_completion_shows_public_names_alone() -> None:
    for module in (fl, fl.functional, fl.layers, fl.text, fl.graph):
        shown = {name for name in dir(module) if not name.startswith("__")}
        assert shown - set(module.__all__) <= {"cuda", "ort", "text"} and set(module.__all__) <= set(dir(module)), module
