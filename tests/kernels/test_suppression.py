"""`suppress` against loops over boxes: ties, NaN, infinite boxes, limits, batches of candidates, edges of memory, threads."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ShapeError
from fastlayers.kernels import dispatch
from tests.guard import guarded

from ..each import each

F = np.float32


def corners(box: Any, centred: bool) -> tuple[Any, Any, Any, Any]:
    y, x, v, u = box
    if centred:
        return y - v / F(2), x - u / F(2), y + v / F(2), x + u / F(2)
    return min(y, v), min(x, u), max(y, v), max(x, u)


def share(a: Any, b: Any) -> Any:
    """What two boxes share of what they cover together, step by step in float32."""
    h, w = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(h, F(0)) * max(w, F(0))
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return both / (areas[0] + areas[1] - both) if both > 0 else F(0)


def plain(boxes: np.ndarray, scores: np.ndarray, size: int, value: float, least: float | None, centred: bool) -> list[list[int]]:
    found = []
    for image, label in itertools.product(*map(range, scores.shape[:2])):
        row = scores[image, label]
        order = [i for i in range(len(row)) if (row[i] == row[i] if least is None else row[i] > least)]
        kept: list[Any] = []
        for i in sorted(order, key=lambda i: (-row[i], i)):
            box = corners(boxes[image, i], centred)
            if len(kept) < size and not any(share(box, other) > F(value) for other in kept):
                kept.append(box)
                found.append([image, label, i])
    return found


def run(boxes: np.ndarray, scores: np.ndarray, size: int, value: float, least: float | None, centred: bool) -> list[list[int]]:
    rows = scores.shape[0] * scores.shape[1] * min(size, scores.shape[2])
    out, count = guarded(np.zeros((rows, 3), np.int64), "end"), np.zeros(1, np.int64)
    dispatch.kernel("suppress")(guarded(boxes, "end"), guarded(scores, "end"), out, count, size, value, least, centred)
    rows_found: list[list[int]] = out[: count[0]].tolist()
    return rows_found


def drawn(seed: int, images: int, classes: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    boxes = rng.integers(0, 12, (images, n, 4)).astype(F)
    scores = (rng.integers(0, 40, (images, classes, n)) / 40).astype(F)
    return boxes, scores


@each("seed", range(4))
def test_loops_over_boxes(seed: int, variant: str) -> None:
    for n, size in ((1, 1), (7, 3), (40, 40), (130, 17), (130, 16), (300, 300)):
        boxes, scores = drawn(seed, 2, 2 if n < 300 else 1, n)
        for value, centred, least in ((0.5, False, None), (0.0, True, 0.3), ((0.25, 1.0)[seed % 2], False, 0.3)):
            assert run(boxes, scores, size, value, least, centred) == plain(boxes, scores, size, value, least, centred)


def test_numbers_that_are_none(variant: str) -> None:
    """NaN among scores is left out; a box with NaN or without an end overlaps none, or what numpy says."""
    boxes, scores = drawn(5, 1, 1, 60)
    scores[0, 0, ::7] = np.nan
    scores[0, 0, 1::7] = -np.inf
    scores[0, 0, 2::7] = -0.0
    boxes[0, ::5, 1] = np.nan
    boxes[0, 1::5, 2] = np.inf
    found = [run(boxes, scores, 60, 0.4, least, False) for least in (None, 0.0, -math.inf)]
    with fl.kernels.use("reference"):
        assert found == [run(boxes, scores, 60, 0.4, least, False) for least in (None, 0.0, -math.inf)]
    assert len(found[0]) > len(found[1]) > 0


def test_nothing_to_find(variant: str) -> None:
    for images, classes, n, size in ((0, 2, 3, 1), (2, 0, 3, 1), (2, 3, 0, 1), (2, 3, 4, 0)):
        boxes, scores = np.zeros((images, n, 4), F), np.zeros((images, classes, n), F)
        assert run(boxes, scores, size, 0.5, None, False) == []


@pytest.mark.without("reference", "jit", "cuda")
def test_arrays_that_do_not_fit(variant: str) -> None:
    boxes, scores = drawn(0, 1, 2, 5)
    for b, rows in ((boxes[:, :4], 10), (boxes, 9), (boxes[..., :3], 10)):
        out, count = np.zeros((rows, 3), np.int64), np.zeros(1, np.int64)
        with pytest.raises(ShapeError, match="suppress: boxes have shape"):
            dispatch.kernel("suppress")(np.ascontiguousarray(b), scores, out, count, 5, 0.5, None, False)


def test_threads_change_nothing() -> None:
    boxes, scores = drawn(1, 3, 20, 900)
    found = []
    before = fl.get_num_threads()
    try:
        for threads in (1, 2, 3):
            fl.set_num_threads(threads)
            found.append(run(boxes, scores, 50, 0.5, None, False))
    finally:
        fl.set_num_threads(before)
    assert found[0] == found[1] == found[2]
