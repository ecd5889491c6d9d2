"""Resize in every mode against onnx's evaluator, by numpy and by kernels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels.resize_tables import COORDINATES, NEAREST

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.onnx

# The evaluator forms coordinates in float64, and its results in float32 or float64: kernels round once an axis.
TOLERANCE = 4e-6
X = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
ROI = np.array([0, 0, 0.1, 0.2, 1, 1, 0.9, 0.8], np.float32)
TARGETS: tuple[dict[str, Any], ...] = (
    {"scales": [1, 1, 2, 2]}, {"scales": [1, 1, 0.6, 1.7]}, {"sizes": [1, 2, 8, 3]}, {"sizes": [1, 2, 1, 1]},
)  # fmt: skip


def model(version: int, target: dict[str, Any], **attributes: Any) -> Any:
    make = onnx.helper
    arrays = {"roi": ROI, **{k: np.array(v, np.float32 if k == "scales" else np.int64) for k, v in target.items()}}
    names = ["x", "roi", "scales" if "scales" in target else "", *(["sizes"] if "sizes" in target else [])]
    graph = make.make_graph(
        [make.make_node("Resize", names, ["y"], **attributes)],
        "g",
        [make.make_tensor_value_info("x", onnx.TensorProto.FLOAT, X.shape)],
        [make.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(a, name) for name, a in arrays.items()],
    )
    return make.make_model(graph, opset_imports=[make.make_opsetid("", version)], ir_version=8)


def check(made: Any, variant: str, native: bool = False) -> None:
    from onnx.reference import ReferenceEvaluator

    want = ReferenceEvaluator(made).run(None, {"x": X})[0]
    got = fl.load(made.SerializeToString(), **({"require_native": True} if native and variant != "reference" else {}))(X)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE, err_msg=str(made.graph.node[0]))


ONCE = "tf_half_pixel_for_nn"  # in opsets 11 and 12; the evaluator does not have it


def test_half_pixels_without_the_shift(variant: str) -> None:
    """(x + 0.5) / scale: half a pixel further than half_pixel, so halves of an input's pixel with a scale of 2."""
    for mode, nearest in itertools.product(("nearest",), NEAREST):
        for target in TARGETS:
            attributes = {"mode": mode, "nearest_mode": nearest, "coordinate_transformation_mode": ONCE}
            got = fl.load(model(11, target, **attributes).SerializeToString())(X)
            scales = target.get("scales") or [want / had for want, had in zip(target["sizes"], X.shape, strict=True)]
            want = X
            for axis, scale in enumerate(scales):
                size = target["sizes"][axis] if "sizes" in target else int(np.float32(scale) * X.shape[axis])
                x = (np.arange(size) + 0.5) / np.float64(np.float32(scale) if "scales" in target else scale)
                rounded = {"round_prefer_floor": np.ceil(x - 0.5), "round_prefer_ceil": np.floor(x + 0.5), "floor": np.floor(x)}
                index = rounded.get(nearest, np.ceil(x)).astype(int).clip(0, X.shape[axis] - 1)
                want = want if scale == 1 else want.take(index, axis)
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("coordinates", [c for c in COORDINATES if c != ONCE])
def test_every_mode(coordinates: str, variant: str) -> None:
    for target, mode in itertools.product(TARGETS, ("nearest", "linear", "cubic")):
        version = 19 if coordinates == "half_pixel_symmetric" else 13
        check(model(version, target, mode=mode, coordinate_transformation_mode=coordinates), variant)


def test_every_rounding(variant: str) -> None:
    for target, nearest in itertools.product(TARGETS, NEAREST):
        for coordinates in ("half_pixel", "asymmetric"):
            made = model(11, target, mode="nearest", nearest_mode=nearest, coordinate_transformation_mode=coordinates)
            check(made, variant, native=True)


def test_rare_attributes(variant: str) -> None:
    for target, mode in itertools.product(TARGETS, ("linear", "cubic")):
        check(model(18, target, mode=mode, antialias=1), variant, native=True)
        check(model(18, target, mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1), variant, native=True)
    for policy in ("not_larger", "not_smaller"):
        made = model(18, {"sizes": [10, 21]}, mode="linear", axes=[2, 3], keep_aspect_ratio_policy=policy)
        check(made, variant, native=True)


@pytest.mark.parametrize(
    ("target", "attributes", "text"),
    [
        ({"scales": [1, 1, 2, 2]}, {"mode": "area"}, "attribute mode='area', expected 'nearest'"),
        ({"scales": [1, 1, 2, 2]}, {"nearest_mode": "up"}, "attribute nearest_mode='up', expected"),
        (
            {"scales": [1, 1, 2, 2]},
            {"coordinate_transformation_mode": "tf"},
            "attribute coordinate_transformation_mode='tf', expected",
        ),
        ({"scales": [2, 2]}, {}, "expected 4, one per axis"),
        ({"scales": [1, 1, 0, 2]}, {}, "expected positive values"),
        ({}, {}, "expected either scales or sizes"),
    ],
)
def test_wrong_attributes(target: dict[str, Any], attributes: dict[str, Any], text: str) -> None:
    with pytest.raises(fl.Error, match=text):
        fl.load(model(18, target, **attributes).SerializeToString())(X)
