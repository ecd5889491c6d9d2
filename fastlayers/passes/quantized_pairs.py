"""Pairs of QuantizeLinear and DequantizeLinear around float operators, as exporters of quantized networks write them.

before                        after (Q: QuantizeLinear, D: DequantizeLinear)
Relu(Conv(x, W, b))           D(Q(Relu(Conv(D(Q(x)), D(W8), D(b32)))))
MatMul(x, W), Gemm(x, W, b)   MatMul(D(Q(x)), D(W8)), Gemm(D(Q(x)), D(W8), D(b32))
Add(a, b), pools, f(x), ...   D(Q(Add(D(Q(a)), D(Q(b))))), between such convolutions

The pass `quantized` makes operators of bytes of these. Activations are uint8 with a zero point, weights int8 with a scale for
each output channel and none, biases int32 in steps of both. A value that is only moved keeps its scale, and has its pair once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from .._tuples import NamedTuple
from ..ir.graph import Graph, Node, Value, captured, free
from ..ir.names import Names
from ..operators import traits_of
from . import activation_gated, fold, normalization_affine
from ._net import Net, of_columns
from .spelled import spelled

__all__ = ["Layer", "Steps", "layers_of", "paired", "prepared", "pruned", "switched"]

_FUSED = ("activation", "residual", "x_last", "out_last", "half", "pad_mode")
_FORMS = {"convolution": "conv", "product": "product"}
_STEPS = 255  # between the least and the largest value
_LARGEST = 127  # magnitude of a quantized weight
_BIAS = 1 << 30  # steps of a bias at most


class Layer(NamedTuple):
    """Nodes of a graph that can work on bytes.

    Attributes:
        kind: "conv", "product", "between" (an operator of bytes) or "move".
        nodes: their positions: one, or a convolution and the function that limits it.
        inputs: the values that become bytes.
        end: the value that they give; of a product it stays float.
    """

    kind: str
    nodes: tuple[int, ...]
    inputs: tuple[str, ...]
    end: str


class Steps(NamedTuple):
    """Scale and zero point of a value, which is (byte - zero) * scale."""

    scale: np.float32
    zero: np.uint8

    @classmethod
    def between(cls, low: float, high: float) -> Steps:
        """The finest steps from `low` to `high`, of which one is zero."""
        low, high = min(float(low), 0.0), max(float(high), 0.0)
        scale = np.float32(max((high - low) / _STEPS, float(np.finfo(np.float32).tiny) * _STEPS))
        return cls(scale, np.uint8(np.clip(np.rint(-low / float(scale)), 0, _STEPS)))


def prepared(graph: Graph, known: Mapping[str, tuple[int, ...]] | None = None) -> Net:
    """The graph with what can be quantized in its simplest form: constants folded, normalizations in the weights, activations in
    one node. With `known` sizes of the inputs it is one for these alone.
    """
    inputs = tuple(v._replace(shape=(known or {}).get(v.name, v.shape)) for v in graph.inputs)
    left = ("DotAttention",)  # has faster kernels as it is
    net = Net(spelled(Graph(inputs, graph.outputs, graph.nodes, graph.constants, graph.values), left), {}, {})
    with np.errstate(all="ignore"):
        fold.apply(net)
        normalization_affine.apply(net)
        activation_gated.apply(net)
    return net


def layers_of(net: Net) -> tuple[Graph, list[Layer]]:
    """The graph, and its layers in their order. Products and convolutions with fixed weights, and what stands between these."""
    graph = net.graph()
    at = {id(node): i for i, node in enumerate(graph.nodes)}
    found: dict[str, Layer] = {}  # by their ends
    taken: set[int] = set()
    for node in graph.nodes:
        layer = None if id(node) in taken else _layer(net, node, at, found)
        if layer is not None:
            found[layer.end] = layer
            taken.update(id(graph.nodes[i]) for i in layer.nodes)
    layers = list(found.values())
    return graph, [layers[i] for i in pruned(layers, range(len(layers)))]


def pruned(layers: Sequence[Layer], on: Iterable[int]) -> list[int]:
    """Positions of those of the chosen layers that are between others of bytes: what else is rounded is so for nothing."""
    left = sorted(on)
    while True:
        made = {layers[i].end for i in left if layers[i].kind != "product"}
        read = {name for i in left for name in layers[i].inputs}
        kept = [
            i for i in left
            if layers[i].kind in ("conv", "product") or (layers[i].end in read and not made.isdisjoint(layers[i].inputs))
        ]  # fmt: skip
        if kept == left:
            return kept
        left = kept


def _layer(net: Net, node: Node, at: Mapping[int, int], found: Mapping[str, Layer]) -> Layer | None:
    if len(node.outputs) != 1 or captured(node) or any(name in node.attributes for name in _FUSED):
        return None
    traits = traits_of(node.op)
    form = None if traits.quantized is None else traits.quantized.form
    if not all(net.is_float32(name) for name in (*node.inputs[:1], node.outputs[0])):
        return None
    x, end = str(node.inputs[0]), node.outputs[0]
    nodes: tuple[int, ...] = (at[id(node)],)
    if form in _FORMS:
        if net.value(x) is not None or not (_convolution(net, node) if form == "convolution" else _matrix(net, node)):
            return None
        after = net.single(end)
        limits = form == "convolution" and after is not None and after.op in ("Relu", "Clip") and id(after) in at
        if limits and all(name is None or net.parameter(name) is not None for name in after.inputs[1:]):  # type: ignore[union-attr]
            nodes, end = (*nodes, at[id(after)]), after.outputs[0]  # type: ignore[union-attr]
        return Layer(_FORMS[str(form)], nodes, (x,), end)

    def bytes_are(name: str | None) -> bool:
        return name is not None and name in found and found[name].kind != "product"

    if form in ("pair", "all"):
        inputs = tuple(str(name) for name in node.inputs)
        if all(map(bytes_are, inputs)) and len(inputs) > 1 and all(net.rank(name) is not None for name in inputs):
            return Layer("between", nodes, tuple(dict.fromkeys(inputs)), end)
    if not bytes_are(x):
        return None
    if form == "one" and node.op != "Softmax" and not node.attributes.get("flatten", 0):
        return Layer("between", nodes, (x,), end)
    if traits.moves:
        return Layer("move", nodes, (x,), end)
    if net.function(node) is not None and all(name is None or net.parameter(name) is not None for name in node.inputs[1:]):
        return Layer("between", nodes, (x,), end)
    return None


def _convolution(net: Net, node: Node) -> bool:
    weight, bias = net.value(node.inputs[1]), net.value((*node.inputs, None, None)[2])
    if weight is None or weight.dtype != np.float32 or not weight.size or not np.isfinite(weight).all() or len(node.inputs) > 3:
        return False
    return (
        len(node.inputs) < 3 or node.inputs[2] is None or (bias is not None and bias.ndim == 1 and bool(np.isfinite(bias).all()))
    )


def _matrix(net: Net, node: Node) -> bool:
    get, weight = node.attributes.get, net.value(node.inputs[1])
    if weight is None or weight.dtype != np.float32 or weight.ndim != 2 or not weight.size or not np.isfinite(weight).all():
        return False
    if node.op == "MatMul":
        return (net.rank(node.inputs[0]) or 0) > 1
    if get("transA", 0) or get("alpha", 1.0) != 1 or get("beta", 1.0) != 1:
        return False
    bias = net.value((*node.inputs, None, None)[2])
    columns = weight.shape[0 if get("transB", 0) else 1]
    return len(node.inputs) < 3 or (bias is not None and of_columns(bias, columns) and bool(np.isfinite(bias).all()))


# ---- writing ------------------------------------------------------------------------------------------------------------


class _Writer:
    """A graph of the nodes of another one, some of them between pairs."""

    def __init__(self, graph: Graph, steps: Mapping[str, Steps], layers: Sequence[Layer]) -> None:
        self.graph, self.steps = graph, dict(steps)
        for layer in layers:
            if layer.kind == "move" and layer.inputs[0] in self.steps:
                self.steps[layer.end] = self.steps[layer.inputs[0]]
        self.nodes: list[Node] = []
        self.constants = dict(graph.constants)
        self.names = Names((*graph.constants, *(v.name for v in graph.inputs)))
        self.names.take(name for node in graph.nodes for name in node.outputs)
        self.read: dict[str, str] = {}  # values after their pairs
        self.known: dict[Steps, tuple[str, str]] = {}

    def constant(self, array: object, hint: str) -> str:
        name = self.names(hint)
        self.constants[name] = made = np.asarray(array)
        made.flags.writeable = False
        return name

    def pair(self, value: str, steps: Steps, out: str = "") -> str:
        """Rounds a value; returns the name of what is left of it."""
        if steps not in self.known:
            self.known[steps] = self.constant(steps.scale, f"{value}/scale"), self.constant(steps.zero, f"{value}/zero")
        parameters, stored = self.known[steps], self.names(f"{value}/bytes")
        out = out or self.names(f"{value}/rounded")
        self.nodes.append(Node("QuantizeLinear", (value, *parameters), (stored,), {}))
        self.nodes.append(Node("DequantizeLinear", (stored, *parameters), (out,), {}))
        return out

    def rounded(self, value: str) -> str:
        """A value as nodes of bytes read it."""
        if value not in self.read:
            self.read[value] = self.pair(value, self.steps[value])
        return self.read[value]

    def layer(self, layer: Layer, end: str) -> None:
        """A layer between pairs, which gives the value `end`."""
        node = self.graph.nodes[layer.nodes[0]]
        inputs = [self.rounded(name) if name in layer.inputs else name for name in node.inputs]
        if layer.kind in ("conv", "product"):
            inputs[1:] = self.weights(node, self.steps[layer.inputs[0]])
        stays = layer.kind == "product"
        made = end if stays else self.names(f"{layer.end}/float")
        for position in layer.nodes[1:]:
            self.nodes.append(Node(node.op, tuple(inputs), (self.names(node.outputs[0]),), node.attributes))
            node = self.graph.nodes[position]
            inputs = [self.nodes[-1].outputs[0], *node.inputs[1:]]
        self.nodes.append(Node(node.op, tuple(inputs), (made,), node.attributes))
        if not stays:
            self.pair(made, self.steps[layer.end], end)

    def weights(self, node: Node, x: Steps) -> list[str]:
        """Weights of bytes, and a bias in steps of theirs times x's."""
        name = str(node.inputs[1])
        weight, axis = self.graph.constants[name], 0 if node.op == "Conv" or node.attributes.get("transB", 0) else 1
        bias = self.graph.constants[str(node.inputs[2])] if len(node.inputs) > 2 and node.inputs[2] is not None else None
        others = tuple(i for i in range(weight.ndim) if i != axis)
        scale = np.maximum(weight.max(others), -weight.min(others)).astype(np.float64) / _LARGEST
        if bias is not None:
            bias = np.broadcast_to(bias.reshape(-1), scale.shape).astype(np.float64)
            scale = np.maximum(scale, np.abs(bias) / (float(x.scale) * _BIAS))
        scale = np.where(scale < np.finfo(np.float32).tiny, 1.0, scale).astype(np.float32)
        wide = scale.reshape([-1 if i == axis else 1 for i in range(weight.ndim)])
        stored = np.clip(np.rint(weight / wide), -_LARGEST, _LARGEST).astype(np.int8)
        found = [self.dequantized(stored, scale, axis, name)]
        if bias is not None:
            both = x.scale * scale
            stored = np.rint(bias / both.astype(np.float64)).astype(np.int32)
            found.append(self.dequantized(stored, both, 0, str(node.inputs[2])))
        return found

    def dequantized(self, stored: np.ndarray, scale: np.ndarray, axis: int, hint: str) -> str:
        inputs = self.constant(stored, f"{hint}/bytes"), self.constant(scale, f"{hint}/scales")
        zero = self.constant(np.zeros(scale.shape, stored.dtype), f"{hint}/zeros")
        out = self.names(f"{hint}/rounded")
        self.nodes.append(Node("DequantizeLinear", (*inputs, zero), (out,), {"axis": axis}))
        return out

    def made(self, inputs: Sequence[Value] = ()) -> Graph:
        """The graph, with further inputs, without constants that nothing reads."""
        made = Graph((*self.graph.inputs, *inputs), self.graph.outputs, tuple(self.nodes), {})
        read = free(made)
        return Graph(made.inputs, made.outputs, made.nodes, {name: a for name, a in self.constants.items() if name in read})


