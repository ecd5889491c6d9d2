"""Convolutions and transposed convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import UnsupportedError
from ...functional._activation import resolve
from ...functional._geometry import settled, window
from ...functional._transposed import Transposed, crop, output_sizes, transposed
from ...functional.conv import attributes as conv_attributes
from ...graph.ir import Node
from ._base import LOWER, Lowering, after


def _batched(s: Lowering, node: Node, axes: int, x: str, make: Callable[[str, str | Sequence[str]], str]) -> None:
    """What `make` adds for an input and an output, with a batch of one around it where the input has none."""
    if s.rank(node) == axes + 2:
        make(x, node.outputs)
        return
    made = make(s.add("Unsqueeze", (x, s.ints(0)), s.name("batch")), s.name("batch"))
    s.add("Squeeze", (made, s.ints(0)), node.outputs)


def _conv(s: Lowering, node: Node, x: str, weight: str, bias: str | None, residual: str | None) -> None:
    get = dict(node.attributes)
    axes = int(node.op[4])
    activation = resolve(node.op, get.pop("activation"))
    place = settled(window(node.op, axes, **get, causal=True), s.shapes[weight][2:])
    if place.causal:
        raise UnsupportedError(f"compile: {node.op} with padding='causal': expected weights whose kernel's size is known")
    attributes = conv_attributes(place, activation)
    if residual is not None and s.rank(node) == axes + 1:
        residual = s.add("Unsqueeze", (residual, s.ints(0)), s.name("batch"))
    rest = (weight, bias) if residual is None else (weight, bias, residual)
    _batched(s, node, axes, x, lambda given, output: s.add("Conv", (given, *rest), output, **attributes))


LOWER.update(conv1d=_conv, conv2d=_conv, conv3d=_conv)


def _conv_transpose(s: Lowering, node: Node, x: str, weight: str, bias: str | None) -> None:
    get = dict(node.attributes)
    axes = int(node.op[-2])
    activation, size = resolve(node.op, get.pop("activation")), get.pop("output_size")
    place = transposed(node.op, axes, **get)
    cuts = [crop(place, axis, k) for axis, k in enumerate(_kernel(s, node, weight, place))]
    attributes: dict[str, Any] = {
        "strides": place.stride,
        "dilations": place.dilation,
        "group": place.groups,
        "pads": (*(cut.before for cut in cuts), *(cut.after for cut in cuts)),
        **after(activation),
    }
    sizes = output_sizes(place, size, s.rank(node))
    if sizes is None:
        attributes["output_padding"] = tuple(cut.extra for cut in cuts)
    else:
        attributes["output_size"] = sizes
    if place.last:
        attributes.update(x_last=True, out_last=True)
    _batched(s, node, axes, x, lambda given, output: s.add("ConvTranspose", (given, weight, bias), output, **attributes))


def _kernel(s: Lowering, node: Node, weight: str, place: Transposed) -> list[int]:
    """Sizes of the kernel; where they are not known, numbers for a padding do without."""
    if weight in s.graph.constants:
        return list(s.graph.constants[weight].shape[2:])
    values = {v.name: v for v in (*s.graph.inputs, *s.graph.values.values())}
    sizes = (values[weight].shape or ())[2:]
    if isinstance(place.padding, str) and not all(isinstance(k, int) for k in sizes):
        raise UnsupportedError(
            f"compile: {node.op} with padding={place.padding!r}: expected weights whose kernel's size is known"
        )
    return [k if isinstance(k, int) else 1 for k in sizes]


LOWER.update(conv_transpose1d=_conv_transpose, conv_transpose2d=_conv_transpose, conv_transpose3d=_conv_transpose)
