"""Products with fixed weights become `Linear`, which knows how to fuse; a constant that is added becomes its bias.

before                                    after
Gemm(x, W, c)                             Linear(x, W', b)
Add(MatMul(x, W), b)                      Linear(x, Wᵀ, b)
Add(MatMulNBits(x, W, s, z), b)           MatMulNBits(x, W, s, z, -, b)
"""

from __future__ import annotations

import numpy as np

from ..ir.graph import Node
from ._net import Net, of_columns

__all__ = ["apply"]


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each("Gemm"):
        _gemm(net, at, node)
    for at, node in net.each("MatMul"):
        weight = net.value(node.inputs[1])
        rank = net.rank(node.inputs[0])
        if weight is not None and weight.ndim == 2 and weight.dtype == np.float32 and net.is_float32(node.inputs[0]) and rank:
            name = net.constant(weight.T, str(node.inputs[1]))  # a view: it is copied when it is packed
            net.replace(at, Node("Linear", (node.inputs[0], name), node.outputs, {}))
    for at, node in net.each("Add"):
        _bias(net, at, node)


def _gemm(net: Net, at: int, node: Node) -> None:
    get = node.attributes.get
    weight = net.value(node.inputs[1])
    if weight is None or weight.ndim != 2 or weight.dtype != np.float32 or get("transA", 0) or not net.is_float32(node.inputs[0]):
        return
    columns = weight.shape[0] if get("transB", 0) else weight.shape[1]
    alpha, beta = get("alpha", 1.0), get("beta", 1.0)
    inputs: list[str | None] = [node.inputs[0], node.inputs[1]]
    if alpha != 1 or not get("transB", 0):
        ordered = weight if get("transB", 0) else weight.T
        scaled = ordered if alpha == 1 else np.ascontiguousarray(ordered * np.float32(alpha), np.float32)
        inputs[1] = net.constant(scaled, str(node.inputs[1]))
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        bias = net.value(node.inputs[2])
        if bias is None or bias.dtype != np.float32 or not of_columns(bias, columns):
            return
        if beta == 1 and bias.shape == (columns,):
            inputs.append(node.inputs[2])
        else:
            wide = np.broadcast_to(bias.reshape(-1) * np.float32(beta), (columns,))
            inputs.append(net.constant(np.ascontiguousarray(wide, np.float32), str(node.inputs[2])))
    net.replace(at, Node("Linear", tuple(inputs), node.outputs, {}))


def _bias(net: Net, at: int, node: Node) -> None:
    for i in (0, 1):
        product, constant = net.producer(node.inputs[i]), net.value(node.inputs[1 - i])
        place = None if product is None else _PLACES.get(product.op)
        if (
            product is None
            or place is None
            or constant is None
            or "activation" in product.attributes
            or any(product.inputs[place:])
        ):
            continue
        columns, rank = _columns(net, product), net.rank(product.inputs[0]) or 0
        fits = constant.shape[-1:] == (columns,) and constant.size == columns and constant.ndim <= rank
        if fits and constant.dtype == np.float32 and net.single(product.outputs[0]) is node:
            bias = net.constant(constant.reshape(-1), str(node.inputs[1 - i]))
            inputs = (*product.inputs, *(None,) * (place - len(product.inputs)), bias)
            net.replace(at, Node(product.op, inputs, node.outputs, product.attributes), product)
            return


_PLACES = {"Linear": 2, "MatMulNBits": 5}  # of the bias among the inputs


def _columns(net: Net, product: Node) -> int | None:
    """Results that a row has, if the weights are constant and float32 goes in."""
    if product.op == "MatMulNBits":
        return product.attributes.get("N") if net.is_float32(product.inputs[0]) else None
    weight = net.value(product.inputs[1])
    return None if weight is None else weight.shape[0]
