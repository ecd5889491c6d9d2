"""Writes contrib.npz: what ONNX Runtime answers for the nodes of contrib_cases.py.

python tests/goldens/make_contrib.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import helper

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.goldens.contrib_cases import CASES, ContribCase, asked  # noqa: E402


def answer(item: ContribCase) -> list[np.ndarray]:
    """The node alone as a model; int32 is what is asked of outputs called "mask"."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(asked(item))]
    node = helper.make_node(item.op, names, item.outputs, domain=item.domain, **item.attributes)
    given = {n: a for n, a in zip(names, asked(item), strict=True) if a is not None}
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()]
    integers = {"mask"} | ({"y1"} if item.op == "EmbedLayerNormalization" else set())
    outputs = [helper.make_tensor_value_info(n, 6 if n in integers else 1, None) for n in item.outputs if n]
    for output in outputs:
        output.type.tensor_type.ClearField("shape")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", inputs, outputs), opset_imports=opsets, ir_version=8)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, given))


if __name__ == "__main__":
    found = {}
    for item in CASES:
        for name, array in zip([o for o in item.outputs if o], answer(item), strict=True):
            found[f"{item.id}/{name}"] = array
    np.savez_compressed(Path(__file__).parent / "contrib.npz", **found)
