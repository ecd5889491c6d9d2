"""Operators of other domains than ONNX's own, as exporters and optimizers write them, in terms of ONNX's and ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import FormatError, UnsupportedError
from ...ir.graph import Graph, Node
from .contrib_attention import ATTENTION
from .contrib_nodes import Nodes, Table, refuse, schema

if TYPE_CHECKING:
    from ...operators.graphs import GraphBuilder

__all__ = ["MICROSOFT", "PLAIN", "PREVIEW"]

# ---- graphs as attributes ----------------------------------------------------------------------------------------------


def _inlined(node: Node, key: str, x: str, make: GraphBuilder) -> tuple[list[Node], str]:
    """The nodes of a graph of one input and one output, its input being x; and the name of its output."""
    graph: Graph = node.attributes[key]
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise FormatError(
            f"onnx: {node.op}: {key} has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs: expected one of each"
        )
    nodes = [Node("Identity", (make.constant(array, name),), (name,), {}) for name, array in graph.constants.items()]
    nodes.append(Node("Identity", (x,), (graph.inputs[0].name,), {}))
    return [*nodes, *graph.nodes], graph.outputs[0].name


def _flex_attention(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """The products, with the graphs put in between."""
    q, k, v = node.inputs
    out, given = node.outputs[0], node.attributes
    attributes = {name: given[name] for name in ("scale", "softmax_precision") if name in given}
    if attributes.get("softmax_precision", 1) not in (1, 10, 11):
        raise UnsupportedError(f"FlexAttention: softmax_precision={attributes['softmax_precision']}")
    if "score_mod" not in given and "prob_mod" not in given:
        return [Node("Attention", (q, k, v), node.outputs, {"softmax_precision": 1, **attributes})]
    scores, weights = make.name(f"{out}/scores"), make.name(f"{out}/weights")
    nodes = [Node("AttentionScores", (q, k), (scores,), attributes)]
    if "score_mod" in given:
        more, scores = _inlined(node, "score_mod", scores, make)
        nodes += more
    nodes.append(Node("Softmax", (scores,), (weights,), {"axis": -1}))
    if "prob_mod" in given:
        more, weights = _inlined(node, "prob_mod", weights, make)
        nodes += more
    return [*nodes, Node("AttentionValues", (weights, v), node.outputs, {})]


# ---- activations -------------------------------------------------------------------------------------------------------


def _gelu(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """Gelu, BiasGelu and FastGelu; the last takes tanh for erf."""
    x, *bias = node.inputs
    n = Nodes(node, make)
    if bias and bias[0] is not None:
        x = n.add("Add", x, bias[0])
    attributes: dict[str, Any] = {"approximate": "tanh"} if node.op == "FastGelu" else {}
    return n.last("Gelu", x, **attributes)


def _quick_gelu(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    return [Node("Swish", node.inputs, node.outputs, {"alpha": node.attributes.get("alpha", 1.702)})]


def _bias_split_gelu(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """The left half of x + bias times the Gelu of the right one."""
    n = Nodes(node, make)
    left, right = n.many("Split", 2, n.add("Add", *node.inputs), axis=-1, num_outputs=2)
    return n.last("Mul", left, n.add("Gelu", right))


def _bias_add(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    n = Nodes(node, make)
    x, bias, skip = node.inputs
    return n.last("Add", n.add("Add", x, bias), skip)


_ACTIVATIONS = ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", "Softplus", "Softsign", "ThresholdedRelu")


def _activated(n: Nodes, x: str, name: str, alpha: float | None, beta: float | None) -> list[Node]:
    """The last nodes: an activation by its name, with what it was given."""
    if not name:
        return n.last("Identity", x)
    if name == "Clip":
        bounds = (-np.inf if alpha is None else alpha, np.inf if beta is None else beta)
        return n.last("Clip", x, *(n.constant(np.float32(v)) for v in bounds))
    if name not in _ACTIVATIONS:
        raise UnsupportedError(f"{n.node.op}: activation {name}")
    takes = {"LeakyRelu": 1, "Elu": 1, "ThresholdedRelu": 1, "HardSigmoid": 2}.get(name, 0)
    given: dict[str, Any] = dict([("alpha", alpha), ("beta", beta)][:takes])
    return n.last(name, x, **{key: value for key, value in given.items() if value is not None})


def _fused_conv(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """act(Conv + z)."""
    given = dict(node.attributes)
    name, parameters = given.pop("activation", ""), (*given.pop("activation_params", ()), None, None)
    n = Nodes(node, make)
    y = n.add("Conv", *node.inputs[:3], **given)
    if len(node.inputs) > 3:
        y = n.add("Add", y, node.inputs[3])
    return _activated(n, y, name, *parameters[:2])


def _fused_gemm(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """act(Gemm)."""
    given = dict(node.attributes)
    name, alpha, beta, _ = (given.pop(f"activation{part}", None) for part in ("", "_alpha", "_beta", "_gamma"))
    n = Nodes(node, make)
    return _activated(n, n.add("Gemm", *node.inputs, **given), name or "", alpha, beta)


# ---- normalizations ----------------------------------------------------------------------------------------------------


def _simplified(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    if len(node.outputs) > 1 and node.outputs[1]:
        raise UnsupportedError(f"{node.op}: its second output")
    return [Node("RMSNormalization", node.inputs, node.outputs[:1], dict(node.attributes))]


def _skip_norm(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """The norm of x + skip + bias; the sum is the fourth output."""
    n = Nodes(node, make)
    simple = node.op == "SkipSimplifiedLayerNormalization"
    x, skip, gamma, *rest = (*node.inputs, None, None, None)
    beta, bias = (None, rest[0]) if simple else (rest[0], rest[1])
    outputs = (*node.outputs, "", "", "")
    if bias is not None:
        x = n.add("Add", x, bias)
    total = n.add("Add", x, skip, name=outputs[3])
    epsilon = node.attributes.get("epsilon", 1e-12)
    if simple:
        if outputs[1] or outputs[2]:
            raise UnsupportedError(f"{node.op}: its second or third output")
        return n.last("RMSNormalization", total, gamma, outputs=outputs[:1], epsilon=epsilon)
    made = outputs[: 3 if outputs[2] else 2 if outputs[1] else 1]
    return n.last("LayerNormalization", total, gamma, beta, outputs=made, epsilon=epsilon)


def _embed_norm(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """Embeddings of words, positions and segments, their sum, its norm; and how many words a mask leaves."""
    n = Nodes(node, make)
    ids, segments, words, places, kinds, gamma, beta, mask, positions = (*node.inputs, None, None)[:9]
    outputs = (*node.outputs, "", "")[:3]
    total = n.add("Gather", words, ids, axis=0)
    if positions is not None:
        place = n.add("Gather", places, positions, axis=0)
    else:
        steps = n.add("Shape", ids, start=1, end=2)
        place = n.add("Slice", places, n.constant([0]), steps, n.constant([0]))
    parts = [place] if segments is None else [place, n.add("Gather", kinds, segments, axis=0)]
    for i, part in enumerate(parts):
        total = n.add("Add", total, part, name=outputs[2] if i == len(parts) - 1 else "")
    if outputs[1]:
        if mask is None:
            count = n.add("ConstantOfShape", n.add("Shape", ids, end=1), value=np.zeros(1, np.int32))
        else:
            count = n.add("ReduceSum", n.add("Cast", mask, to=1), n.constant([1]), keepdims=0)
        n.add("Cast", count, name=outputs[1], to=6)
    return n.last("LayerNormalization", total, gamma, beta, outputs=outputs[:1], epsilon=node.attributes.get("epsilon", 1e-12))


def _group_norm(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """GroupNorm and SkipGroupNorm of images, by default with channels last; SiLU after it if asked for."""
    given, n = node.attributes, Nodes(node, make)
    x, gamma, beta, *rest = node.inputs
    for i, other in enumerate(rest):  # skip, bias
        x = n.add("Add", x, other, name=node.outputs[1] if i == len(rest) - 1 and len(node.outputs) > 1 else "")
    last = given.get("channels_last", 1)
    if last:
        x = n.add("Transpose", x, perm=(0, 3, 1, 2))
    y = n.add("GroupNormalization", x, gamma, beta, num_groups=given["groups"], epsilon=given.get("epsilon", 1e-5))
    if given["activation"] not in (0, 1):
        raise UnsupportedError(f"{node.op}: activation={given['activation']}")
    if given["activation"]:
        y = n.add("Swish", y)
    made = node.outputs[:1]
    return n.last("Transpose", y, outputs=made, perm=(0, 2, 3, 1)) if last else n.last("Identity", y, outputs=made)


# ---- the same by another name ------------------------------------------------------------------------------------------


def _as(op: str, **attributes: Any) -> Any:
    def rule(node: Node, version: int, make: GraphBuilder) -> list[Node]:
        return [Node(op, node.inputs, node.outputs, {**attributes, **node.attributes})]

    return rule


def _range(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """The step may be left out."""
    n = Nodes(node, make)
    start, limit, *step = node.inputs
    return n.last("Range", start, limit, step[0] if step else n.add("CastLike", n.constant(np.int64(1)), start))


def _causal_conv(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """ONNX's own, without the attributes that have but one value here."""
    return [Node(node.op, node.inputs, node.outputs, {"activation": node.attributes.get("activation", "none")})]


