"""Elementwise functions that exporters spell out.

before                                                     after
Mul(x, Sigmoid(x))                                         Swish(x)
Mul(x, HardSigmoid(x, alpha=1/6, beta=1/2))                HardSwish(x)
Mul(x, Div(Clip(Add(x, 3), 0, 6), 6))                      HardSwish(x)   in every order of the factors
Mul(Mul(x, Add(Erf(Div(x, sqrt 2)), 1)), 0.5)              Gelu(x)     in every order of the factors
Mul(Mul(x, 0.5), Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), sqrt(2 / pi))), 1))    Gelu(x, approximate=tanh)

What is in Erf and Tanh, and what is made of their results, is compared as polynomials, however it is spelled.
"""

from __future__ import annotations

import math

from ..ir.graph import Node
from ._net import Net

__all__ = ["apply"]


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each("Mul", "Div"):
        _ = (node.op == "Mul" and _gated(net, at, node)) or _gelu(net, at, node) or _hard_swish(net, at, node)


def _close(value: float | None, want: float) -> bool:
    return value is not None and math.isclose(value, want, rel_tol=1e-5)


def _gated(net: Net, at: int, node: Node) -> bool:
    for x, gate in (node.inputs, node.inputs[::-1]):
        maker = net.producer(gate)
        if maker is None or net.single(gate) is not node or not net.is_float32(x):
            continue
        if maker.op == "Sigmoid" and maker.inputs[0] == x:
            net.replace(at, Node("Swish", (x,), node.outputs, {}), maker)
            return True
        function = net.function(maker) if maker.op == "HardSigmoid" and maker.inputs[0] == x else None
        if function is not None and _close(function.a, 1 / 6) and _close(function.b, 0.5):
            net.replace(at, Node("HardSwish", (x,), node.outputs, {}), maker)
            return True
    return False


def _factors(net: Net, node: Node) -> tuple[list[tuple[str | None, Node]], float, list[Node]]:
    """A product as its factors, each with its reader, the constant among them, and the nodes that make it, the last one left out.

    No factors if it is divided by one.
    """
    found: list[tuple[str | None, Node]] = []
    constant, gone = 1.0, []
    for i, name in enumerate(node.inputs):
        c, maker = net.scalar(name, node.inputs[1 - i]), net.producer(name)
        inner: list[tuple[str | None, Node]] = []
        if maker is not None and maker.op in ("Mul", "Div") and net.single(name) is node and "activation" not in maker.attributes:
            inner, factor, more = _factors(net, maker)
        if c and (i == 1 or node.op == "Mul"):
            constant = constant / c if node.op == "Div" else constant * c
        elif node.op == "Div" and i == 1:
            return [], 1.0, []
        elif inner and maker is not None:
            found += inner
            constant *= factor
            gone += [*more, maker]
        else:
            found.append((name, node))
    return found, constant, gone


def _hard_swish(net: Net, at: int, node: Node) -> bool:
    """x clip(x + 3, 0, 6) / 6."""
    factors, constant, gone = _factors(net, node)
    if len(factors) != 2 or not _close(constant, 1 / 6):
        return False
    for (x, _), (part, reader) in (factors, factors[::-1]):
        clip = net.producer(part)
        if clip is None or clip.op != "Clip" or len(clip.inputs) < 3 or net.single(part) is not reader or not net.is_float32(x):
            continue
        shifted = net.producer(clip.inputs[0])
        limits = net.parameter(clip.inputs[1]) == 0 and net.parameter(clip.inputs[2]) == 6
        if not limits or shifted is None or shifted.op != "Add" or "activation" in shifted.attributes:
            continue
        if net.single(clip.inputs[0]) is not clip:
            continue
        if any(shifted.inputs[i] == x and net.scalar(shifted.inputs[1 - i], x) == 3 for i in (0, 1)):
            net.replace(at, Node("HardSwish", (x,), node.outputs, {}), shifted, clip, *gone)
            return True
    return False


