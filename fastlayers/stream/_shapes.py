"""Operators that move values, and arithmetic of sizes: where the axis of time goes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..ir.graph import Node
from ._times import TIME, Kind, Sizes, Time
from .rewrite import RULES, SIZED, Rewriter, by_steps, sizes_of, where

_FAR = (1 << 31) - 1  # an end this far or farther stands for the axis's own


def _constants(rw: Rewriter, node: Node, i: int) -> list[int] | None:
    """The integers of input i; None if it was left out."""
    if i >= len(node.inputs) or node.inputs[i] is None:
        return None
    array = rw.value(node.inputs[i])
    if array is None:
        rw.refuse(node, f"takes {node.inputs[i]!r}, which is not known beforehand")
    return [int(v) for v in array.reshape(-1)]


def _first(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> tuple[Time, int]:
    if not isinstance(kinds[0], Time) or any(isinstance(k, Time) for k in kinds[1:]):
        rw.refuse(node, "takes parameters that change with time")
    return kinds[0], rw.rank_of(node, node.inputs[0])


def _transpose(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time, rank = _first(rw, node, kinds)
    perm = [p % rank for p in node.attributes.get("perm") or range(rank - 1, -1, -1)]
    rw.append(node)
    return (time._replace(axis=perm.index(time.axis)),)


def _squeeze(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time, rank = _first(rw, node, kinds)
    axes = _constants(rw, node, 1)
    if axes is None:
        rw.refuse(node, "takes out all axes of size 1, which may be those of time: expected its axes")
    gone = {a % rank for a in axes}
    if time.axis in gone:
        rw.refuse(node, "takes out the axis of time, which has one step only in this case")
    rw.append(node)
    return (time._replace(axis=time.axis - sum(a < time.axis for a in gone)),)


def _unsqueeze(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time, rank = _first(rw, node, kinds)
    axes = _constants(rw, node, 1) or []
    new = {a % (rank + len(axes)) for a in axes}
    rw.append(node)
    return (time._replace(axis=[i for i in range(rank + len(axes)) if i not in new][time.axis]),)


def _concat(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time = rw.together(node, *kinds)
    rank = rw.rank_of(node, node.inputs[0])
    if node.attributes["axis"] % rank == time.axis:
        rw.refuse(node, "puts something before the first step or after the last one")
    if not all(isinstance(k, Time) and k.axis == time.axis for k in kinds):
        rw.refuse(node, "joins time steps with a value that has none: only the whole sequence has that many")
    rw.append(node)
    return (time,)


def _split(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time, rank = _first(rw, node, kinds)
    if node.attributes.get("axis", 0) % rank == time.axis:
        rw.refuse(node, "cuts the sequence into parts")
    rw.append(node)
    return (time,) * len(node.outputs)


def _slice(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time, rank = _first(rw, node, kinds)
    starts, ends = _constants(rw, node, 1) or [], _constants(rw, node, 2) or []
    axes = [a % rank for a in _constants(rw, node, 3) or range(len(starts))]
    steps = _constants(rw, node, 4) or [1] * len(starts)
    if time.axis not in axes:
        rw.append(node)
        return (time,)
    at = axes.index(time.axis)
    if steps[at] < 0:
        rw.refuse(node, "reads the steps backwards: it begins at the last one")
    if steps[at] != 1 or starts[at] != 0:
        rw.refuse(node, f"takes the steps from {starts[at]} on, every {steps[at]}th: expected all")
    if ends[at] < _FAR:
        if ends[at] >= 0 or -ends[at] > time.late:
            rw.refuse(node, f"ends at step {ends[at]}: only the whole sequence has such a one")
        time = time._replace(late=time.late + ends[at])
    keep = [i for i in range(len(axes)) if i != at]
    if keep:
        parts = [rw.ints([part[i] for i in keep]) for part in (starts, ends, axes, steps)]
        rw.add("Slice", [node.inputs[0], *parts], *node.outputs)
    else:
        rw.add("Identity", [node.inputs[0]], *node.outputs)
    return (time,)


def _gather(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Gather and Embedding."""
    data, index = kinds[:2]
    ranks = [rw.rank_of(node, name) for name in node.inputs[:2]]
    axis = node.attributes.get("axis", 0) % max(ranks[0], 1)
    if isinstance(data, Time) and isinstance(index, Time):
        rw.refuse(node, "looks up steps by steps")
    if isinstance(index, Time):
        rw.append(node)
        return (index._replace(axis=axis + index.axis),)
    if not isinstance(data, Time):
        rw.refuse(node, "looks up a value without time steps")
    if axis == data.axis:
        rw.refuse(node, "takes single steps out of the sequence")
    rw.append(node)
    return (data if data.axis < axis else data._replace(axis=data.axis + ranks[1] - 1),)


