"""Recurrent layers with Keras' weights give what Keras gives: masks, states, merged directions, both hard sigmoids."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from tests.goldens import store

from ..each import each

GOLDENS = store.read(Path(store.__file__).with_name("keras_layers.npz"))
PLAIN = [label for label in GOLDENS if re.match("(SimpleRNN|LSTM|GRU)( |$)", label)]
BIDIRECTIONAL = [label for label in GOLDENS if label.startswith("Bidirectional")]
# Both compute in float32; 6 steps of bounded cells, or of a ReLU's.
TOLERANCE = 4e-6
OLD_HARD = ("hardsigmoid", {"alpha": 0.2, "beta": 0.5})


def close(got: Any, want: np.ndarray) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE)


def made(label: str, hidden: int, inputs: int, weights: list[np.ndarray], **options: Any) -> Any:
    """The layer that a label describes, with Keras' weights."""
    kind = "RNN" if "SimpleRNN" in label else "LSTM" if "LSTM" in label else "GRU"
    if "relu" in label:
        options["nonlinearity" if kind == "RNN" else "activation"] = "relu"
    if "hard_sigmoid" in label:
        options["recurrent_activation"] = OLD_HARD if "old" in label else "hardsigmoid"
    if "reset before" in label:
        options["reset_after"] = False
    layer = getattr(fl, kind)(inputs, hidden, bias="without bias" not in label, batch_first=True, **options)
    layer.load_keras(weights)
    return layer


def states_of(layer: Any, given: list[np.ndarray], directions: int) -> Any:
    """Keras' list of states, one direction after the other, as ours."""
    if not given:
        return None
    each = len(given) // directions
    found = tuple(np.stack(given[i::each]) for i in range(each))
    return found if each == 2 else found[0]


def flat(state: Any) -> list[np.ndarray]:
    """Our state as Keras' list."""
    parts = state if isinstance(state, tuple) else (state,)
    return [part[d] for d in range(len(parts[0])) for part in parts]


@each("label", PLAIN)
def test_one_direction(label: str, variant: str) -> None:
    case = GOLDENS[label]
    (x,), (mask,) = case["inputs"], case.get("mask", [None])
    layer = made(label, 5, 4, case["weights"])
    state = states_of(layer, case.get("initial_state", []), 1)
    if "backwards" in label:  # Keras leaves the outputs in the order in which they were made
        weights = {name.removesuffix("_l0"): w for name, w in layer.state_dict().items()}
        function = getattr(fl.functional, type(layer).__name__.lower())
        out, after = function(x, state, **weights, mask=mask, batch_first=True, direction="reverse")
        out = out[:, ::-1]
    else:
        out, after = layer(x, state, mask=mask)
    if len(case["outputs"]) == 1:  # return_sequences=False
        close(flat(after)[0], case["outputs"][0])
        return
    want, *states = case["outputs"]
    if mask is None or "zero output" in label:
        close(out, want)
    else:  # where there is no step Keras repeats the output before, we give zeros
        close(out[mask], want[mask])
        assert not out[~mask].any()
    for a, b in zip(flat(after), states, strict=True):
        close(a, b)


@pytest.mark.parametrize("label", BIDIRECTIONAL)
def test_two_directions(label: str, variant: str) -> None:
    case = GOLDENS[label]
    (x,), (mask,) = case["inputs"], case.get("mask", [None])
    merge: Any = next((word for word in ("sum", "mul", "ave", "None") if word in label.split()), "concat")
    merge = None if merge == "None" else "sum" if label == "Bidirectional GRU mask last" else merge
    layer = made(label, 5, 4, case["weights"], bidirectional=True, merge=merge)
    out, after = layer(x, states_of(layer, case.get("initial_state", []), 2), mask=mask)
    outs = list(out) if merge is None else [out]
    if case["outputs"][0].ndim == 2:  # return_sequences=False: the last of each direction, merged
        one, two = flat(after)
        merged = {"concat": np.concatenate([one, two], 1), "sum": one + two, "mul": one * two, "ave": (one + two) / 2}
        outs = [one, two] if merge is None else [merged[merge]]
    for got, want in zip(outs, case["outputs"], strict=False):
        valid = np.ones(want.shape[:-1], bool) if mask is None or want.ndim == 2 else mask
        close(got[valid], want[valid])
    states = case["outputs"][len(outs) :]
    for a, b in zip(flat(after) if states else [], states, strict=True):
        close(a, b)


def test_stacked_layers(variant: str) -> None:
    for label in ("stacked LSTM", "stacked cells"):
        case = GOLDENS[label]
        first, second = made("LSTM", 5, 4, case["weights"][:3]), made("LSTM", 3, 5, case["weights"][3:])
        out, (h, _) = second(first(case["inputs"][0])[0])
        close(out if "cells" in label else h[0], case["outputs"][0])
    case = GOLDENS["stacked bidirectional GRU"]
    first = made("GRU", 3, 4, case["weights"][:6], bidirectional=True)
    second = made("GRU", 2, 6, case["weights"][6:], bidirectional=True)
    _, h = second(first(case["inputs"][0])[0])
    close(np.concatenate(list(h), axis=1), case["outputs"][0])


def test_masks_of_other_layers(variant: str) -> None:
    case = GOLDENS["Masking LSTM"]
    x = case["inputs"][0]
    mask = (x != 0).any(axis=2)
    out, _ = made("LSTM", 5, 4, case["weights"])(x, mask=mask)
    close(out[mask], case["outputs"][0][mask])
    case = GOLDENS["Embedding mask_zero GRU"]
    embedding, dense = fl.Embedding(7, 4, padding_idx=0), fl.Linear(3, 2)
    embedding.load_keras(case["weights"][:1])
    dense.load_keras(case["weights"][4:])
    ids = case["inputs"][0]
    _, h = made("GRU", 3, 4, case["weights"][1:4])(embedding(ids), mask=embedding.mask(ids))
    close(dense(h[0]), case["outputs"][0])
