"""Writes front.npz: what torch computes, in float64, for the calls of front_cases.py.

Run from the root of the repository: ``python -m tests.goldens.make_front``; made with torch 2.13 and numpy 2.4. Labels are seeds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from .front_cases import FUNCTIONS, LAYERS, FunctionCase, LayerCase, arrays


def flat(result: Any) -> list[np.ndarray]:
    """Every tensor of a result, nested tuples opened, as float32."""
    if isinstance(result, tuple):
        return [array for part in result for array in flat(part)]
    return [result.detach().numpy().astype(np.float32)]


def run_layer(case: LayerCase) -> list[np.ndarray]:
    layer = getattr(torch.nn, case.name)(*case.args, **case.kwargs).eval()
    shapes = {name: tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
    state_shapes = () if case.state is None else (case.state, case.state)
    x, *numbers = arrays(case.label, case.shape, *state_shapes, *shapes.values())
    state, weights = numbers[: len(state_shapes)], numbers[len(state_shapes) :]
    layer.load_state_dict({name: torch.from_numpy(w) for name, w in zip(shapes, weights, strict=True)})
    inputs: list[Any] = [torch.from_numpy(x.copy()).double()]
    if state:
        inputs.append(tuple(torch.from_numpy(s).double() for s in state))
    return flat(layer.double()(*inputs))


def run_function(case: FunctionCase) -> list[np.ndarray]:
    function = getattr(torch.nn.functional, case.name, None) or getattr(torch, case.name)
    return flat(function(*(torch.from_numpy(a).double() for a in arrays(case.label, *case.shapes)), **case.kwargs))


def main() -> None:
    results = {case.label: run_layer(case) for case in LAYERS}
    results.update({case.label: run_function(case) for case in FUNCTIONS})
    found = {f"{label}#{i}": array for label, parts in results.items() for i, array in enumerate(parts)}
    np.savez_compressed(Path(__file__).with_name("front.npz"), **found)


if __name__ == "__main__":
    main()
