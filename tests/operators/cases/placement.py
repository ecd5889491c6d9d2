"""Elements moved by sizes, lengths and positions; which ones there are; determinants."""

from __future__ import annotations

import numpy as np

from . import array, case, numbers

I64 = np.int64
M = numbers(3, 4)
T = array([[0.0, 1, 2], [3, 4, 5]])
C = np.zeros((2, 4, 1), np.float32)
U = array([2.0, 1, 1, 3, 4, 3])

CASES = [
    case("CenterCropPad", "crop", [M, [2, 1]], [[1], [5]]),
    case("CenterCropPad", "pad", [[[1.0, 2]], [3, 5]], [[0] * 5, [0, 1, 2, 0, 0], [0] * 5]),
    case("CenterCropPad", "both", [M, [4, 2]], [[1, 2], [5, 6], [9, 10], [0, 0]]),
    case("CenterCropPad", "an axis", [M, [2]], M[:, 1:3], axes=(-1,)),
    case("CenterCropPad", "nothing", [M, [0, 4]], np.zeros((0, 4), np.float32)),
    case("CenterCropPad", "integers", [array([1, 2], np.int8), [3]], [1, 2, 0]),
    case("ReverseSequence", "time first", [T.T, array([3, 1], I64)], array([[2, 3], [1, 4], [0, 5]]), data=2),
    case("ReverseSequence", "batch first", [T, array([2, 0], I64)], [[1, 0, 2], [3, 4, 5]], data=2, batch_axis=0, time_axis=1),
    case("ReverseSequence", "more axes", [np.stack([T, -T], 2), array([3, 2], I64)],
         np.stack([array([[2, 1, 0], [4, 3, 5]]), -array([[2, 1, 0], [4, 3, 5]])], 2), data=2, batch_axis=0, time_axis=1),
    case("TensorScatter", "linear", [C, array([[[1], [2]], [[3], [4]]]), array([2, 0], I64)],
         [[[0], [0], [1], [2]], [[3], [4], [0], [0]]], data=3),
    case("TensorScatter", "circular", [C, array([[[1], [2]], [[3], [4]]]), array([3, 1], I64)],
         [[[2], [0], [0], [1]], [[0], [3], [4], [0]]], data=3, mode="circular"),
    case("TensorScatter", "from the beginning", [C, array([[[1]], [[2]]])], [[[1], [0], [0], [0]], [[2], [0], [0], [0]]], data=2),
    case("TensorScatter", "the last axis", [C.reshape(2, 1, 4), array([[[1, 2]], [[3, 4]]]), array([1, 2], I64)],
         [[[0, 1, 2, 0]], [[0, 0, 3, 4]]], data=3, axis=-1),
    case("Unique", "sorted", [U], array([1, 2, 3, 4]), array([1, 0, 3, 4], I64), array([1, 0, 0, 2, 3, 2], I64),
         array([2, 1, 2, 1], I64)),
    case("Unique", "as they come", [U], array([2, 1, 3, 4]), array([0, 1, 3, 4], I64), array([0, 1, 1, 2, 3, 2], I64),
         array([1, 2, 2, 1], I64), sorted=0),
    case("Unique", "rows", [array([[1, 0], [1, 0], [0, 2]])], array([[0, 2], [1, 0]]), array([2, 0], I64), array([1, 1, 0], I64),
         array([1, 2], I64), axis=0),
    case("Unique", "columns as they come", [array([[2, 1, 2], [5, 0, 5]])], array([[2, 1], [5, 0]]), array([0, 1], I64),
         array([0, 1, 0], I64), array([2, 1], I64), axis=-1, sorted=0),
    case("Unique", "nothing", [np.zeros((0, 3), np.float32)], np.zeros((0, 3), np.float32), array([], I64),
         array([], I64), array([], I64), axis=0),
    case("Unique", "slices of nothing", [np.zeros((3, 0), np.float32)], np.zeros((1, 0), np.float32), array([0], I64),
         array([0, 0, 0], I64), array([3], I64), axis=0),
    case("Det", "one", [[[1.0, 2], [3, 4]]], array(-2.0), ulp=8),
    case("Det", "several", [array([[[2, 0], [0, 3]], [[0, 1], [1, 0]]])], [6, -1], ulp=8),
    case("Det", "of nothing", [np.zeros((2, 0, 0), np.float32)], [1, 1]),
]  # fmt: skip
