"""Pools over boxes: against loops written from the text of the operators, onnx's evaluator, edges of memory, threads, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from ..guard import guarded

f = fl.functional
# Samples are found and summed in float32, at most some 200 of them.
TOLERANCE = 1e-5
BOXES = np.array(
    [
        [0, 0, 0, 9, 7], [1, 2.4, 1.6, 6.5, 6.5], [0, 3, 3, 3, 3], [1, -4, -3, 2, 2], [0, 8, 5, 20, 30], [1, 40, 40, 50, 50],
        [0, 6, 6, 2, 1], [1, 0.2, 0.7, 0.9, 7.1], [0, -1e6, -1e6, 1e6, 1e6],
    ], np.float32,
)  # fmt: skip


def pooled(x: np.ndarray, boxes: np.ndarray, bins: tuple[int, int], scale: float) -> np.ndarray:
    """Every pixel asks every bin whether it is in it."""
    out = np.zeros((len(boxes), x.shape[1], *bins), np.float32)
    for k, (image, *corners) in enumerate(boxes):
        x1, y1, x2, y2 = (math.copysign(math.floor(abs(np.float32(v * np.float32(scale))) + 0.5), v) for v in corners)
        for i in range(bins[0]):
            for j in range(bins[1]):
                each_y, each_x = (np.float32(max(b - a + 1, 1) / n) for a, b, n in ((y1, y2, bins[0]), (x1, x2, bins[1])))
                rows = [r for r in range(x.shape[2]) if math.floor(i * each_y) <= r - y1 < math.ceil((i + 1) * each_y)]
                columns = [c for c in range(x.shape[3]) if math.floor(j * each_x) <= c - x1 < math.ceil((j + 1) * each_x)]
                if rows and columns:
                    out[k, :, i, j] = x[int(image)][:, rows][:, :, columns].max((1, 2))
    return out


@pytest.mark.parametrize("channels", [1, 7, 16, 33])
def test_pool(channels: int, variant: str, threads: int) -> None:
    x = np.random.default_rng(channels).standard_normal((2, channels, 8, 10)).astype(np.float32)
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    for bins, scale in (((1, 1), 1.0), ((2, 3), 1.0), ((7, 7), 0.5), ((9, 2), 2.0)):
        want = pooled(x, BOXES, bins, scale)
        for edge in ("start", "end"):
            np.testing.assert_array_equal(f.roi_pool(guarded(x, edge), guarded(BOXES, edge), bins, scale), want)
            got = f.roi_pool(guarded(last, edge), BOXES, bins, scale, layout="nhwc")
            np.testing.assert_array_equal(np.moveaxis(got, -1, 1), want)


def aligned_by_onnx(x: np.ndarray, boxes: np.ndarray, bins: tuple[int, int], **attributes: Any) -> np.ndarray:
    import onnx
    from onnx.reference import ReferenceEvaluator

    node = onnx.helper.make_node("RoiAlign", ["x", "b", "i"], ["y"], output_height=bins[0], output_width=bins[1], **attributes)
    kinds = {"x": 1, "b": 1, "i": 7, "y": 1}
    infos = [onnx.helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()]
    graph = onnx.helper.make_graph([node], "g", infos[:3], infos[3:])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 16)], ir_version=8)
    feeds = {"x": x, "b": boxes[:, 1:].copy(), "i": boxes[:, 0].astype(np.int64)}
    return np.asarray(ReferenceEvaluator(made).run(None, feeds)[0])


@pytest.mark.onnx
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("aligned", [False, True])
def test_align(aligned: bool, mode: str, variant: str, threads: int) -> None:
    coordinates = "half_pixel" if aligned else "output_half_pixel"
    boxes = BOXES[:-1]  # onnx would make 10 ** 12 samples of the last one
    for channels, bins, scale, samples in ((1, (2, 3), 1.0, 0), (5, (7, 7), 0.5, 2), (17, (3, 2), 1.0, 3)):
        x = np.random.default_rng(channels).standard_normal((2, channels, 8, 10)).astype(np.float32)
        want = aligned_by_onnx(
            x, boxes, bins, mode=mode, coordinate_transformation_mode=coordinates, sampling_ratio=samples, spatial_scale=scale
        )
        options: dict[str, Any] = {"spatial_scale": scale, "sampling_ratio": samples, "aligned": aligned, "mode": mode}
        for edge in ("start", "end"):
            got = f.roi_align(guarded(x, edge), guarded(boxes, edge), bins, **options)
            np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE)
            turned = f.roi_align(guarded(np.moveaxis(x, 1, -1), edge), boxes, bins, **options, layout="nhwc")
            np.testing.assert_allclose(np.moveaxis(turned, -1, 1), want, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.onnxruntime
def test_the_samples_of_onnxruntime() -> None:
    """Boxes whose corners and scales float32 does not hold exactly: as many samples of a bin, and the same bins."""
    import onnxruntime
    from onnx import helper

    rng, options = np.random.default_rng(0), onnxruntime.SessionOptions()
    options.log_severity_level = 4

    def session(op: str, names: str, **attributes: Any) -> Any:
        kinds = {"x": (1, 4), "b": (1, 2), "i": (7, 1)}
        infos = [helper.make_tensor_value_info(name, kinds[name][0], [None] * kinds[name][1]) for name in names]
        output = helper.make_tensor_value_info("y", 1, [None] * 4)
        graph = helper.make_graph([helper.make_node(op, list(names), ["y"], **attributes)], "g", infos, [output])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
        return onnxruntime.InferenceSession(made.SerializeToString(), options)

    for scale, bins in ((1.0, (2, 3)), (0.3, (7, 7)), (1 / 16, (1, 1)), (0.1, (3, 5))):
        x = rng.standard_normal((2, 2, 12, 14)).astype(np.float32)
        corners = np.sort(rng.integers(0, int(130 / scale), (80, 2, 2)), 1).reshape(-1, 4) / 10
        boxes = np.column_stack([rng.integers(0, 2, 80), corners]).astype(np.float32)
        pool = session("MaxRoiPool", "xb", pooled_shape=list(bins), spatial_scale=scale)
        np.testing.assert_array_equal(f.roi_pool(x, boxes, bins, scale), pool.run(None, {"x": x, "b": boxes})[0])
        for mode, aligned in ((mode, aligned) for mode in ("avg", "max") for aligned in (False, True)):
            align = session(
                "RoiAlign", "xbi", mode=mode, output_height=bins[0], output_width=bins[1], spatial_scale=scale,
                coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
            )  # fmt: skip
            want = align.run(None, {"x": x, "b": boxes[:, 1:].copy(), "i": boxes[:, 0].astype(np.int64)})[0]
            got = f.roi_align(x, boxes, bins, scale, aligned=aligned, mode=mode)
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-4, err_msg=f"{scale} {mode} {aligned}")


def test_a_huge_box_takes_no_time() -> None:
    x = np.ones((1, 3, 8, 10), np.float32)
    boxes = np.array([[0, -1e8, -1e8, 1e8, 1e8]], np.float32)
    for mode in ("avg", "max"):
        assert np.isfinite(f.roi_align(x, boxes, 1, mode=mode)).all()
    assert f.roi_pool(x, boxes, 1).max() == 1


def test_nan_stays_in_the_boxes_that_read_it(variant: str) -> None:
    x = np.zeros((1, 2, 8, 10), np.float32)
    x[0, 0, 4, 4] = np.nan
    boxes = np.array([[0, 3, 3, 6, 6], [0, 0, 0, 2, 2]], np.float32)
    for got in (f.roi_pool(x, boxes, 1), f.roi_align(x, boxes, 1), f.roi_align(x, boxes, 1, mode="max")):
        np.testing.assert_array_equal(np.isnan(got[:, :, 0, 0]), [[True, False], [False, False]])


def test_layers_and_programs(variant: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 10)).astype(np.float32)
    for layer, function in ((fl.RoIPool(3, 0.5), f.roi_pool), (fl.RoIAlign(3, 0.5), f.roi_align)):
        boxes = BOXES[:-1]  # the reference makes every sample
        np.testing.assert_array_equal(layer(x, boxes), function(x, boxes, 3, 0.5))
        model = fl.compile(layer, fl.graph.Input("x", x.shape), fl.graph.Input("boxes", ("k", 5)))
        np.testing.assert_allclose(model(x, boxes), layer(x, boxes), rtol=TOLERANCE, atol=TOLERANCE)
        wrong = boxes.copy()
        wrong[0, 0] = 2
        with pytest.raises(fl.ShapeError):
            model(x, wrong)


X = np.zeros((1, 3, 8, 8), np.float32)
ONE = np.array([[0, 0, 0, 2, 2]], np.float32)
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: f.roi_pool(X[0], ONE, 2), fl.ShapeError, r"roi_pool: x has shape \(3, 8, 8\)"),
    (lambda: f.roi_pool(X, ONE[:, 1:], 2), fl.ShapeError, r"roi_pool: boxes has shape \(1, 4\): expected \(k, 5\)"),
    (lambda: f.roi_pool(X, ONE + 1, 2), fl.ArgumentError, "roi_pool: boxes name images 1.0 to 1.0"),
    (lambda: f.roi_pool(X, ONE * np.nan, 2), fl.ArgumentError, "roi_pool: boxes has values that are not finite"),
    (lambda: f.roi_pool(X, ONE, 0), fl.ArgumentError, "roi_pool: output_size is 0"),
    (lambda: f.roi_pool(X, ONE, 1, 0.0), fl.ArgumentError, "roi_pool: spatial_scale is 0.0"),
    (lambda: f.roi_align(X, ONE, 1, mode="min"), fl.ArgumentError, "roi_align: mode is 'min'"),
    (lambda: f.roi_align(X, ONE, 1, sampling_ratio=1.5), fl.DTypeError, "roi_align: sampling_ratio is 1.5"),
    (lambda: f.roi_align(X, ONE, 1, layout="chw"), fl.ArgumentError, "roi_align: layout is 'chw'"),
    (lambda: f.roi_align(X * 1j, ONE, 1), fl.DTypeError, "roi_align: x has dtype complex64"),
    (lambda: fl.RoIPool((1, 2, 3)), fl.ArgumentError, "RoIPool: output_size"),
    (lambda: fl.RoIAlign(2, "a"), fl.DTypeError, "RoIAlign: spatial_scale"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG, ids=[text[:50] for _, _, text in WRONG])
def test_wrong_arguments(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()
