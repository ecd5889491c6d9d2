"""Spectra, windows and mel."""

from __future__ import annotations

import numpy as np

from . import array, case

I64, F64 = np.int64, np.float64
X = array([[[1.0], [0], [0], [0]]])  # a click: every frequency is 1
COS = array([1, 0, -1, 0] * 2).reshape(1, 8, 1)  # frequency 2 of 8
Z = array([[[1.0, 2], [3, 4]]])
TWO = array(-2, I64)
FULL = np.zeros((1, 8, 2), np.float32)
FULL[0, [2, 6], 0] = 4
FRAME = [[[1, 0], [1, 0], [1, 0]], [[0, 0]] * 3, [[0, 0]] * 3]

CASES = [
    case("DFT", "a click", [X], [[[1, 0]] * 4], native=True),
    case("DFT", "a wave", [COS], FULL, ulp=200, native=True),
    case("DFT", "one side", [COS], FULL[:, :5], onesided=1, ulp=200, native=True),
    case("DFT", "complex", [Z], [[[4, 6], [-2, -2]]], native=True),
    case("DFT", "inverse", [array([[[4, 6], [-2, -2]]])], Z, inverse=1, native=True),
    case("DFT", "inverse of one side", [array([[[1, 0]] * 3])], X, inverse=1, onesided=1, ulp=2, native=True),
    case("DFT", "longer", [X[:, :1], array(4, I64)], [[[1, 0]] * 4], native=True),
    case("DFT", "shorter, one side", [X, array([3], I64)], [[[1, 0]] * 2], onesided=1, native=True),
    case("DFT", "odd inverse", [array([[[1, 0]] * 2]), array(3, I64)], X[:, :3], inverse=1, onesided=1, ulp=2, native=True),
    case("DFT", "another axis", [np.swapaxes(X, 0, 1), None, array(0, I64)], [[[1, 0]]] * 4, native=True),
    case("DFT", "double", [Z.astype(F64), None, TWO], [[[4, 6], [-2, -2]]]),
    case("STFT", "frames", [X[..., 0], array(1, I64), array([1, 1])], [[[[1, 0], [1, 0]], [[0, 0]] * 2, [[0, 0]] * 2]],
         native=True),
    case("STFT", "both sides", [X, array(2, I64), None, array(2, I64)], [[[[1, 0], [1, 0]], [[0, 0]] * 2]], onesided=0,
         native=True),
    case("STFT", "a window", [X, array(1, I64), array([3, 7]), array(2, I64)], [[[[3, 0], [3, 0]], [[0, 0]] * 2, [[0, 0]] * 2]],
         native=True),
    case("STFT", "complex", [Z, array(1, I64), array([1.0])], [[[[1, 2]], [[3, 4]]]], onesided=0, native=True),
    case("DFT", "both divided", [Z], (np.array([[[4, 6], [-2, -2]]]) / np.sqrt(2)).astype(np.float32), norm="ortho", ulp=2,
         native=True),
    case("DFT", "of reals, the other way round", [array([[[1.0], [2], [3], [4]]])],
         [[[2.5, 0], [-0.5, -0.5], [-0.5, 0], [-0.5, 0.5]]], inverse=1, ulp=2, native=True),
    case("DFT", "the first of two axes", [np.stack([X[0], 2 * X[0]], 1), None, array(0, I64)],
         [[[1, 0], [2, 0]]] * 4, native=True),
    case("OverlapAdd", "ones", [array([[[1.0, 2], [4, 6], [8, 9]]])], [[1, 3, 7, 9]], step=1),
    case("OverlapAdd", "a window", [array([[[1.0, 2], [4, 6]]]), array([1.0, 2])], [[1, 1.6, 3]], step=1, ulp=2),
    case("OverlapAdd", "an end", [array([[[1.0, 2], [4, 6]]])], [[3]], step=1, offset=1),
    case("OverlapAdd", "a length", [array([[[1.0, 2], [4, 6]]], F64)], array([[1, 3]], F64), step=1, length=2),
    case("OverlapAdd", "nothing", [np.zeros((0, 3, 4), np.float32)], np.zeros((0, 8), np.float32), step=2),
    case("HannWindow", "periodic", [array(4, I64)], array([0, 0.5, 1, 0.5]), data=0, ulp=4),
    case("HannWindow", "symmetric", [array(5, np.int32)], array([0, 0.5, 1, 0.5, 0]), data=0, periodic=0, ulp=4),
    case("HannWindow", "double", [array(2, I64)], array([0, 1], F64), data=0, output_datatype=11, ulp=1),
    case("HannWindow", "nothing", [array(0, I64)], array([]), data=0),
    case("HammingWindow", "periodic", [array(4, I64)], array([2 / 23, 25 / 46, 1, 25 / 46]), data=0, ulp=4),
    case("BlackmanWindow", "periodic", [array(4, I64)], array([0, 0.34, 1, 0.34]), data=0, ulp=4),
    case("BlackmanWindow", "symmetric", [array([3], I64)], array([0, 1, 0]), data=0, periodic=0, ulp=4),
    # Points at 0, 10, 20 and 30 hertz, and a frequency is 10 hertz.
    case("MelWeightMatrix", "two bins", [array(v, I64) for v in (2, 8, 90)] + [array(0.0), array(40.0)],
         array([[1, 0], [0, 1], [0, 0], [0, 0], [0, 0]]), data=0),
    case("MelWeightMatrix", "one wide bin", [array(v, I64) for v in (1, 16, 170)] + [array(0.0), array(120.0)],
         array([[0], [1 / 3], [2 / 3], [1], [0.75], [0.5], [0.25], [0], [0]]), data=0, ulp=2),
]  # fmt: skip
