"""Linear layers."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, load, normal, np

# batch, inputs, outputs
SHAPES = [(1, 256, 256), (1, 1024, 1024), (1, 4096, 4096), (8, 1024, 1024), (128, 768, 3072), (128, 768, 768)]


def linear(batch: int, inputs: int, outputs: int, stateless: bool = False) -> Pair:
    x = normal(np.random.default_rng(1), batch, inputs)
    layer = fl.Linear(inputs, outputs)
    state = load(layer, inputs)
    w, b = state["weight"], state["bias"]

    def theirs(torch: Any) -> Any:
        tx, tw, tb = (torch.tensor(a) for a in (x, w, b))
        return lambda: torch.nn.functional.linear(tx, tw, tb)

    ours = (lambda: fl.functional.linear(x, w, b)) if stateless else (lambda: layer(x))
    return Pair(ours, None if stateless else theirs, 2.0 * batch * inputs * outputs)


ROWS = [
    *(Row(("Linear",), f"B{b} {i}->{o}", partial(linear, b, i, o)) for b, i, o in SHAPES),
    Row(("linear",), "stateless B128 768->768, packs at each call", partial(linear, 128, 768, 768, True)),
]
