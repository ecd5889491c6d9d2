"""Activations and arithmetic."""

from __future__ import annotations

import numpy as np

from ...functional._activation import resolve
from ...functional.gated import slopes_axis
from ...graph.ir import Node
from ._base import LOWER, Lowering, alpha, rule, same

for _name, _op in {
    "relu": "Relu", "silu": "Swish", "sigmoid": "Sigmoid", "tanh": "Tanh", "hardswish": "HardSwish", "softsign": "Softsign",
    "mish": "Mish",
    "selu": "Selu", "exp": "Exp", "log": "Log", "erf": "Erf", "sqrt": "Sqrt", "identity": "Identity", "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul", "divide": "Div",
}.items():  # fmt: skip
    LOWER[_name] = same(_op)
LOWER["leaky_relu"] = alpha("LeakyRelu", alpha="negative_slope")
LOWER["elu"] = alpha("Elu", alpha="alpha")
LOWER["hardsigmoid"] = alpha("HardSigmoid", alpha="alpha", beta="beta")


@rule
def _gelu(s: Lowering, node: Node, x: str) -> None:
    s.add("Gelu", (x,), node.outputs, approximate=node.attributes["approximate"])


def _clip(s: Lowering, node: Node, x: str, low: float | None, high: float | None) -> None:
    s.add("Clip", (x, None if low is None else s.scalar(low), None if high is None else s.scalar(high)), node.outputs)


LOWER["clip"] = lambda s, node, x: _clip(s, node, x, node.attributes["min"], node.attributes["max"])
LOWER["relu6"] = lambda s, node, x: _clip(s, node, x, 0.0, 6.0)
LOWER["hardtanh"] = lambda s, node, x: _clip(s, node, x, node.attributes["min_val"], node.attributes["max_val"])


@rule
def _softplus(s: Lowering, node: Node, x: str) -> None:
    s.add("Activate", (x,), node.outputs, activation=tuple(resolve("softplus", ("softplus", dict(node.attributes)))))


@rule
def _prelu(s: Lowering, node: Node, x: str, weight: str) -> None:
    rank = s.rank(node)
    after = rank - 1 - slopes_axis(rank, node.attributes["axis"]) if rank > 1 else 0
    if s.rank(node, 1) == 1 and after:  # one slope a channel
        weight = s.add("Reshape", (weight, s.ints(-1, *(1,) * after)), s.name("slope"))
    s.add("PRelu", (x, weight), node.outputs)


def _gated(s: Lowering, node: Node, x: str) -> None:
    """glu: a * sigmoid(g) with (a, g) the halves; swiglu: silu(g) * a with (g, a) the halves."""
    halves = _halves(s, node, x)
    value, gate = halves if node.op == "glu" else halves[::-1]
    opened = s.add("Sigmoid" if node.op == "glu" else "Swish", (gate,), s.name("gate"))
    s.add("Mul", (value, opened), node.outputs)


def _halves(s: Lowering, node: Node, x: str) -> tuple[str, str]:
    """Both halves of an axis. Split would halve an odd size too, unequally; a new axis of two refuses it."""
    rank, halves = s.rank(node), (s.name("half"), s.name("half"))
    axis = node.attributes["dim"] % rank
    if isinstance(s.size(node, axis), int):
        s.add("Split", (x,), halves, axis=axis, num_outputs=2)
        return halves
    shape = s.add("Shape", (x,), s.name("shape"))
    before = s.add("Slice", (shape, s.ints(0), s.ints(axis)), s.name("before"))
    after = s.add("Slice", (shape, s.ints(axis + 1), s.ints(rank)), s.name("after"))
    half = s.add("Div", (s.add("Gather", (shape, s.ints(axis)), s.name("size")), s.ints(2)), s.name("size"))
    two = s.add("Concat", (before, s.ints(2), half, after), s.name("shape"), axis=0)
    opened = s.add("Reshape", (x, two), s.name("halves"), allowzero=1)
    for i, name in enumerate(halves):
        s.constants[index := s.name("index")] = np.array(i, np.int64)
        s.add("Gather", (opened, index), name, axis=axis)
    return halves


LOWER["glu"] = LOWER["swiglu"] = _gated
