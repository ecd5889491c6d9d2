"""Non-maximum suppression, in numpy."""

from __future__ import annotations

import numpy as np

__all__ = ["suppress"]

FLOAT32 = np.dtype(np.float32)
BLOCK = 128  # candidates that are compared with one another at once


def _corners(boxes: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper corner, (images, count, 2) each: of y and x, or of x and y."""
    if centred:
        half = boxes[..., 2:] / 2
        return boxes[..., :2] - half, boxes[..., :2] + half
    return np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])


def _overlapping(a: np.ndarray, b: np.ndarray, threshold: np.float32) -> np.ndarray:
    """Marks the pairs of boxes of a (5, m) and b (5, n) whose intersection exceeds the threshold's part of their union: (m,
    n)."""
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


def suppress(
    boxes__bn4: np.ndarray,
    scores__bcn: np.ndarray,
    out__r3: np.ndarray,
    count: np.ndarray,
    size: int,
    value: float,
    least: float | None,
    mode: bool,
) -> None:
    """The first count[0] rows of out become (image, class, box): of every class up to `size` boxes by falling scores, of equals
    the first first, without those that share more than `value` of what they and a better one cover together.

    Args:
        boxes__bn4: float32.
        scores__bcn: of any float dtype.
        out__r3: a row for all that may be found.
        least: if not None, scores must be above it.
        mode: boxes are (x, y, width, height) around their centre, else two corners.
    """
    low, high = _corners(boxes__bn4, mode)
    with np.errstate(all="ignore"):
        area = (high - low).prod(axis=2, keepdims=True)
        sides = np.moveaxis(np.concatenate([low, high, area], axis=2), 2, 1).copy()
        at = 0
        for image in range(scores__bcn.shape[0] if size > 0 else 0):
            for label in range(scores__bcn.shape[1]):
                row = scores__bcn[image, label]
                good = np.flatnonzero(row == row if least is None else row > least)
                order = good[np.argsort(-row[good], kind="stable")]
                found = _chosen(sides[image], order, size, FLOAT32.type(value))
                out__r3[at : at + len(found)] = np.stack([np.full(len(found), image), np.full(len(found), label), found], axis=1)
                at += len(found)
    count[0] = at
