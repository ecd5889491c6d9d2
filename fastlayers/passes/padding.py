"""Zeros around an image that one convolution reads become its own padding, which costs no copy.

before                                             after
Conv(Pad(x, pads), W), with padding (a, b)         Conv(x, W), with padding (a, b) + pads
"""

from __future__ import annotations

from ..ir.graph import Node
from ._net import Net

__all__ = ["apply"]


def apply(net: Net) -> None:
    """See the module."""
    for at, node in net.each():
        if net.traits(node).padding is None:
            continue
        pad = net.producer(node.inputs[0])
        if pad is None or pad.op != "Pad" or net.single(pad.outputs[0]) is not node or node.inputs.count(pad.outputs[0]) > 1:
            continue
        own, given = _own(net, node), _spatial(net, node, pad)
        if own is None or given is None or not _same_filling(net, node, pad):
            continue
        attributes = {key: value for key, value in node.attributes.items() if key != "auto_pad"}
        attributes["pads"] = tuple(a + b for a, b in zip(own, given, strict=True))
        net.replace(at, Node(node.op, (pad.inputs[0], *node.inputs[1:]), node.outputs, attributes), pad)


def _own(net: Net, node: Node) -> tuple[int, ...] | None:
    """Padding of the convolution itself, if it does not depend on sizes."""
    get, rank = node.attributes.get, net.rank(node.inputs[0])
    if rank is None or rank < 3 or get("pad_mode", 0) or get("auto_pad", "NOTSET") not in ("NOTSET", "VALID", ""):
        return None
    none = (0,) * (2 * (rank - 2))
    own = none if get("auto_pad", "NOTSET") == "VALID" else tuple(get("pads") or none)
    return own if len(own) == len(none) else None


def _spatial(net: Net, node: Node, pad: Node) -> tuple[int, ...] | None:
    """Padding of a Pad along the spatial axes, if it pads no others: before each, then after each."""
    found, rank = net.value(pad.inputs[1] if len(pad.inputs) > 1 else None), net.rank(node.inputs[0])
    if found is None or rank is None or found.size != 2 * rank or (len(pad.inputs) > 3 and pad.inputs[3] is not None):
        return None
    pads = [int(v) for v in found.reshape(-1)]
    first = 1 if node.attributes.get("x_last", False) else 2
    space = range(first, first + rank - 2)
    if min(pads) < 0 or any(pads[i] or pads[rank + i] for i in range(rank) if i not in space):
        return None
    return (*(pads[i] for i in space), *(pads[rank + i] for i in space))


def _same_filling(net: Net, node: Node, pad: Node) -> bool:
    """Whether Pad fills with what the convolution would: zeros, or the zero point."""
    if pad.attributes.get("mode", "constant") != "constant":
        return False
    value = pad.inputs[2] if len(pad.inputs) > 2 else None
    fill, padding = 0.0 if value is None else net.parameter(value), net.traits(node).padding
    return fill is not None and padding is not None and fill == padding(net.view(node))
