"""NonMaxSuppression: the best boxes of every class, without those that overlap a better one."""

from __future__ import annotations

import numpy as np

from ._base import FLOAT32, INT64, Spec, View, register
from ._shapes import need_kind, scalar
from ._traits import PLAIN

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]
BLOCK = 128  # candidates that are compared with one another at once


def _infer(n: View) -> list[Spec]:
    """boxes (images, count, 4), scores (images, classes, count): rows of image, class and box, as many as are found."""
    need_kind(n, "f", 0, 1, 3, 4)
    need_kind(n, "iu", 2)
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


def _overlapping(a: np.ndarray, b: np.ndarray, threshold: np.float32) -> np.ndarray:
    """Which boxes of a (5, m) and of b (5, n) share more than the threshold's part of what they cover together: (m, n)."""
    sides = [np.minimum(a[i + 2][:, None], b[i + 2]) - np.maximum(a[i][:, None], b[i]) for i in (0, 1)]
    shared = np.maximum(sides[0], 0) * np.maximum(sides[1], 0)
    # As a quotient, in float32: others decide ties at the threshold so, too. Boxes that share nothing may cover nothing.
    found: np.ndarray = (shared > 0) & (shared / (a[4][:, None] + b[4] - shared) > threshold)
    return found


def _chosen(boxes: np.ndarray, order: np.ndarray, most: int, threshold: np.float32) -> np.ndarray:
    """The boxes of one class that stay: of `order`, which has the best first. Block by block, as long as some are wanted."""
    found = order[:0]
    for at in range(0, len(order), BLOCK):
        block = order[at : at + BLOCK]
        if len(found):
            block = block[~_overlapping(boxes[:, block], boxes[:, found], threshold).any(axis=1)]
        own = boxes[:, block]
        over = np.triu(_overlapping(own, own, threshold), 1)
        stays = np.ones(len(block), bool)
        for i in np.flatnonzero(over.any(axis=1)).tolist():
            if stays[i]:
                stays &= ~over[i]
        found = np.concatenate([found, block[stays]])
        if len(found) >= most:
            break
    return found[:most]


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
    area = (high - low).prod(axis=2, keepdims=True)
    sides = np.moveaxis(np.concatenate([low, high, area], axis=2), 2, 1).copy()
    floor = -np.inf if least is None else scalar(n, 4, least)
    rows = [np.zeros((0, 3), np.int64)]
    for image in range(scores.shape[0] if count > 0 else 0):
        for label in range(scores.shape[1]):
            row = scores[image, label]
            good = np.flatnonzero(row > floor if least is not None else row == row)
            order = good[np.argsort(-row[good], kind="stable")]
            found = _chosen(sides[image], order, count, FLOAT32.type(threshold))
            rows.append(np.stack([np.full(len(found), image), np.full(len(found), label), found], axis=1))
    return (np.concatenate(rows),)


register("NonMaxSuppression", _infer, _run, traits=PLAIN)
