"""Makes activation.npz: elementwise functions, PReLU, GLU and softmax of torch 2.13, computed in float64.

Run ``python -m tests.goldens.make_activation`` where torch is installed; seed 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

# Name in table.UNARY, parameters, and torch's function with the same meaning; sign has none, as torch's takes NaN for 0.
CASES: tuple[tuple[str, tuple[float, ...], str, dict[str, Any]], ...] = (
    ("relu", (), "relu", {}),
    ("clip", (0.0, 6.0), "relu6", {}),
    ("clip", (-1.5, 0.75), "hardtanh", {"min_val": -1.5, "max_val": 0.75}),
    ("leaky_relu", (0.01,), "leaky_relu", {}),
    ("leaky_relu", (1.5,), "leaky_relu", {"negative_slope": 1.5}),
    ("elu", (1.0,), "elu", {}),
    ("elu", (0.3,), "elu", {"alpha": 0.3}),
    ("selu", (1.6732632423543772, 1.0507009873554805), "selu", {}),
    ("sigmoid", (), "sigmoid", {}),
    ("tanh", (), "tanh", {}),
    ("gelu", (), "gelu", {}),
    ("gelu_tanh", (), "gelu", {"approximate": "tanh"}),
    ("silu", (), "silu", {}),
    ("hardsigmoid", (1 / 6, 0.5), "hardsigmoid", {}),
    ("hardswish", (), "hardswish", {}),
    ("softplus", (1.0, 20.0), "softplus", {}),
    ("softplus", (0.5, 3.0), "softplus", {"beta": 0.5, "threshold": 3.0}),
    ("softsign", (), "softsign", {}),
    ("mish", (), "mish", {}),
    ("exp", (), "exp", {}),
    ("log", (), "log", {}),
    ("erf", (), "erf", {}),
    ("sqrt", (), "sqrt", {}),
    ("square", (), "square", {}),
    ("negative", (), "neg", {}),
    ("abs", (), "abs", {}),
    ("reciprocal", (), "reciprocal", {}),
    ("floor", (), "floor", {}),
    ("ceil", (), "ceil", {}),
    ("round", (), "round", {}),
    ("sin", (), "sin", {}),
    ("cos", (), "cos", {}),
)
SHAPE = (3, 10, 4)


def make() -> dict[str, np.ndarray]:
    """x (with NaN, infinities and both zeros at its end) and "<number>" for each case; "p", "slope", "prelu"; "glu.<axis>";
    "s", and "softmax.<axis>" and "log_softmax.<axis>" of it."""
    import torch

    torch.manual_seed(0)
    special = torch.tensor([0.0, -0.0, -3.0, 3.0, 19.5, 21.0, -90.0, 90.0, float("nan"), float("inf"), -float("inf")])
    x = torch.cat([6 * torch.randn(180), torch.linspace(-1, 1, 40), special])
    arrays = {"x": x}
    for number, (_, _, name, options) in enumerate(CASES):
        function = getattr(torch.nn.functional, name, None) or getattr(torch, name)
        arrays[str(number)] = function(x.double(), **options)
    s, slope = 4 * torch.randn(SHAPE), torch.randn(SHAPE[1])
    # Two columns of each axis go wrong in the ways that softmax knows: NaN, infinity, nothing but -infinity.
    s[0, 0, 0], s[1, 1, 1], s[2, :, 2], s[:, 3, 3], s[2, 4, :] = float("nan"), float("inf"), *[-float("inf")] * 3
    arrays |= {"p": 4 * torch.randn(SHAPE), "slope": slope, "s": s}
    arrays["prelu"] = torch.nn.functional.prelu(arrays["p"].double(), slope.double())
    for axis in range(3):
        arrays[f"softmax.{axis}"] = torch.softmax(s.double(), axis)
        arrays[f"log_softmax.{axis}"] = torch.log_softmax(s.double(), axis)
    for axis in (1, 2):
        arrays[f"glu.{axis}"] = torch.nn.functional.glu(arrays["p"].double(), axis)
    return {name: value.float().numpy() for name, value in arrays.items()}


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("activation.npz"), **make())
