"""Operators that layers alone have: tables without numbers from the end, and hierarchical softmax."""

from __future__ import annotations

import numpy as np

from . import array, case, numbers

I64 = np.int64
# Node 0 has class 0 and node 1 below it, that has classes 1 and 2.
ORDER, LEFT, RIGHT = (array(v, I64) for v in ([0, 1], [-1, -2], [1, -3]))
STARTS, POINTS, CODES = (array(v, I64) for v in ([0, 1, 3, 5], [0, 0, 1, 0, 1], [0, 1, 0, 1, 1]))
HALF, QUARTER = np.log(0.5), np.log(0.25)

CASES = [
    case("Embedding", "rows", [numbers(3, 2), array([[2, 0]], I64)], [[[4, 5], [0, 1]]], data=2, native=True),
    case("Embedding", "none", [numbers(3, 2), array([], I64)], np.zeros((0, 2), np.float32), data=2, native=True),
    case("TreeDistribution", "even", [[[0.0, 0.0]], ORDER, LEFT, RIGHT], [[HALF, QUARTER, QUARTER]], native=True, ulp=4),
    case("TreeLogProb", "even", [np.ones((3, 2), np.float32), np.zeros((2, 2), np.float32), None, array([0, 1, 2], I64), STARTS,
         POINTS, CODES], [HALF, QUARTER, QUARTER], native=True, ulp=4),
]  # fmt: skip
