"""Operators of our own, and what other passes fuse, spelled in those of ONNX: for what reads these alone.

before                                    after
Linear(x, W, b)                           Gemm(x, W, b, transB=1), or Add(MatMul(x, Wᵀ), b)
Affine(x, s, t)                           Add(Mul(x, s'), t')
Conv(x, W, b, r, activation=relu)         Relu(Add(Conv(x, W, b), r))
Conv(x, q, b, -, scale, zero)             Conv(x, DequantizeLinear(q, scale, zero), b)
MaxPool(x, x_last=True)                   Transpose(MaxPool(Transpose(x)))
ByteTable(x, table)                       Gather(table, Cast(x))
Elementwise(x, y)                         the nodes of its body
ScaledAttention(q, k, v, mask, scale=s)   MatMul(Softmax(Add(Mul(MatMul(q, Transpose(k)), s), mask)), v)
AdaptivePool(x, sizes=(1, 1))             GlobalAveragePool(x)
Swish(x), Activate(x)                     Mul(x, Sigmoid(x)), Relu(x), ...
Softmax(x, axis, flatten=True)            Reshape(Softmax(Flatten(x)), Shape(x))
DotAttention(q, k, v, mask)               Attention(q, k, v, mask)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from ..ir.graph import Graph, Node, captured
from ..kernels.table import UNARY
from ..operators import Spec
from ..operators.graphs import GraphBuilder, trimmed

__all__ = ["spelled"]

_ADDS = ("Conv", "Linear")  # their fourth input is added to the result
# The operator of a function of `UNARY`, and the attributes that are its parameters; what is missing has a rule, or none.
_FUNCTIONS = {
    "relu": "Relu", "leaky_relu": "LeakyRelu alpha", "elu": "Elu alpha", "selu": "Selu alpha gamma", "sigmoid": "Sigmoid",
    "tanh": "Tanh", "gelu": "Gelu", "hardsigmoid": "HardSigmoid alpha beta", "hardswish": "HardSwish", "softsign": "Softsign",
    "mish": "Mish", "exp": "Exp", "log": "Log", "erf": "Erf", "sqrt": "Sqrt", "negative": "Neg", "abs": "Abs",
    "reciprocal": "Reciprocal", "floor": "Floor", "ceil": "Ceil", "round": "Round", "sign": "Sign", "sin": "Sin", "cos": "Cos",
    "celu": "Celu alpha", "shrink": "Shrink lambd bias",
}  # fmt: skip
_BY_NUMBER = {unary.code: name for name, unary in UNARY.items()}


def spelled(graph: Graph, left: Collection[str] = ()) -> Graph:
    """The graph in ONNX's operators, as far as it can be; what cannot stays, and so do the operators `left`."""
    e = GraphBuilder()
    e.names.take((*graph.constants, *(v.name for v in graph.inputs)))
    e.names.take(name for node in graph.nodes for name in node.outputs)
    e.constants.update(graph.constants)
    e.specs.update((v.name, Spec(v.shape, v.dtype)) for v in graph.inputs if v.kind == "tensor")
    for node in graph.nodes:
        if node.op in left:
            e.append(node)
        else:
            _node(e, node)
    read = {name for node in e.nodes for name in (*node.inputs, *captured(node))} | {v.name for v in graph.outputs}
    constants = {name: array for name, array in e.constants.items() if name in read}
    return Graph(graph.inputs, graph.outputs, tuple(e.nodes), constants, graph.values)


_Rule = Callable[[GraphBuilder, Node], bool]
_RULES: dict[str, _Rule] = {"Activate": lambda e, node: False}


def _of(op: str) -> Callable[[_Rule], _Rule]:
    """A decorator: how nodes of this operator are written, if they can be."""

    def keep(rule: _Rule) -> _Rule:
        _RULES[op] = rule
        return rule

    return keep


def _floats(e: GraphBuilder, node: Node) -> Node:
    """A convolution whose weights are stored in bytes, with weights in float32."""
    attributes = dict(node.attributes)
    words = {"axis": attributes.pop("axis", 1), "block_size": attributes.pop("block_size", 0)}
    x, q, bias, residual, *scales = node.inputs
    weight = _write(e, "DequantizeLinear", (q, *scales), e.name(f"{q}/floats"), **words)
    return Node(node.op, trimmed((x, weight, bias, residual)), node.outputs, attributes)


