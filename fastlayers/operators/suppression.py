"""NonMaxSuppression: the best boxes of every class, without those that overlap a better one."""

from __future__ import annotations

from typing import Any

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
    each, threshold, floor, centred = _limits(n, boxes.shape, scores.shape, most, overlap, least)
    out = np.empty((scores.shape[0] * scores.shape[1] * each, 3), np.int64)
    found = np.zeros(1, np.int64)
    function = kernel("suppress") if scores.dtype == FLOAT32 else suppress
    sides = np.ascontiguousarray(boxes, FLOAT32)
    function(sides, np.ascontiguousarray(scores), out, found, each, threshold, floor, centred)
    return (out[: found[0]].copy(),)


def _limits(
    n: View,
    boxes: tuple[int, ...],
    scores: tuple[int, ...],
    most: np.ndarray | None,
    overlap: np.ndarray | None,
    least: np.ndarray | None,
) -> tuple[int, float, float | None, bool]:
    """The most boxes of a class, the most overlap, what scores are above, whether boxes have a centre."""
    count = 0 if most is None else int(scalar(n, 2, most))
    threshold = 0.0 if overlap is None else float(scalar(n, 3, overlap))
    if boxes[2] != 4 or scores[::2] != boxes[:2]:
        raise n.fail(f"boxes have shape {boxes}, scores {scores}: expected (images, count, 4), (images, classes, count)")
    if not 0 <= threshold <= 1:
        raise n.fail(f"iou_threshold is {threshold}: expected 0 to 1")
    floor = None if least is None else float(scalar(n, 4, least))
    return min(max(count, 0), scores[2]), threshold, floor, bool(n.get("center_point_box", 0))


def _known(n: View) -> tuple[int, float, float | None, bool]:
    return _limits(n, n.sizes(0), n.sizes(1), n.value(2), n.value(3), n.value(4))


def _most(n: View) -> list[Spec] | None:
    if not n.float32(0, 1) or any(n.has(i) and n.value(i) is None for i in (2, 3, 4)):
        return None
    images, classes, _ = n.sizes(1)
    return [Spec((images * classes * _known(n)[0], 3), INT64)]


def _lower(n: View, b: Any) -> Any:
    if b.counter is None:
        return False
    return b.call("suppress", b.input(0), b.input(1), b.output(0), b.counter, *_known(n))


register("NonMaxSuppression", _infer, _run, _lower, PLAIN._replace(counts=_most))
