"""Makes binary.npz: arithmetic, comparisons and choices of torch 2.13, computed in float64, on all pairs of some numbers.

Run ``python -m tests.goldens.make_binary`` where torch is installed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

# Values that meet each other, and what they do: whole and broken exponents, both zeros, infinities, NaN, both ends of the range.
NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 0.75, -2.5, 7.0, 1e-3, -1e-3, 12.25, -100.0, 33.0),
    *(float("inf"), float("-inf"), float("nan"), 3e38, -3e38, 1e-38, -1e-38, 1e-45, 16777216.0, 16777215.0),
)
# Name in table.BINARY and torch's function.
BINARY = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "power": "pow",
    "minimum": "minimum",
    "maximum": "maximum",
}
COMPARE = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}


def make() -> dict[str, np.ndarray]:
    """All values as "x", and "<name>" [first][second] for every function; "where" picks the lesser one, b for NaN."""
    import torch

    x = torch.tensor(NUMBERS, dtype=torch.float32)
    a, b = x.double()[:, None], x.double()[None, :]
    arrays = {"x": x}
    for name, function in {**BINARY, **COMPARE}.items():
        arrays[name] = getattr(torch, function)(a, b)
    arrays["prelu"] = torch.nn.functional.prelu(a.repeat(1, len(NUMBERS)), x.double())
    arrays["squared_difference"] = torch.square(a - b)
    arrays["where"] = torch.where(a < b, a, b)
    return {name: (value if value.dtype == torch.bool else value.float()).numpy() for name, value in arrays.items()}


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("binary.npz"), **make())
