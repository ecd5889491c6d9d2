"""ONNX Runtime's operators of attention as nodes of `operators`: masks become additive, packed inputs are split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import UnsupportedError
from ...ir.graph import Node
from .contrib_nodes import Nodes, Table, refuse, schema

if TYPE_CHECKING:
    from ...operators.graphs import GraphBuilder

__all__ = ["ATTENTION"]


def _settings(node: Node) -> dict[str, Any]:
    """Attributes of Attention; a scale of 0 is none."""
    given = node.attributes
    heads = given["num_heads"]
    found = {"q_num_heads": heads, "kv_num_heads": heads, "is_causal": given.get("unidirectional", 0)}
    if given.get("scale"):
        found["scale"] = given["scale"]
    return found


def _mask(n: Nodes, mask: str | None, q: str, k: str, past: str | None, bias: str | None) -> str | None:
    """A padding mask and a bias as one array to be added to the scores."""
    if mask is None:
        return bias
    numbers = n.add("PaddingMask", mask, q, k, past, filter=n.node.attributes.get("mask_filter_value", -10000.0))
    return numbers if bias is None else n.add("Add", numbers, bias)


def _apart(n: Nodes, packed: str, parts: int) -> list[str]:
    """(b, t, h, parts, d) as `parts` arrays (b, t, h d)."""
    shape = n.constant([0, 0, -1])
    return [n.add("Reshape", x, shape) for x in n.many("Split", parts, packed, axis=3, num_outputs=parts)]


def _multi_head(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    n = Nodes(node, make)
    q, k, v, bias, mask, added, past_k, past_v, past_length, indirection = (*node.inputs, *(None,) * 9)[:10]
    refuse(node, past_sequence_length=past_length, cache_indirection=indirection)
    if q is not None and k is None:
        q, k, v = _apart(n, q, 3)
    elif k is not None and v is None:
        k, v = _apart(n, k, 2)
    if q is None or k is None or v is None:
        raise UnsupportedError(f"{node.op}: query, key and value are not all there")
    if bias is not None:
        q, k, v = (n.add("HeadBias", x, bias, part=i) for i, x in enumerate((q, k, v)))
    shift = _mask(n, mask, q, k, past_k, added)
    return n.last("Attention", q, k, v, shift, past_k, past_v, qk_matmul_output_mode=2, **_settings(node))


def _attention(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """The projections of queries, keys and values are three products, so that nothing needs to be split."""
    n, given = Nodes(node, make), node.attributes
    x, weights, bias, mask, past, added, past_length = (*node.inputs, *(None,) * 6)[:7]
    refuse(
        node, past_sequence_length=past_length, past_present_share_buffer=given.get("past_present_share_buffer", 0),
        do_rotary=given.get("do_rotary", 0),
    )  # fmt: skip
    sizes = given.get("qkv_hidden_sizes")
    cut: dict[str, Any] = {"num_outputs": 3}
    more = []
    if sizes:
        cut, more = {}, [n.constant(list(sizes))]
    if weights is None:
        raise UnsupportedError(f"{node.op}: without weights")
    matrices = n.many("Split", 3, weights, *more, axis=1, **cut)
    parts = [n.add("MatMul", x, w) for w in matrices]
    if bias is not None:
        vectors = n.many("Split", 3, bias, *more, axis=0, **cut)
        parts = [n.add("Add", part, vector) for part, vector in zip(parts, vectors, strict=True)]
    q, k, v = parts
    return attended(n, q, k, v, mask, past, added)


def _quantized(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """QAttention: one product of bytes gives queries, keys and values."""
    n, given = Nodes(node, make), node.attributes
    x, weights, bias, x_scale, w_scale, mask, x_zero, w_zero, past = (*node.inputs, *(None,) * 9)[:9]
    refuse(
        node, past_present_share_buffer=given.get("past_present_share_buffer", 0), do_rotary=given.get("do_rotary", 0)
    )  # fmt: skip
    made = n.add("MatMulIntegerToFloat", x, weights, x_scale, w_scale, x_zero, w_zero, bias)
    q, k, v = n.many("Split", 3, made, axis=2, num_outputs=3)
    return attended(n, q, k, v, mask, past, None)


def attended(n: Nodes, q: str, k: str, v: str, mask: str | None, past: str | None, added: str | None) -> list[Node]:
    """Attention and what is retained for the next step, from queries, keys and values."""
    node, make = n.node, n.make
    before: list[str] = []
    if past is not None:
        axis = n.constant([0])
        before = [n.add("Squeeze", p, axis) for p in n.many("Split", 2, past, axis=0, num_outputs=2)]
    shift = _mask(n, mask, q, k, before[0] if before else None, added)
    if len(node.outputs) < 2 or not node.outputs[1]:
        return n.last("Attention", q, k, v, shift, *before, outputs=node.outputs[:1], **_settings(node))
    present = [make.name(f"{node.outputs[1]}/{part}") for part in ("key", "value")]
    n.last("Attention", q, k, v, shift, *before, outputs=(node.outputs[0] or make.name("y"), *present), **_settings(node))
    axis = n.constant([0])
    return n.last("Concat", *(n.add("Unsqueeze", p, axis) for p in present), outputs=node.outputs[1:2], axis=0)


def _grouped(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    given = node.attributes
    inputs, window = (*node.inputs, *(None,) * 17)[:17], given.get("sliding_window_cache", 0)
    kinds = [given.get(name, "NONE") for name in ("k_quant_type", "v_quant_type")]
    few, wrong = kinds != ["NONE", "NONE"], [kind for kind in kinds if kind not in ("PER_TENSOR", "PER_CHANNEL")]
    refuse(
        node, query_seqlens=inputs[16],
        **{"norms of queries and keys": inputs[14] or inputs[15], "a window of quantized keys": window and few},
        **{f"k_quant_type, v_quant_type of {', '.join(kinds)}": few and wrong},
        **{"scales or bits of keys that are not quantized": not few and (inputs[12] or given.get("kv_cache_bit_width", 0))},
    )  # fmt: skip
    kept = ("causal", "do_rotary", "kv_num_heads", "local_window_size", "num_heads", "qk_output", "rotary_interleaved", "scale",
            "smooth_softmax", "softcap")  # fmt: skip
    op = "GroupQueryQuantized" if few else "GroupQueryWindow" if window else node.op
    words = {"bits": given.get("kv_cache_bit_width", 0)} if few else {}
    return [Node(op, node.inputs, node.outputs, {**{name: given[name] for name in kept if name in given}, **words})]


def _rotary(node: Node, version: int, make: GraphBuilder) -> list[Node]:
    """Positions may be one number to count from; heads are as wide as the tables say."""
    x, ids, cos, sin = node.inputs
    given, n = node.attributes, Nodes(node, make)
    refuse(node, is_packed_batching=given.get("is_packed_batching", 0), scale=given.get("scale", 1.0) != 1.0)
    attributes = {name: given[name] for name in ("interleaved", "num_heads", "rotary_embedding_dim") if given.get(name)}
    return n.last("RotaryEmbedding", x, cos, sin, n.add("Positions", ids, x), by_width=1, **attributes)


_HEADS = "mask_filter_value:f num_heads:i! scale:f unidirectional:i"
_GROUPED = (
    "causal:i do_rotary:i k_norm_epsilon:f k_quant_type:s kv_cache_bit_width:i kv_num_heads:i! local_window_size:i num_heads:i! "
    "q_norm_epsilon:f qk_norm_epsilon:f qk_output:i rotary_interleaved:i scale:f sliding_window_cache:i smooth_softmax:i "
    "softcap:f v_quant_type:s"
)
ATTENTION: Table = {
    "Attention": (
        schema(2, 7, 2, f"{_HEADS} do_rotary:i past_present_share_buffer:i qkv_hidden_sizes:is rotary_embedding_dim:i"),
        _attention,
    ),
    "QAttention": (schema(5, 9, 2, f"{_HEADS} do_rotary:i past_present_share_buffer:i"), _quantized),
    "GroupQueryAttention": (schema(7, 17, 4, _GROUPED), _grouped),
    "MultiHeadAttention": (schema(1, 10, 4, _HEADS), _multi_head),
    "RotaryEmbedding": (
        schema(4, 4, 1, "interleaved:i is_packed_batching:i num_heads:i rotary_embedding_dim:i scale:f"),
        _rotary,
    ),
}
