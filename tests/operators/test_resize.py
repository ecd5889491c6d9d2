"""Resize chooses the elements, and weighs them, as onnxruntime and TensorFlow do; for torch see tests/layers/test_resampling.py.

Tables are compared one by one with goldens of a dense grid of sizes and scales, whole programs with some of them, and with
onnxruntime itself where it is installed; what the text of ONNX says with onnx's evaluator.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.formats._channels_last import resampling
from fastlayers.ir.graph import Node
from fastlayers.operators._base import Spec, View
from fastlayers.operators.resampling import _tables

from ..goldens.resize_cases import (
    FIRST,
    NEAREST,
    OUTSIDE,
    STEP,
    TENSORFLOW,
    TOLERANCE,
    Pair,
    cut,
    golden,
    label,
    line,
    onnx_pairs,
    onnx_rules,
    pairs,
)  # fmt: skip
from .models import one, run

# Of a grid every so many cases are looked at, and all in the exhaustive run.
EVERY = pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.exhaustive)])
F32 = np.dtype(np.float32)


# ---- tables against goldens --------------------------------------------------------------------------------------------


def inputs(attributes: dict[str, Any], pair: Pair, x: np.ndarray) -> list[np.ndarray | None]:
    """Of a Resize of two rows into four, so that the size of the whole is not kept."""
    roi = np.array([0, pair.region[0], 1, pair.region[1]], F32)
    crop = attributes["coordinate_transformation_mode"] == "tf_crop_and_resize"
    scales = None if pair.scale is None else np.array([2, pair.scale], F32)
    return [np.stack([x, x]), roi if crop else None, scales, np.array([4, pair.out]) if scales is None else None]


def resized(attributes: dict[str, Any], pair: Pair) -> np.ndarray:
    """A row by the tables of its axis."""
    nearest = attributes["mode"] == "nearest"
    x = np.arange(pair.size, dtype=F32) if nearest else line(pair.size)
    arrays = inputs(attributes, pair, x)
    node = Node("Resize", ("x", "roi", "scales", "sizes"), ("y",), attributes)
    specs = [None if a is None else Spec(a.shape, a.dtype) for a in arrays]
    found = _tables(View(node, specs, arrays), (2, pair.size)).get(1)
    if found is None:
        return x
    (index, weight), outside = found
    made = x[index[0]] if weight is None else (x[index] * weight).sum(0)
    return np.where(outside, OUTSIDE if nearest else 0, made)


def disagreeing(attributes: dict[str, Any], values: np.ndarray, given: list[Pair], some: slice) -> Iterator[str]:
    """The cases that are not the golden's."""
    for pair, want in list(cut(values, given))[some]:
        got, wanted = resized(attributes, pair), want.astype(F32) * (1 if attributes["mode"] == "nearest" else STEP)
        if got.shape != wanted.shape or np.abs(got - wanted).max() > (0 if attributes["mode"] == "nearest" else TOLERANCE):
            yield f"{label(attributes)} {pair.size} -> {pair.out}, scale {pair.scale}, {pair.region}: {got}, expected {wanted}"


@EVERY
def test_tables_are_onnxruntimes(every: int) -> None:
    found, wrong = golden("onnxruntime"), []
    for i, rule in enumerate([FIRST, *onnx_rules()]):
        wrong += disagreeing(rule, found.pop(label(rule)), onnx_pairs(rule), slice(i % every, None, every))
    assert not wrong and not found, "\n".join(wrong[:20])


@EVERY
def test_tables_are_tensorflows(every: int) -> None:
    found, wrong = golden("tensorflow"), []
    for i, case in enumerate(TENSORFLOW):
        given = pairs(case.method != "nearest", lambda *_: 0)
        wrong += disagreeing(resampling(*case), found.pop(label(case._asdict())), given, slice(i % every, None, every))
    assert not wrong and not found, "\n".join(wrong[:20])