def paired(graph: Graph, layers: Sequence[Layer], on: Collection[int], steps: Mapping[str, Steps]) -> Graph:
    """The graph with some of its layers, by their positions among them, between pairs."""
    writer = _Writer(graph, steps, layers)
    ends = {layers[i].nodes[-1]: layers[i] for i in on}
    inner = {position for i in on for position in layers[i].nodes[:-1]}
    for position, node in enumerate(graph.nodes):
        if position in inner:
            continue
        layer = ends.get(position)
        if layer is None:
            writer.nodes.append(node)
        else:
            writer.layer(layer, layer.end)
            if layer.kind != "product":
                writer.read[layer.end] = layer.end
    return writer.made()


def switched(graph: Graph, layers: Sequence[Layer], steps: Mapping[str, Steps]) -> tuple[Graph, list[str]]:
    """A graph that computes every layer both ways, and its further inputs: a bool for each layer, whether bytes count."""
    writer = _Writer(graph, steps, layers)
    ends = {layer.nodes[-1]: i for i, layer in enumerate(layers)}
    switches = [writer.names(f"switch {i}") for i in range(len(layers))]
    for position, node in enumerate(graph.nodes):
        i = ends.get(position)
        if i is None:
            writer.nodes.append(node)
            continue
        layer = layers[i]
        plain, other = writer.names(f"{layer.end}/plain"), writer.names(f"{layer.end}/other")
        writer.nodes.append(Node(node.op, node.inputs, (plain,), node.attributes))
        writer.layer(layer, other)
        writer.nodes.append(Node("Where", (switches[i], other, plain), (layer.end,), {}))
    return writer.made([Value(name, (), np.dtype(bool)) for name in switches]), switches
