"""Resampling: by hand where values are few; every mode against other frameworks is in test_resize.py."""

from __future__ import annotations

import numpy as np

from . import array, case, numbers

F32 = np.float32
ROW = numbers(1, 1, 1, 4)


def scales(*values: float) -> np.ndarray:
    return array(values, F32)


CASES = [
    case("Resize", "nearest", [ROW, None, scales(1, 1, 1, 2)], [[[[0, 0, 1, 1, 2, 2, 3, 3]]]], native=True),
    case("Resize", "sizes", [ROW, None, None, [1, 1, 2, 2]], [[[[0, 2], [0, 2]]]], native=True,
         coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    case("Resize", "axes", [ROW, None, None, [2]], [[[[0.5, 2.5]]]], axes=(-1,), mode="linear", native=True),
    case("Resize", "linear", [ROW, None, scales(1, 1, 1, 2)], [[[[0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]]]], mode="linear",
         native=True, ulp=2),
    case("Resize", "align_corners", [ROW, None, None, [1, 1, 1, 7]], [[[[0, 0.5, 1, 1.5, 2, 2.5, 3]]]], mode="linear",
         coordinate_transformation_mode="align_corners", native=True, ulp=2),
    case("Resize", "cubic", [ROW, None, scales(1, 1, 1, 1)], [[[[0, 1, 2, 3]]]], mode="cubic", native=True),
    case("Resize", "crop", [ROW, array([0, 0, 0, 0.5, 1, 1, 1, 1.5], F32), None, [1, 1, 1, 3]], [[[[1.5, 3, 10]]]], mode="linear",
         coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=10.0),
    case("Resize", "not_larger", [numbers(1, 1, 2, 4), None, None, [4, 4]], [[[[0, 1, 2, 3], [4, 5, 6, 7]]]], axes=(2, 3),
         keep_aspect_ratio_policy="not_larger", native=True),
    case("Resize", "antialias", [ROW, None, None, [1, 1, 1, 2]], [[[[0.625, 2.375]]]], mode="linear", antialias=1,
         native=True, ulp=4),
    case("Resize", "float64", [ROW.astype(np.float64), None, scales(1, 1, 1, 0.5)], [[[[0.5, 2.5]]]], mode="linear"),
    case("Resize", "corners by scale", [ROW, None, scales(1, 1, 1, 0.6)], [[[[0, 3]]]], mode="linear",
         coordinate_transformation_mode="align_corners", native=True),
    case("Resize", "one pixel", [ROW, None, None, [1, 1, 1, 1]], [[[[0]]]], mode="linear",
         coordinate_transformation_mode="pytorch_half_pixel", native=True),
    case("Resize", "region of the same size", [ROW, array([0, 0, 0, 1 / 3, 1, 1, 1, 1], F32), None, [1, 1, 1, 4]],
         [[[[1, 5 / 3, 7 / 3, 3]]]], mode="linear", coordinate_transformation_mode="tf_crop_and_resize", ulp=4),
    case("Resize", "smaller, of opset 10", [numbers(1, 1, 1, 5), None, scales(1, 1, 1, 0.6)], [[[[0, 2, 4]]]],
         coordinate_transformation_mode="asymmetric", nearest_mode="ceil_if_smaller", native=True),
    case("Resize", "multiples of a step", [numbers(1, 1, 1, 14), None, None, [1, 1, 1, 9]], [[[[0, 2, 3, 5, 7, 8, 10, 11, 13]]]],
         coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor", steps=True, native=True),
    case("Resize", "no images", [numbers(0, 1, 2, 2), None, scales(1, 1, 2, 2)], np.zeros((0, 1, 4, 4), F32), native=True),
    case("Interpolate", "nearest", [ROW], [[[[0, 0, 1, 1, 2, 2, 3, 3]]]], mode="nearest", sizes=(1, 8), native=True),
    case("Interpolate", "linear", [ROW], [[[[0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]]]], mode="linear", scales=(1.0, 2.0),
         factors=(1.0, 2.0), native=True, ulp=2),
    case("Interpolate", "last", [ROW.reshape(1, 1, 4, 1)], np.array([[[[0], [1.5], [3]]]], F32), mode="linear", sizes=(1,
         3), align_corners=True,
         x_last=True, native=True, ulp=2),
    case("DepthToSpace", "last", [numbers(1, 1, 1, 8)], [[[[0, 4], [1, 5]], [[2, 6], [3, 7]]]], blocksize=2, mode="CRD",
         x_last=True,
         native=True),
    case("SpaceToDepth", "last", [numbers(1, 2, 2, 2)], [[[[0, 2, 4, 6, 1, 3, 5, 7]]]], blocksize=2, mode="CRD",
         x_last=True, native=True),
]  # fmt: skip
