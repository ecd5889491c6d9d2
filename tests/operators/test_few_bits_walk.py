"""Wrong weights of few bits, systematically: every operator that has them, every input and attribute with everything that can be
wrong about it. Each is one of our errors when the file is loaded, which names the operator and the input or attribute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import Error

onnx: Any = pytest.importorskip("onnx")
TensorProto, helper = onnx.TensorProto, onnx.helper
pytestmark = pytest.mark.onnx

F = np.float32
HUGE = 1 << 62


class Sample(NamedTuple):
    """A node that is right: `inputs` are arrays, shapes with a type of what a caller gives, or None."""

    op: str
    inputs: dict[str, Any]
    attributes: dict[str, Any]
    domain: str = "com.microsoft"
    outputs: int = 1
    sized: str = ""  # attributes that are sizes of blocks or of weights, or numbers of bits
    scales: str = ""  # inputs that must be finite


def of(*shape: int, kind: Any = F) -> np.ndarray:
    return np.ones(shape, kind)


def given(*shape: Any, kind: int = TensorProto.FLOAT) -> tuple[int, tuple[Any, ...]]:
    return kind, shape


def samples() -> Iterator[Sample]:
    u8 = np.uint8
    for bits in (2, 4, 8):
        zeros = of(6, -(-4 * bits // 8), kind=u8)
        inputs = {"A": given("m", 100), "B": of(6, 4, 4 * bits, kind=u8), "scales": of(6, 4), "zero_points": zeros, "g_idx": None}
        words = {"N": 6, "K": 100, "block_size": 32, "bits": bits}
        yield Sample("MatMulNBits", {**inputs, "bias": of(6)}, words, sized="N K block_size bits", scales="scales")
    inputs = {"A": given("m", 64), "B": of(192, kind=u8), "absmax": of(12)}
    attributes = {"N": 6, "K": 64, "block_size": 32, "quant_type": 1}
    yield Sample("MatMulBnb4", inputs, attributes, sized="N K block_size quant_type", scales="absmax")
    for bits in (4, 8):
        inputs = {
            "data": of(20, 64 * bits // 8, kind=u8), "indices": given("i", kind=TensorProto.INT64), "scales": of(20, 2),
            "zero_points": of(20, -(-2 * bits // 8), kind=u8),
        }  # fmt: skip
        words = {"bits": bits, "block_size": 32, "gather_axis": 0, "quantize_axis": 1}
        yield Sample("GatherBlockQuantized", inputs, words, sized="bits block_size quantize_axis", scales="scales")
    inputs = {"x": of(64, 20, kind=np.int8), "x_scale": of(2, 20), "x_zero_point": of(2, 20, kind=np.int8)}
    yield Sample("DequantizeLinear", inputs, {"axis": 0, "block_size": 32}, "", sized="axis block_size")
    inputs = {
        "input": given("t", 32), "router_probs": given("t", 3), "fc1": of(3, 64, 16, kind=u8), "fc1_scales": of(3, 64),
        "fc1_bias": of(3, 64), "fc2": of(3, 32, 32, kind=u8), "fc2_scales": of(3, 32), "fc2_bias": of(3, 32),
    }  # fmt: skip
    words = {"k": 2, "expert_weight_bits": 4, "activation_type": "silu"}
    yield Sample("QMoE", inputs, words, sized="k expert_weight_bits", scales="fc1_scales fc2_scales")
    cache = given(1, 2, "p", 16, kind=TensorProto.INT8)
    ints = given(1, kind=TensorProto.INT32)
    inputs = {
        "query": given(1, 1, 64), "key": given(1, 1, 32), "value": given(1, 1, 32), "past_key": cache, "past_value": cache,
        "seqlens_k": ints, "total": ints, "cos": None, "sin": None, "places": None, "bias": None, "sink": None,
        "k_scale": of(1, 2, 1, 16), "v_scale": of(1, 2, 1, 16),
    }  # fmt: skip
    words = {
        "num_heads": 4, "kv_num_heads": 2, "k_quant_type": "PER_CHANNEL", "v_quant_type": "PER_CHANNEL", "kv_cache_bit_width": 8
    }  # fmt: skip
    yield Sample("GroupQueryAttention", inputs, words, outputs=3, sized="kv_cache_bit_width", scales="k_scale v_scale")


def file(sample: Sample) -> bytes:
    values = [helper.make_tensor_value_info(n, *a) for n, a in sample.inputs.items() if isinstance(a, tuple)]
    tensors = [onnx.numpy_helper.from_array(a, n) for n, a in sample.inputs.items() if isinstance(a, np.ndarray)]
    names = [n if a is not None else "" for n, a in sample.inputs.items()]
    outs = [f"y{i}" if i else "y" for i in range(sample.outputs)]
    node = helper.make_node(sample.op, names, outs, domain=sample.domain, **sample.attributes)
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outs[:1]]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", values, made, tensors)
    found: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return found


def arrays(array: np.ndarray, scale: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Wrong ones instead of a right one."""
    yield "a row less", array[:-1].copy()
    yield "a row more", np.concatenate((array, array[:1]))
    yield "of no elements", array[:0].copy()
    yield "of five axes", np.concatenate((array, array)).reshape(2, 1, 1, 1, -1)
    for kind in (np.float64, np.int64, np.bool_, np.uint16):
        yield f"of {np.dtype(kind)}", array.astype(kind)
    if scale:
        for number in (np.nan, np.inf, -np.inf):
            lost = array.copy()
            lost.reshape(-1)[-1] = number
            yield f"with {number}", lost


