"""Writes recurrent_layers.npz: what torch computes, in float64, for the calls of recurrent_cases.py.

Run from the root of the repository: ``python -m tests.goldens.make_recurrent_layers``; made with torch 2.13. Sequences with
lengths are packed ones, padded with zeros afterwards.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .make_front import flat
from .recurrent_cases import CASES, Case


def run(case: Case) -> list[np.ndarray]:
    layer = getattr(torch.nn, case.name)(*case.args, **case.kwargs).double().eval()
    array, states, weights = case.draw({name: tuple(tensor.shape) for name, tensor in layer.state_dict().items()})
    layer.load_state_dict({name: torch.from_numpy(w) for name, w in weights.items()})
    x: Any = torch.from_numpy(array).double()
    before = tuple(torch.from_numpy(s).double() for s in states)
    batch_first = case.kwargs.get("batch_first", False)
    if case.lengths:
        x = pack_padded_sequence(x, torch.tensor(case.lengths), batch_first, enforce_sorted=False)
    state = before[0] if len(before) == 1 else before or None
    result = layer(x) if state is None else layer(x, state)
    if case.lengths:
        steps = case.shape[1 if batch_first else 0]
        result = (pad_packed_sequence(result[0], batch_first, total_length=steps)[0], result[1])
    return flat(result)


def main() -> None:
    found = {f"{case.label}#{i}": array for case in CASES for i, array in enumerate(run(case))}
    np.savez_compressed(Path(__file__).with_name("recurrent_layers.npz"), **found)


if __name__ == "__main__":
    main()