def _turned(e: GraphBuilder, node: Node) -> bool:
    """A node whose input or result has its channels last, with them first between transpositions; False if it has none."""
    attributes, inputs, rank = dict(node.attributes), list(node.inputs), e.rank(node.inputs[0]) if node.inputs else None
    x_last = attributes.pop("x_last", False)
    # Of what gives an element for each map, the result has channels first.
    out_last = attributes.pop("out_last", x_last and not any(word in node.op for word in ("Conv", "Global", "Reduce")))
    if not (x_last or out_last) or not rank or any(node.outputs[1:]):
        return False
    for at, last in ((0, x_last), (3, out_last and node.op in _ADDS)):
        if last and any(inputs[at : at + 1]):
            name = e.name(f"{inputs[at]}/first")
            inputs[at] = _write(e, "Transpose", inputs[at : at + 1], name, perm=(0, rank - 1, *range(1, rank - 1)))
    out = e.name(f"{node.outputs[0]}/first") if out_last else node.outputs[0]
    _node(e, Node(node.op, tuple(inputs), (out,), attributes))
    if out_last:
        _write(e, "Transpose", (out,), node.outputs[0], perm=(0, *range(2, rank), 1))
    return True


def _node(e: GraphBuilder, node: Node) -> None:
    if _turned(e, node):
        return
    if node.op == "Conv" and any(node.inputs[4:]):
        node = _floats(e, node)
    attributes = dict(node.attributes)
    activation = attributes.pop("activation", None) if len(node.outputs) == 1 else None
    added = node.inputs[3] if node.op in _ADDS and len(node.inputs) > 3 else None
    rule = _RULES.get(node.op)
    if activation is None and added is None and rule is None:
        e.append(node)
        return
    if node.op == "Activate" or activation is None or _function(activation) is not None:
        last = node.outputs[0]
        first = last if added is None and (activation is None or node.op == "Activate") else e.name(f"{last}/alone")
        plain = Node(node.op, node.inputs[:3] if added is not None else node.inputs, (first, *node.outputs[1:]), attributes)
        if node.op == "Activate":
            name = node.inputs[0]
        else:
            if rule is None or not rule(e, plain):
                e.append(plain)
            name = first
        if added is not None:
            name = _write(e, "Add", (name, added), last if activation is None else e.name(f"{last}/sum"))
        if activation is not None:
            found = _function(activation)
            if found is None:
                e.append(node)
            else:
                found(e, str(name), last)
        return
    e.append(node)


def _write(e: GraphBuilder, op: str, inputs: Sequence[str | None], out: str, **attributes: Any) -> str:
    e.append(Node(op, tuple(inputs), (out,), attributes))
    return out


def _number(e: GraphBuilder, value: float) -> str:
    return e.constant(np.float32(value), "~number")


# ---- functions ----------------------------------------------------------------------------------------------------------


def _function(activation: Sequence[Any]) -> Callable[[GraphBuilder, str, str], object] | None:
    """Writes a function of kernels: number and parameters."""
    code, *values = activation
    name = _BY_NUMBER.get(int(code), "")
    if name in _FUNCTIONS:
        op, *words = _FUNCTIONS[name].split()
        given = dict(zip(words, map(float, values), strict=False))
        return lambda e, x, out: _write(e, op, (x,), out, **given)
    if name == "clip":
        return lambda e, x, out: _write(e, "Clip", (x, *(_number(e, v) for v in values[:2])), out)
    if name == "gelu_tanh":
        return lambda e, x, out: _write(e, "Gelu", (x,), out, approximate="tanh")
    if name == "silu":
        return _swish
    if name == "square":
        return lambda e, x, out: _write(e, "Mul", (x, x), out)
    if name == "identity":
        return lambda e, x, out: _write(e, "Identity", (x,), out)
    return None


def _swish(e: GraphBuilder, x: str, out: str) -> None:
    _write(e, "Mul", (x, _write(e, "Sigmoid", (x,), e.name(f"{out}/gate"))), out)


# ---- rules: whether the node was written otherwise ----------------------------------------------------------------------


@_of("Linear")
def _linear(e: GraphBuilder, node: Node) -> bool:
    x, name, bias = (*node.inputs, None)[:3]
    weight, rank = e.value(name), e.rank(x)
    if weight is None or not rank or any(key != "activation" for key in node.attributes):
        return False
    if rank == 2:
        _write(e, "Gemm", (x, name) if bias is None else (x, name, bias), node.outputs[0], transB=1)
        return True
    product = node.outputs[0] if bias is None else e.name(f"{node.outputs[0]}/product")
    _write(e, "MatMul", (x, e.constant(weight.T, f"{name}/turned")), product)
    if bias is not None:
        _write(e, "Add", (product, bias), node.outputs[0])
    return True


@_of("Affine")
def _affine(e: GraphBuilder, node: Node) -> bool:
    x, *names = node.inputs
    rank, values = e.rank(x), [e.value(name) for name in names]
    if not rank or any(v is None for v in values):
        return False
    axis = int(node.attributes.get("axis", 1)) % rank
    wide = [
        e.constant(v.reshape(-1, *(1,) * (rank - 1 - axis)), str(name))
        for v, name in zip(values, names, strict=True)
        if v is not None
    ]
    scaled = _write(e, "Mul", (x, wide[0]), e.name(f"{node.outputs[0]}/scaled"))
    _write(e, "Add", (scaled, wide[1]), node.outputs[0])
    return True


