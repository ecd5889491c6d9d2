"""NonMaxSuppression: the best boxes of every class, without those that overlap a better one."""

from __future__ import annotations

import numpy as np

from ..kernels.dispatch import kernel
from ..kernels.reference.suppression import suppress
from ._base import FLOAT32, INT64, Spec, View, register
from ._traits import PLAIN
from .shapes import need_kind, scalar

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]


def _infer(n: View) -> list[Spec]:
    """boxes (images, count, 4), scores (images, classes, count): rows of image, class and box, one per box that is found."""
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
    most_each = min(max(count, 0), scores.shape[2])
    out = np.empty((scores.shape[0] * scores.shape[1] * most_each, 3), np.int64)
    found = np.zeros(1, np.int64)
    floor = None if least is None else float(scalar(n, 4, least))
    # The result's size is known only then, so no step of a program could do it: the kernel is called from here.
    function = kernel("suppress") if scores.dtype == FLOAT32 else suppress
    sides = np.ascontiguousarray(boxes, FLOAT32)
    function(sides, np.ascontiguousarray(scores), out, found, most_each, threshold, floor, bool(n.get("center_point_box", 0)))
    return (out[: found[0]].copy(),)


register("NonMaxSuppression", _infer, _run, traits=PLAIN._replace(counts=True))
