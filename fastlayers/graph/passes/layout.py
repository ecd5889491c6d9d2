"""Chooses for every value between layers of an image or a sequence whether its channels come first or last in memory.

before                                   after
h = Conv(x, W); y = Conv(h, V)           h = Conv(x, W, out_last=True); y = Conv(h, V, x_last=True)

Products read channels-last pixels where they lie: a 1x1 convolution then takes 0.75 to 0.95 of the time (512->128@28: 0.85), a
3x3 one 0.95.
Convolutions turn what they read or write for nothing but the time of a transposition in a cache, so each of their sides is
free; pools,
elementwise operations, depthwise convolutions and residuals tie the values that they touch to one another. Tied values have
their channels
last if every operation that makes or reads one of them can have it so. Inputs and outputs of the graph stay as they are, and so
does what is
concatenated, since parts of a channels-first result lie one after the other and are written in place.
"""

from __future__ import annotations

from ..ir import Node
from ._net import Net, merged

__all__ = ["apply"]

_UNARY = frozenset(
    {"Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "HardSwish", "Softplus", "Softsign", "Mish", "Gelu",
     "Swish", "Erf",
     "Exp", "Log", "Sqrt", "Abs", "Neg", "Activate", "Clip"}
)  # fmt: skip
_BINARY = frozenset({"Add", "Sub", "Mul", "Div", "Max", "Min"})
_BYTES = frozenset(
    {"QLinearConv", "QLinearAdd", "QLinearMul", "ByteTable", "QuantizeLinear", "DequantizeLinear", "MaxPool", "QLinearSigmoid",
     "QLinearLeakyRelu", "QLinearAveragePool", "QLinearGlobalAveragePool"}
)  # fmt: skip
_GLOBAL = frozenset({"GlobalAveragePool", "GlobalMaxPool"})
# A depthwise kernel with more taps than this is faster with channels first.
LARGEST_DEPTHWISE = 9


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each("AveragePool"):
        _whole_map(net, at, node)
    plan = _Plan(net)
    last = plan.last()
    for at, node in list(net.each()):
        if any(name in last for name in (*node.inputs, *node.outputs)):
            net.replace(at, _changed(node, last))
    for name in last:
        spec = net.specs[name]
        if spec.shape is not None:
            net.specs[name] = spec._replace(shape=(spec.shape[0], *spec.shape[2:], spec.shape[1]))


def _whole_map(net: Net, at: int, node: Node) -> None:
    """An average over all of a map that is known to be as large as the kernel."""
    spec, get = net.spec(node.inputs[0]), node.attributes.get
    if spec is None or spec.shape is None or tuple(spec.shape[2:]) != tuple(get("kernel_shape") or ()):
        return
    if (
        get("x_last", False)
        or any(get("pads") or ())
        or get("auto_pad", "NOTSET") not in ("NOTSET", "VALID", "")
        or any(d != 1 for d in get("dilations") or ())
    ):
        return
    net.replace(at, Node("GlobalAveragePool", node.inputs, node.outputs, {}))


