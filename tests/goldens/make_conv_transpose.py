"""Makes conv_transpose.npz: transposed convolutions by torch (2.13, in float64).

Run ``python -m tests.goldens.make_conv_transpose`` where torch is installed; seed 0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

# x, weight as torch has them; the others by axis, the first space axis first; defaults: stride 1, padding 0, output_padding 0,
# dilation 1, groups 1.
CASES: tuple[dict[str, Any], ...] = (
    {"x": (2, 3, 7), "w": (3, 5, 3)},
    {"x": (1, 4, 6), "w": (4, 3, 4), "stride": [2], "padding": [1], "groups": 2},
    {"x": (1, 3, 5), "w": (3, 2, 3), "stride": [4], "padding": [1], "output_padding": [3], "bias": False},
    {"x": (2, 6, 5), "w": (6, 1, 8), "stride": [4], "padding": [3], "dilation": [1], "groups": 3},
    {"x": (1, 2, 6), "w": (2, 4, 3), "stride": [2], "dilation": [2], "padding": [2], "output_padding": [1]},
    {"x": (1, 3, 4, 5), "w": (3, 4, 4, 4), "stride": [2, 2], "padding": [1, 1]},
    {"x": (2, 5, 3, 4), "w": (5, 17, 3, 3), "stride": [2, 2], "padding": [1, 1], "output_padding": [1, 1]},
    {"x": (1, 4, 5, 3), "w": (4, 3, 2, 3), "stride": [1, 3], "padding": [0, 2], "dilation": [3, 2], "output_padding": [2, 0]},
    {"x": (1, 4, 3, 4), "w": (4, 1, 3, 3), "stride": [2, 2], "groups": 4, "bias": False},
    {"x": (1, 6, 4, 4), "w": (6, 2, 2, 2), "stride": [2, 2], "groups": 2},
    {"x": (2, 3, 4, 4), "w": (3, 2, 3, 3), "padding": [1, 2]},
    {"x": (1, 2, 3, 4, 2), "w": (2, 3, 3, 2, 4), "stride": [2, 1, 3], "padding": [1, 0, 2], "output_padding": [1, 0, 2]},
    {"x": (1, 4, 2, 3, 3), "w": (4, 1, 2, 3, 2), "stride": [1, 2, 2], "dilation": [2, 1, 3], "groups": 2},
)


def make() -> dict[str, np.ndarray]:
    """The arrays of the golden file: "cases" (JSON), and x, w, b, y of each case under "<number>.<name>"."""
    import torch

    rng = np.random.default_rng(0)
    arrays = {"cases": np.array(json.dumps(CASES))}
    for i, case in enumerate(CASES):
        x = rng.standard_normal(case["x"]).astype(np.float32)
        w = (rng.standard_normal(case["w"]) / np.sqrt(case["w"][0])).astype(np.float32)
        b = rng.standard_normal(case["w"][1] * case.get("groups", 1)).astype(np.float32) if case.get("bias", True) else None
        operation = getattr(torch.nn.functional, f"conv_transpose{len(case['w']) - 2}d")
        names = ("stride", "padding", "output_padding", "groups", "dilation")
        y = operation(
            torch.from_numpy(x).double(),
            torch.from_numpy(w).double(),
            None if b is None else torch.from_numpy(b).double(),
            **{name: case[name] for name in names if name in case},
        )
        arrays |= {f"{i}.x": x, f"{i}.w": w, f"{i}.y": y.numpy().astype(np.float32)}
        if b is not None:
            arrays[f"{i}.b"] = b
    return arrays


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("conv_transpose.npz"), **make())
