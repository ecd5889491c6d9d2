"""Batch normalization, and multiplications and additions of one constant a channel, go into the weights before them, or after
them where that is exact, or into one `Affine`.

before                                        after
BatchNormalization(Conv(x, W, b), ...)        Conv(x, W', b')
Conv(BatchNormalization(x, ...), W, b)        Conv(x, W', b'), unless zeros are padded (they are no zeros before)
Add(Mul(BatchNormalization(x), s), t)         Affine(x, s', t')

Products are formed in float64 and rounded once.
"""

from __future__ import annotations

import numpy as np

from .._held import unread
from ..ir.graph import Node
from ..operators.fused import times
from ._net import Net

__all__ = ["apply"]


def apply(net: Net) -> None:
    """See the module."""
    with np.errstate(all="ignore"):  # what leaves float32 is looked for
        _apply(net)


def _apply(net: Net) -> None:
    for at, node in net.each():
        found = _normalization(net, node) if node.op == "BatchNormalization" else _channelwise(net, node)
        if found is None:
            continue
        x, scale, shift, alone = found
        before = net.producer(x)
        axis = int(node.attributes.get("axis", 1)) if node.op == "BatchNormalization" else _axis(net, before)
        if before is not None and net.single(x) is node and _into(net, at, node, before, scale, shift, axis):
            continue
        if alone:
            names = (net.constant(scale, node.outputs[0]), net.constant(shift, node.outputs[0]))
            net.replace(at, Node("Affine", (x, *names), node.outputs[:1], {"axis": axis}))
    for at, node in net.each("Affine"):
        _behind(net, at, node)


def _normalization(net: Net, node: Node) -> tuple[str | None, np.ndarray, np.ndarray, bool] | None:
    values = [net.value(name) for name in node.inputs[1:5]]
    if (
        len(values) != 4
        or any(v is None for v in values)
        or node.attributes.get("training_mode", 0)
        or any(node.outputs[1:])
        or not net.is_float32(node.inputs[0])
    ):
        return None
    from ..operators.normalization import scale_and_shift

    scale, shift = scale_and_shift(*values, node.attributes.get("epsilon", 1e-5))  # type: ignore[call-arg, arg-type]
    return node.inputs[0], scale, shift, True


def _channelwise(net: Net, node: Node) -> tuple[str | None, np.ndarray, np.ndarray, bool] | None:
    """A constant of shape (c, 1, ...) or (1, c, 1, ...), or of one element, combined with a value of known rank; only to be
    merged.
    """
    line = net.traits(node).line
    for i in (0, 1) if line is not None and len(node.inputs) == 2 else ():
        constant, x = net.value(node.inputs[1 - i]), node.inputs[i]
        if constant is None or constant.dtype != np.float32 or net.value(x) is not None:
            continue
        before, rank = net.producer(x), net.rank(x)
        # A product of matrices keeps its factors: rounding them in would be another result.
        if before is None or before.op == "Linear" or rank is None or constant.ndim > rank:
            continue
        channels = _channels(net, before)
        if channels is None:
            continue
        wide = (1,) * (rank - constant.ndim) + constant.shape
        at = _axis(net, before) % rank
        if constant.size != 1 and (wide[at] != channels or constant.size != channels):
            continue
        values = np.broadcast_to(constant.reshape(-1).astype(np.float64), (channels,))
        found = line(values, 1 - i) if line is not None else None
        if found is not None:
            return x, *found, False
    return None


def _channels(net: Net, node: Node) -> int | None:
    """The number of channels that a node's weights make; None if it has no weights into which factors could go."""
    scaling = net.traits(node).scaling
    weight = None if scaling is None else net.value(node.inputs[1])
    return None if scaling is None or weight is None else scaling.channels(net.view(node), weight)


def _axis(net: Net, node: Node | None) -> int:
    """The axis of a node's result along which its channels (or features) are."""
    scaling = None if node is None else net.traits(node).scaling
    return 1 if scaling is None or node is None else scaling.axis(net.view(node))