def _linear_attention(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """ONNX's operator, unless queries have fewer heads than values."""
    given = {name: value for name, value in node.attributes.items() if name not in ("chunk_size", "state_window")}
    return [Node(node.op, node.inputs, node.outputs, {**given, "inverse": 1})]


def _linear_gate(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """decay_scale softplus(a + dt_bias), in float32, and sigmoid(b)."""
    n = Nodes(node, make)
    a, bias, scale, b, *_ = (*node.inputs, None)
    decay = n.add("Mul", n.add("Softplus", n.add("Add", n.add("Cast", a, to=1), bias)), scale)
    n.last("CastLike", decay, a, outputs=node.outputs[:1])
    if len(node.outputs) > 1 and node.outputs[1]:
        if b is None:
            raise UnsupportedError(f"{node.op}: its second output without b")
        n.last("Sigmoid", b, outputs=node.outputs[1:2])
    return n.made


def _gated_norm(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """The norm of each run of as many features as the scale has, times a function of the gate."""
    n, get = Nodes(node, make), node.attributes.get
    x, scale, gate = node.inputs
    sizes = n.add("Concat", n.add("Shape", x, end=-1), n.constant([-1]), n.add("Shape", scale), axis=0)
    made = n.add("RMSNormalization", n.add("Reshape", x, sizes), scale, axis=-1, epsilon=get("epsilon", 1e-5))
    activated = n.add("Sigmoid" if get("activation", "silu") == "sigmoid" else "Swish", gate)
    return n.last("Mul", n.add("Reshape", made, n.add("Shape", x)), activated)


def _gated_add(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """x + y gate."""
    n = Nodes(node, make)
    x, y, gate, weight = (*node.inputs, None)[:4]
    refuse(node, gate_weight=weight)
    return n.last("Add", x, n.add("Mul", y, gate))


_NORM = "axis:i epsilon:f stash_type:i"
_CONV = "activation:s activation_params:fs auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is"
_GEMM = "activation:s activation_alpha:f activation_beta:f activation_gamma:f alpha:f beta:f transA:i transB:i"
_CAUSAL = (
    "activation:s channels_last:i dilation:i input_channel_offset:i input_channels:i ndim:i state_channels_last:i state_length:i "
    "state_update_capacity:i state_window:i"
)
_PRODUCT = "alpha:f transA:i transB:i"

PREVIEW: Table = {"FlexAttention": (schema(3, 3, 1, "prob_mod:g scale:f score_mod:g softmax_precision:i"), _flex_attention)}
# Written under ONNX's own domain, which has no such operators, or not yet: ONNX Runtime's optimizers add these to any opset.
PLAIN: Table = {
    "LayerNormalization": (schema(2, 3, 3, _NORM), _as("LayerNormalization")),
    "SimplifiedLayerNormalization": (schema(2, 2, 2, _NORM), _simplified),
}
MICROSOFT: Table = {
    **PLAIN,
    **ATTENTION,
    "BiasAdd": (schema(3, 3, 1), _bias_add),
    "BiasGelu": (schema(1, 2, 1), _gelu),
    "BiasSplitGelu": (schema(2, 2, 1), _bias_split_gelu),
    "CausalConvWithState": (schema(2, 4, 2, _CAUSAL), _causal_conv),
    "EmbedLayerNormalization": (schema(7, 9, 3, "epsilon:f mask_index_type:i"), _embed_norm),
    "ExpandDims": (schema(2, 2, 1), _as("Unsqueeze")),
    "FastGelu": (schema(1, 2, 1), _gelu),
    "FusedConv": (schema(2, 4, 1, _CONV), _fused_conv),
    "FusedGemm": (schema(2, 3, 1, _GEMM), _fused_gemm),
    "FusedMatMul": (schema(2, 2, 1, f"{_PRODUCT} transBatchA:i transBatchB:i"), _as("FusedMatMul")),
    "GatedAdd": (schema(3, 4, 1), _gated_add),
    "GatedRMSNorm": (schema(3, 3, 1, "activation:s epsilon:f"), _gated_norm),
    "Gelu": (schema(1, 1, 1), _gelu),
    "GridSample": (schema(2, 2, 1, "align_corners:i mode:s padding_mode:s"), _as("GridSample")),
    "GroupNorm": (schema(3, 3, 1, "activation:i! channels_last:i epsilon:f groups:i!"), _group_norm),
    "LinearAttention": (
        schema(3, 6, 2, "chunk_size:i kv_num_heads:i! q_num_heads:i! scale:f state_window:i update_rule:s"),
        _linear_attention,
    ),
    "LinearAttentionGate": (schema(3, 4, 2), _linear_gate),
    "Pad": (schema(2, 3, 1, "mode:s"), _as("Pad")),
    "QuickGelu": (schema(1, 1, 1, "alpha:f"), _quick_gelu),
    "Range": (schema(2, 3, 1), _range),
    "SkipGroupNorm": (schema(4, 5, 2, "activation:i! channels_last:i epsilon:f groups:i!"), _group_norm),
    "SkipLayerNormalization": (schema(3, 5, 4, "epsilon:f"), _skip_norm),
    "SkipSimplifiedLayerNormalization": (schema(3, 4, 4, "epsilon:f"), _skip_norm),
    "TransposeMatMul": (schema(2, 2, 1, _PRODUCT), _as("FusedMatMul")),
    "Trilu": (schema(1, 2, 1, "upper:i"), _as("Trilu")),
}
