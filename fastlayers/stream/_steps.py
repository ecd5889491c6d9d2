"""Operators that take each step for itself, and those that hand a state from step to step."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import Node
from ._times import LATEST, Kind, Time
from .rewrite import RULES, Rewriter, Rule


def _elementwise(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    ranks = {name: rw.rank_of(node, name) for name in node.inputs if name}
    pairs = [(name, kind) for name, kind in zip(node.inputs, kinds, strict=True) if name]
    time = rw.together(node, *kinds)
    places = {ranks[name] - kind.axis for name, kind in pairs if isinstance(kind, Time)}  # counted from the back
    if len(places) > 1:
        rw.refuse(node, "joins values whose axes of time are not one over the other")
    (back,) = places
    for name, kind in pairs:
        _fixed_along(rw, node, name, kind, back)
    rw.append(node)
    return (time._replace(axis=max(ranks.values()) - back),) * len(node.outputs)


def _fixed_along(rw: Rewriter, node: Node, name: str, kind: Kind, back: int) -> None:
    """Refuses a value without time that differs from step to step; `back` is the axis of time, counted from the back."""
    shape = rw.shape(name) or ()
    if not isinstance(kind, Time) and len(shape) >= back and shape[len(shape) - back] != 1:
        rw.refuse(node, f"takes {name!r} of shape {shape}, which is another one at every step: only the whole sequence has it")


def _channels(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """Affine and BatchNormalization: values per channel."""
    time = _only_first(rw, node, kinds)
    if node.attributes.get("axis", 1) % rw.rank_of(node, node.inputs[0]) == time.axis or node.attributes.get("training_mode", 0):
        rw.refuse(node, "has values for every step")
    rw.append(node)
    return (time,) * len(node.outputs)


def _only_first(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Time:
    """The first input's time; nothing else may have one."""
    if not isinstance(kinds[0], Time) or any(k is not None for k in kinds[1:]):
        rw.refuse(node, "takes parameters that change with time: they must be the same at every step")
    return kinds[0]


# ---- products ---------------------------------------------------------------------------------------------------------


