"""Makes reduce.npz: reductions over each axis by torch (2.13, in float64).

Run ``python -m tests.goldens.make_reduce`` where torch is installed; seed 0.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

SHAPE = (3, 11, 5)


def make() -> dict[str, np.ndarray]:
    """x, in which NaN, both infinities and nothing but -infinity fill some columns, and "<name in table.REDUCE>.<axis>"."""
    import torch

    torch.manual_seed(0)
    x = torch.randn(SHAPE) * 2
    x[0, 0, 0], x[1, 3, 1], x[2, 5, 2] = float("nan"), float("inf"), -float("inf")
    x[0, :, 3], x[:, 7, 4] = -float("inf"), -float("inf")
    x[1, 9, 1] = float("nan")  # next to an infinity, whichever comes first
    x[2, 2:5, 0] = torch.tensor([float("inf"), 1.0, float("inf")])
    d = x.double()
    arrays = {"x": x}
    for axis in range(3):
        results = {
            "sum": d.sum(axis),
            "mean": d.mean(axis),
            "max": d.amax(axis),
            "min": d.amin(axis),
            "prod": d.prod(axis),
            "sum_square": d.square().sum(axis),
            "l1": d.abs().sum(axis),
            "l2": torch.linalg.vector_norm(d, dim=axis),
            "log_sum": d.sum(axis).log(),
            "log_sum_exp": d.logsumexp(axis),
        }
        arrays |= {f"{name}.{axis}": value for name, value in results.items()}
    return {name: value.float().numpy() for name, value in arrays.items()}


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("reduce.npz"), **make())
