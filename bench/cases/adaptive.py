"""Adaptive pools of image networks, with bins that are alike and bins that are not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.kernels.table import REDUCE

from . import Case, normal


def _adaptive(op: str, c: int, size: tuple[int, ...], out: tuple[int, ...], channels_last: bool) -> Case:
    shapes = [(1, *s, c) if channels_last else (1, c, *s) for s in (size, out)]

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, *shapes[0]),
            "out": np.empty(shapes[1], np.float32),
            "op": REDUCE[op],
            "channels_last": channels_last,
        }

    text = f"{op} {c}@{'x'.join(map(str, size[1:]))} to {'x'.join(map(str, out[1:]))} {'nhwc' if channels_last else 'nchw'}"
    return Case("adaptive_pool", text, arguments, moved=4.0 * sum(map(math.prod, shapes)))


CASES: tuple[Case, ...] = tuple(
    _adaptive(op, c, (1, size, size), (1, out, out), last)
    for last in (False, True)
    for op, c, size, out in (("mean", 512, 14, 7), ("mean", 512, 10, 7), ("mean", 2048, 7, 6), ("max", 512, 37, 7))
)
