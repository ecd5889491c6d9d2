"""What streams put into graphs: windows over history, and states that begin by themselves."""

from __future__ import annotations

import numpy as np

from . import array, case, numbers

NOT_BEGUN = np.zeros((), np.float32)
X = numbers(1, 2, 3)
KEPT = array([[[7, 8], [9, 10]]])


def count(size: int) -> np.ndarray:
    return np.zeros(size, np.uint8)


def window(label: str, x: object, state: object, wide: object, rest: object, fits: int, **more: object):  # type: ignore[no-untyped-def]
    more = {"axis": 2, "reach": 3, "step": 1, "before": 2, **more}
    return case("StreamWindow", label, [x, state], wide, rest, count(fits), data=2, native=True, **more)


CASES = [
    window("begins", X, NOT_BEGUN, [[[0, 0, 0, 1, 2], [0, 0, 3, 4, 5]]], [[[1, 2], [4, 5]]], 3),
    window("goes on", X, KEPT, [[[7, 8, 0, 1, 2], [9, 10, 3, 4, 5]]], [[[1, 2], [4, 5]]], 3),
    window("steps", X, KEPT, [[[7, 8, 0, 1, 2], [9, 10, 3, 4, 5]]], [[[2], [5]]], 2, reach=2, step=2),
    window("too little", X, NOT_BEGUN, [[[0, 1, 2, 0, 0], [3, 4, 5, 0, 0]]], X, 0, reach=5, before=0),
    window("filled", X, NOT_BEGUN, [[[-1, -1, 0, 1, 2], [-1, -1, 3, 4, 5]]], [[[1, 2], [4, 5]]], 3, fill=-1.0),
    window("first axis", [[1.0], [2.0]], [[3.0]], [[3.0], [1.0], [2.0]], [[2.0]], 2, axis=0, reach=2, before=1),
    window("as it is", X, NOT_BEGUN, X, [[[1, 2], [4, 5]]], 1, before=0),
    case("StreamWindow", "none", [X[..., :0], KEPT], KEPT, KEPT, count(0), data=2, native=True,
         axis=2, reach=2, step=1, before=0)._replace(want=(KEPT, KEPT[..., 1:], None)),
    case("StreamCut", "all", [X, count(3)], X, data=2, native=True, axis=2),
    case("StreamCut", "some", [X, count(2)], X[..., :2], data=2, native=True, axis=2),
    case("StreamCut", "nothing", [X, count(0)], X[..., :0], data=2, native=True, axis=2),
    case("StreamFill", "all", [X, count(2)], X, data=2, native=True, axis=2),
    case("StreamFill", "one", [X[..., :0], count(0)], np.zeros((1, 2, 1), np.float32), data=2, native=True, axis=2),
    case("StreamStart", "zeros", [NOT_BEGUN, X], np.zeros((4, 3), np.float32), data=2, native=True, shape=(4, -3)),
    case("StreamStart", "begun", [KEPT, X], KEPT, data=2, native=True, shape=(4, -3)),
    case("StreamStart", "given", [NOT_BEGUN, X, KEPT], KEPT, data=3, native=True, shape=()),
]  # fmt: skip
