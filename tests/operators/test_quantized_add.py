"""QLinearAdd of all pairs of bytes, next to onnxruntime: the same integers where sums are at the edge between two steps, too."""

from __future__ import annotations

import numpy as np
import pytest

import fastlayers as fl

pytestmark = [pytest.mark.onnx, pytest.mark.onnxruntime]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8], ids=lambda dtype: dtype.__name__)
def test_sums_are_onnxruntimes(dtype: type, variant: str) -> None:
    import onnxruntime
    from onnx import helper, numpy_helper

    low, kind = np.iinfo(dtype).min, helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    a, b = (np.repeat(np.arange(256) + low, 256).astype(dtype), np.tile(np.arange(256) + low, 256).astype(dtype))
    rng, straight = np.random.default_rng(0), 0
    for _ in range(12):
        scales = [np.float32(s) for s in rng.uniform(0.01, 0.05, 3)]
        zeros = [dtype(z + low) for z in rng.integers(0, 256, 3)]
        constants = {
            name: value for i, side in enumerate("abc") for name, value in ((f"s{side}", scales[i]), (f"z{side}", zeros[i]))
        }
        node = helper.make_node("QLinearAdd", ["a", "sa", "za", "b", "sb", "zb", "sc", "zc"], ["c"], domain="com.microsoft")
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            [node], "g", [info("a", kind, a.shape), info("b", kind, b.shape)], [info("c", kind, a.shape)],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        file = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        (want,) = session.run(None, {"a": a, "b": b})
        np.testing.assert_array_equal(fl.load(file).run({"a": a, "b": b})["c"], want)
        p, q = (x.astype(np.float32) - np.float32(z) for x, z in ((a, zeros[0]), (b, zeros[1])))
        steps = np.rint((p * scales[0] + q * scales[1]) / scales[2]) + zeros[2].astype(np.float32)
        straight += int((np.clip(steps, low, low + 255) != want).sum())
    assert straight, "the formula as it is written gives the same: these scales tell nothing"
