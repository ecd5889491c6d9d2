"""NonMaxSuppression: the best boxes of every class, without those that overlap a better one."""

from __future__ import annotations

import numpy as np

from ._base import FLOAT32, INT64, Spec, View, register
from ._shapes import need_kind, scalar

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]


def _infer(n: View) -> list[Spec]:
    """boxes (images, count, 4), scores (images, classes, count): rows of image, class and box, as many as are found."""
    need_kind(n, "f", 0, 1)
    boxes, scores = n.shape(0), n.shape(1)
    if (boxes is not None and (len(boxes) != 3 or (isinstance(boxes[2], int) and boxes[2] != 4))) or (
        scores is not None and len(scores) != 3
    ):
        raise n.fail(f"boxes have shape {boxes}, scores {scores}: expected (images, count, 4) and (images, classes, count)")
    if n.get("center_point_box", 0) not in (0, 1):
        raise n.fail(f"center_point_box is {n.get('center_point_box')}: expected 0 or 1")
    return [Spec((None, 3), INT64)]


def _corners(boxes: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper corner, (images, count, 2) each: of y and x, or of x and y."""
    if centred:
        half = boxes[..., 2:] / 2
        return boxes[..., :2] - half, boxes[..., :2] + half
    return np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])


def _chosen(low: np.ndarray, high: np.ndarray, order: np.ndarray, most: int, threshold: float) -> list[int]:
    """The boxes of one class that stay: of `order`, which has the best first."""
    found: list[int] = []
    low, high = low[order], high[order]
    area = np.prod(high - low, axis=1)
    left = np.arange(len(order))
    while left.size and len(found) < most:
        best, left = left[0], left[1:]
        found.append(int(order[best]))
        sides = np.minimum(high[best], high[left]) - np.maximum(low[best], low[left])
        shared = np.prod(np.maximum(sides, 0), axis=1)
        # As a quotient, in float32: others decide ties at the threshold so, too.
        overlap = np.where(shared > 0, shared / (area[best] + area[left] - shared), 0)
        left = left[~(overlap > threshold)]
    return found


def _run(
    n: View,
    boxes: np.ndarray,
    scores: np.ndarray,
    most: np.ndarray | None = None,
    overlap: np.ndarray | None = None,
    least: np.ndarray | None = None,
) -> Arrays:
    count = 0 if most is None else int(scalar(n, 2, most))
    threshold = 0.0 if overlap is None else float(scalar(n, 3, overlap))
    if boxes.shape[2] != 4 or scores.shape[::2] != boxes.shape[:2]:
        raise n.fail(
            f"boxes have shape {boxes.shape}, scores {scores.shape}: expected (images, count, 4), (images, classes, count)"
        )
    if not 0 <= threshold <= 1:
        raise n.fail(f"iou_threshold is {threshold}: expected 0 to 1")
    low, high = _corners(boxes.astype(FLOAT32), bool(n.get("center_point_box", 0)))
    floor = -np.inf if least is None else scalar(n, 4, least)
    rows: list[tuple[int, int, int]] = []
    for image in range(scores.shape[0] if count > 0 else 0):
        for label in range(scores.shape[1]):
            row = scores[image, label]
            good = np.flatnonzero(row > floor if least is not None else row == row)
            order = good[np.argsort(-row[good], kind="stable")]
            rows.extend((image, label, box) for box in _chosen(low[image], high[image], order, count, threshold))
    return (np.array(rows, np.int64).reshape(-1, 3),)


register("NonMaxSuppression", _infer, _run)