def test_programs_are_onnxruntimes(variant: str) -> None:
    found = golden("onnxruntime")
    for i, rule in enumerate([*onnx_rules()][::2]):
        cases = list(cut(found[label(rule)], onnx_pairs(rule)))
        pair, want = cases[len(cases) * (i % 7 + 1) // 8]
        nearest = rule["mode"] == "nearest"
        given = inputs(rule, pair, np.arange(pair.size, dtype=F32) if nearest else line(pair.size))
        got = run(one("Resize", given, extrapolation_value=float(OUTSIDE * nearest), **rule), given, variant)[0]
        wanted = np.broadcast_to(want.astype(F32) * (1 if nearest else STEP), (4, pair.out))
        np.testing.assert_allclose(got, wanted, rtol=0, atol=0 if nearest else TOLERANCE, err_msg=f"{rule} {pair}")


def test_sizes_kept(variant: str) -> None:
    """Nothing is moved if the whole keeps its sizes, whatever the scales are; else an axis is resampled by its scale."""
    x = np.arange(12, dtype=F32).reshape(1, 1, 3, 4)
    for mode, row in (("nearest", [0, 0, 1, 2]), ("linear", [0, 1 / 1.2, 2 / 1.2, 3 / 1.2])):
        for rows, want in ((1.3, x), (1.0, x), (0.4, np.array(row, F32).reshape(1, 1, 1, 4))):
            given = [x, None, np.array([1, 1, rows, 1.2], F32), None]
            made = one("Resize", given, mode=mode, coordinate_transformation_mode="asymmetric", nearest_mode="floor")
            np.testing.assert_allclose(run(made, given, variant)[0], want, rtol=1e-6)


# ---- against onnxruntime itself ----------------------------------------------------------------------------------------


def model(
    opset: int, rank: int, target: str, axes: list[int] | None = None, op: str = "Resize", constant: Any = None, **attributes: Any
) -> bytes:
    """One node; target: "scales" or "sizes", an input of the model unless it is constant."""
    from onnx import helper, numpy_helper

    dtype, length = (1 if target == "scales" else 7), rank if axes is None else len(axes)
    empty = numpy_helper.from_array(np.zeros(0, F32), "none")
    crop = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    names = ["x", target]
    if opset >= 11:
        names = ["x", "roi" if crop else "none", *([] if target == "scales" else ["none"]), target]
    if axes is not None:
        attributes["axes"] = axes
    infos = [helper.make_tensor_value_info("x", 1, [None] * rank)]
    if crop:
        infos.append(helper.make_tensor_value_info("roi", 1, [2 * length]))
    constants = [empty]
    if constant is None:
        infos.append(helper.make_tensor_value_info(target, dtype, [length]))
    else:
        constants.append(numpy_helper.from_array(np.array(constant, F32 if dtype == 1 else np.int64), target))
    output = helper.make_tensor_value_info("y", 1, [None] * rank)
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", infos, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


class Both:
    """A model in onnxruntime and in fastlayers."""

    def __init__(self, data: bytes, smooth: bool) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        self.theirs, self.ours, self.smooth = onnxruntime.InferenceSession(data, options), fl.load(data), smooth

    def agree(self, **feeds: Any) -> None:
        """Whether both choose the same elements; weights may differ in the last digits."""
        want, got = self.theirs.run(None, feeds)[0], np.asarray(self.ours.run(feeds)["y"])
        assert got.shape == want.shape
        atol = 1e-4 * float(np.abs(feeds["x"]).max(initial=1)) if self.smooth else 0
        text = str({name: value for name, value in feeds.items() if name != "x"} | {"shape": feeds["x"].shape})
        np.testing.assert_allclose(got, want, rtol=0, atol=atol, err_msg=text)


LIVE = [
    (opset, rule, target)
    for opset in (10, 11, 13, 18, 19, 22)
    for rule in (onnx_rules() if opset > 10 else [{"mode": "nearest"}, {"mode": "linear"}])
    for target in ("scales", "sizes")
    if (opset > 10 or target == "scales") and (opset >= 18 or "antialias" not in rule)
    if opset >= 19 or rule.get("coordinate_transformation_mode") != "half_pixel_symmetric"
    if opset < 13 or rule.get("coordinate_transformation_mode") != "tf_half_pixel_for_nn"
]


@pytest.mark.onnxruntime
@EVERY
def test_every_rule_live(every: int) -> None:
    """Pictures with their channels first, both axes resized."""
    pytest.importorskip("onnxruntime")
    for opset, rule, target in LIVE[:: 4 * every - 3]:
        both = Both(model(opset, 4, target, **rule), rule["mode"] != "nearest")
        crop = rule.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        full = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", **rule}
        found = [pair for pair in onnx_pairs(full) if (pair.scale is None) == (target == "sizes")]
        rng = random.Random(f"{opset} {rule} {target}")
        for pair in rng.sample(found, min(len(found), 30)):
            rows = 5
            feeds = {"x": np.random.default_rng(pair.size).standard_normal((1, 2, rows, pair.size)).astype(F32)}
            other = rng.choice([8, 3] if target == "sizes" else [1.6, 2, 0.4])
            feeds[target] = np.array([1, 2, other, pair.out]) if target == "sizes" else np.array([1, 1, other, pair.scale], F32)
            both.agree(**feeds, **({"roi": np.array([0, 0, 0, pair.region[0], 1, 1, 1, pair.region[1]], F32)} if crop else {}))


@pytest.mark.onnxruntime
def test_ranks_axes_and_policies_live() -> None:
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    for rank in (1, 2, 3, 4, 5):
        both = Both(model(13, rank, "scales", mode="nearest"), False)
        for scales in itertools.product((1.0, 0.6, 1.7), repeat=min(rank, 2)):
            x = rng.standard_normal((2, 3, 4, 5, 2)[5 - rank :]).astype(F32)
            both.agree(x=x, scales=np.array((1,) * (rank - len(scales)) + scales, F32))
    for mode, policy in itertools.product(("nearest", "linear"), ("not_larger", "not_smaller", "stretch")):
        for axes in ([2, 3], [3, 2]):
            both = Both(model(19, 4, "sizes", axes, mode=mode, keep_aspect_ratio_policy=policy), mode == "linear")
            for h, w, *sizes in ((3, 5, 7, 7), (14, 9, 11, 4), (7, 7, 3, 20), (13, 6, 1, 2), (5, 11, 9, 9)):
                both.agree(x=rng.standard_normal((1, 2, h, w)).astype(F32), sizes=np.array(sizes))
    for nearest in NEAREST:  # a size that is not known before the run, then another
        both = Both(model(18, 4, "scales", [3], mode="nearest", nearest_mode=nearest), False)
        for size, scale in itertools.product((14, 15, 20, 26), (0.45, 0.6, 1.7, 2.6)):
            both.agree(x=rng.standard_normal((1, 1, 2, size)).astype(F32), scales=np.array([scale], F32))
    for size, scale in itertools.product((5, 9, 14), (1.0, 1.3, 1.7, 2.0, 2.4)):
        both = Both(model(9, 4, "scales", op="Upsample", mode="nearest", constant=[1, 1, scale, scale]), False)
        both.agree(x=rng.standard_normal((1, 1, size, size + 1)).astype(F32))


# ---- against the text --------------------------------------------------------------------------------------------------

X = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(F32)
ROI = np.array([0, 0, 0.1, 0.2, 1, 1, 0.9, 0.8], F32)
# The evaluator forms coordinates in float64, and does not take lengths made by scales for whole.
LIKE_THE_TEXT = 4e-6


@pytest.mark.onnx
def test_modes_by_sizes(variant: str) -> None:
    for coordinates in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                        "tf_crop_and_resize"):  # fmt: skip
        for mode, sizes in itertools.product(("nearest", "linear", "cubic"), ([1, 2, 8, 3], [1, 2, 3, 14])):
            check(sizes, variant, mode=mode, coordinate_transformation_mode=coordinates)


