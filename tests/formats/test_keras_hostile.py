"""Files of Keras that ask for too much, contradict themselves or are damaged: one of our errors, soon, in little memory."""

from __future__ import annotations

import contextlib
import io
import json
import random
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import Error, FormatError, LimitError, UnsupportedError
from fastlayers.formats.keras.build import Refused
from fastlayers.formats.keras.functions import function

from .measure import allocations
from .test_hdf5 import FLOAT, behind, contiguous, file_of, hard, header, one, space

GOLDENS = Path(__file__).parents[1] / "goldens"
EMPTY = file_of(header())


def archive(config: Any, weights: bytes = EMPTY, **members: bytes) -> bytes:
    """A .keras file."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as file:
        content = {"metadata.json": b'{"keras_version": "3.15.1"}', "model.weights.h5": weights, **members}
        content["config.json"] = config if isinstance(config, bytes) else json.dumps(config).encode()
        for name, data in content.items():
            file.writestr(name, data)
    return memory.getvalue()


def layer(kind: str, name: str = "", nodes: Any = None, **config: Any) -> dict[str, Any]:
    made = {"module": "keras.layers", "class_name": kind, "config": {"name": name or kind.lower(), "trainable": True, **config}}
    return made if nodes is None else {**made, "name": name or kind.lower(), "inbound_nodes": nodes}


def given(*shape: int | None, name: str = "x") -> dict[str, Any]:
    return layer("InputLayer", name, [], batch_shape=[None, *shape], dtype="float32")


def sequential(*layers: Any, shape: tuple[Any, ...] = (4,)) -> dict[str, Any]:
    return {"module": "keras", "class_name": "Sequential", "config": {"name": "model", "layers": [given(*shape), *layers]}}


def tensor(name: str, node: int = 0, output: int = 0) -> dict[str, Any]:
    return {
        "class_name": "__keras_tensor__",
        "config": {"shape": [None, 4], "dtype": "float32", "keras_history": [name, node, output]},
    }


def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"args": list(args), "kwargs": kwargs}


def functional(*layers: Any, inputs: Any = ("x", 0, 0), outputs: Any = ("y", 0, 0)) -> dict[str, Any]:
    config = {"name": "model", "trainable": True, "layers": list(layers), "input_layers": [inputs], "output_layers": [outputs]}
    return {"module": "keras.src.models.functional", "class_name": "Functional", "config": config}


def doubled(depth: int, kind: str) -> dict[str, Any]:
    """A model that calls the model in it twice, which does so too."""
    inner = layer(kind, "y", [call(tensor("x"))])
    for _ in range(depth):
        model = {**functional(given(4), inner), "name": "y", "inbound_nodes": [call(tensor("x")), call(tensor("y", 1))]}
        model["config"]["name"] = "y"
        model["config"]["output_layers"] = [["y", 2 if model["config"]["layers"][1]["class_name"] == "Functional" else 0, 0]]
        inner = model
    return functional(given(4), inner, outputs=("y", 2, 0))


def wrapped(depth: int) -> dict[str, Any]:
    inner = layer("ReLU")
    for _ in range(depth):
        inner = layer("TimeDistributed", layer=inner)
    return sequential(inner)


X = call(tensor("x"))
BIG = 1 << 45


def cases() -> dict[str, tuple[bytes, type[Error], str]]:
    relu = layer("ReLU", "y", [X])
    lambdas = [
        layer("Lambda", "evil", function={"class_name": "__lambda__", "config": {"code": "4wEA"}}),
        layer("Other", "own"),
        layer("Third"),
    ]
    os_system = {"module": "os", "class_name": "system", "config": {"command": "touch /tmp/owned"}, "registered_name": "system"}
    registered = {**layer("Dense"), "registered_name": "mine>Dense"}
    code = {"class_name": "__lambda__", "config": {"code": "4wEA"}}
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("metadata.json", b'{"keras_version": "3.0.0"}')
        file.writestr("config.json", b" " * (65 << 20))
        file.writestr("model.weights.h5", EMPTY)
    npz = archive(sequential(relu))
    npz = npz.replace(b"model.weights.h5", b"model.weights.np")
    at = behind(space(4), FLOAT, contiguous(0, 16))
    extra = one(space(4), FLOAT, contiguous(at, 16), data=bytes(16))
    deep = b'{"class_name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    return {
        "Lambda, and layers nobody knows": (
            archive(sequential(*lambdas)),
            UnsupportedError, "model/evil\n  layer Other: model/own\n  layer Third",
        ),
        "a module to import": (archive(sequential(os_system)), UnsupportedError, "layer system: model/system"),
        "a model to import": (archive(os_system), UnsupportedError, "of class 'system', whose code is not in the file"),
        "a registered class": (archive(sequential(registered)), UnsupportedError, "layer mine>Dense: model/dense"),
        "a lambda as an activation": (
            archive(sequential(layer("Dense", units=4, activation=code))),
            UnsupportedError, "activation {",
        ),
        "a lambda as an argument": (
            archive(functional(given(4), layer("ReLU", "y", [call(code)]))),
            UnsupportedError, "__lambda__",
        ),
        "an unknown operation": (
            archive(functional(given(4), {**layer("Svd", "y", [X]), "module": "keras.src.ops.linalg"})),
            UnsupportedError, "operation Svd",
        ),
        "stateful": (archive(sequential(layer("LSTM", units=4, stateful=True), shape=(3, 4))), UnsupportedError, "stateful"),
        "no JSON": (archive(b"{"), FormatError, "is no JSON: JSONDecodeError"),
        "JSON too deep": (archive(deep), FormatError, "is no JSON"),
        "no object": (archive([1]), FormatError, "is no JSON object"),
        "no class": (archive({"config": {}}), FormatError, "no class_name"),
        "no layers": (archive({"class_name": "Functional", "config": {}}), UnsupportedError, "whose code is not in the file"),
        "layers that are none": (archive(sequential(None, 3)), FormatError, "broken (AttributeError"),
        "layers of null": (archive({"class_name": "Sequential", "config": {"layers": None}}), FormatError, "broken"),
        "empty": (archive({"class_name": "Sequential", "config": {"layers": []}}), FormatError, "it has no layers"),
        "a version": (
            archive(sequential(relu), **{"metadata.json": b'{"keras_version": "x"}'}),
            FormatError, "keras_version is 'x'",
        ),
        "kernels of Keras 1": (
            archive(
                sequential(layer("Conv1D", filters=2, kernel_size=1), shape=(3, 4)),
                **{"metadata.json": b'{"keras_version": "1.2.2"}'},
            ),
            UnsupportedError,
            "kernels of convolutions that Theano wrote, or may have written: they are flipped: model/conv1d",
        ),
        "a bomb of JSON": (bomb.getvalue(), LimitError, "has 68157440 bytes"),
        "weights of pickles": (npz, UnsupportedError, "never unpickled"),
        "weights missing": (
            archive(sequential(layer("Dense", units=4))),
            FormatError, "has no weight 'kernel' at layers/dense/vars/0",
        ),
        "weights left over": (
            archive(sequential(relu), extra),
            FormatError, "has 1 weights that no layer of the model takes, such as 'x'",
        ),
        "weights alone": (extra, UnsupportedError, "read them with load_weights"),
        "a cycle": (
            archive(functional(given(4), layer("ReLU", "y", [call(tensor("y"))]))),
            FormatError, "reads an input that nothing writes",
        ),
        "a layer that is not there": (archive(functional(given(4), layer("ReLU", "y", [call(tensor("z"))]))), FormatError, ""),
        "a call that is not there": (
            archive(functional(given(4), relu, outputs=("y", 7, 0))),
            FormatError, "refers to call 7 of layer 'y'",
        ),
        "an output that is not there": (archive(functional(given(4), relu, outputs=("y", 0, 3))), FormatError, "which has 1"),
        "a negative output": (
            archive(functional(given(4), layer("ReLU", "y", [call(tensor("x", 0, -1))]))),
            FormatError, "two values",
        ),
        "a name twice": (archive(functional(given(4), relu, relu)), FormatError, "two layers have the name 'y'"),
        "references of numbers": (
            archive(functional(given(4), relu, outputs=(1, 2, 3))),
            FormatError, "expected [name, node, tensor]",
        ),
        "models that call models": (archive(doubled(28, "ReLU")), LimitError, "20000 times"),
        "models that do nothing": (archive(doubled(28, "Dropout")), LimitError, "20000 times"),
        "layers in layers": (archive(wrapped(40)), LimitError, "nesting exceeds 32 levels"),
        "layers in layers, too deep for Python": (archive(wrapped(300)), LimitError, "nesting exceeds 32 levels"),
        "a huge input": (
            archive(sequential(layer("LayerNormalization", scale=False, center=False), shape=(BIG,))),
            LimitError, "values that the file does not hold",
        ),
        "a negative size": (archive(sequential(relu, shape=(-3,))), FormatError, "expected sizes or null"),
        "a size of text": (archive(sequential(relu, shape=("4",))), FormatError, "expected sizes or null"),
        "a dtype of text": (
            archive(sequential(relu) | {"config": {"name": "m", "layers": [layer("InputLayer", batch_shape=[None],
            dtype="string")]}}),
            UnsupportedError, "an input of string",
        ),
        "steps without end": (
            archive(sequential(layer("ConvLSTM2D", filters=1, kernel_size=[1, 1]), shape=(1 << 40, 2, 2, 1))),
            FormatError, "has no weight",
        ),
        "a causal mask": (
            archive(functional(given(BIG, 4), {**layer("Attention", "y", [call([tensor("x"), tensor("x")],
            use_causal_mask=True)])})),
            Error, "",
        ),
    }  # fmt: skip


CASES = cases()


@pytest.mark.parametrize("case", CASES)
def test_what_asks_for_too_much_is_refused(case: str) -> None:
    raw, error, text = CASES[case]
    start = time.perf_counter()
    if case == "a causal mask":  # sizes that are only met when it runs
        fl.load(raw)
        return
    # Counting allocations makes what calls thousands of layers ten times slower; their number bounds its memory.
    counted = contextlib.nullcontext() if case.startswith("models") else allocations()
    with counted as measured, pytest.raises(error) as caught:
        fl.load(raw)
    assert type(caught.value) is error and text in str(caught.value), str(caught.value)
    assert measured is None or measured.peak < 80 << 20
    assert time.perf_counter() - start < 10


def joined(kind: str, **config: Any) -> dict[str, Any]:
    return functional(given(4), {**layer(kind, "y", [call([tensor("x"), tensor("x")])], **config)})


def applied(name: str, **kwargs: Any) -> dict[str, Any]:
    return functional(given(4), {**layer(name, "y", [call(tensor("x"), **kwargs)]), "module": "keras.src.ops.numpy"})


FAR = {
    **{f"{kind} of axis {axis!r:.20}": sequential(layer(kind, axis=axis)) for kind, axis in (
        ("Softmax", 10**12), ("Softmax", 2), ("Softmax", -3), ("Softmax", [0, 2]), ("Softmax", "1"), ("UnitNormalization", -3),
    )},
    "LayerNormalization of an axis": sequential(layer("LayerNormalization", axis=[10**12], scale=False, center=False)),
    **{f"{kind} of axes {config}": joined(kind, **config) for kind, config in (
        ("Concatenate", {"axis": 10**12}), ("Dot", {"axes": 2}), ("Dot", {"axes": [1, -3]}),
    )},
    **{f"{name} of {kwargs}": applied(name, **kwargs) for name, kwargs in (
        ("Sum", {"axis": 2}), ("Mean", {"axis": [0, -3]}), ("Argmax", {"axis": 10**12}), ("Cumsum", {"axis": -3}),
        ("Transpose", {"axes": [0, 3]}), ("Swapaxes", {"axis1": 0, "axis2": 10**12}),
        ("Moveaxis", {"source": 2, "destination": 0}), ("Moveaxis", {"source": 0, "destination": -3}),
        ("ExpandDims", {"axis": 3}),
        ("Squeeze", {"axis": 2}),
        ("Stack", {"axis": 3}), ("Split", {"indices_or_sections": 2, "axis": 2}), ("Repeat", {"repeats": 2, "axis": 2}),
        ("Take", {"indices": 0, "axis": 2}), ("TakeAlongAxis", {"indices": [[0]], "axis": 2}), ("Flip", {"axis": 10**12}),
        ("LogSoftmax", {"axis": 2}), ("Glu", {"axis": -3}),
    )},
}  # fmt: skip


@pytest.mark.parametrize("case", FAR)
def test_axes_that_a_tensor_does_not_have(case: str) -> None:
    with pytest.raises(FormatError, match=r"(axis .*: expected -[23] to [12]|index out of range)") as caught:
        fl.load(archive(FAR[case]))
    assert "layer model/" in str(caught.value)


def mutated(value: Any, rng: random.Random, rate: float) -> Any:
    """A configuration with some of its values changed."""
    if rng.random() < rate:
        return rng.choice(
            [
                None,
                -1,
                0,
                3,
                1 << 70,
                2.5,
                "x",
                "same",
                [],
                [1, 2],
                {},
                {"class_name": "Dense"},
                True,
                [["x", 0, 0]],
                float("nan"),
            ]
        )
    if isinstance(value, dict):
        return {key: mutated(item, rng, rate) for key, item in value.items() if rng.random() > rate / 4}
    if isinstance(value, list):
        return [mutated(item, rng, rate) for item in value]
    return value


@pytest.mark.parametrize("label", ["image", "nested", "masks", "recurrent", "attention", "operations"])
def test_damaged_configurations(label: str) -> None:
    with np.load(GOLDENS / "keras_models_3.npz") as file:
        raw = file[f"{label}|file|.keras"].tobytes()
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        config, weights = json.loads(file.read("config.json")), file.read("model.weights.h5")
    rng = random.Random(label)
    with allocations() as measured:
        for i in range(6):
            changed = mutated(config, rng, (0.0005, 0.003, 0.02)[i % 3])
            with contextlib.suppress(FormatError, UnsupportedError, LimitError):
                fl.load(archive(changed, weights), max_bytes=1 << 26)
    assert measured.peak < 80 << 20


def test_hard_links_do_not_lead_out_of_the_weights() -> None:
    looped = file_of(header(hard(b"layers", 96)))
    with pytest.raises(FormatError, match="reached twice: a cycle"):
        fl.load(archive(sequential(layer("ReLU")), looped))


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        ("gather", "batch_dims", 1),
        ("one_hot", "on_value", 5),
        ("one_hot", "off_value", -1),
        ("image.resize", "preserve_aspect_ratio", True),
    ],
)  # fmt: skip
def test_words_of_tensorflow_that_would_change_numbers_are_refused(name: str, word: str, value: object) -> None:
    called = SimpleNamespace(config={"function": name}, kind="TFOpLambda")
    with pytest.raises(Refused, match=f"{name} with {word}={value}"):
        function(called, None, None, **{word: value})  # type: ignore[arg-type]
