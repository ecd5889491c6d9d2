"""Writes attention_layers.npz: what torch computes, in float64, for the calls of transformer_cases.py.

Run from the root of the repository: ``python -m tests.goldens.make_attention_layers``; made with torch 2.13.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from .make_front import flat
from .transformer_cases import CASES, Case, arrays, made


def run(case: Case) -> list[np.ndarray]:
    layer = getattr(torch.nn, case.name)(*case.args, **case.kwargs).double().eval()
    shapes = {name: tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
    inputs = arrays(case.label, *case.shapes, *shapes.values())
    weights = inputs[len(case.shapes) :]
    layer.load_state_dict({name: torch.from_numpy(w) for name, w in zip(shapes, weights, strict=True)})
    x = [torch.from_numpy(a.copy()).double() for a in inputs[: len(case.shapes)]]

    def argument(value: Any) -> Any:
        value = made(value)
        if not isinstance(value, np.ndarray):
            return value
        tensor = torch.from_numpy(value)
        return tensor if value.dtype == np.bool_ else tensor.double()

    result = layer(*x, **{name: argument(value) for name, value in case.call.items()})
    return flat(tuple(part for part in result if part is not None) if isinstance(result, tuple) else result)


def main() -> None:
    found = {f"{case.label}#{i}": array for case in CASES for i, array in enumerate(run(case))}
    np.savez_compressed(Path(__file__).with_name("attention_layers.npz"), **found)


if __name__ == "__main__":
    main()
