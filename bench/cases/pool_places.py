"""Max pools of encoders whose decoders put elements back where they were."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import KINDS

from . import Case


def _places(shape: tuple[int, ...], size: int, stride: int, pad: int, dtype: str = "float32") -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x = rng.integers(-50, 50, shape).astype(dtype)
        sizes = tuple((d + 2 * pad - size) // stride + 1 for d in shape[3:])
        out = np.empty((*shape[:3], *sizes), dtype)
        window = {"kernel": (1, size, size), "stride": (1, stride, stride), "dilation": (1, 1, 1), "pads": (0, 0, *(pad,) * 4)}
        return {"x": x, "out": out, "indices": np.empty(out.shape, np.int64), **window, "source": KINDS[dtype]}

    label = f"{'x'.join(map(str, shape))} {size}/{stride}+{pad} {dtype}"
    return Case("max_pool_places", label, arguments, moved=4.0 * np.prod(shape))


CASES: tuple[Case, ...] = (
    _places((1, 64, 1, 112, 112), 2, 2, 0),
    _places((1, 8, 1, 31, 29), 3, 2, 1),
    _places((2, 3, 1, 10, 10), 3, 1, 1, "float64"),
    _places((1, 3, 1, 9, 43), 3, 1, 1),
    _places((1, 3, 1, 12, 50), 3, 2, 1, "int8"),
)