def wrong(sample: Sample) -> Iterator[tuple[str, str, Sample]]:
    """The name of what is wrong, what is wrong about it, and the node."""
    for name, array in sample.inputs.items():
        if isinstance(array, np.ndarray):
            for what, other in arrays(array, name in sample.scales.split()):
                yield name, what, sample._replace(inputs={**sample.inputs, name: other})
    for name in sample.sized.split():
        for number in (0, -1, 1, 3, 5, 7, 24, HUGE, -HUGE):
            yield name, f"of {number}", sample._replace(attributes={**sample.attributes, name: number})


# What is right although it is another than in the sample: (operator, name, what).
RIGHT = {
    ("DequantizeLinear", "axis", "of 0"), ("DequantizeLinear", "x_scale", "of float64"), ("DequantizeLinear", "x", "a row less"),
    ("GatherBlockQuantized", "quantize_axis", "of 1"), ("GatherBlockQuantized", "quantize_axis", "of -1"),
    ("MatMulBnb4", "quant_type", "of 0"), ("MatMulBnb4", "quant_type", "of 1"), ("QMoE", "k", "of 1"), ("QMoE", "k", "of 3"),
}  # fmt: skip


def test_the_samples_are_right() -> None:
    for sample in samples():
        fl.load(file(sample))


def test_each_wrong_one_is_refused_by_name() -> None:
    told, count = [], 0
    for sample in samples():
        for name, what, other in wrong(sample):
            if (sample.op, name, what) in RIGHT:
                fl.load(file(other))
                continue
            count += 1
            label = f"{sample.op}: {name} {what}"
            try:
                fl.load(file(other))
            except Error as error:
                text = str(error)
                number = list(sample.inputs).index(name) if name in sample.inputs else None
                words = NAMES.get(name, name) if number is None else rf"input {number}\b|{NAMES.get(name, name)}"
                if not re.search(rf"{sample.op}|GroupQueryQuantized", text) or not re.search(words, text):
                    told.append(f"{label}: {text:.300}")
            except Exception as error:
                told.append(f"{label}: {type(error).__name__}: {error}")
            else:
                told.append(f"{label}: is loaded")
    assert count > 300
    assert told == []


# How errors call an input or an attribute otherwise than by its name or number.
NAMES = {
    "B": "the weights|dtypes are", "scales": "the scales", "zero_points": "the zero points", "absmax": "dtypes are",
    "data": "a table|the table|bytes of 2 numbers", "x": "input 0|, x |that of x", "x_scale": "the scale",
    "x_zero_point": "the zero point", "bias": "input 5", "quantize_axis": "axis is|for a table|quantize_axis",
    "block_size": "block_size|the scale has shape",
}  # fmt: skip
