"""What torch's grid_sample makes of small images: grid_sample.npz.

python tests/goldens/make_grid_sample.py
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import torch

SIZES = (
    ((2, 3, 7, 5), (4, 6)),
    ((1, 2, 1, 1), (3, 3)),
    ((2, 2, 3, 4, 5), (2, 3, 4)),
    ((1, 17, 1, 6), (5, 13)),
    ((1, 1, 33, 16), (1, 65)),
)


def main() -> None:
    """Writes the file."""
    rng = np.random.default_rng(7)
    found: dict[str, np.ndarray] = {}
    for number, (shape, places) in enumerate(SIZES):
        x = rng.standard_normal(shape).astype(np.float32)
        grid = (1.5 * rng.standard_normal((shape[0], *places, len(places)))).astype(np.float32)
        found[f"x{number}"], found[f"grid{number}"] = x, grid
        for mode, border, aligned in itertools.product(
            ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (0, 1)
        ):
            if mode == "bicubic" and len(places) == 3:
                continue  # torch has none
            made = torch.nn.functional.grid_sample(torch.tensor(x), torch.tensor(grid), mode, border, bool(aligned))
            found[f"y{number}/{mode}/{border}/{aligned}"] = made.numpy()
    np.savez_compressed(Path(__file__).with_name("grid_sample.npz"), **found)


if __name__ == "__main__":
    main()