@_of("AdaptivePool")
def _adaptive(e: GraphBuilder, node: Node) -> bool:
    op = {"mean": "GlobalAveragePool", "max": "GlobalMaxPool"}.get(str(node.attributes.get("reduce")))
    whole = all(size == 1 for size in node.attributes.get("sizes", (0,))) and not node.attributes.get("x_last", False)
    if op is None or not whole or len(node.outputs) != 1 or e.rank(node.inputs[0]) != 2 + len(node.attributes["sizes"]):
        return False
    _write(e, op, node.inputs[:1], node.outputs[0])
    return True


@_of("Hardmax")
@_of("LogSoftmax")
@_of("Softmax")
def _softmax(e: GraphBuilder, node: Node) -> bool:
    if not node.attributes.get("flatten", 0):
        return False
    x, out = node.inputs[0], node.outputs[0]
    flat = _write(e, "Flatten", (x,), e.name(f"{out}/flat"), axis=int(node.attributes.get("axis", 1)))
    made = _write(e, node.op, (flat,), e.name(f"{out}/rows"), axis=1)
    _write(e, "Reshape", (made, _write(e, "Shape", (x,), e.name(f"{out}/shape"))), out)
    return True


@_of("DotAttention")
def _attention(e: GraphBuilder, node: Node) -> bool:
    get = node.attributes.get
    if any(get(key) for key in ("dropout_p", "offset", "need_weights", "need_scores")) or any(node.inputs[4:]):
        return False
    heads = int(get("num_heads") or 0)
    if len(node.outputs) != 1 or not all(e.rank(name) == (3 if heads else 4) for name in node.inputs[:3]):
        return False
    words: dict[str, Any] = {"is_causal": int(bool(get("is_causal")))}
    scale = get("scale")
    if scale is not None:
        words["scale"] = float(scale)
    if heads:
        words |= {"q_num_heads": heads, "kv_num_heads": int(get("num_kv_heads") or heads)}
    _write(e, "Attention", trimmed(node.inputs[:4]), node.outputs[0], **words)
    return True


@_of("ScaledAttention")
def _scaled(e: GraphBuilder, node: Node) -> bool:
    get, out = node.attributes.get, node.outputs[0]
    q, k, v, mask = (*node.inputs, None)[:4]
    rank = e.rank(k)
    if any(node.inputs[4:]) or not rank or e.rank(q) != rank or not set(node.attributes) <= {"scale", "transposed", "empty"}:
        return False
    if not get("transposed"):
        k = _write(e, "Transpose", (k,), e.name(f"{k}/turned"), perm=(*range(rank - 2), rank - 1, rank - 2))
    scores = _write(e, "MatMul", (q, k), e.name(f"{out}/scores"))
    scores = _write(e, "Mul", (scores, _number(e, get("scale", 1.0))), e.name(f"{out}/scaled"))
    if mask is not None:
        scores = _write(e, "Add", (scores, mask), e.name(f"{out}/masked"))
    weights = _write(e, "Softmax", (scores,), e.name(f"{out}/weights"), axis=-1)
    if get("empty", 1) == 2:  # a row without a key
        wrong = _write(e, "IsNaN", (weights,), e.name(f"{out}/nan"))
        weights = _write(e, "Where", (wrong, _number(e, 0.0), weights), e.name(f"{out}/chosen"))
    _write(e, "MatMul", (weights, v), out)
    return True


@_of("ByteTable")
def _table(e: GraphBuilder, node: Node) -> bool:
    table = e.value(node.inputs[1])
    if table is None:
        return False
    places = _write(e, "Cast", node.inputs[:1], e.name(f"{node.inputs[0]}/places"), to=6)  # below 0 they count from the end
    _write(e, "Gather", (e.constant(table.reshape(-1), str(node.inputs[1])), places), node.outputs[0])
    return True


@_of("Elementwise")
def _merged(e: GraphBuilder, node: Node) -> bool:
    body = node.attributes["body"]
    names: dict[str | None, str | None] = dict(zip((v.name for v in body.inputs), node.inputs, strict=True))
    names.update((name, e.constant(array, name)) for name, array in body.constants.items())
    for inner in body.nodes:
        (out,) = inner.outputs
        names[out] = node.outputs[0] if out == body.outputs[0].name else e.name(out)
        _node(e, Node(inner.op, tuple(map(names.get, inner.inputs)), (str(names[out]),), inner.attributes))
    return True


@_of("Swish")
def _silu(e: GraphBuilder, node: Node) -> bool:
    if node.attributes.get("alpha", 1.0) != 1:
        return False
    _swish(e, str(node.inputs[0]), node.outputs[0])
    return True