def _matmul(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    if all(isinstance(k, Time) for k in kinds):
        rw.refuse(node, "multiplies steps with steps, as attention does: it looks at all of them")
    at = 0 if isinstance(kinds[0], Time) else 1
    time = rw.together(node, kinds[at])
    ranks = [rw.rank_of(node, name) for name in node.inputs]
    if min(ranks) < 2 and (at or ranks[0] < 2):
        rw.refuse(node, "multiplies with a vector along time")
    back = ranks[at] - time.axis
    if back == (1 if at == 0 else 2):
        rw.refuse(node, "sums over all steps")
    if back > 2:
        _fixed_along(rw, node, node.inputs[1 - at] or "", None, back)
    rw.append(node)
    return (time._replace(axis=max(ranks) - back),)


def _weighted(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Time:
    time = _only_first(rw, node, kinds)
    if time.axis == rw.rank_of(node, node.inputs[0]) - 1:
        rw.refuse(node, "sums over all steps")
    return time


def _product(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time = _weighted(rw, node, kinds)
    rw.append(node)
    return (time,)


def _linear(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time = _weighted(rw, node, kinds[:3])
    back = rw.rank_of(node, node.inputs[0]) - time.axis
    for name, kind in zip(node.inputs[3:], kinds[3:], strict=True):
        if name:
            if isinstance(kind, Time) and rw.rank_of(node, name) - kind.axis != back:
                rw.refuse(node, "joins values whose axes of time are not one over the other")
            _fixed_along(rw, node, name, kind, back)
    time = rw.together(node, time, *kinds[3:])
    rw.append(node)
    return (time,)


def _gemm(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time = _only_first(rw, node, kinds)
    if time.axis != (1 if node.attributes.get("transA", 0) else 0):
        rw.refuse(node, "sums over all steps")
    if len(node.inputs) > 2 and node.inputs[2]:
        _fixed_along(rw, node, node.inputs[2], None, 2)
    rw.append(node)
    return (time._replace(axis=0),)


# ---- along other axes --------------------------------------------------------------------------------------------------


def _along(behind: bool) -> Rule:
    """Softmax and its kin: along `axis`, the last by default; with `after`, along all axes from it on."""

    def rule(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
        time, rank = _only_first(rw, node, kinds), rw.rank_of(node, node.inputs[0])
        axis = node.attributes.get("axis", -1) % max(rank, 1)
        if time.axis == axis or (time.axis > axis and (behind or node.attributes.get("flatten", False))):
            rw.refuse(node, "goes over all steps")
        rw.append(node)
        return (time,) * len(node.outputs)

    return rule


def _reduce(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time, rank = _only_first(rw, node, kinds), rw.rank_of(node, node.inputs[0])
    if node.op in ("ArgMax", "ArgMin"):
        axes: Sequence[int] = (node.attributes.get("axis", 0),)
    elif len(node.inputs) > 1 and node.inputs[1]:
        found = rw.value(node.inputs[1])
        if found is None:
            rw.refuse(node, "goes over axes that are not known beforehand")
        axes = [int(a) for a in found.reshape(-1)]
    else:
        axes = ()
    if not axes and not node.attributes.get("noop_with_empty_axes", 0):
        axes = range(rank)
    gone = {a % rank for a in axes}
    if time.axis in gone:
        rw.refuse(node, "goes over all steps")
    rw.append(node)
    return (time if node.attributes.get("keepdims", 1) else time._replace(axis=time.axis - sum(a < time.axis for a in gone)),)


def _lrn(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    time = _only_first(rw, node, kinds)
    if time.axis == (rw.rank_of(node, node.inputs[0]) - 1 if node.attributes.get("x_last", False) else 1):
        rw.refuse(node, "covers steps on both sides of each")
    rw.append(node)
    return (time,)


# ---- states ------------------------------------------------------------------------------------------------------------


def _recurrent(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """LSTM, GRU and RNN: h, and c, are passed on."""
    time, get = _only_first(rw, node, kinds), node.attributes.get
    layout, joined = int(get("layout", 0)), bool(get("joined", False))
    if time.axis != layout:
        rw.refuse(node, f"has time along axis {layout}, the stream's is along axis {time.axis} of its input")
    if get("direction", "forward") != "forward":
        rw.refuse(node, f"goes {'both ways' if get('direction') == 'bidirectional' else 'backwards'}: it begins at the last step")
    inputs = [*node.inputs, *(None,) * 9][:9]
    if inputs[4]:
        rw.refuse(node, "takes lengths of sequences: a stream has no end")
    if time.late:
        rw.refuse(node, f"comes after an operator that looks ahead: {time.culprit}")
    hidden = (rw.shape(inputs[2]) or (None,) * 3)[2]
    sizes = [hidden] if node.op != "LSTM" else [hidden, (rw.shape(inputs[8]) or (None, None, hidden))[2]]
    if not all(isinstance(size, int) for size in sizes):
        rw.refuse(node, "has weights whose sizes are not known")
    outputs = [*node.outputs, *("",) * 3][: 1 + len(sizes)]
    afters = []
    for i, size in enumerate(sizes):
        lead = (-1, 1) if layout and not joined else (1, -1 - (0 if layout else 1))
        like = rw.shape(inputs[0]) or (None,) * 3
        shape = [d if d >= 0 else like[-1 - d] for d in (*lead, size)]
        before, after = rw.state(node, "hc"[i], rw.dtype_of(node, inputs[0]), shape)
        begun = [before, inputs[0], *((inputs[5 + i],) if inputs[5 + i] else ())]
        inputs[5 + i] = rw.add("StreamStart", begun, shape=(*lead, size))
        outputs[1 + i] = outputs[1 + i] or rw.name(f"{after}~own")
        afters.append(after)
    while inputs[-1] is None:
        inputs.pop()
    rw.append(Node(node.op, tuple(inputs), tuple(outputs), node.attributes))
    for own, after in zip(outputs[1:], afters, strict=True):
        rw.add("Identity", [own], after)
    return (time, *(LATEST,) * len(sizes))


def _cumsum(rw: Rewriter, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind]:
    """The sum so far is passed on."""
    time, axes = _only_first(rw, node, kinds), rw.value(node.inputs[1])
    rank = rw.rank_of(node, node.inputs[0])
    if axes is None or int(axes.reshape(-1)[0]) % rank != time.axis:
        if axes is None:
            rw.refuse(node, "sums along an axis that is not known beforehand")
        rw.append(node)
        return (time,)
    if node.attributes.get("reverse", 0):
        rw.refuse(node, "goes backwards: it begins at the last step")
    x, axis = node.inputs[0], rw.ints(time.axis)
    shape = tuple(1 if i == time.axis else -1 - i for i in range(rank))
    before, after = rw.state(node, "sum", rw.dtype_of(node, x), [d if d > 0 else (rw.shape(x) or ())[-1 - d] for d in shape])
    start = rw.add("StreamStart", [before, x], shape=shape)
    joined = rw.add("Concat", [start, x], axis=time.axis)
    sums = rw.add("CumSum", [joined, node.inputs[1]])
    far = (1 << 63) - 1
    first, last = (0, -1) if node.attributes.get("exclusive", 0) else (1, far)
    rw.add("Slice", [sums, rw.ints(first), rw.ints(last), axis], node.outputs[0])
    rw.add("Slice", [sums, rw.ints(-1), rw.ints(far), axis], after)
    return (time,)


RULES.update(
    elementwise=_elementwise, channels=_channels, matmul=_matmul, linear=_linear, product=_product, gemm=_gemm, lrn=_lrn,
    cumsum=_cumsum, recurrent=_recurrent, along=_along(False), from_axis=_along(True), reduce=_reduce,
)  # fmt: skip
