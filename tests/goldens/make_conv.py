"""Makes conv.npz: convolutions by torch (2.13, in float64), depthwise ones among them, with any padding on either side.

Run ``python -m tests.goldens.make_conv`` where torch is installed; seed 0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

# x, weight as torch has them; pads, stride, dilation by axis, the first space axis first; defaults: 0, 1, 1, groups 1, zeros.
CASES: tuple[dict[str, Any], ...] = (
    {"x": (2, 3, 11), "w": (5, 3, 3)},
    {"x": (1, 4, 17), "w": (6, 2, 5), "stride": [2], "dilation": [2], "groups": 2, "pads": [[3, 1]]},
    {"x": (1, 2, 9), "w": (2, 2, 4), "pads": [[8, 5]], "mode": "reflect"},
    {"x": (2, 3, 5), "w": (4, 3, 1), "stride": [3], "bias": False},
    {"x": (2, 3, 9, 8), "w": (4, 3, 3, 3), "pads": [[1, 1], [1, 1]]},
    {"x": (1, 3, 10, 9), "w": (4, 3, 5, 2), "stride": [2, 1], "pads": [[0, 3], [2, 0]], "bias": False},
    {"x": (1, 4, 9, 11), "w": (6, 2, 3, 3), "dilation": [2, 3], "groups": 2, "pads": [[2, 2], [3, 3]]},
    {"x": (1, 2, 6, 7), "w": (3, 2, 3, 3), "pads": [[2, 1], [0, 3]], "mode": "reflect"},
    {"x": (1, 2, 6, 7), "w": (3, 2, 3, 3), "pads": [[2, 9], [4, 3]], "mode": "replicate"},
    {"x": (1, 2, 6, 7), "w": (3, 2, 3, 3), "pads": [[6, 1], [0, 7]], "mode": "circular"},
    {"x": (1, 40, 4, 3), "w": (17, 40, 3, 3), "pads": [[1, 1], [1, 1]]},
    {"x": (1, 2, 5, 6, 7), "w": (3, 2, 3, 2, 3), "stride": [1, 2, 2], "dilation": [2, 1, 1], "pads": [[1, 2], [0, 1], [2, 0]]},
    {"x": (1, 2, 4, 5, 3), "w": (2, 1, 2, 3, 2), "groups": 2, "pads": [[1, 1], [2, 0], [0, 2]], "mode": "reflect"},
    {"x": (1, 2, 4, 5, 3), "w": (2, 2, 2, 3, 2), "pads": [[1, 4], [5, 0], [0, 2]], "mode": "circular"},
    {"x": (2, 5, 12), "w": (5, 1, 3), "groups": 5, "pads": [[1, 1]]},
    {"x": (1, 3, 20), "w": (6, 1, 4), "groups": 3, "stride": [3], "dilation": [2], "pads": [[5, 0]]},
    {"x": (2, 5, 9, 8), "w": (5, 1, 3, 3), "groups": 5, "pads": [[1, 1], [1, 1]]},
    {"x": (1, 4, 11, 13), "w": (8, 1, 3, 3), "groups": 4, "stride": [2, 2], "pads": [[0, 1], [1, 0]]},
    {"x": (1, 3, 9, 10), "w": (3, 1, 5, 5), "groups": 3, "pads": [[4, 2], [2, 2]], "mode": "reflect", "bias": False},
    {"x": (1, 3, 8, 9), "w": (9, 1, 3, 5), "groups": 3, "dilation": [3, 2], "pads": [[3, 3], [4, 4]], "mode": "replicate"},
    {"x": (1, 2, 5, 6, 4), "w": (4, 1, 3, 3, 3), "groups": 2, "stride": [2, 1, 2], "pads": [[1, 1], [1, 1], [2, 1]]},
)


def make() -> dict[str, np.ndarray]:
    """The arrays of the golden file: "cases" (JSON), and x, w, b, y of each case under "<number>.<name>"."""
    import torch

    rng = np.random.default_rng(0)
    arrays = {"cases": np.array(json.dumps(CASES))}
    for i, case in enumerate(CASES):
        x = rng.standard_normal(case["x"]).astype(np.float32)
        w = (rng.standard_normal(case["w"]) / np.sqrt(np.prod(case["w"][1:]))).astype(np.float32)
        b = rng.standard_normal(case["w"][0]).astype(np.float32) if case.get("bias", True) else None
        axes = len(case["w"]) - 2
        mode = case.get("mode", "zeros")
        flat = [p for pair in reversed(case.get("pads", [[0, 0]] * axes)) for p in pair]
        kind = "constant" if mode == "zeros" else mode
        tx = torch.nn.functional.pad(torch.from_numpy(x).double(), flat, mode=kind)
        operation = getattr(torch.nn.functional, f"conv{axes}d")
        y = operation(
            tx,
            torch.from_numpy(w).double(),
            None if b is None else torch.from_numpy(b).double(),
            stride=case.get("stride", 1),
            dilation=case.get("dilation", 1),
            groups=case.get("groups", 1),
        )
        arrays |= {f"{i}.x": x, f"{i}.w": w, f"{i}.y": y.numpy().astype(np.float32)}
        if b is not None:
            arrays[f"{i}.b"] = b
    return arrays


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("conv.npz"), **make())
