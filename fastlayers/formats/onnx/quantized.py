"""ONNX Runtime's operators of quantized networks, as files of the domain com.microsoft spell them, in that of `operators`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import FormatError
from ...ir.graph import Node
from .contrib_nodes import refuse
from .schema import NEWEST, Attribute, Schema

__all__ = ["TABLE"]

_EXPERTS = (
    "activation_alpha:f activation_beta:f activation_type:s k:i normalize_routing_weights:i swiglu_fusion:i swiglu_limit:f "
    "swiglu_limit_after_activation:i use_sparse_mixer:i"
)
_BITS = "expert_weight_bits:i fc1_expert_weight_bits:i fc2_expert_weight_bits:i fc3_expert_weight_bits:i"
# Name, least and most inputs, outputs, attributes (see `schema`).
_LINES = f"""
DequantizeLinear 2-3 1 axis:i
DynamicQuantizeLSTM 11-12 3 activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i input_forget:i
DynamicQuantizeMatMul 3-5 1
GatherBlockQuantized 3-4 1 bits:i block_size:i gather_axis:i quantize_axis:i
MatMulBnb4 3-3 1 K:i! N:i! block_size:i! quant_type:i! training_mode:i transB:i
MatMulIntegerToFloat 4-7 1
MatMulNBits 3-6 1 K:i! N:i! accuracy_level:i bits:i block_size:i! weight_prepacked:i
MoE 5-8 1 {_EXPERTS}
QGemm 6-9 1 alpha:f transA:i transB:i
QLinearAdd 7-8 1
QLinearAveragePool 4-5 1 auto_pad:s ceil_mode:i channels_last:i count_include_pad:i kernel_shape:is! pads:is strides:is
QLinearConcat 5-* 1 axis:i!
QLinearConv 8-9 1 auto_pad:s channels_last:i dilations:is group:i kernel_shape:is pads:is strides:is
QLinearGlobalAveragePool 4-5 1 channels_last:i
QLinearLeakyRelu 4-5 1 alpha:f
QLinearMul 7-8 1
QLinearReduceMean 4-5 1 axes:is! keepdims:i!
QLinearSigmoid 4-5 1
QLinearSoftmax 4-5 1 axis:i opset:i!
QLinearWhere 8-9 1
QMoE 6-21 1 {_EXPERTS} {_BITS} accuracy_level:i block_size:i quant_type:s weights_prepacked:i
QuantizeLinear 2-3 1 axis:i
"""


def _plain(node: Node, version: int, make: Any) -> list[Node]:
    """The same name, inputs and attributes; convolutions have their own words for channels last."""
    attributes = dict(node.attributes)
    if node.op == "QLinearConv" and attributes.pop("channels_last", 0):
        attributes.update(x_last=True, out_last=True)
    return [Node(node.op, node.inputs, node.outputs, attributes)]


def _nbits(node: Node, version: int, make: Any) -> list[Node]:
    """MatMulNBits and MatMulBnb4, whose scales are looked at once, here."""
    _finite(node, make, 2, 3)
    return [node]


def _finite(node: Node, make: Any, *positions: int) -> None:
    for i in positions:
        array = make.value((*node.inputs, *(None,) * 16)[i])
        if array is not None and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise FormatError(f"onnx: {node.op} ({node.outputs[0]}): input {i} has NaN or infinity: expected finite scales")


def _table_of_blocks(node: Node, version: int, make: Any) -> list[Node]:
    """GatherBlockQuantized, of which any row may be asked for."""
    _finite(node, make, 2)
    return [node]


def _experts(node: Node, version: int, make: Any) -> list[Node]:
    """MoE and QMoE, whose inputs from 15 on are those of floats of few bits."""
    refuse(node, inputs_after_14=any(node.inputs[15:]))
    if node.op == "QMoE":
        _finite(node, make, 3, 6, 9)
    return [node]


def _table() -> dict[str, tuple[Schema, Any]]:
    found = {}
    for line in _LINES.strip().splitlines():
        name, inputs, outputs, *attributes = line.split()
        least, most = inputs.split("-")
        kinds = {}
        for attribute in attributes:
            key, kind = attribute.rstrip("!").split(":")
            kinds[key] = Attribute(kind, attribute.endswith("!"), 0, NEWEST + 1)
        found[name] = (Schema(1, int(least), None if most == "*" else int(most), int(outputs), kinds), _RULES.get(name, _plain))
    return found


_RULES = {
    "GatherBlockQuantized": _table_of_blocks,
    "MatMulBnb4": _nbits,
    "MatMulNBits": _nbits,
    "MoE": _experts,
    "QMoE": _experts,
}
TABLE = _table()
