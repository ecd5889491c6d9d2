"""Elementwise functions that exporters spell out.

before                                                     after
Mul(x, Sigmoid(x))                                         Swish(x)
Mul(x, HardSigmoid(x, alpha=1/6, beta=1/2))                HardSwish(x)
Mul(x, Div(Clip(Add(x, 3), 0, 6), 6))                      HardSwish(x)   in every order of the factors
Mul(Mul(x, Add(Erf(Div(x, sqrt 2)), 1)), 0.5)              Gelu(x)     in every order of the factors
Div(x, sqrt 2), Mul(x, 1 / sqrt 2)                         both are known
"""

from __future__ import annotations

import math

from ..ir.graph import Node
from ._net import Net

__all__ = ["apply"]


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each("Mul", "Div"):
        _ = (node.op == "Mul" and (_gated(net, at, node) or _gelu(net, at, node))) or _hard_swish(net, at, node)


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
        c, maker = net.scalar(name), net.producer(name)
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
        limits = net.scalar(clip.inputs[1]) == 0 and net.scalar(clip.inputs[2]) == 6
        if not limits or shifted is None or shifted.op != "Add" or "activation" in shifted.attributes:
            continue
        if net.single(clip.inputs[0]) is not clip:
            continue
        if any(shifted.inputs[i] == x and net.scalar(shifted.inputs[1 - i]) == 3 for i in (0, 1)):
            net.replace(at, Node("HardSwish", (x,), node.outputs, {}), shifted, clip, *gone)
            return True
    return False


def _factor(net: Net, name: str | None, reader: Node) -> tuple[Node, str | None, float] | None:
    """A value as (maker, x, c) where it is x times the constant c and only `reader` reads it."""
    maker = net.producer(name)
    if maker is None or maker.op not in ("Mul", "Div") or net.single(name) is not reader or "activation" in maker.attributes:
        return None
    for i in (0, 1) if maker.op == "Mul" else (1,):
        c = net.scalar(maker.inputs[i])
        if c:
            return maker, maker.inputs[1 - i], c if maker.op == "Mul" else 1 / c
    return None


def _error_part(net: Net, name: str | None, reader: Node) -> tuple[list[Node], str | None, float] | None:
    """A value as c (1 + erf(x / sqrt 2)): the nodes that make it, x, and c."""
    gone: list[Node] = []
    factor = 1.0
    scaled = _factor(net, name, reader)
    if scaled is not None:
        gone.append(scaled[0])
        reader, name, factor = scaled
        reader = scaled[0]
    one = net.producer(name)
    if one is None or one.op != "Add" or net.single(name) is not reader or "activation" in one.attributes:
        return None
    inner = next((one.inputs[1 - i] for i in (0, 1) if _close(net.scalar(one.inputs[i]), 1)), None)
    erf = net.producer(inner)
    if erf is None or erf.op != "Erf" or net.single(inner) is not one:
        return None
    half = _factor(net, erf.inputs[0], erf)
    if half is None or not _close(half[2], math.sqrt(0.5)):
        return None
    return [half[0], erf, one, *gone], half[1], factor


def _gelu(net: Net, at: int, node: Node) -> bool:
    """x and c (1 + erf) are among the factors of a product whose constants make 1/2."""
    for i in (0, 1):
        # node = a * constant, a = x * part; or node = a * b
        constant = net.scalar(node.inputs[i])
        if constant is not None:
            inner = net.producer(node.inputs[1 - i])
            if inner is None or inner.op != "Mul" or net.single(node.inputs[1 - i]) is not node:
                continue
            for x, part in (inner.inputs, inner.inputs[::-1]):
                found = _error_part(net, part, inner)
                if found and found[1] == x and _close(found[2] * constant, 0.5) and net.is_float32(x):
                    net.replace(at, Node("Gelu", (x,), node.outputs, {}), *found[0], inner)
                    return True
            continue
        x, part = node.inputs[i], node.inputs[1 - i]
        found = _error_part(net, part, node)
        if found is None:
            continue
        if found[1] == x and _close(found[2], 0.5) and net.is_float32(x):
            net.replace(at, Node("Gelu", (x,), node.outputs, {}), *found[0])
            return True
        scaled = _factor(net, x, node)
        if scaled and scaled[1] == found[1] and _close(found[2] * scaled[2], 0.5) and net.is_float32(found[1]):
            net.replace(at, Node("Gelu", (found[1],), node.outputs, {}), *found[0], scaled[0])
            return True
    return False