@pytest.mark.onnx
def test_rare_attributes(variant: str) -> None:
    for sizes, mode in itertools.product(([1, 2, 8, 3], [1, 2, 10, 14]), ("linear", "cubic")):
        check(sizes, variant, native=True, mode=mode, antialias=1)
        check(sizes, variant, native=True, mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1)
    for policy in ("not_larger", "not_smaller"):
        check([10, 21], variant, [2, 3], native=True, mode="linear", keep_aspect_ratio_policy=policy)


def check(sizes: list[int], variant: str, axes: list[int] | None = None, native: bool = False, **attributes: Any) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    data = model(19, 4, "sizes", axes, constant=sizes, **attributes)
    crop = {"roi": ROI} if attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize" else {}
    want = ReferenceEvaluator(onnx.load_from_string(data)).run(None, {"x": X, **crop})[0]
    got = fl.load(data, **({"require_native": True} if native and variant != "reference" else {})).run({"x": X, **crop})["y"]
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=LIKE_THE_TEXT, atol=LIKE_THE_TEXT, err_msg=str(attributes))


@pytest.mark.onnx
@pytest.mark.parametrize(
    ("scales", "attributes", "text"),
    [
        ([1, 1, 2, 2], {"mode": "area"}, "attribute mode='area', expected 'nearest'"),
        ([1, 1, 2, 2], {"nearest_mode": "up"}, "attribute nearest_mode='up', expected"),
        ([1, 1, 2, 2], {"nearest_mode": "ceil_if_smaller"}, "attribute nearest_mode='ceil_if_smaller', expected"),
        ([1, 1, 2, 2], {"coordinate_transformation_mode": "tf"}, "attribute coordinate_transformation_mode='tf', expected"),
        ([1, 1, 2, 2], {"steps": 1}, "attribute steps"),
        ([2, 2], {}, "expected 4, one per axis"),
        ([1, 1, 0, 2], {}, "expected positive values"),
        ([1, 1, np.nan, 2], {}, "expected positive values"),
        ([1, 1, np.inf, 2], {}, "expected positive values"),
        ([1, 1, 1e38, 2], {}, "expected a result of a size that there can be"),
        ([], {}, "expected either scales or sizes"),
    ],
)
def test_wrong_attributes(scales: list[float], attributes: dict[str, Any], text: str) -> None:
    with pytest.raises(fl.Error, match=text):
        fl.load(model(18, 4, "scales", constant=scales, **attributes))(X)


@pytest.mark.filterwarnings("error")
def test_regions_anywhere(variant: str) -> None:
    """What is outside, or nowhere, has the value that is given for it."""
    for ends in ((np.nan, 1), (0, np.nan), (1e30, 2e30), (-np.inf, np.inf), (3e38, -3e38)):
        for mode in ("nearest", "linear", "cubic"):
            given = [X, np.array([0, 0, 0, ends[0], 1, 1, 1, ends[1]], F32), None, np.array([1, 2, 5, 4])]
            made = one("Resize", given, mode=mode, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=3.0)
            got = run(made, given, variant)[0]
            assert np.isin(got[..., 1:], 3.0).all(), (ends, mode, got)
