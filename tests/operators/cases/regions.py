"""Pools over boxes, by hand."""

from __future__ import annotations

import numpy as np

from . import array, case, numbers

X = numbers(1, 1, 4, 4)
LAST = np.ascontiguousarray(np.moveaxis(X, 1, -1))
BOX, ONE = array([[0, 0, 2, 2]], np.float32), np.array([0], np.int64)

CASES = [
    case("MaxRoiPool", "plain", [X, array([[0, 1, 1, 2, 3], [0, 0, 0, 3, 3]], np.float32)], [[[[14]]], [[[15]]]], data=2,
         pooled_shape=(1, 1), native=True),
    case("MaxRoiPool", "bins", [X, array([[0, 0, 0, 3, 3]], np.float32)], [[[[5, 7], [13, 15]]]], data=2, pooled_shape=(2,
         2), native=True),
    case("MaxRoiPool", "outside", [X, array([[0, 8, 8, 9, 9]], np.float32)], [[[[0]]]], data=2, pooled_shape=(1, 1), native=True),
    case("MaxRoiPool", "scale, last", [LAST, array([[0, 0, 0, 6, 6]], np.float32)], [[[[5], [7]], [[13], [15]]]], data=2,
         x_last=True,
         pooled_shape=(2, 2), spatial_scale=0.5, native=True),
    case("RoiAlign", "half_pixel", [X, BOX, ONE], [[[[2.5]]]], data=3, sampling_ratio=1, native=True, ulp=2),
    case("RoiAlign", "output_half_pixel", [X, BOX, ONE], [[[[5]]]], data=3, sampling_ratio=1, native=True, ulp=2,
         coordinate_transformation_mode="output_half_pixel"),
    case("RoiAlign", "max", [X, BOX, ONE], [[[[1.25]]]], data=3, sampling_ratio=1, mode="max", native=True, ulp=2),
    # In double precision the box would be a little longer than two pixels, and have a sample more.
    case("RoiAlign", "samples", [array([[[[0, 0, 9]]]]), array([[0, 0, 20, 10]], np.float32), ONE], [[[[2.25]]]], data=3,
         spatial_scale=float(np.float32(0.1)), coordinate_transformation_mode="output_half_pixel", native=True, ulp=2),
    case("RoiAlign", "last", [LAST, BOX, ONE], [[[[5]]]], data=3, native=True, ulp=2, x_last=True,
         coordinate_transformation_mode="output_half_pixel"),
]  # fmt: skip
