"""Images read at any places, boxes, columns and pools undone."""

from __future__ import annotations

import math

import numpy as np

from . import array, case, numbers

I64 = np.int64
NAN = math.nan
X = numbers(1, 1, 3, 4)
# The middles of pixels (0, 0), (2, 3), between (1, 1) and (1, 2), and outside: x and y, from -1 at the edge to 1 at the other.
AT = array([[[[-0.75, -2 / 3], [0.75, 2 / 3], [0.0, 0.0], [2.0, 0.0]]]])
ENDS = array([[[[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0], [1 / 3, 0.5]]]])  # the same with corners aligned, but for the last
LINE = array([[[1.0, 2.0, 4.0]]])
SPOTS = array([[[-1.0], [-1 / 3], [1.0], [7 / 3], [-2.0], [-6.0]]])  # pixels -0.5, 0.5, 2.5, 4.5, -2, -8
BOX = array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11], [1, 11.1, 0, 10.1], [0, 100, 1, 101]]])
SCORE = array([[[0.9, 0.75, 0.6, 0.95, 0.3]]])
# Pairs of boxes that are nearly the same, next to one another.
MANY = (np.repeat(np.arange(200), 2)[None, :, None] * 4 + array([0, 0, 2, 2])).astype(np.float32)
K = numbers(1, 1, 3, 3) + 1
ONE = np.ones((1, 1, 2, 2), np.float32)


def offsets(*pairs: tuple[float, float]) -> np.ndarray:
    """Offsets of the four taps of a 2x2 kernel over a 3x3 image: the same at every one of 2x2 places."""
    return np.broadcast_to(array(pairs).reshape(1, 8, 1, 1), (1, 8, 2, 2)).copy()


GRID = [
    case("GridSample", "middles", [X, AT], [[[[0, 11, 5.5, 0]]]], data=2, native=True, ulp=8),
    case("GridSample", "border", [X, AT], [[[[0, 11, 5.5, 7]]]], data=2, native=True, padding_mode="border", ulp=8),
    case("GridSample", "corners", [X, ENDS], [[[[0, 11, 5.5, 8]]]], data=2, native=True, align_corners=1, ulp=8),
    case("GridSample", "bilinear is an old name", [X, AT], [[[[0, 11, 5.5, 0]]]], data=2, mode="bilinear", ulp=8),
    case("GridSample", "nearest", [X, AT], [[[[0, 11, 6, 0]]]], data=2, native=True, mode="nearest"),
    case("GridSample", "a line", [LINE, SPOTS], [[[0.5, 1.5, 2, 0, 0, 0]]], data=2, ulp=4),
    case("GridSample", "a line, reflection", [LINE, SPOTS], [[[1, 1.5, 4, 1.5, 2, 2]]], data=2,
         padding_mode="reflection", ulp=16),
    case("GridSample", "a line, nearest reflection", [LINE, SPOTS], [[[1, 1, 4, 2, 2, 2]]], data=2, mode="nearest",
         padding_mode="reflection"),
    case("GridSample", "a line, border", [LINE, SPOTS], [[[1, 1.5, 4, 4, 1, 1]]], data=2, padding_mode="border", ulp=4),
    case("GridSample", "a line, cubic", [LINE, array([[[-1 / 3], [0.0]]])], [[[1.3125, 2]]], data=2, mode="cubic",
         padding_mode="border", ulp=16),
    case("GridSample", "channels and images", [np.concatenate([X, X + 1, -X, X * 2]).reshape(2, 2, 3, 4), np.repeat(AT, 2, 0)],
         [[[[0, 11, 5.5, 0]], [[1, 12, 6.5, 0]]], [[[0, -11, -5.5, 0]], [[0, 22, 11, 0]]]], data=2, ulp=8),
    case("GridSample", "three axes", [numbers(1, 1, 2, 2, 2), np.zeros((1, 1, 1, 1, 3), np.float32)], [[[[[3.5]]]]],
         data=2, native=True),
    case("GridSample", "no place", [X, AT[:, :, :0]], np.zeros((1, 1, 1, 0), np.float32), data=2),
    case("GridSample", "NaN", [X, AT * NAN], [[[[NAN] * 4]]], data=2, native=True),
    case("GridSample", "double", [X.astype(np.float64), AT.astype(np.float64)],
         array([[[[0, 11, 5.5, 0]]]], np.float64), data=2, ulp=8),
    case("AffineGrid", "the image itself", [[[[1.0, 0, 0], [0, 1, 0]]], [1, 1, 2, 4]],
         [[[[x, y] for x in (-0.75, -0.25, 0.25, 0.75)] for y in (-0.5, 0.5)]]),
    case("AffineGrid", "corners", [[[[1.0, 0, 0], [0, 1, 0]]], [1, 1, 2, 3]],
         [[[[x, y] for x in (-1, 0, 1)] for y in (-1, 1)]], align_corners=1),
    case("AffineGrid", "turned and moved", [[[[0.0, 1, 5], [2, 0, 0]]], [1, 1, 2, 2]],
         [[[[4.5, -1], [4.5, 1]], [[5.5, -1], [5.5, 1]]]]),
    case("AffineGrid", "three axes", [[[[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]], [1, 9, 1, 1, 2]],
         [[[[[-0.5, 0, 0], [0.5, 0, 0]]]]]),
]  # fmt: skip

BOXES = [
    case("NonMaxSuppression", "corners in any order", [BOX, SCORE, array([3], I64), array([0.5]), array([0.0])],
         array([[0, 0, 3], [0, 0, 0], [0, 0, 4]], I64), data=2),
    case("NonMaxSuppression", "few", [BOX, SCORE, array(2, I64), array(0.5)], array([[0, 0, 3], [0, 0, 0]], I64), data=2),
    case("NonMaxSuppression", "threshold", [BOX, SCORE, array(9, I64), array(0.5), array(0.9)], array([[0, 0, 3]], I64), data=2),
    case("NonMaxSuppression", "centres", [array([[[0.5, 0.5, 1, 1], [0.5, 0.6, 1, 1], [0.5, 10.5, 1, 1]]]), SCORE[:, :, :3],
         array(5, I64), array(0.5)], array([[0, 0, 0], [0, 0, 2]], I64), data=2, center_point_box=1),
    case("NonMaxSuppression", "none by default", [BOX, SCORE], np.zeros((0, 3), I64), data=2),
    case("NonMaxSuppression", "equals in their order",
         [np.repeat(BOX[:, :1], 2, 1) + array([[[0.0], [9.0]]]), SCORE[:, :, :2] * 0, array(5, I64), array(0.5)],
         array([[0, 0, 0], [0, 0, 1]], I64), data=2),
    case("NonMaxSuppression", "images and classes",
         [np.repeat(BOX[:, :2], 2, 0), np.repeat(np.repeat(SCORE[:, :, :2], 2, 0), 2, 1), array(1, I64), array(0.5)],
         array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]], I64), data=2),
    case("NonMaxSuppression", "several blocks", [MANY, np.arange(400, 0, -1, np.float32).reshape(1, 1, 400), array(150, I64),
         array(0.5)], np.stack([np.zeros(150), np.zeros(150), 2 * np.arange(150)], 1).astype(I64), data=2),
    case("NonMaxSuppression", "no boxes", [BOX[:, :0], SCORE[:, :, :0], array(5, I64)], np.zeros((0, 3), I64), data=2),
]  # fmt: skip

