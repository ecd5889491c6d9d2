"""Boxes of detectors: 7 x 7 bins of a map at a sixteenth of the image."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import REDUCE

from . import Case, normal


def boxes(rng: np.random.Generator, count: int, width: int, height: int) -> np.ndarray:
    """Corners (x1, y1, x2, y2) in the image."""
    first = rng.random((count, 2)) * (0.7 * width, 0.7 * height)
    size = (0.05 + 0.25 * rng.random((count, 2))) * (width, height)
    return np.concatenate([first, first + size], 1).astype(np.float32)


def _case(kernel: str, c: int, count: int, channels_last: bool, op: str = "mean") -> Case:
    h, w = 38, 50

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        corners = boxes(rng, count, 16 * w, 16 * h)
        return {
            "x": normal(rng, *((1, h, w, c) if channels_last else (1, c, h, w))),
            "boxes": np.concatenate([np.zeros((count, 1), np.float32), corners], 1) if kernel == "roi_pool" else corners,
            "images": np.zeros(count, np.int64),
            "out": np.empty((count, 7, 7, c) if channels_last else (count, c, 7, 7), np.float32),
            "scale": 1 / 16,
            "offset": 0.5,
            "least": -1e10,
            "samples": 2,
            "op": REDUCE[op],
            "channels_last": channels_last,
        }

    layout = "nhwc" if channels_last else "nchw"
    return Case(kernel, f"{op if kernel == 'roi_align' else 'max'} {count} of {c}@{h}x{w} {layout}", arguments)


def _crop(c: int, size: int, out: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        roi = np.array([0, 0, 0.2, -0.1, 1, 1, 0.7, 0.6], np.float32)
        return {"x": normal(rng, 1, c, size, size), "roi": roi, "out": np.empty((1, c, out, out), np.float32), "value": 0.5}

    return Case("crop", f"{c}@{size} to {out}", arguments)


CASES: tuple[Case, ...] = (
    *(
        entry
        for last in (False, True)
        for entry in (_case("roi_pool", 64, 8, last), _case("roi_align", 64, 8, last), _case("roi_align", 16, 4, last, "max"))
    ),
    _crop(16, 32, 7),
)
