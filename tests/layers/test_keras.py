"""Layers with the weights of Keras' layers give what Keras gives, in every variant; keras_table.py says how they are built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from ..each import each
from ..goldens.store import Case, read
from .keras_table import TABLE, call, load_keras

GOLDEN = read(Path(__file__).parent.parent / "goldens" / "keras_layers.npz")
# Both sides compute in float32, sums of at most 100 terms and sequences of 6 steps.
TOLERANCE = 4e-6
WEIGHTED = [label for label, entry in TABLE.items() if GOLDEN[label]["weights"] and entry.load is load_keras]
# Those that are called with their inputs and nothing else.
PLAIN = [label for label, entry in TABLE.items() if entry.run is call]


def flat(value: Any) -> list[np.ndarray]:
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, (list, tuple)) else [value]


def compare(results: Any, case: Case) -> None:
    for got, want in zip(flat(results), case["outputs"], strict=True):
        assert got.dtype == np.float32 and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * max(1.0, np.max(np.abs(want), initial=0.0)))


def test_every_case_is_tried() -> None:
    assert sorted(TABLE) == sorted(GOLDEN)


@each("label", TABLE)
def test_layers_give_what_keras_gives(label: str, variant: str) -> None:
    case = GOLDEN[label]
    layer = TABLE[label].make()
    TABLE[label].load(layer, case["weights"])
    compare(TABLE[label].run(layer, case), case)


@each("label", PLAIN)
def test_compiled_layers_give_what_keras_gives(label: str) -> None:
    """Recorded for batches of any size."""
    case = GOLDEN[label]
    layer = TABLE[label].make()
    TABLE[label].load(layer, case["weights"])
    inputs = [fl.graph.Input(f"x{i}", ("n", *x.shape[1:]), x.dtype) for i, x in enumerate(case["inputs"])]
    model = fl.compile(layer, *inputs, require_native=True)
    compare(model(*case["inputs"]), case)


@pytest.mark.parametrize("label", ["Embedding mask_zero GRU", "Embedding mask_zero pool"])
def test_compiled_networks_take_masks(label: str) -> None:
    """A mask is an input of what is recorded, whose lengths are open too."""
    case = GOLDEN[label]
    net = TABLE[label].make()
    net.load_keras(case["weights"])
    inputs = [fl.graph.Input("ids", ("n", "t"), np.int64), fl.graph.Input("mask", ("n", "t"), np.bool_)]
    model = fl.compile(net, *inputs, require_native=True)
    (ids,) = case["inputs"]
    compare(model(ids, net.embedding.mask(ids)), case)
    wider = np.pad(ids, ((0, 0), (0, 3)))
    compare(model(wider, net.embedding.mask(wider)), case)


@each("label", WEIGHTED)
def test_wrong_lists_are_named(label: str) -> None:
    """Too few arrays, too many, one of another shape: the message has every shape that was given and every one expected."""
    weights = GOLDEN[label]["weights"]
    layer = TABLE[label].make()
    for wrong in (weights[:-1], [*weights, np.zeros(3)], [*weights[:-1], weights[-1][..., None]], []):
        with pytest.raises(fl.WeightsError) as caught:
            layer.load_keras(wrong)
        message = str(caught.value)
        assert f"load_keras: weights has shapes {[w.shape for w in wrong]}: expected {len(weights)}: " in message
        named = re.findall(r"([\w./]+) (\([\d, ]*\))", message.partition("expected")[2])
        assert [shape for _, shape in named] == [str(w.shape) for w in weights]
        assert len({name for name, _ in named}) == len(weights)
    with pytest.raises(fl.WeightsError):  # nothing was taken
        layer.state_dict()
    layer.load_keras(weights)


def test_lists_of_other_types_are_refused() -> None:
    layer = fl.Linear(2, 3)
    for wrong in ({"kernel": np.ones((2, 3))}, "weights", np.ones((2, 3)), 5, None):
        with pytest.raises(fl.DTypeError, match=r"Linear\.load_keras: weights of type"):
            layer.load_keras(wrong)  # type: ignore[arg-type]
    with pytest.raises(fl.DTypeError, match=r"Linear\.load_keras: weights\[1\]"):
        layer.load_keras([np.ones((2, 3)), np.array(["a", "b", "c"])])
