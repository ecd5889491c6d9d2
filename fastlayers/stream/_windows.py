"""Convolutions and pools: those along time get the steps that they still need from a history; padding before the first step is
its beginning. What is padded after the last step would look ahead, unless it is cut off again (`_shapes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..calls.geometry import Window
from ..ir.graph import Node
from ..operators import View
from ..operators.window import window
from ._times import Kind, Time
from .rewrite import RULES, Rewriter, where, why


def _conv(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    if not isinstance(kinds[0], Time) or any(k is not None for k in kinds[1:3]):
        rw.refuse(node, "takes weights that change with time")
    weight = rw.shape(node.inputs[1])
    kernel = node.attributes.get("kernel_shape") or (weight or ())[2:]
    if not kernel or not all(isinstance(k, int) for k in kernel):
        rw.refuse(node, "has a kernel whose size is not known")
    return _slid(rw, node, kinds, tuple(kernel), 0.0)


def _pool(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    if len(node.outputs) > 1 and node.outputs[1]:
        rw.refuse(node, "gives positions, which count all steps")
    dtype = rw.dtype_of(node, node.inputs[0])
    fill = -np.inf if node.op == "MaxPool" else 0.0
    if node.op == "MaxPool" and dtype.kind != "f":
        rw.refuse(node, f"takes the largest of {dtype} values: only floats are supported")
    return _slid(rw, node, kinds, tuple(node.attributes.get("kernel_shape", ())), fill)


def _slid(rw: Rewriter, node: Node, kinds: Sequence[Kind], kernel: tuple[int, ...], fill: float) -> Sequence[Kind]:
    time, get = rw.together(node, kinds[0]), node.attributes.get
    if time.axis == 0:  # every step is its own image
        together = rw.together(node, *kinds)
        for name, kind in zip(node.inputs[3:4], kinds[3:4], strict=True):
            if name and (kind.axis != 0 if isinstance(kind, Time) else (rw.shape(name) or (None,))[0] != 1):
                rw.refuse(node, f"adds {name!r}, which is another one at every step")
        rw.append(node)
        return (together,)
    rank, last = rw.rank_of(node, node.inputs[0]), bool(get("x_last", False))
    at = time.axis - (1 if last else 2)
    if not 0 <= at < len(kernel) or rank != len(kernel) + 2:
        rw.refuse(node, "sums over all steps: they are its channels")
    place = _place(rw, node, kernel, at)
    (before, behind), reach, step = (place.pads or ())[at], place.reach[at], place.stride[at]
    _check(rw, node, time, before, behind, reach, step)
    out_last = bool(get("out_last", last and node.op != "Conv"))  # pools leave the layout as it is
    out_axis = at + (1 if out_last else 2)
    late = time.late + behind
    made = time.after(reach, step, before)._replace(axis=out_axis, late=late)
    if behind and not time.late:
        made = made._replace(
            culprit=f"{where(node)} looks ahead: it is padded with {behind} after the last step; expected padding before the "
            "first step alone, or steps that are cut off again"
        )
    pads = tuple((0, 0) if i == at else pair for i, pair in enumerate(place.pads or ()))
    attributes: dict[str, Any] = {k: v for k, v in node.attributes.items() if k not in ("auto_pad", "pads", "ceil_mode")}
    attributes["pads"] = (*(p for p, _ in pads), *(p for _, p in pads))
    if reach == step == 1 and not before:
        state, after = _nothing(rw, rw.dtype_of(node, node.inputs[0])), rw.name(f"{node.outputs[0]}~rest")
    else:
        x = node.inputs[0]
        state, after = rw.state(node, "history", rw.dtype_of(node, x), rw.shape(x) or (), time.axis, reach - 1)
    wide, count = rw.name(f"{node.outputs[0]}~window"), rw.name(f"{node.outputs[0]}~count")
    rw.add("StreamWindow", [node.inputs[0], state], wide, after, count,
           axis=time.axis, reach=reach, step=step, before=before, fill=fill)  # fmt: skip
    inputs = [wide, *node.inputs[1:]]
    for i, kind in enumerate(kinds[3:4], 3):  # what is added; scales of the weights come after it
        if isinstance(kind, Time):
            if kind.axis != out_axis or kind.pace != made.pace:
                rw.refuse(node, "adds values whose steps come at different times")
            inputs[i] = rw.add("StreamFill", [node.inputs[i], count], axis=out_axis)
        elif node.inputs[i] and (rw.shape(node.inputs[i]) or (None,) * 9)[-(rank - out_axis) :][:1] != (1,):
            rw.refuse(node, f"adds {node.inputs[i]!r}, which is another one at every step: only the whole sequence has it")
    own = rw.add(node.op, inputs, rw.name(f"{node.outputs[0]}~own"), **attributes)
    rw.add("StreamCut", [own, count], node.outputs[0], axis=out_axis)
    return (made,)


def _nothing(rw: Rewriter, dtype: Any) -> str:
    """A state that never begins."""
    return rw.constant(np.zeros((), dtype), "nothing")


def _check(rw: Rewriter, node: Node, time: Time, before: int, behind: int, reach: int, step: int) -> None:
    get = node.attributes.get
    if min(before, behind) < 0:
        rw.refuse(node, "cuts steps off, by padding with less than none")
    if before >= reach and (time.lead < 0 or time.late):
        rw.refuse(node, f"is padded with {before} before a sequence that begins late: expected less than its {reach} steps")
    if step > 1 and (behind or time.late):
        rw.refuse(node, "looks ahead: it is padded after the last step, and has strides along time")
    if step > reach:
        rw.refuse(node, f"leaves out steps: its stride {step} is larger than the {reach} steps of its kernel")
    if get("pad_mode", 0) and (before or behind):
        rw.refuse(node, "is padded with steps of the sequence itself: expected zeros")
    if get("ceil_mode", 0) and step > 1:
        rw.refuse(node, "looks ahead: ceil_mode lets a last window overhang")
    if node.op == "AveragePool" and (before or behind) and not get("count_include_pad", 0):
        rw.refuse(node, "averages over fewer values at the ends: expected count_include_pad=1, or no padding along time")


def _place(rw: Rewriter, node: Node, kernel: tuple[int, ...], at: int) -> Window:
    """The window with its padding as integers, automatic padding too."""
    found = window(View(node, [], []), kernel, None)
    if found.pads is not None:
        return found
    shape, last = rw.shape(node.inputs[0]) or (), bool(node.attributes.get("x_last", False))
    space = list(shape[1:-1] if last else shape[2:])
    if found.stride[at] != 1:
        rw.refuse(node, "has a padding along time that depends on the number of all steps")
    space[at] = found.reach[at]  # with a stride of 1 the padding is the same for every length
    place = window(View(node, [], []), kernel, space)
    if place.pads is None:
        rw.refuse(node, "has a padding that depends on sizes that are not known")
    return place


def _images(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """A rule for operators that look at everything but the batch."""
    time = rw.together(node, *kinds)
    if time.axis or any(k is not None for k in kinds[1:]):
        rw.refuse(node, f"looks at the whole sequence{why(node)}")
    rw.append(node)
    return (time,)


RULES.update(convolution=_conv, window=_pool, image=_images)
