"""Makes pooling.npz: max and average pooling by torch (2.13) and onnxruntime (1.31), whichever can express the case.

Run ``python -m tests.goldens.make_pooling`` where both are installed; seed 0. Every x holds NaN, both infinities and ties,
far enough apart that ordinary windows remain.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np


def _case(
    by: str, kind: str, x: str, kernel: str, stride: str, pads: str = "", dilation: str = "", *flags: str
) -> dict[str, Any]:
    """Numbers of an axis are joined by "x", pads are "before,after" for each axis; flags: "ceil", "include"."""

    def numbers(text: str) -> list[int]:
        return [int(n) for n in text.split("x")]

    axes = len(numbers(kernel))
    both = [[int(n) for n in (pair.split(",") * 2)[:2]] for pair in pads.split()] if pads else [[0, 0]] * axes
    case = {"by": by, "kind": kind, "x": numbers(x), "kernel": numbers(kernel), "stride": numbers(stride), "pads": both}
    return case | {"dilation": numbers(dilation) if dilation else [1] * axes, **dict.fromkeys(flags, True)}


# x is (n, c, ...) with one to three spatial axes; "ceil": windows may overhang; "include": the padding counts in averages.
# Different pads on two sides of an axis, and dilated averages, are onnx's alone.
CASES: tuple[dict[str, Any], ...] = (
    _case("torch", "max", "2x3x19", "3", "2", "1"),
    _case("torch", "max", "1x2x23", "4", "3", "2", "2", "ceil"),
    _case("torch", "max", "2x3x13x14", "3x3", "2x2", "1 1"),
    _case("torch", "max", "1x3x14x17", "2x2", "2x2", "", "", "ceil"),
    _case("torch", "max", "1x3x9x9", "3x3", "1x1", "1 1"),
    _case("torch", "max", "1x2x12x11", "5x3", "3x2", "2 1", "2x1"),
    _case("torch", "max", "1x2x5x6x7", "3x2x3", "2x1x2", "1 1 0"),
    _case("torch", "avg", "2x3x19", "4", "3", "2", "", "include"),
    _case("torch", "avg", "2x3x20", "4", "3", "2", "", "ceil"),
    _case("torch", "avg", "1x3x14x13", "2x2", "2x2"),
    _case("torch", "avg", "1x3x14x13", "3x3", "2x2", "1 1", "", "ceil"),
    _case("torch", "avg", "1x3x14x13", "3x3", "2x2", "1 1", "", "ceil", "include"),
    _case("torch", "avg", "1x3x9x8", "3x3", "1x1", "1 1"),
    _case("torch", "avg", "1x2x7x6x9", "3x2x4", "2x1x3", "1 1 2", "", "ceil", "include"),
    _case("onnx", "max", "1x2x11x12", "3x3", "2x3", "0,2 1,0"),
    _case("onnx", "max", "1x2x11x12", "3x2", "2x3", "2,0 0,1", "", "ceil"),
    _case("onnx", "avg", "1x2x11x12", "3x4", "2x3", "0,2 1,3"),
    _case("onnx", "avg", "1x2x11x12", "3x4", "2x3", "0,2 1,3", "", "include"),
    _case("onnx", "avg", "1x2x10x12", "3x3", "3x2", "0,1 1,0", "", "ceil"),
    _case("onnx", "avg", "1x2x10x12", "3x3", "3x2", "0,1 1,0", "", "ceil", "include"),
    _case("onnx", "avg", "1x2x13x12", "3x2", "2x2", "2,2 1,0", "2x3"),
    _case("onnx", "avg", "1x2x5x6x7", "2x3x3", "2x2x3", "0,1 1,1 2,0"),
)


def by_torch(case: dict[str, Any], x: np.ndarray) -> np.ndarray:
    import torch

    axes = len(case["kernel"])
    options = {"stride": case["stride"], "padding": [p for p, _ in case["pads"]], "ceil_mode": case.get("ceil", False)}
    if case["kind"] == "max":
        options["dilation"] = case["dilation"]
        return getattr(torch.nn.functional, f"max_pool{axes}d")(torch.from_numpy(x), case["kernel"], **options).numpy()
    function = getattr(torch.nn.functional, f"avg_pool{axes}d")
    y = function(torch.from_numpy(x).double(), case["kernel"], count_include_pad=case.get("include", False), **options)
    return np.asarray(y.numpy(), np.float32)


def by_onnx(case: dict[str, Any], x: np.ndarray) -> np.ndarray:
    import onnxruntime
    from onnx import TensorProto, helper

    pads = case["pads"]
    options = {
        "kernel_shape": case["kernel"],
        "strides": case["stride"],
        "dilations": case["dilation"],
        "pads": [p for p, _ in pads] + [p for _, p in pads],
        "ceil_mode": int(case.get("ceil", False)),
    }
    if case["kind"] == "avg":
        options["count_include_pad"] = int(case.get("include", False))
    node = helper.make_node("MaxPool" if case["kind"] == "max" else "AveragePool", ["x"], ["y"], **options)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    ends[0] = helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)
    model = helper.make_model(helper.make_graph([node], "pool", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 22)])
    model.ir_version = 10
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


def make() -> dict[str, np.ndarray]:
    """The arrays of the golden file: "cases" (JSON), and x and y of each case under "<number>.<name>"."""
    rng = np.random.default_rng(0)
    arrays = {"cases": np.array(json.dumps(CASES))}
    for i, case in enumerate(CASES):
        x = np.round(rng.standard_normal(case["x"]) * 8).astype(np.float32) / 8
        flat = x.reshape(-1)
        flat[rng.choice(flat.size, 3, replace=False)] = np.inf, -np.inf, np.inf
        # onnxruntime's maximum drops NaN: torch decides there
        if case["by"] == "torch" or case["kind"] == "avg":
            flat[rng.choice(flat.size, 1 + flat.size // 100, replace=False)] = np.nan
        arrays |= {f"{i}.x": x, f"{i}.y": (by_torch if case["by"] == "torch" else by_onnx)(case, x)}
    return arrays


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("pooling.npz"), **make())
