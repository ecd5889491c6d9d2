"""Makes lstm.npz: layers of torch.nn.LSTM (torch 2.13, in float64), one and both directions, with and without a state given.

Run ``python -m tests.goldens.make_lstm`` where torch is installed; seed 0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

# steps, batch, inputs, hidden; defaults: bias, zero state, time first, forward only
CASES: tuple[dict[str, Any], ...] = (
    {"shape": (1, 3, 5, 7)},
    {"shape": (9, 3, 7, 20), "state": True, "directions": 2},
    {"shape": (9, 1, 1, 17), "state": True, "batch_first": True},
    {"shape": (12, 2, 3, 16), "directions": 2, "batch_first": True, "bias": False},
    {"shape": (40, 1, 2, 5), "state": True},
)
WEIGHTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


def make() -> dict[str, np.ndarray]:
    """The arrays of the golden file: "cases" (JSON), and each case's x, out, hn, cn, h0 and c0 where given, and the weights by
    torch's names, all under "<number>.<name>"."""
    import torch

    torch.manual_seed(0)
    arrays = {"cases": np.array(json.dumps(CASES))}
    for number, case in enumerate(CASES):
        steps, batch, inputs, hidden = case["shape"]
        directions, batch_first = case.get("directions", 1), case.get("batch_first", False)
        net = torch.nn.LSTM(inputs, hidden, bias=case.get("bias", True), batch_first=batch_first, bidirectional=directions == 2)
        x = 2 * torch.randn((batch, steps, inputs) if batch_first else (steps, batch, inputs))
        state = [torch.randn(directions, batch, hidden) for _ in range(2)] if case.get("state") else []
        tensors = dict(net.named_parameters()) | {"x": x} | dict(zip(("h0", "c0"), state, strict=False))
        with torch.no_grad():
            given = tuple(s.double() for s in state) if state else None
            out, (hn, cn) = net.double()(x.double(), given)
        # The module's parameters turned into float64 in place; they came from float32 and go back without loss.
        tensors |= {"out": out, "hn": hn, "cn": cn}
        arrays |= {f"{number}.{name}": value.detach().float().numpy() for name, value in tensors.items()}
    return arrays


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("lstm.npz"), **make())
