"""Attention whose scores are wanted: the weights of encoders, decoders and of additive attention, and the latter's scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case, normal


def _weights(batch: int, heads: int, rows: int, keys: int, causal: bool = False, masked: bool = False, lengths: Any = ()) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, batch, heads, rows, keys),
            "mask": normal(rng, batch, 1, rows, keys) if masked else None,
            "lengths": np.array(lengths) if lengths else None,
            "scores": np.empty((batch, heads, rows, keys), np.float32),
            "out": np.empty((batch, heads, rows, keys), np.float32),
            "scale": 0.125,
            "causal": causal,
            "offset": keys - rows,
            "empty": 0,
        }

    words = (" causal" if causal else "", " mask" if masked else "", f" lengths {lengths}" if lengths else "")
    size = batch * heads * rows * keys
    return Case("attention_weights", f"{batch}x{heads}x{rows}x{keys}" + "".join(words), arguments, 5.0 * size, 8.0 * size)


def _additive(batch: int, rows: int, keys: int, units: int, scaled: bool = True) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "q": normal(rng, batch, rows, units),
            "k": normal(rng, batch, keys, units),
            "scale": normal(rng, units, fan_in=units) if scaled else None,
            "out": np.empty((batch, rows, keys), np.float32),
        }

    flops = 3.0 * batch * rows * keys * units
    label = f"{batch}x{rows}x{keys}x{units}" + ("" if scaled else " sums")
    return Case("additive_scores", label, arguments, flops, 4.0 * batch * (rows + keys) * units)


CASES: tuple[Case, ...] = (
    _weights(1, 12, 128, 128),
    _weights(1, 12, 512, 512, causal=True),
    _weights(8, 1, 20, 30, lengths=(30, 1, 7, 0, 29, 30, 13, 16)),
    _weights(2, 3, 5, 17, masked=True),
    _weights(2, 4, 1, 77, masked=True, causal=True, lengths=(70, 20)),
    _additive(1, 1, 50, 128),  # a step of a decoder
    _additive(8, 20, 30, 64),
    _additive(2, 5, 7, 33, scaled=False),
)
