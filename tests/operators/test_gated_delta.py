"""Operators of networks with gated delta rules (Qwen3.5) as onnxruntime-genai's builder writes them, next to onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import UnsupportedError

onnx: Any = pytest.importorskip("onnx")
helper = onnx.helper
pytestmark = [pytest.mark.onnx, pytest.mark.onnxruntime]

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def one(op: str, given: dict[str, np.ndarray], outputs: int, names: list[str] | None = None, **attributes: Any) -> bytes:
    values = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for k, a in given.items()]
    outs = [f"out{i}" for i in range(outputs)]
    node = helper.make_node(op, names or list(given), outs, domain="com.microsoft", **attributes)
    kind = helper.np_dtype_to_tensor_dtype(next(iter(given.values())).dtype)
    graph = helper.make_graph([node], "g", values, [helper.make_tensor_value_info(name, kind, None) for name in outs])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return made


def compare(file: bytes, given: dict[str, np.ndarray], bound: float = 3e-6) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    want = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"]).run(None, given)
    for got, expected in zip(fl.load(file).run(given).values(), want, strict=True):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(got, expected, rtol=0, atol=bound * np.abs(expected).max())


@pytest.mark.parametrize(("heads", "keys", "values"), [(4, 4, 4), (4, 2, 2), (2, 4, 4), (2, 2, 4), (1, 1, 3), (2, 2, 6)])
def test_linear_attention(heads: int, keys: int, values: int, variant: str) -> None:
    """Fewer heads of queries, or of queries and keys, than of values, too; one step and several, with a state and without."""
    d, e = 8, 6
    for t, past in ((1, True), (5, True), (5, False)):
        given = {"q": normal(2, t, heads * d) / 3, "k": normal(2, t, keys * d) / 3, "v": normal(2, t, values * e)}
        if past:
            given["s"] = normal(2, values, d, e)
        given |= {"g": -np.abs(normal(2, t, values)), "b": np.abs(normal(2, t, values)) / 3}
        names = ["q", "k", "v", "s" if past else "", "g", "b"]
        compare(one("LinearAttention", given, 2, names, q_num_heads=heads, kv_num_heads=values, scale=1.0), given)


def test_gates_and_norms(variant: str) -> None:
    given = {"a": 4 * normal(2, 3, 4), "d": normal(4), "c": -np.abs(normal(4)), "b": normal(2, 3, 4)}
    compare(one("LinearAttentionGate", given, 2), given)
    given.popitem()
    compare(one("LinearAttentionGate", given, 1), given)
    given = {"x": normal(2, 3, 24), "w": normal(8), "z": normal(2, 3, 24)}
    for words in ({}, {"activation": "sigmoid", "epsilon": 0.1}, {"activation": "swish"}):
        compare(one("GatedRMSNorm", given, 1, **words), given)
    given = {"x": normal(2, 3, 24), "y": normal(2, 3, 24), "z": normal(2, 3, 1)}
    compare(one("GatedAdd", given, 1), given)


def test_what_is_refused() -> None:
    """State windows, which onnxruntime has on GPUs alone, and ONNX's own operator has no fewer heads of queries."""
    given = {"q": normal(1, 3, 16), "k": normal(1, 3, 32), "v": normal(1, 3, 24), "g": normal(1, 3, 4), "b": normal(1, 3, 4)}
    names = ["q", "k", "v", "", "g", "b"]
    with pytest.raises(UnsupportedError, match=r"LinearAttention.*state_window=3"):
        fl.load(one("LinearAttention", given, 2, names, q_num_heads=2, kv_num_heads=4, state_window=3))
    conv = {"x": normal(1, 4, 3), "w": normal(4, 1, 3)}
    with pytest.raises(UnsupportedError, match=r"CausalConvWithState.*state_window=2"):
        fl.load(one("CausalConvWithState", conv, 2, state_window=2))
    with pytest.raises(fl.Error, match="q_num_heads is 3, kv_num_heads 4"):
        fl.load(one("LinearAttention", given, 2, names, q_num_heads=3, kv_num_heads=4)).run(given)
