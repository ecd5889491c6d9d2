"""Tokens that become a map, and maps that become tokens, turn with all axes of the map apart, which `layout` may then leave out.

before                                                         after
Reshape(Transpose(x, (0, 2, 1)), (n, c, h, w))                 Transpose(Reshape(x, (n, h, w, c)), (0, 3, 1, 2))
Transpose(Reshape(y, (n, c, h w)), (0, 2, 1))                  Reshape(Transpose(y, (0, 2, 3, 1)), (n, h w, c))
"""

from __future__ import annotations

import numpy as np

from ..ir.graph import Node
from ._net import Net

__all__ = ["apply"]


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each("Transpose"):
        _to_tokens(net, at, node)
    for at, node in net.each("Reshape"):
        _to_map(net, at, node)


def _sizes(net: Net, tokens: str | None, map_: str | None) -> tuple[int, int, int] | None:
    """Channels, height and width, if these are known and one value is (n, h w, c), the other one (n, c, h, w)."""
    first, second = net.spec(tokens), net.spec(map_)
    if first is None or second is None or len(first.shape or ()) != 3 or len(second.shape or ()) != 4:
        return None
    (_, count, width), (_, c, h, w) = first.shape, second.shape  # type: ignore[misc]
    if not (isinstance(c, int) and isinstance(h, int) and isinstance(w, int)) or min(c, h, w) < 1:
        return None
    return (c, h, w) if (count, width) == (h * w, c) else None


def _put(net: Net, at: int, node: Node, before: Node, op: tuple[str, str], perm: tuple[int, ...], shape: list[int]) -> None:
    """Two nodes in place of `before` and of the one at `at`: one turns, the other one has the shape."""
    x, between = before.inputs[0], net.name(node.outputs[0])
    spec = net.spec(x)
    if spec is None or spec.shape is None:
        return
    wanted = net.constant(np.array(shape, np.int64), node.outputs[0])
    told = {"Transpose": ((), {"perm": perm}), "Reshape": ((wanted,), {})}
    (more, attributes), (last, others) = told[op[0]], told[op[1]]
    net.replace(at, Node(op[1], (between, *last), node.outputs, others))
    net.replace(net.position(before), Node(op[0], (x, *more), (between,), attributes))
    sizes = (spec.shape[0], *shape[1:]) if op[0] == "Reshape" else tuple(spec.shape[i] for i in perm)
    net.specs[between] = spec._replace(shape=sizes)


def _to_map(net: Net, at: int, node: Node) -> None:
    turn = net.producer(node.inputs[0])
    if turn is None or turn.op != "Transpose" or net.single(node.inputs[0]) is not node:
        return
    found = _sizes(net, turn.inputs[0], node.outputs[0])
    if found is not None and tuple(turn.attributes.get("perm") or ()) == (0, 2, 1):
        c, h, w = found
        _put(net, at, node, turn, ("Reshape", "Transpose"), (0, 3, 1, 2), [-1, h, w, c])


def _to_tokens(net: Net, at: int, node: Node) -> None:
    view = net.producer(node.inputs[0])
    if view is None or view.op not in ("Reshape", "Flatten") or net.single(node.inputs[0]) is not node:
        return
    found = _sizes(net, node.outputs[0], view.inputs[0])
    if found is not None and tuple(node.attributes.get("perm") or ()) == (0, 2, 1):
        c, h, w = found
        _put(net, at, node, view, ("Transpose", "Reshape"), (0, 2, 3, 1), [-1, h * w, c])