CONVOLUTIONS = [
    case("DeformConv", "no offsets", [K, ONE, offsets(*[(0, 0)] * 4)], [[[[12, 16], [24, 28]]]], data=3),
    case("DeformConv", "one tap half a pixel down", [K, ONE, offsets((0.5, 0), (0, 0), (0, 0), (0, 0))],
         [[[[13.5, 17.5], [25.5, 29.5]]]], data=3, ulp=2),
    case("DeformConv", "out of the image", [K, ONE, offsets((0, 0), (0, 0), (0, 0), (0, 1.5))],
         [[[[7 + 3, 2 + 3 + 5], [4 + 5 + 7 + 4.5, 5 + 6 + 8]]]], data=3, ulp=2),
    case("DeformConv", "mask and bias", [K, ONE, offsets(*[(0, 0)] * 4), array([10.0]),
         np.broadcast_to(array([1, 0, 0, 2]).reshape(1, 4, 1, 1), (1, 4, 2, 2)).copy()],
         [[[[10 + 1 + 10, 10 + 2 + 12], [10 + 4 + 16, 10 + 5 + 18]]]], data=5),
    case("DeformConv", "pads, strides", [K, ONE, np.zeros((1, 8, 2, 2), np.float32)], [[[[1, 5], [11, 28]]]], data=3,
         pads=(1, 1, 0, 0), strides=(2, 2)),
    case("DeformConv", "groups",
         [np.concatenate([K, K * 10], 1), np.concatenate([ONE, -ONE]), np.zeros((1, 16, 2, 2), np.float32)],
         [[[[12, 16], [24, 28]], [[-120, -160], [-240, -280]]]], data=3, group=2, offset_group=2),
    case("Col2Im", "adjacent blocks", [numbers(1, 4, 2), [2, 4], [2, 2]], [[[[0, 2, 1, 3], [4, 6, 5, 7]]]], strides=(2, 2)),
    case("Col2Im", "blocks over one another", [np.ones((1, 4, 4), np.float32), [3, 3], [2, 2]],
         [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]),
    case("Col2Im", "padded, dilated", [numbers(1, 2, 3), [3], [2]], [[[1, 2 + 3, 4]]], pads=(1, 1), dilations=(2,)),
    case("Col2Im", "channels", [numbers(1, 4, 1), [2], [2]], [[[0, 1], [2, 3]]]),
    case("MaxUnpool", "places", [[[[[1.0, 2], [3, 4]]]], array([[[[5, 7], [13, 15]]]], I64)],
         [[[[0, 0, 0, 0], [0, 1, 0, 2], [0, 0, 0, 0], [0, 3, 0, 4]]]], data=2, kernel_shape=(2, 2), strides=(2, 2)),
    case("MaxUnpool", "of later channels", [[[[1.0], [2]]], array([[[1], [2]]], I64)], [[[0, 1], [2, 0]]], data=2,
         kernel_shape=(2,)),
    case("MaxUnpool", "a larger result", [[[[1.0, 2]]], array([[[0, 3]]], I64), [1, 1, 6]], [[[1, 0, 0, 2, 0, 0]]], data=2,
         kernel_shape=(2,), strides=(2,)),
    case("MaxUnpool", "pads", [[[[1.0, 2]]], array([[[0, 2]]], I64)], [[[1, 0, 2]]], data=2, kernel_shape=(3,), strides=(2,),
         pads=(1, 1)),
]  # fmt: skip

CASES = [*GRID, *BOXES, *CONVOLUTIONS]
