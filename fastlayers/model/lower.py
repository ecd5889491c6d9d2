"""From a recorded function of layers, whose nodes are functions of `functional`, to a graph of operators, which programs run.

One small function an operation, in `LOWER`; a test fails while an operation of `graph.OPS` has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..functional._activation import IDENTITY, resolve
from ..functional._geometry import window
from ..graph.ir import Graph, Node
from ..kernels.table import PAD_MODES, Activation

__all__ = ["LOWER", "lower"]

FLOAT32 = np.dtype(np.float32)


def lower(graph: Graph) -> Graph:
    """The same graph in the vocabulary of `operators`."""
    return _Lowering(graph).run()


class _Lowering:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants = dict(graph.constants)
        self.nodes: list[Node] = []
        self.ranks = {v.name: len(v.shape or ()) for v in (*graph.inputs, *graph.values.values())}
        self.ranks.update((name, array.ndim) for name, array in graph.constants.items())
        self.taken = {*self.ranks, *(v.name for v in graph.outputs)}
        self.floats = {v.name: v.name for v in graph.inputs if v.dtype == FLOAT32}
        self.inputs = {v.name for v in graph.inputs}

    def run(self) -> Graph:
        for node in self.graph.nodes:
            LOWER[node.op](self, node, *(self.as_float(name) for name in node.inputs))
        graph = self.graph
        return Graph(graph.inputs, graph.outputs, tuple(self.nodes), self.constants, graph.values)

    def as_float(self, name: str | None) -> Any:
        """The value as float32: inputs of other dtypes are converted once."""
        if name not in self.inputs:
            return name
        if name not in self.floats:
            self.floats[name] = self.add("Cast", (name,), self.name(name), to=1)
        return self.floats[name]

    def name(self, hint: str) -> str:
        """A name that is not taken."""
        i = 0
        while f"{hint}~{i}" in self.taken:
            i += 1
        self.taken.add(f"{hint}~{i}")
        return f"{hint}~{i}"

    def ints(self, *values: int) -> str:
        """A constant of integers."""
        name = self.name("ints")
        self.constants[name] = np.array(values, np.int64)
        return name

    def scalar(self, value: float) -> str:
        """A constant number."""
        name = self.name("number")
        self.constants[name] = np.array(value, np.float32)
        return name

    def add(self, op: str, inputs: Sequence[str | None], output: str | Sequence[str], **attributes: Any) -> str:
        """Appends a node; returns its first output."""
        outputs = (output,) if isinstance(output, str) else tuple(output)
        self.nodes.append(Node(op, tuple(inputs), outputs, attributes))
        return outputs[0]


Rule = Callable[..., Any]
LOWER: dict[str, Rule] = {}


def _same(op: str, **attributes: Any) -> Rule:
    return lambda s, node, *inputs: s.add(op, inputs, node.outputs, **attributes)


def _alpha(op: str, **names: str) -> Rule:
    """An operator whose attributes are arguments of the function under other names."""
    return lambda s, node, x: s.add(op, (x,), node.outputs, **{to: float(node.attributes[name]) for to, name in names.items()})


for _name, _op in {
    "relu": "Relu", "silu": "Swish", "sigmoid": "Sigmoid", "tanh": "Tanh", "hardswish": "HardSwish", "softsign": "Softsign",
    "mish": "Mish",
    "selu": "Selu", "exp": "Exp", "log": "Log", "erf": "Erf", "sqrt": "Sqrt", "identity": "Identity", "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul", "divide": "Div",
}.items():  # fmt: skip
    LOWER[_name] = _same(_op)
LOWER["leaky_relu"] = _alpha("LeakyRelu", alpha="negative_slope")
LOWER["elu"] = _alpha("Elu", alpha="alpha")
LOWER["hardsigmoid"] = _alpha("HardSigmoid", alpha="alpha", beta="beta")


def _rule(function: Rule) -> Rule:
    LOWER[function.__name__.lstrip("_")] = function
    return function


@_rule
def _gelu(s: _Lowering, node: Node, x: str) -> None:
    s.add("Gelu", (x,), node.outputs, approximate=node.attributes["approximate"])


def _clip(s: _Lowering, node: Node, x: str, low: float | None, high: float | None) -> None:
    s.add("Clip", (x, None if low is None else s.scalar(low), None if high is None else s.scalar(high)), node.outputs)


LOWER["clip"] = lambda s, node, x: _clip(s, node, x, node.attributes["min"], node.attributes["max"])
LOWER["relu6"] = lambda s, node, x: _clip(s, node, x, 0.0, 6.0)
LOWER["hardtanh"] = lambda s, node, x: _clip(s, node, x, node.attributes["min_val"], node.attributes["max_val"])


@_rule
def _softplus(s: _Lowering, node: Node, x: str) -> None:
    s.add("Activate", (x,), node.outputs, activation=tuple(resolve("softplus", ("softplus", dict(node.attributes)))))


@_rule
def _prelu(s: _Lowering, node: Node, x: str, weight: str) -> None:
    rank, size = s.ranks[node.inputs[0]], s.ranks[node.inputs[1]]  # type: ignore[index]
    if size == 1 and rank > 2:  # one slope a channel, along axis 1
        weight = s.add("Reshape", (weight, s.ints(-1, *(1,) * (rank - 2))), s.name("slope"))
    s.add("PRelu", (x, weight), node.outputs)


def _gated(s: _Lowering, node: Node, x: str) -> None:
    """glu: a * sigmoid(g) with (a, g) the halves; swiglu: silu(g) * a with (g, a) the halves."""
    halves = (s.name("half"), s.name("half"))
    s.add("Split", (x,), halves, axis=node.attributes["dim"], num_outputs=2)
    value, gate = halves if node.op == "glu" else halves[::-1]
    opened = s.add("Sigmoid" if node.op == "glu" else "Swish", (gate,), s.name("gate"))
    s.add("Mul", (value, opened), node.outputs)


LOWER["glu"] = LOWER["swiglu"] = _gated


# ---- layout -------------------------------------------------------------------------------------------------------------


def _transpose(s: _Lowering, node: Node, x: str, perm: Sequence[int]) -> None:
    rank = s.ranks[node.inputs[0]]  # type: ignore[index]
    s.add("Transpose", (x,), node.outputs, perm=tuple(p % rank for p in perm))


LOWER["permute"] = lambda s, node, x: _transpose(s, node, x, node.attributes["dims"])
LOWER["to_channels_last"] = lambda s, node, x: _transpose(s, node, x, (0, *range(2, s.ranks[node.inputs[0]]), 1))
LOWER["to_channels_first"] = lambda s, node, x: _transpose(s, node, x, (0, -1, *range(1, s.ranks[node.inputs[0]] - 1)))


@_rule
def _reshape(s: _Lowering, node: Node, x: str) -> None:
    s.add("Reshape", (x, s.ints(*node.attributes["shape"])), node.outputs, allowzero=1)


@_rule
def _flatten(s: _Lowering, node: Node, x: str) -> None:
    rank = s.ranks[node.inputs[0]]  # type: ignore[index]
    first, last = (node.attributes[name] % max(rank, 1) for name in ("start_dim", "end_dim"))
    # 0 keeps a size; -1 is what is left, which zero sizes before it do not allow: the general form names every size.
    shape = s.add("Shape", (x,), s.name("shape"))
    head = s.add("Slice", (shape, s.ints(0), s.ints(first)), s.name("head"))
    middle = s.add("Slice", (shape, s.ints(first), s.ints(last + 1)), s.name("middle"))
    size = s.add("ReduceProd", (middle, s.ints(0)), s.name("size"), keepdims=1)
    tail = s.add("Slice", (shape, s.ints(last + 1), s.ints(rank)), s.name("tail"))
    whole = s.add("Concat", (head, size, tail), s.name("shape"), axis=0)
    s.add("Reshape", (x, whole), node.outputs, allowzero=1)


LOWER["unsqueeze"] = lambda s, node, x: s.add("Unsqueeze", (x, s.ints(node.attributes["dim"])), node.outputs)
LOWER["squeeze"] = lambda s, node, x: s.add("Squeeze", (x, s.ints(node.attributes["dim"])), node.outputs)
LOWER["concat"] = lambda s, node, *parts: s.add("Concat", parts, node.outputs, axis=node.attributes["dim"])


@_rule
def _slice(s: _Lowering, node: Node, x: str) -> None:
    get = node.attributes
    step, far = get["step"], np.iinfo(np.int64).max
    start = get["start"] if get["start"] is not None else (0 if step > 0 else far)
    end = get["end"] if get["end"] is not None else (far if step > 0 else -far)
    s.add("Slice", (x, s.ints(start), s.ints(end), s.ints(get["dim"]), s.ints(step)), node.outputs)


@_rule
def _select(s: _Lowering, node: Node, x: str) -> None:
    index = s.name("index")
    s.constants[index] = np.array(node.attributes["index"], np.int64)
    s.add("Gather", (x, index), node.outputs, axis=node.attributes["dim"])


@_rule
def _pad(s: _Lowering, node: Node, x: str) -> None:
    rank, pad = s.ranks[node.inputs[0]], tuple(node.attributes["pad"])  # type: ignore[index]
    pairs = [(0, 0)] * (rank - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    mode = {"constant": "constant", "zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[
        node.attributes["mode"]
    ]
    flat = (*(before for before, _ in pairs), *(after for _, after in pairs))
    s.add("Pad", (x, s.ints(*flat), s.scalar(node.attributes["value"])), node.outputs, mode=mode)


# ---- layers -------------------------------------------------------------------------------------------------------------


def _conv(s: _Lowering, node: Node, x: str, weight: str, bias: str | None, residual: str | None) -> None:
    get = dict(node.attributes)
    axes = int(node.op[4])
    activation = resolve(node.op, get.pop("activation"))
    place = window(node.op, axes, **get)
    attributes: dict[str, Any] = {
        "strides": place.stride,
        "dilations": place.dilation,
        "group": place.groups,
        **_after(activation),
    }
    if place.padding is None:
        attributes["auto_pad"] = "SAME_UPPER"
    else:
        attributes["pads"] = (*(before for before, _ in place.padding), *(after for _, after in place.padding))
    if place.mode != "zeros":
        attributes["pad_mode"] = PAD_MODES[place.mode]
    if place.last:
        attributes.update(x_last=True, out_last=True)
    single = s.ranks[node.inputs[0]] == axes + 1  # type: ignore[index]
    output: str | Sequence[str] = node.outputs
    if single:
        zero = s.ints(0)
        x = s.add("Unsqueeze", (x, zero), s.name("batch"))
        residual = None if residual is None else s.add("Unsqueeze", (residual, zero), s.name("batch"))
        output = s.name("batch")
    made = s.add("Conv", (x, weight, bias, residual) if residual is not None else (x, weight, bias), output, **attributes)
    if single:
        s.add("Squeeze", (made, s.ints(0)), node.outputs)


LOWER.update(conv1d=_conv, conv2d=_conv, conv3d=_conv)


@_rule
def _linear(s: _Lowering, node: Node, x: str, weight: str, bias: str | None, residual: str | None) -> None:
    after = _after(resolve("linear", node.attributes["activation"]))
    s.add("Linear", (x, weight, bias, residual) if residual is not None else (x, weight, bias), node.outputs, **after)


def _after(activation: Activation) -> dict[str, Any]:
    """The attribute that says what follows, where something does: passes may then put nothing else there."""
    return {} if activation.code == IDENTITY.code else {"activation": tuple(activation)}


LOWER["softmax"] = lambda s, node, x: s.add("Softmax", (x,), node.outputs, axis=node.attributes["dim"])
LOWER["log_softmax"] = lambda s, node, x: s.add("LogSoftmax", (x,), node.outputs, axis=node.attributes["dim"])


# ---- recurrent ----------------------------------------------------------------------------------------------------------


@_rule
def _lstm(
    s: _Lowering, node: Node, x: str, w_ih: str, w_hh: str, b_ih: str | None, b_hh: str | None, h0: str | None, c0: str | None
) -> None:
    single = s.ranks[node.inputs[0]] == 2  # type: ignore[index]
    direction = node.attributes["direction"]
    weights = _weights(s, node, 2 if direction == "bidirectional" else 1, w_ih, w_hh, b_ih, b_hh)
    outputs: Sequence[str] = node.outputs
    if single:
        outputs = tuple(s.name("batch") for _ in outputs)
        axis = s.ints(0 if node.attributes["batch_first"] else 1)
        x = s.add("Unsqueeze", (x, axis), s.name("batch"))
        h0, c0 = (None if v is None else s.add("Unsqueeze", (v, s.ints(1)), s.name("batch")) for v in (h0, c0))
    s.add(
        "LSTM", (x, *weights, None, h0, c0), outputs, direction=direction, layout=int(node.attributes["batch_first"]), joined=True
    )
    if single:
        for i, name in enumerate(node.outputs):
            at = 1 if i or not node.attributes["batch_first"] else 0
            s.add("Squeeze", (outputs[i], s.ints(at)), name)


@_rule
def _lstm_cell(
    s: _Lowering, node: Node, x: str, w_ih: str, w_hh: str, b_ih: str | None, b_hh: str | None, h0: str | None, c0: str | None
) -> None:
    axes = s.ints(0) if s.ranks[node.inputs[0]] == 2 else s.ints(0, 1)  # type: ignore[index]
    weights = _weights(s, node, 1, w_ih, w_hh, b_ih, b_hh)
    x, h0, c0 = (None if v is None else s.add("Unsqueeze", (v, axes), s.name("step")) for v in (x, h0, c0))  # type: ignore[assignment]
    states = (s.name("state"), s.name("state"))
    s.add("LSTM", (x, *weights, None, h0, c0), ("", *states), joined=True)
    for name, state in zip(node.outputs, states, strict=True):
        s.add("Squeeze", (state, axes), name)


def _weights(
    s: _Lowering, node: Node, d: int, w_ih: str, w_hh: str, b_ih: str | None, b_hh: str | None
) -> tuple[str | None, ...]:
    """W, R and B with an axis of directions in front."""

    def led(name: str, rank: int) -> str:
        return name if s.ranks[name] == rank else s.add("Unsqueeze", (name, s.ints(0)), s.name("directions"))

    bias = None
    if b_ih is not None or b_hh is not None:
        given = led(b_ih or b_hh, 2)  # type: ignore[arg-type]
        none = s.add("Mul", (given, s.scalar(0.0)), s.name("no bias")) if b_ih is None or b_hh is None else ""
        halves = (none if b_ih is None else led(b_ih, 2), none if b_hh is None else led(b_hh, 2))
        bias = s.add("Concat", halves, s.name("biases"), axis=1)
    return led(w_ih, 3), led(w_hh, 3), bias
