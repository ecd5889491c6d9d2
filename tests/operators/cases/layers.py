"""Operators that layers alone have: tables without values from the end, and hierarchical softmax."""

from __future__ import annotations

import numpy as np

from . import array, case, numbers

I64 = np.int64
# Node 0 has class 0 and node 1 below it, that has classes 1 and 2.
ORDER, LEFT, RIGHT = (array(v, I64) for v in ([0, 1], [-1, -2], [1, -3]))
STARTS, POINTS, CODES = (array(v, I64) for v in ([0, 1, 3, 5], [0, 0, 1, 0, 1], [0, 1, 0, 1, 1]))
HALF, QUARTER = np.log(0.5), np.log(0.25)

X = np.zeros((2, 3, 4), np.float32)
FAR = np.array([2.0, 3.0, 4.0])  # positions 2 to 4
COS, SIN = (np.stack([f(FAR), f(FAR / 10)], 1).astype(np.float32) for f in (np.cos, np.sin))
EMPTY = np.zeros((0, 1), np.float32)
WAVES = np.stack([np.sin(FAR), np.cos(FAR), np.sin(FAR / 10), np.cos(FAR / 10)], 1).astype(np.float32)

CASES = [
    case("AxisPositions", "from two on", [X], array([2, 3, 4], I64), axis=1, start=2),
    case("AxisPositions", "none", [np.zeros((2, 0), np.float32)], array([], I64), axis=-1),
    case("SinusoidalEncoding", "from two on", [X], WAVES, axis=1, start=2, dim=4, base=100.0, ulp=1),
    case("SinusoidalEncoding", "none", [X], np.zeros((2, 0), np.float32), dim=0, base=10.0),
    case("RotaryTables", "from two on", [X], COS, SIN, axis=-2, start=2, dim=4, base=100.0, ulp=1),
    case("RotaryTables", "none", [np.zeros((0, 2), np.float32)], EMPTY, EMPTY, dim=2),
    case("RotaryTablesAt", "each", [array([[4, 2, 3]], I64)], *(t[None, [2, 0, 1]] for t in (COS, SIN)), dim=4,
         base=100.0, ulp=1),
    case("RotaryTablesAt", "none", [array([], I64)], EMPTY, EMPTY, dim=2),
    case("Embedding", "rows", [numbers(3, 2), array([[2, 0]], I64)], [[[4, 5], [0, 1]]], data=2, native=True),
    case("Embedding", "of float16", [np.array([[0.5, -2], [3, 2**-24]], np.float16), array([[1], [0]], I64)],
         array([[[3, 2**-24]], [[0.5, -2]]]), data=2, native=True, half=1),
    case("Embedding", "of bfloat16", [np.array([[0x3F00, 0xC000], [0x4040, 1]], np.uint16), array([[1], [0]], I64)],
         array([[[3, 2.0**-133]], [[0.5, -2]]]), data=2, native=True, half=3),
    case("Embedding", "none", [numbers(3, 2), array([], I64)], np.zeros((0, 2), np.float32), data=2, native=True),
    case("TreeDistribution", "even", [[[0.0, 0.0]], ORDER, LEFT, RIGHT], [[HALF, QUARTER, QUARTER]], native=True, ulp=4),
    case("TreeLogProb", "even", [np.ones((3, 2), np.float32), np.zeros((2, 2), np.float32), None, array([0, 1, 2], I64), STARTS,
         POINTS, CODES], [HALF, QUARTER, QUARTER], native=True, ulp=4),
]  # fmt: skip