def _pad(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Before the first step, with a constant; what is put after the last one comes late."""
    time, rank = _first(rw, node, kinds)
    pads = _constants(rw, node, 1) or []
    axes = [a % rank for a in _constants(rw, node, 3) or range(rank)]
    if time.axis not in axes or not (pads[axes.index(time.axis)] or pads[len(axes) + axes.index(time.axis)]):
        rw.append(node)
        return (time,)
    at = axes.index(time.axis)
    before, behind = pads[at], pads[len(axes) + at]
    given = rw.value(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else 0.0
    if node.attributes.get("mode", "constant") != "constant" or given is None or min(before, behind) < 0:
        rw.refuse(node, "puts steps of the sequence itself, or none, before or after it: expected a constant")
    if before and (time.lead < 0 or time.late):
        rw.refuse(node, "is put before a sequence that begins late")
    fill = float(given) if isinstance(given, float) else float(given.reshape(-1)[0])
    x, out = node.inputs[0], node.outputs[0]
    rest = [0 if i % len(axes) == at else p for i, p in enumerate(pads)]
    padded = rw.name(f"{out}~padded") if any(rest) else out
    if before:
        state, after = rw.state(node, "begun", rw.dtype_of(node, x), rw.shape(x) or (), time.axis)
        wide, count = rw.name(f"{out}~window"), rw.name(f"{out}~count")
        rw.add("StreamWindow", [x, state], wide, after, count, axis=time.axis, reach=1, step=1, before=before, fill=fill)
        rw.add("StreamCut", [wide, count], padded, axis=time.axis)
    else:
        rw.add("Identity", [x], padded)
    if any(rest):
        rw.add("Pad", [padded, rw.ints(rest), *node.inputs[2:]], out, **node.attributes)
    made = time._replace(lead=time.lead + before * time.step, late=time.late + behind)
    if behind and not time.late:
        made = made._replace(culprit=f"{where(node)} looks ahead: it puts {behind} steps after the last one")
    return (made,)


# ---- shapes --------------------------------------------------------------------------------------------------------------


def _shape(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    (time, _), x = _first(rw, node, kinds), node.inputs[0]
    dims = [TIME if i == time.axis else f"{x}:{i}" if d is None else d for i, d in enumerate(rw.shape(x) or ())]
    rw.append(node)
    end = node.attributes.get("end")
    return (Sizes(tuple(dims[slice(node.attributes.get("start", 0), end)]), time),)


def _reshape(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """The axis of time stays separate: what is before it, and after it, has as many values as it had."""
    time = kinds[0]
    if not isinstance(time, Time):
        rw.refuse(node, "has a shape with the number of steps")
    shape = list(rw.shape(node.inputs[0]) or ())
    rw.rank_of(node, node.inputs[0])
    wanted = sizes_of(rw, node.inputs[1] or "", kinds[1])
    if wanted is None:
        rw.refuse(node, "has a shape that is not known beforehand")
    if wanted.timed and wanted.time.pace != time.pace:
        rw.refuse(node, "has the number of steps of another value in its shape")
    given = [TIME if i == time.axis else f"{node.inputs[0]}:{i}" if d is None else d for i, d in enumerate(shape)]
    zero_copies = not node.attributes.get("allowzero", 0)
    target = [given[i] if e == 0 and zero_copies and i < len(given) else e for i, e in enumerate(wanted.entries)]
    at, literal = None, False
    places = [i for i, e in enumerate(target) if e is TIME] or [i for i, e in enumerate(target) if e == -1]
    if not places and rw.value(node.inputs[1]) is not None:  # the number of steps of the whole sequence stands there
        length = rw.length(node.inputs[0], time)
        places, literal = [i for i, e in enumerate(target) if e == length], True
    for i in places:
        left, right = _same(given[: time.axis], target[:i]), _same(given[time.axis + 1 :], target[i + 1 :])
        # One -1 on a side takes what remains, if the other side agrees.
        if (left is True and right is not False) or (right is True and left is not False):
            at = i
    if at is None:
        rw.refuse(node, f"mixes steps with other axes, or has their number in its shape {wanted.entries}: name that size")
    if literal:
        entries = [-1 if i == at else e for i, e in enumerate(wanted.entries)]
        rw.append(Node(node.op, (node.inputs[0], rw.ints(entries)), node.outputs, node.attributes))
    else:
        rw.append(node)
    return (time._replace(axis=at),)


def _same(given: Sequence[Any], target: Sequence[Any]) -> bool | None:
    """Whether two parts of shapes have as many values; None if that hangs on a -1."""
    if any(e == -1 for e in target):
        return None

    def product(entries: Sequence[Any]) -> tuple[int, Counter[Any]]:
        return math.prod(e for e in entries if isinstance(e, int)), Counter(e for e in entries if not isinstance(e, int))

    return product(given) == product(target)


def _flatten(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time, rank = _first(rw, node, kinds)
    if time.axis or node.attributes.get("axis", 1) % max(rank, 1) != 1:
        rw.refuse(node, "mixes steps with other axes")
    rw.append(node)
    return (time,)


# Operators on vectors of sizes. What is computed of them otherwise is refused if it has to do with time.


def _sizes_gather(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    sizes, index = kinds[0], rw.value(node.inputs[1])
    if not isinstance(sizes, Sizes) or index is None:
        return _other(rw, node, kinds)
    rw.append(node)
    return (Sizes(tuple(sizes.entries[int(i)] for i in index.reshape(-1)), sizes.time),)


def _sizes_slice(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    sizes = kinds[0]
    if not isinstance(sizes, Sizes):
        return _other(rw, node, kinds)
    parts = [found[0] if (found := _constants(rw, node, i)) else None for i in (1, 2, 4)]
    rw.append(node)
    return (sizes._replace(entries=sizes.entries[slice(*parts)]),)


def _sizes_concat(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    found = [sizes_of(rw, name or "", kind) for name, kind in zip(node.inputs, kinds, strict=True)]
    if any(part is None for part in found):
        return _other(rw, node, kinds)
    parts = [part for part in found if part is not None]
    timed = [part.time for part in parts if part.timed]
    rw.append(node)
    return (Sizes(tuple(e for part in parts for e in part.entries), timed[0] if timed else parts[0].time),)


def _sizes_same(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    if not isinstance(kinds[0], Sizes):
        return by_steps(rw, node, kinds)
    rw.append(node)
    return (kinds[0],)


def _filled(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """ConstantOfShape, and Expand of what has no time: the same at every step."""
    sizes = kinds[-1]
    if not isinstance(sizes, Sizes) or not sizes.timed:
        return _other(rw, node, kinds)
    at = [i for i, e in enumerate(sizes.entries) if e is TIME]
    if len(at) > 1 or (node.op == "Expand" and kinds[0] is not None):
        rw.refuse(node, "has the number of steps in its shape more than once, or fills what has steps already")
    if node.op == "Expand":
        shape = rw.shape(node.inputs[0])
        back = len(sizes.entries) - at[0]
        if shape is None or (len(shape) >= back and shape[len(shape) - back] != 1):
            rw.refuse(node, f"takes {node.inputs[0]!r} of shape {shape}, which is another one at every step")
    rw.append(node)
    return (sizes.time._replace(axis=at[0]),)


def _other(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    timed = any(isinstance(k, Sizes) and k.timed for k in kinds)
    plain: list[Kind] = [None if isinstance(k, Sizes) else k for k in kinds]
    if timed:
        rw.refuse(node, "computes with the number of steps: only the whole sequence has it")
    if any(k is not None for k in plain):
        return by_steps(rw, node, plain)
    rw.append(node)
    return (None,) * len(node.outputs)


def _sizes_reshape(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    if isinstance(kinds[0], Sizes):
        return _sizes_same(rw, node, kinds)
    return _reshape(rw, node, kinds) if isinstance(kinds[0], Time) else _other(rw, node, kinds)


RULES.update(
    transpose=_transpose, squeeze=_squeeze, unsqueeze=_unsqueeze, concat=_concat, split=_split, slice=_slice, gather=_gather,
    pad=_pad, shape=_shape, reshape=_reshape, flatten=_flatten,
)  # fmt: skip
SIZED.update(
    gather=_sizes_gather, slice=_sizes_slice, concat=_sizes_concat, filled=_filled, same=_sizes_same, reshape=_sizes_reshape
)