def _into(net: Net, at: int, node: Node, before: Node, scale: np.ndarray, shift: np.ndarray, axis: int) -> bool:
    """Puts scale and shift along `axis` into the weights of `before`, where it has such and does nothing after them."""
    scaling = net.traits(before).scaling
    if scaling is None or "activation" in before.attributes or len(before.inputs) > 3:
        return False
    weight = net.value(before.inputs[1])
    bias = net.value(before.inputs[2]) if len(before.inputs) > 2 and before.inputs[2] is not None else None
    if weight is None or (len(before.inputs) > 2 and before.inputs[2] is not None and bias is None):
        return False
    rank = net.rank(before.inputs[0])
    view = net.view(before)
    if not rank or (scaling.axis(view) - axis) % rank:
        return False  # another axis
    if scaling.rounds and weight.dtype != np.float32:
        return False
    # What only adds leaves the weights as they are.
    made = weight if scaling.rounds and np.all(scale == 1) else scaling.weight(view, weight, scale)
    unread(weight)
    added = (0 if bias is None else bias.astype(np.float64)) * scale + shift
    if scaling.rounds:
        added = added.astype(np.float32)
    if not _finite(made, added):
        return False
    old = str(before.inputs[1])
    names = (old if made is weight else net.constant(made, old), net.constant(added, node.outputs[0]))
    net.replace(at, Node(before.op, (before.inputs[0], *names), node.outputs[:1], before.attributes), before)
    net.forget(old)
    return True


def _behind(net: Net, at: int, node: Node) -> None:
    """Puts an Affine into the weights of the one convolution or linear layer that takes its result."""
    after = net.single(node.outputs[0])
    scale, shift = net.value(node.inputs[1]), net.value(node.inputs[2])
    if after is None or after.op not in ("Conv", "Linear") or "activation" in node.attributes or scale is None or shift is None:
        return
    weight = net.value(after.inputs[1])
    given = after.inputs[2] if len(after.inputs) > 2 else None
    bias = net.value(given) if given is not None else np.zeros(0)
    rank = net.rank(node.inputs[0])
    x_axis = -1 if after.op == "Linear" or after.attributes.get("x_last", False) else 1
    if weight is None or bias is None or weight.dtype != np.float32 or after.inputs[0] != node.outputs[0] or rank is None:
        return
    if (
        (int(node.attributes.get("axis", 1)) - x_axis) % rank
        or node.outputs[0] in after.inputs[1:]
        or not _zeros_stay(after, shift)
    ):
        return
    groups = int(after.attributes.get("group", 1)) if after.op == "Conv" else 1
    # Each group of outputs sees its own channels.
    each = scale.reshape(groups, 1, -1, *(1,) * (weight.ndim - 2))
    cut = weight.reshape(groups, -1, *weight.shape[1:])
    moved = cut.astype(np.float64) * shift.reshape(each.shape)
    added = moved.reshape(weight.shape[0], -1).sum(axis=1) + (bias if given is not None else 0)
    made, added = times(cut, each).reshape(weight.shape), added.astype(np.float32)
    unread(weight)
    if not _finite(made, added):
        return
    names = (net.constant(made, str(after.inputs[1])), net.constant(added, after.outputs[0]))
    net.replace(
        net.position(after), Node(after.op, (node.inputs[0], *names, *after.inputs[3:]), after.outputs, after.attributes), node
    )


def _finite(weight: np.ndarray, bias: np.ndarray) -> bool:
    """Whether a layer may have these: a sum over infinite weights is NaN, where its multiple, or its quotient by zero, is not."""
    return bool(np.isfinite(weight).all() and np.isfinite(bias).all())


def _zeros_stay(after: Node, shift: np.ndarray) -> bool:
    """Whether a convolution's padding stays right with the affine map in its weights: it pads nothing, or the map keeps zeros."""
    get = after.attributes.get
    if after.op == "Linear" or not shift.any() or get("pad_mode", 0):
        return True
    return get("auto_pad", "NOTSET") == "VALID" or (get("auto_pad", "NOTSET") == "NOTSET" and not any(get("pads", ())))
