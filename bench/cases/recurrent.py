"""Cases of the recurrent kernels: one direction a call."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case, normal


def _lstm(steps: int, batch: int, inputs: int, hidden: int, reverse: bool = False, batch_first: bool = False) -> Case:
    """One direction of a layer, which writes the whole of `out`; a bidirectional layer is two such calls."""

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        shape = (batch, steps) if batch_first else (steps, batch)
        return {
            "x": normal(rng, *shape, inputs),
            "packed": {
                "w_ih": normal(rng, 4 * hidden, inputs, fan_in=inputs),
                "w_hh": normal(rng, 4 * hidden, hidden, fan_in=hidden),
                "b_ih": normal(rng, 4 * hidden, fan_in=hidden),
                "b_hh": normal(rng, 4 * hidden, fan_in=hidden),
            },
            "h0": np.tanh(normal(rng, batch, hidden)),
            "c0": normal(rng, batch, hidden),
            "out": np.empty((*shape, hidden), np.float32),
            "column": 0,
            "hn": np.empty((batch, hidden), np.float32),
            "cn": np.empty((batch, hidden), np.float32),
            "reverse": reverse,
            "batch_first": batch_first,
        }

    label = f"T{steps} B{batch} I{inputs} H{hidden}" + " reverse" * reverse + " batch first" * batch_first
    weights = 4 * hidden * (inputs + hidden + 2)
    moved = weights + steps * batch * (inputs + hidden)
    return Case("lstm", label, arguments, 8.0 * steps * batch * hidden * (inputs + hidden), 4.0 * moved)


CASES: tuple[Case, ...] = (
    _lstm(1, 1, 128, 128),
    _lstm(100, 1, 64, 64),
    _lstm(100, 1, 128, 128),
    _lstm(100, 1, 256, 256),
    _lstm(100, 1, 512, 512),
    _lstm(100, 16, 256, 256),
    _lstm(50, 32, 512, 512),
    _lstm(100, 8, 128, 128),
    _lstm(100, 8, 128, 128, reverse=True),
    _lstm(30, 4, 40, 100, batch_first=True),
)
