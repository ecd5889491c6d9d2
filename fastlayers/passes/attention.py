"""Softmax attention that exporters spell out as products becomes one operation, which never writes the scores.

before                                                                after
MatMul(Softmax(Add(Mul(MatMul(q, Transpose(k)), s), mask)), v)        ScaledAttention(q, k, v, mask, scale=s)
p = Softmax(...), MatMul(Where(IsNaN(p), 0, p), v)                    ScaledAttention(..., empty=2)

The scale may be a Mul or a Div, may stand on q or k as well, and may be missing; so may the mask, which must be added. Keys may
be transposed with all axes before the last two made one: Reshape(Transpose(Reshape(k))), as torch.onnx writes it. A query all of
whose keys are masked with -inf gives NaN, as the products would, or, where the graph puts 0 in place of NaN, a sum of weights
of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.graph import Node
from ._net import Net

__all__ = ["apply"]


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each("MatMul"):
        weights, rank, choice = net.producer(node.inputs[0]), net.rank(node.inputs[0]), None
        if weights is not None and weights.op == "Where":
            choice, weights = weights, _without_nan(net, weights)
        if weights is None or weights.op != "Softmax" or rank is None or net.single(node.inputs[0]) is not node:
            continue
        # After the last axis there is nothing to flatten, as softmax did before opset 13.
        if weights.attributes.get("axis", -1) not in (-1, rank - 1) or rank not in (3, 4):
            continue
        _fuse(net, at, node, weights, rank, choice)


def _without_nan(net: Net, choice: Node) -> Node | None:
    """The node whose result a Where is, but for 0 in place of NaN; None if it is another choice, or others read it too."""
    name, test = choice.inputs[2], net.producer(choice.inputs[0])
    if test is None or test.op != "IsNaN" or test.inputs[0] != name or net.single(choice.inputs[0]) is not choice:
        return None
    if net.scalar(choice.inputs[1], name) != 0 or name is None or name in net.kept or len(net.readers.get(name, ())) != 2:
        return None
    return net.producer(name)


def _same(net: Net, a: str | None, b: str | None, axes: Sequence[tuple[int, int]]) -> list[bool]:
    """Whether these axes of two values are known to have the same size."""
    first, second = net.spec(a), net.spec(b)
    if first is None or second is None or first.shape is None or second.shape is None:
        return [False]
    return [first.shape[i] is not None and first.shape[i] == second.shape[j] for i, j in axes]


def _turned(net: Net, name: str | None, rank: int) -> tuple[str | None, list[Node]]:
    """Finds the value with its last two axes swapped that this one is made of, and the nodes that swap them; None if there is
    none."""
    last = net.producer(name)
    if last is None or last.op != "Reshape":
        return None, []
    turn = net.producer(last.inputs[0])
    perm = None if turn is None or turn.op != "Transpose" else tuple(turn.attributes.get("perm") or ())
    if turn is None or not perm or perm != (*range(len(perm) - 2), len(perm) - 1, len(perm) - 2):
        return None, []
    first = net.producer(turn.inputs[0])
    if first is None or first.op != "Reshape" or net.rank(first.inputs[0]) != rank or net.rank(name) != rank:
        return None, []
    source = first.inputs[0]
    # All elements are there, so one size more follows from the others.
    lead = _same(net, source, name, [(i, i) for i in range(rank - 2)])
    inner = _same(net, source, name, [(-1, -2), (-2, -1)]) + _same(net, source, first.outputs[0], [(-1, -1), (-2, -2)])
    if not all(inner) or lead.count(False) > 1:
        return None, []
    return source, [last, turn, first]


def _scaled(net: Net, name: str | None, reader: Node) -> tuple[str | None, float, list[Node]]:
    """A value without the constant factors that it was made with: what is left, their product, the nodes taken away."""
    scale = 1.0
    gone: list[Node] = []
    while True:
        maker = net.producer(name)
        if maker is None or maker.op not in ("Mul", "Div") or net.single(name) is not reader or "activation" in maker.attributes:
            return name, scale, gone
        for i in (1, 0) if maker.op == "Mul" else (1,):
            constant = net.scalar(maker.inputs[i], maker.inputs[1 - i])
            if constant:
                scale = scale * constant if maker.op == "Mul" else scale / constant
                gone.append(maker)
                reader, name = maker, maker.inputs[1 - i]
                break
        else:
            return name, scale, gone


def _fuse(net: Net, at: int, node: Node, weights: Node, rank: int, choice: Node | None) -> None:
    gone = [weights] if choice is None else [choice, net.producer(choice.inputs[0]), weights]
    mask: str | None = None
    scores, scale, taken = _scaled(net, weights.inputs[0], weights)
    adder = net.producer(scores)
    reader: Node = taken[-1] if taken else weights
    if (
        not taken
        and adder is not None
        and adder.op == "Add"
        and net.single(scores) is reader
        and "activation" not in adder.attributes
    ):
        for i in (0, 1):
            inner, factor, more = _scaled(net, adder.inputs[i], adder)
            product = net.producer(inner)
            if product is not None and product.op == "MatMul" and net.single(inner) is (more[-1] if more else adder):
                mask, scores, scale, reader = adder.inputs[1 - i], inner, factor, (more[-1] if more else adder)
                gone += [adder, *more]
                break
    else:
        gone += taken
    product = net.producer(scores)
    if product is None or product.op != "MatMul" or net.single(scores) is not reader:
        return
    mask_rank = net.rank(mask) if mask is not None else 0
    values = (product.inputs[0], product.inputs[1], node.inputs[1])
    if mask_rank is None or mask_rank > rank or any(net.rank(v) != rank or not net.is_float32(v) for v in values):
        return
    if mask is not None and not net.is_float32(mask):
        return
    gone.append(product)
    q, by_q, gone_q = _scaled(net, product.inputs[0], product)
    k, by_k, gone_k = _scaled(net, product.inputs[1], product)
    attributes: dict[str, Any] = {"scale": scale * by_q * by_k} | ({} if choice is None else {"empty": 2})
    last = gone_k[-1] if gone_k else product
    source, nodes = _turned(net, k, rank)
    turn = net.producer(k)
    swap = (*range(rank - 2), rank - 1, rank - 2)
    if source is not None:
        for turning in nodes:
            if net.single(turning.outputs[0]) is not last:
                break
            gone_k, last = [*gone_k, turning], turning
        k = source
    elif turn is not None and turn.op == "Transpose" and tuple(turn.attributes.get("perm") or ()) == swap:
        source = turn.inputs[0]
        if net.single(k) is last:
            gone_k = [*gone_k, turn]
            k, more_scale, more_gone = _scaled(net, source, turn)
            attributes["scale"] *= more_scale
            gone_k += more_gone
        else:
            k = source
    elif turn is not None and turn.op == "Transpose":
        # The keys come from (b, s, h, d) straight to (b, h, d, s): the copy that is left is the usual one to (b, h, s, d).
        perm = tuple(turn.attributes.get("perm") or range(rank)[::-1])
        perm = (*perm[:-2], perm[-1], perm[-2])
        name = f"{k}~keys"
        if name in net.made or net.single(k) is not last:
            return
        place = net.position(turn)
        made = Node("Transpose", turn.inputs, (name,), {"perm": perm})
        spec = net.spec(k)
        net.replace(place, made)
        if spec is not None and spec.shape is not None:
            net.specs[name] = spec._replace(shape=(*spec.shape[:-2], spec.shape[-1], spec.shape[-2]))
        k = name
    else:
        attributes["transposed"] = True
    inputs = (q, k, node.inputs[1]) if mask is None else (q, k, node.inputs[1], mask)
    net.replace(at, Node("ScaledAttention", inputs, node.outputs, attributes), *reversed([*gone, *gone_q, *gone_k]))
