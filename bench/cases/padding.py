"""Padding as image and audio networks ask for it, channels-first and channels-last."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.kernels.table import PAD_MODES

from . import Case, normal


def _pad(label: str, shape: tuple[int, int, int, int, int], pads: tuple[int, ...], mode: str) -> Case:
    o, d, h, w, i = shape
    out = (o, d + pads[0] + pads[1], h + pads[2] + pads[3], w + pads[4] + pads[5], i)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {"x": normal(rng, *shape), "out": np.empty(out, np.float32), "pads": pads, "mode": PAD_MODES[mode], "value": 0.0}

    return Case("pad", f"{label} {mode}", arguments, moved=4.0 * (math.prod(shape) + math.prod(out)))


CASES: tuple[Case, ...] = (
    _pad("3@224 by 3 nchw", (3, 1, 224, 224, 1), (0, 0, 3, 3, 3, 3), "zeros"),
    _pad("3@224 by 3 nhwc", (1, 1, 224, 224, 3), (0, 0, 3, 3, 3, 3), "zeros"),
    _pad("64@56 by 1 nchw", (64, 1, 56, 56, 1), (0, 0, 1, 1, 1, 1), "zeros"),
    _pad("64@56 by 1 nhwc", (1, 1, 56, 56, 64), (0, 0, 1, 1, 1, 1), "zeros"),
    _pad("64@56 by 1 nchw", (64, 1, 56, 56, 1), (0, 0, 1, 1, 1, 1), "reflect"),
    _pad("1@16000 by 512", (1, 1, 1, 16000, 1), (0, 0, 0, 0, 512, 512), "reflect"),
)
