"""An elementwise function of one argument goes into the operation before it, which applies it while the numbers are in registers.

before                        after
Relu(Conv(x, W, b))           Conv(x, W, b, activation=relu)
"""

from __future__ import annotations

import numpy as np

from ...kernels.table import UNARY, Activation
from ..ir import Node
from ._net import Net, merged

__all__ = ["apply", "as_activation"]

# Operations that take an activation, with the number of outputs that they then may have.
TAKERS = frozenset({"Conv", "ConvTranspose", "Linear", "Affine", "Add", "Sub", "Mul", "Div"})
_PLAIN = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "HardSwish": "hardswish", "Softsign": "softsign", "Mish": "mish",
    "Erf": "erf",
    "Exp": "exp", "Log": "log", "Sqrt": "sqrt",
}  # fmt: skip


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each(*_PLAIN, "LeakyRelu", "Elu", "Selu", "HardSigmoid", "Gelu", "Clip", "Softplus", "Swish"):
        activation = as_activation(net, node)
        before = net.producer(node.inputs[0])
        if activation is None or before is None or before.op not in TAKERS or "activation" in before.attributes:
            continue
        if net.single(node.inputs[0]) is not node or sum(bool(n) for n in before.outputs) != 1 or not _taken(net, before):
            continue
        made = Node(before.op, before.inputs, node.outputs, merged(before, activation=tuple(activation)))
        net.replace(at, made, before)


def _taken(net: Net, node: Node) -> bool:
    """Whether the operation runs in a kernel: in float32, and with fixed weights where it has weights."""
    elementwise = node.op in ("Add", "Sub", "Mul", "Div")
    # Weights are what the operator wants: those of Affine are kept in float64.
    values = node.inputs if elementwise else (*node.inputs[:1], *node.inputs[3:])
    if not all(net.is_float32(name) for name in values if name is not None):
        return False
    return elementwise or all(net.constant(name) is not None for name in node.inputs[1:3] if name is not None)


def as_activation(net: Net, node: Node) -> Activation | None:
    """What kernels take for a node, or None."""
    get = node.attributes.get
    if node.op in _PLAIN:
        return _named(_PLAIN[node.op])
    if node.op == "LeakyRelu":
        return _named("leaky_relu", get("alpha", 0.01))
    if node.op == "Elu":
        return _named("elu", get("alpha", 1.0))
    if node.op == "Selu":
        return _named("selu", get("alpha", 1.67326319217681884765625), get("gamma", 1.05070102214813232421875))
    if node.op == "HardSigmoid":
        return _named("hardsigmoid", get("alpha", 0.2), get("beta", 0.5))
    if node.op == "Softplus":
        return _named("softplus")
    if node.op == "Swish":
        return _named("silu") if get("alpha", 1.0) == 1 else None
    if node.op == "Gelu":
        return _named("gelu_tanh" if get("approximate", "none") == "tanh" else "gelu")
    if node.op == "Clip":
        limits = [-np.inf, np.inf]
        for i, name in enumerate(node.inputs[1:3]):
            if name is not None:
                found = net.scalar(name)
                if found is None:
                    return None
                limits[i] = found
        return _named("clip", *limits)
    return None


def _named(name: str, *parameters: float) -> Activation:
    unary = UNARY[name]
    return Activation(unary.code, *(parameters or unary.defaults))
