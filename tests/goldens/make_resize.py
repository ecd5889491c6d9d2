"""Writes resize_onnxruntime.npz, resize_torch.npz and resize_tensorflow.npz: what these make of the cases of resize_cases.py.

Run from the root of the repository: ``python -m tests.goldens.make_resize onnxruntime torch tensorflow``; made with
onnxruntime 1.32, torch 2.13 and TensorFlow 2.21 on x86-64 with AVX2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .resize_cases import (
    FIRST,
    OUTSIDE,
    TENSORFLOW,
    TORCH,
    Pair,
    TensorFlow,
    Torch,
    label,
    line,
    onnx_pairs,
    onnx_rules,
    packed,
    pairs,
    torch_pairs,
)  # fmt: skip


def onnxruntime_model(attributes: dict[str, Any], scaled: bool, opset: int = 19) -> bytes:
    """A Resize of x (2, n), by a second input."""
    from onnx import helper, numpy_helper

    float32, int64 = 1, 7
    given = [helper.make_tensor_value_info("x", float32, [2, None])]
    target = helper.make_tensor_value_info("target", float32 if scaled else int64, [2])
    region = attributes["coordinate_transformation_mode"] == "tf_crop_and_resize"
    if opset < 11:
        names, attributes = ["x", "target"], {"mode": attributes["mode"]}
    else:
        names = ["x", "roi" if region else "none", *(["target"] if scaled else ["none", "target"])]
    graph = helper.make_graph(
        [helper.make_node("Resize", names, ["y"], **attributes)],
        "g",
        [*given, *([helper.make_tensor_value_info("roi", float32, [4])] if region else []), target],
        [helper.make_tensor_value_info("y", float32, [None, None])],
        [numpy_helper.from_array(np.zeros(0, np.float32), "none")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


def onnxruntime_feeds(attributes: dict[str, Any], pair: Pair) -> dict[str, np.ndarray]:
    """Two equal rows, which become four, so that the size of the whole is not kept."""
    nearest = attributes["mode"] == "nearest"
    values = np.arange(pair.size, dtype=np.float32) if nearest else line(pair.size)
    made: dict[str, np.ndarray] = {"x": np.stack([values, values])}
    if attributes["coordinate_transformation_mode"] == "tf_crop_and_resize":
        made["roi"] = np.array([0, pair.region[0], 1, pair.region[1]], np.float32)
    made["target"] = np.array([4, pair.out]) if pair.scale is None else np.array([2, pair.scale], np.float32)
    return made


def from_onnxruntime() -> dict[str, np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    found: dict[str, np.ndarray] = {}
    for attributes, opsets in ((FIRST, (10,)), *((rule, (19, 18, 13, 11)) for rule in onnx_rules())):
        nearest, made = attributes["mode"] == "nearest", []
        given = attributes | ({"extrapolation_value": float(OUTSIDE)} if nearest else {})
        for opset in opsets:
            symmetric = attributes["coordinate_transformation_mode"] == "half_pixel_symmetric"
            if ("antialias" in attributes and opset < 18) or (symmetric and opset < 19):
                continue
            kinds = (True,) if opset < 11 else (False, True)
            runs = {s: onnxruntime.InferenceSession(onnxruntime_model(given, s, opset), options).run for s in kinds}
            cases = onnx_pairs(attributes)
            rows = [runs[pair.scale is not None](None, onnxruntime_feeds(attributes, pair))[0][0] for pair in cases]
            made.append(np.concatenate(rows))
        assert all(np.array_equal(made[0], other) for other in made), attributes
        found[label(attributes)] = keep(attributes["mode"], made[:1])
    return found


def from_torch() -> dict[str, np.ndarray]:
    import torch

    def one(case: Torch, pair: Pair) -> np.ndarray:
        made = torch.nn.functional.interpolate(torch.from_numpy(case.x(pair.size)), **case.arguments(pair))
        return np.asarray(made.numpy().reshape(-1, pair.out)[0])

    return {
        label(case._asdict()): keep(case.mode, [one(case, pair) for pair in torch_pairs(case.mode)])
        for case in TORCH
    }  # fmt: skip


def keep(mode: str, rows: list[np.ndarray]) -> np.ndarray:
    made = np.concatenate(rows)
    return made.astype(np.uint8) if "nearest" in mode else packed(made)


def from_tensorflow() -> dict[str, np.ndarray]:
    import tensorflow as tf

    def one(case: TensorFlow, pair: Pair) -> np.ndarray:
        nearest = case.method == "nearest"
        x = (np.arange(pair.size, dtype=np.float32) if nearest else line(pair.size)).reshape(1, pair.size, 1, 1)
        if case.method == "bicubic" or case.antialias:
            made = tf.image.resize(x, [pair.out, 1], method=case.method, antialias=case.antialias)
        else:
            op = tf.raw_ops.ResizeNearestNeighbor if nearest else tf.raw_ops.ResizeBilinear
            made = op(images=x, size=[pair.out, 1], align_corners=case.align_corners, half_pixel_centers=case.half_pixel)
        return np.asarray(made).reshape(-1)

    return {
        label(case._asdict()): keep(case.method, [one(case, pair) for pair in pairs(case.method != "nearest", lambda *_: 0)])
        for case in TENSORFLOW
    }


MAKERS: dict[str, Callable[[], dict[str, np.ndarray]]] = {
    "onnxruntime": from_onnxruntime, "torch": from_torch, "tensorflow": from_tensorflow,
}  # fmt: skip

if __name__ == "__main__":
    for framework in sys.argv[1:]:
        np.savez_compressed(Path(__file__).with_name(f"resize_{framework}.npz"), **MAKERS[framework]())
