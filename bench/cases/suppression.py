"""Boxes of detectors that are left of all that were found."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case


def _suppress(images: int, classes: int, n: int, most: int, least: float | None) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        middle, size = rng.random((images, n, 2)) * 600, rng.random((images, n, 2)) * 60 + 4
        boxes = np.concatenate([middle - size / 2, middle + size / 2], axis=2).astype(np.float32)
        scores = rng.random((images, classes, n)).astype(np.float32)
        # Whatever is left is finite: rows that are not found keep what they were.
        out, count = np.zeros((images * classes * min(most, n), 3), np.int64), np.zeros(1, np.int64)
        words = {"size": most, "value": 0.5, "least": least, "mode": False}
        return {"boxes": boxes, "scores": scores, "out": out, "count": count, **words}

    return Case("suppress", f"{images}x{classes}x{n} {most} {least}", arguments, moved=4.0 * images * classes * n)


CASES: tuple[Case, ...] = (_suppress(1, 1, 8400, 300, 0.25), _suppress(1, 80, 8400, 100, 0.99), _suppress(2, 3, 200, 50, None))