class _Plan:
    """Which values are tied to which, and which must stay as they are."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self._parent: dict[str, str] = {}
        self._first: set[str] = set()  # values that must have their channels first
        self._gains: set[str] = set()  # values that a convolution makes or reads
        for _, node in net.each():
            self._visit(node)
        for name in self._parent:
            if name in net.kept or name not in net.made:
                self._first.add(name)

    def last(self) -> set[str]:
        """The values that get their channels last."""
        bad = {self._root(name) for name in self._first if name in self._parent}
        good = {self._root(name) for name in self._gains} - bad
        return {name for name in self._parent if self._root(name) in good}

    def _root(self, name: str) -> str:
        while self._parent.setdefault(name, name) != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name

    def _tie(self, *names: str | None) -> None:
        given = [name for name in names if name]
        for name in given:
            self._parent[self._root(name)] = self._root(given[0])

    def _visit(self, node: Node) -> None:
        net, out = self.net, node.outputs[0]
        x = node.inputs[0] if node.inputs else None
        rank = net.rank(x)
        if rank is None or rank < 3 or sum(bool(n) for n in node.outputs) != 1 or _settled(node):
            self._outside(node)
        elif node.op in _BYTES and self._of_bytes(node, rank):
            pass
        elif not net.is_float32(x):
            self._outside(node)
        elif node.op == "Conv" and net.constant(node.inputs[1]) is not None and "x_last" not in node.attributes:
            self._convolution(node, rank)
        elif (
            node.op in _UNARY
            or node.op in ("MaxPool", "AveragePool", "LRN")
            or (node.op == "Affine" and node.attributes.get("axis") == 1)
        ):
            if all(net.constant(name) is not None for name in node.inputs[1:] if name):
                self._tie(x, out)
            else:
                self._outside(node)
        elif node.op in _BINARY and all(self._fits(name, rank) for name in node.inputs):
            self._tie(out, *(name for name in node.inputs if net.constant(name) is None))
        elif node.op in _GLOBAL:
            self._tie(x)
            self._outside(Node("", (), node.outputs, {}))
        else:
            self._outside(node)

    def _of_bytes(self, node: Node, rank: int) -> bool:
        """Ties the values of an operator on quantised numbers; False, and nothing done, if it must stay as it is."""
        net, x, out = self.net, node.inputs[0], node.outputs[0]
        spec = net.spec(x)
        if node.op == "QLinearConv":
            weight = net.constant(node.inputs[3])
            if weight is None:
                return False
            self._tie(x)
            self._tie(out)
            self._gains.update(name for name in (x, out) if name)
            if weight.shape[1] == 1 and node.attributes.get("group", 1) > 1:
                self._tie(x, out)
            return True
        if node.op in ("QLinearAdd", "QLinearMul"):
            if any(net.constant(name) is not None or net.rank(name) != rank for name in (x, node.inputs[3])):
                return False
            self._tie(out, x, node.inputs[3])
            return True
        if node.op == "QLinearGlobalAveragePool":
            self._tie(x)
            self._first.add(out)
            return True
        scale = net.constant(node.inputs[1]) if node.op in ("QuantizeLinear", "DequantizeLinear") else None
        if node.op in ("QuantizeLinear", "DequantizeLinear") and (scale is None or scale.size != 1):
            return False
        if node.op == "MaxPool" and (spec is None or spec.dtype.name not in ("int8", "uint8")):
            return False
        self._tie(x, out)
        return True

    def _fits(self, name: str | None, rank: int) -> bool:
        constant = self.net.constant(name)
        return constant.size == 1 if constant is not None else self.net.rank(name) == rank

    def _convolution(self, node: Node, rank: int) -> None:
        weight = self.net.constant(node.inputs[1])
        assert weight is not None
        x, out, residual = node.inputs[0], node.outputs[0], node.inputs[3] if len(node.inputs) > 3 else None
        self._tie(x)
        self._tie(out, residual)
        if residual is not None and self.net.rank(residual) != rank:
            self._first.add(out)
        if weight.shape[1] == 1 and node.attributes.get("group", 1) > 1:
            self._tie(x, out)
            if int(weight[0].size) > LARGEST_DEPTHWISE:
                self._first.add(out)
        else:
            self._gains.update(name for name in (x, out) if name)

    def _outside(self, node: Node) -> None:
        self._first.update(name for name in (*node.inputs, *node.outputs) if name)


def _settled(node: Node) -> bool:
    """Whether the node was written with its channels last."""
    return bool(node.attributes.get("x_last", False))


def _changed(node: Node, last: set[str]) -> Node:
    """The node with the layouts of what it touches."""
    x, out = node.inputs[0] in last, node.outputs[0] in last
    if node.op == "Conv":
        return Node(node.op, node.inputs, node.outputs, merged(node, x_last=x, out_last=out))
    if node.op == "QLinearConv":
        return Node(node.op, node.inputs, node.outputs, merged(node, x_last=x, out_last=out))
    if node.op == "Affine":
        return Node(node.op, node.inputs, node.outputs, merged(node, axis=-1))
    if node.op in ("MaxPool", "AveragePool", "LRN", "QLinearAveragePool", "QLinearGlobalAveragePool", *_GLOBAL):
        return Node(node.op, node.inputs, node.outputs, merged(node, x_last=x))
    return node
