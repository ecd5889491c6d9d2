"""Images read at places: the values of a deformable transformer's head, a flow that moves an image, a volume."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import BORDERS

from . import Case, normal


def _case(n: int, c: int, size: tuple[int, ...], places: int, mode: int, border: str, aligned: int = 0) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, n, c, int(np.prod(size))),
            "grid": rng.uniform(-1.1, 1.1, (n, places, len(size))).astype(np.float32),
            "out": np.empty((n, c, places), np.float32),
            "size": size,
            "mode": mode,
            "border": BORDERS[border],
            "aligned": aligned,
        }

    name = {1: "nearest", 2: "linear", 4: "cubic"}[mode]
    shape = "x".join(map(str, size))
    return Case(
        "grid_sample", f"{name} {border} {places} of {n}x{c}@{shape}", arguments, moved=4.0 * n * places * (2 * c + len(size))
    )


CASES: tuple[Case, ...] = (
    _case(8, 32, (80, 80), 1200, 2, "zeros"),
    _case(1, 3, (120, 160), 120 * 160, 2, "border", 1),
    _case(1, 16, (40, 40), 1600, 4, "reflection"),
    _case(1, 8, (16, 24, 24), 3000, 2, "zeros"),
    _case(1, 64, (40, 40), 1600, 1, "border"),
    _case(1, 64, (40, 40), 9 * 1600, 2, "zeros", 2),
)