# erf(x / sqrt 2); the tanh that is near it
_CURVES = {
    "Erf": ("none", {1: math.sqrt(0.5)}),
    "Tanh": ("tanh", {1: math.sqrt(2 / math.pi), 3: 0.044715 * math.sqrt(2 / math.pi)}),
}
_DEEPEST = 8  # nodes that a polynomial is made of, one in another


def _gelu(net: Net, at: int, node: Node) -> bool:
    """x and c (1 + f(x)) are the factors of a product whose constants make 1/2."""
    factors, constant, gone = _factors(net, node)
    if len(factors) != 2:
        return False
    for (x, _), (part, _) in (factors, factors[::-1]):
        for curve in _curves(net, part):
            approximate, wanted = _CURVES[curve.op]
            made: list[Node] = []
            gate = _polynomial(net, part, curve.outputs[0], made)
            if gate is None or not _alike(gate, {0: 0.5 / constant, 1: 0.5 / constant}):
                continue
            argument = _polynomial(net, curve.inputs[0], x, made)
            if (
                argument is None
                or not _alike(argument, wanted)
                or not net.is_float32(x)
                or net.rank(x) != net.rank(node.outputs[0])
            ):
                continue
            taken = list({net.position(n): n for n in (*made, curve, *gone)}.values())
            if _needless(net, at, taken):
                net.replace(at, Node("Gelu", (x,), node.outputs, {"approximate": approximate}), *taken)
                return True
    return False


def _curves(net: Net, name: str | None) -> list[Node]:
    """The functions of `_CURVES` that a sum, or a product with a sum, is made of."""
    found = []
    waiting = [(name, 3)]
    while waiting:
        maker, left = net.producer(waiting[-1][0]), waiting.pop()[1]
        if maker is not None and maker.op in _CURVES:
            found.append(maker)
        elif maker is not None and left and _plain(net, maker):
            waiting += [(inner, left - 1) for inner in maker.inputs]
    return found


def _plain(net: Net, node: Node) -> bool:
    """Whether it is elementwise, of two arrays, and nothing is done to its result."""
    return net.traits(node).elementwise and len(node.inputs) == 2 and "activation" not in node.attributes


def _polynomial(net: Net, name: str | None, x: str | None, made: list[Node], depth: int = 0) -> dict[int, float] | None:
    """A value as a polynomial in x: its coefficients by power; None if it is none. `made` gets the nodes that compute it."""
    if name == x:
        return {1: 1.0}
    maker = net.producer(name)
    if net.value(name) is not None:
        number = net.scalar(name, x)
        return None if number is None else {0: number}
    if maker is None or depth == _DEEPEST or not _plain(net, maker):
        return None
    p, q = (_polynomial(net, inner, x, made, depth + 1) for inner in maker.inputs)
    if p is None or q is None:
        return None
    made.append(maker)
    if maker.op in ("Add", "Sub"):
        sign = 1 if maker.op == "Add" else -1
        return {k: p.get(k, 0) + sign * q.get(k, 0) for k in {*p, *q}}
    if maker.op == "Mul":
        return _product(p, q)
    number = q.get(0, 0.0)
    if set(q) != {0} or not number or maker.op not in ("Div", "Pow"):
        return None
    if maker.op == "Div":
        return {k: c / number for k, c in p.items()}
    return {2: _product(p, p), 3: _product(p, _product(p, p))}.get(number)  # type: ignore[call-overload, no-any-return]


def _product(p: dict[int, float], q: dict[int, float]) -> dict[int, float]:
    found: dict[int, float] = {}
    for i, a in p.items():
        for k, b in q.items():
            found[i + k] = found.get(i + k, 0.0) + a * b
    return found if max(found, default=0) <= _DEEPEST else {}


def _alike(p: dict[int, float], wanted: dict[int, float]) -> bool:
    return {k for k, c in p.items() if c} == set(wanted) and all(_close(p[k], c) for k, c in wanted.items())


def _needless(net: Net, at: int, nodes: list[Node]) -> bool:
    """Whether nothing but the node at `at` and one another reads these."""
    inside = {at, *map(net.position, nodes)}
    names = [name for n in nodes for name in n.outputs if name]
    return not any(name in net.kept or not inside.issuperset(net.readers.get(name, ())) for name in names)
