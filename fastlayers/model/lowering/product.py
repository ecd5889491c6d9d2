"""Convolutions, linear layers and softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...functional._activation import resolve
from ...functional._geometry import window
from ...graph.ir import Node
from ...kernels.table import PAD_MODES
from ._base import LOWER, Lowering, after, rule


def _conv(s: Lowering, node: Node, x: str, weight: str, bias: str | None, residual: str | None) -> None:
    get = dict(node.attributes)
    axes = int(node.op[4])
    activation = resolve(node.op, get.pop("activation"))
    place = window(node.op, axes, **get)
    attributes: dict[str, Any] = {
        "strides": place.stride,
        "dilations": place.dilation,
        "group": place.groups,
        **after(activation),
    }
    if place.padding is None:
        attributes["auto_pad"] = "SAME_UPPER"
    else:
        attributes["pads"] = (*(before for before, _ in place.padding), *(after for _, after in place.padding))
    if place.mode != "zeros":
        attributes["pad_mode"] = PAD_MODES[place.mode]
    if place.last:
        attributes.update(x_last=True, out_last=True)
    single = s.rank(node) == axes + 1
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


@rule
def _linear(s: Lowering, node: Node, x: str, weight: str, bias: str | None, residual: str | None) -> None:
    attributes = after(resolve("linear", node.attributes["activation"]))
    s.add("Linear", (x, weight, bias, residual) if residual is not None else (x, weight, bias), node.outputs, **attributes)


LOWER["softmax"] = lambda s, node, x: s.add("Softmax", (x,), node.outputs, axis=node.attributes["dim"])
LOWER["log_softmax"] = lambda s, node, x: s.add("LogSoftmax", (x,), node.outputs, axis=node.attributes["dim"])
