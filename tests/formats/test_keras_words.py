"""What a file of Keras says of a layer or an operation is read, known to change nothing, or refused: for every one of them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.formats.budget import Budget
from fastlayers.formats.keras import functions, words
from fastlayers.formats.keras.build import FLOAT32, Build, Refused
from fastlayers.formats.keras.layer import LAYERS, Context
from fastlayers.formats.keras.model import TABLES
from fastlayers.formats.keras.operation import OPERATIONS
from fastlayers.formats.keras.ops import PLAIN, called
from tests.each import each

from .test_keras import FILES, load
from .test_keras_hostile import archive, functional, given, layer, sequential, tensor

assert TABLES  # whose import fills LAYERS
DENSE = layer("Dense", units=4)
CELL = layer("GRUCell", units=4)
# What a class must say so that it can be looked at.
LEAST: dict[str, dict[str, Any]] = {
    "Bidirectional": {"layer": layer("GRU", units=4)}, "RNN": {"cell": CELL}, "StackedRNNCells": {"cells": [CELL]},
    "TimeDistributed": {"layer": DENSE}, "SpectralNormalization": {"layer": DENSE},
    "Sequential": {"layers": []}, "Functional": {"layers": []}, "Model": {"layers": []},
    "TFOpLambda": {"function": "math.exp"}, "SlicingOpLambda": {"function": "_slice_helper"},
}  # fmt: skip


def looked_at(kind: str, version: tuple[int, int] = (3, 15), **config: Any) -> dict[str, list[str]]:
    """What is refused of a layer with this configuration."""
    context = Context("file", version, "tensorflow")
    context.make(layer(kind, "it", **{**LEAST.get(kind, {}), **config}))
    return context.refused


@each("kind", LAYERS)
def test_an_unknown_word_of_a_layer_is_refused(kind: str) -> None:
    assert looked_at(kind, whatever=3) == {f"{kind} with whatever=3, which is not read": ["it"]}
    assert looked_at(kind, whatever=None) == {}  # left out


@each("kind", LAYERS)
def test_words_of_keras_1_are_read_in_its_files_alone(kind: str) -> None:
    old = sorted(LAYERS[kind].old)
    refused = looked_at(kind, **dict.fromkeys(old, 1))
    assert sorted(refused) == [f"{kind} with {word}=1, which is not read" for word in old]
    assert [what for what in looked_at(kind, (1, 2), **dict.fromkeys(old, 1)) if "not read" in what] == []


def test_what_is_ignored_is_of_a_layer_and_has_a_reason() -> None:
    for kind, ignored in words.IGNORED.items():
        assert kind in LAYERS and all(ignored.values()), kind
        assert [what for what in looked_at(kind, **dict.fromkeys(ignored, 1)) if "not read" in what] == []
        assert not LAYERS[kind].words & set(ignored), kind
    assert all(words.COMMON.values()) and all(words.OBJECT.values())


def test_an_unknown_word_beside_the_configuration_is_refused() -> None:
    with pytest.raises(fl.UnsupportedError, match=r"Dense with whatever=\[1\], which is not read: model/it"):
        fl.load(archive(sequential({**layer("Dense", "it", units=4), "whatever": [1]})))


@each("kind", sorted(LAYERS.keys() - OPERATIONS.keys() - LEAST.keys() - {"InputLayer"}))
def test_what_is_written_as_operations_are_is_no_layer_of_that_name(kind: str) -> None:
    """HDF5 tells neither; whoever has no policy, and nothing to train, is an operation."""
    context = Context("file", (3, 15), "tensorflow")
    context.make({"class_name": kind, "config": {"name": "it", "axis": 1}})
    assert context.refused == {f"operation {kind}": ["it"]}


def test_an_unknown_word_of_an_activation_is_refused() -> None:
    for more in ({}, {"whatever": 1}):
        config = {"class_name": "ReLU", "config": {"name": "r", "max_value": 6.0, **more}}
        refused = looked_at("Dense", units=4, activation=config)
        assert (list(refused) == []) == (not more) and all("activation" in what for what in refused)


def test_a_rule_may_read_only_what_is_declared() -> None:
    made = words.Words({"units": 3, "other": 4}, ["units"])
    assert made["units"] == made.get("units") == 3 and "units" in made and made.get("name") is None
    for read in (lambda: made["other"], lambda: made.get("other"), lambda: "other" in made):
        with pytest.raises(fl.UnsupportedError, match="'other', which its class is not declared to read"):
            read()


def test_what_is_declared_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the layers of the goldens, which have every class; of a class that is read by another's rule, this one's words count."""
    read: set[tuple[frozenset[str], str]] = set()
    check = words.Words._check

    def recorded(self: words.Words, word: object) -> None:
        read.add((self.known, str(word)))
        check(self, word)

    monkeypatch.setattr(words.Words, "_check", recorded)
    for file in FILES:
        load(*file)
    cells = {"GRU": "GRUCell", "LSTM": "LSTMCell", "SimpleRNN": "SimpleRNNCell"}
    convolutional = {"ConvLSTMCell", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"}  # a layer and its cell share the reading
    # No golden has these; test_keras_int8.py has the last.
    not_there = {("ThresholdedReLU", "theta"), ("RNN", "zero_output_for_mask"), ("CustomScaleLayer", "scale")}
    never = {"CuDNNGRU": {"zero_output_for_mask"}, "CuDNNLSTM": {"zero_output_for_mask"}}  # they know no masks
    models = ("Sequential", "Functional", "Model")
    for kind, entry in LAYERS.items():
        known = entry.words | entry.old
        inner = LAYERS[cells[kind]] if kind in cells else entry
        mine = {w for w in entry.words if (known, w) in read or (inner.words | inner.old, w) in read}
        if kind in convolutional:
            mine |= {w for other in convolutional for w in LAYERS[other].words if (LAYERS[other].words, w) in read}
        left = entry.words - mine - never.get(kind, set()) - {w for k, w in not_there if k == kind}
        assert left <= ({"build_input_shape"} if kind in models else {"zero_output_for_mask"} & entry.words), (kind, left)


# ---- operations ------------------------------------------------------------------------------------------------------------


@each("kind", OPERATIONS)
def test_an_unknown_word_of_an_operation_is_refused(kind: str) -> None:
    for word in ("whatever", "_op", "_function", "__", "kw"):
        with pytest.raises(Refused, match=f"{kind} with {word}=False, which is not read"):
            called(kind, Build("file", Budget(1 << 30, "load")), **{word: False})


@each("name", sorted(functions._SAME.keys() | functions._OWN.keys()))
def test_an_unknown_word_of_a_function_is_refused(name: str) -> None:
    this = SimpleNamespace(config={"function": name})
    b = Build("file", Budget(1 << 30, "load"))
    with pytest.raises(Refused, match="with whatever=False, which is not read"):
        functions.function(this, b, b.input("x", (2, 3), FLOAT32), whatever=False)  # type: ignore[arg-type]


def test_words_that_change_nothing_have_a_value() -> None:
    for kind, values in PLAIN.items():
        assert kind in OPERATIONS and all(values.values())
    b = Build("file", Budget(1 << 30, "load"))
    x = b.input("x", (2, 3), FLOAT32)
    with pytest.raises(Refused, match="OneHot with sparse=True"):
        called("OneHot", b, x, num_classes=3, sparse=True)
    assert called("OneHot", b, x, num_classes=3, sparse=False).shape == (2, 3, 3)


def operation(kind: str, *args: Any, name: str = "it", config: Any = None, module: bool = True, **kwargs: Any) -> dict[str, Any]:
    made = {"class_name": kind, "config": {"name": name, **(config or {})}, "name": name,
            "inbound_nodes": [{"args": list(args), "kwargs": kwargs}]}  # fmt: skip
    return {"module": "keras.src.ops.numpy", "registered_name": kind, **made} if module else made


def computed(kind: str, *args: Any, config: Any = None, module: bool = True, **kwargs: Any) -> Any:
    """An operation of the network's input x (2, 10, 6) in a file, and x."""
    net = functional(given(10, 6), operation(kind, *args, config=config, module=module, **kwargs), outputs=("it", 0, 0))
    x = np.random.default_rng(0).standard_normal((2, 10, 6)).astype(np.float32)
    return fl.load(archive(json.loads(json.dumps(net))))(x), x


@pytest.mark.parametrize("module", [True, False], ids=["keras", "as HDF5 says it"])
@pytest.mark.parametrize("axis", [None, 1, -1, [0, 2]])
def test_average_is_an_operation(axis: Any, module: bool) -> None:
    """And a layer, for which it was taken where nothing but its words tells."""
    got, x = computed("Average", tensor("x"), config={"axis": axis}, module=module, weights=None)
    np.testing.assert_allclose(got, x.mean(tuple(axis) if isinstance(axis, list) else axis), atol=1e-6)


def test_average_with_weights() -> None:
    weights = [1.0, 0.5, 2.0, 0.0, 1.0, 3.0]
    got, x = computed("Average", tensor("x"), weights, config={"axis": -1})
    np.testing.assert_allclose(got, np.average(x, -1, weights), atol=1e-6)
    with pytest.raises(fl.UnsupportedError, match="average along axis None with weights of 1 axes, of an array of 3"):
        computed("Average", tensor("x"), weights)


@pytest.mark.parametrize("default", [0.5, None, 2])
def test_select_takes_numbers(default: Any) -> None:
    compared = [operation(kind, tensor("x"), 0.25, name=kind.lower()) for kind in ("Greater", "Less")]
    lists = [tensor("greater"), tensor("less")], [tensor("x"), -1]
    chosen = operation("Select", *lists, *([] if default is None else [default]))
    net = functional(given(10, 6), *compared, chosen, outputs=("it", 0, 0))
    x = np.random.default_rng(0).standard_normal((2, 10, 6)).astype(np.float32)
    x[0, 0, 0] = 0.25
    got = fl.load(archive(net))(x)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.select([x > 0.25, x < 0.25], [x, np.float32(-1)], default or 0))


def test_dtypes_that_operations_name() -> None:
    got, x = computed("Cumsum", tensor("x"), config={"axis": 1, "dtype": "int32"})
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, x.astype(np.int32).cumsum(1))
    got, x = computed("OnesLike", tensor("x"), config={"dtype": "int32"})
    assert got.dtype == np.int32 and got.shape == x.shape
    got, x = computed("Prod", tensor("x"), config={"axis": 1, "dtype": "float16"})
    assert got.dtype == np.float16
    got, x = computed("Max", tensor("x"), config={"axis": 1, "initial": 0.5})
    np.testing.assert_array_equal(got, np.maximum(x.max(1), 0.5))
    with pytest.raises(fl.UnsupportedError, match="dtype whatever"):
        computed("Cast", tensor("x"), config={"dtype": "whatever"})
