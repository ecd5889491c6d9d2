"""Integers that are computed of sizes: the arithmetic that exported networks do before a Reshape or an Expand.

A rule returns None where it has nothing to say, so that the node is treated as any other one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..ir.graph import Node
from ._kinds import COUNT, ROWS, Kind, Rows, Size, over, times

if TYPE_CHECKING:
    from .axes import Walk

__all__ = ["SIZED"]


def _shape(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind] | None:
    dims = w.dims(node.inputs[0] or "")
    if node.op == "Size":
        return w.kept(node, [times(dims)], 0)
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    return w.kept(node, dims[slice(start, end)], 1)


def _moved(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind] | None:
    """Operators that keep the entries in their order: Identity, Cast, Squeeze, Unsqueeze, and Reshape and Flatten of a vector."""
    found = w.entries.get(node.inputs[0] or "")
    if found is None:
        return None
    rank = w.rank(node.outputs[0])
    return w.kept(node, found, 1 if rank is None else rank) if rank is None or rank < 2 else _lost(w, kinds)


def _lost(w: Walk, kinds: Sequence[Kind]) -> Sequence[Kind] | None:
    """Value that is no longer followed: the same for all batches, unless it depends on the number of rows."""
    if any(kind is COUNT for kind in kinds):
        w.refuse("computes with the number of rows")
    return None


def _gather(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind] | None:
    found = w.entries.get(node.inputs[0] or "")
    if found is None:
        return None
    index, rank = w.integers(node.inputs[1]), w.rank(node.inputs[1])
    if index is None or rank is None or rank > 1 or not all(-len(found) <= i < len(found) for i in index):
        return _lost(w, kinds)
    return w.kept(node, [found[i] for i in index], rank)


def _slice(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind] | None:
    found = w.entries.get(node.inputs[0] or "")
    if found is None:
        return None
    ends = [w.integers(name) for name in (node.inputs[1], node.inputs[2], *node.inputs[4:5])]
    if any(part is None or len(part) != 1 for part in ends):
        return _lost(w, kinds)
    return w.kept(node, found[slice(*(part[0] for part in ends if part))], 1)


def _concat(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind] | None:
    if not any(name in w.entries for name in node.inputs):
        return None
    entries: list[Size] = []
    for name in node.inputs:
        found = w.numbers(name)
        if found is None:
            shape = w.shape(name)
            if w.kinds.get(name or "") is not None or shape is None or len(shape) != 1 or not isinstance(shape[0], int):
                return _lost(w, kinds)
            found = tuple(Size(1, (f"{name}[{i}]",)) for i in range(shape[0]))
        entries += found
    return w.kept(node, entries, 1)


def _pairs(w: Walk, node: Node) -> list[tuple[Size, ...]] | None:
    """Entries of all inputs at each place, or None where some are not known."""
    found = [w.numbers(name) for name in node.inputs]
    if any(part is None for part in found) or not any(name in w.entries for name in node.inputs):
        return None
    longest = max(len(part) for part in found if part is not None)
    parts = [part * longest if part is not None and len(part) == 1 else part for part in found]
    if any(part is None or len(part) != longest for part in parts):
        return None
    return list(zip(*parts, strict=True))


def _arithmetic(compute: Callable[..., Size | None]) -> Callable[[Walk, Node, Sequence[Kind]], Sequence[Kind] | None]:
    """An elementwise operator; `compute` returns None where the result is no product of sizes."""

    def rule(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind] | None:
        pairs = _pairs(w, node)
        ranks = [w.rank(name) for name in node.inputs]
        if pairs is None or any(rank is None or rank > 1 for rank in ranks):
            return _lost(w, kinds)
        made = []
        for i, values in enumerate(pairs):
            found = compute(*values)
            if found is None:
                if any(value.counted for value in values):
                    w.refuse("computes with the number of rows")
                found = Size(1, (f"{node.outputs[0]}[{i}]",))
            made.append(found)
        return w.kept(node, made, max(rank or 0 for rank in ranks))

    return rule


def _sum(sign: int) -> Callable[[Size, Size], Size | None]:
    def compute(a: Size, b: Size) -> Size | None:
        if a.symbols == b.symbols:
            total = a.factor + sign * b.factor
            return Size(total, a.symbols if total else ())
        return a if b == Size(0) else b if a == Size(0) and sign > 0 else None

    return compute


def _equal(a: Size, b: Size) -> Size | None:
    """1 or 0 where that is certain: sizes are never negative."""
    if a == b or (a.known and b.known):
        return Size(int(a == b))
    return Size(0) if (a.known and a.factor < 0) or (b.known and b.factor < 0) else None


def _where(condition: Size, a: Size, b: Size) -> Size | None:
    return (a if condition.factor else b) if condition.known else None


def _product(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind] | None:
    found = w.entries.get(node.inputs[0] or "")
    return None if found is None else w.kept(node, [times(found)], int(bool(node.attributes.get("keepdims", 1))))


def _filled(w: Walk, node: Node, kinds: Sequence[Kind]) -> Sequence[Kind] | None:
    """ConstantOfShape, and Expand of a value that is the same for all rows, to a shape with the number of rows in it."""
    at = len(node.inputs) - 1
    entries = w.numbers(node.inputs[at])
    if entries is None:
        return None
    if node.op == "ConstantOfShape":
        if len(entries) == 1 and entries[0].known and 0 <= entries[0].factor < 64:
            value = node.attributes.get("value")
            filled = int(value.reshape(-1)[0]) if value is not None and value.dtype.kind in "iub" else 0
            w.kept(node, [Size(filled)] * entries[0].factor, 1)
            return [None]
        shape: Sequence[Size] = entries
    else:
        if kinds[0] is not None or kinds[1] is not COUNT:
            return None
        shape = w.dims(node.inputs[0] or "")
        shape = [Size(1)] * (len(entries) - len(shape)) + list(shape)
    counted = [i for i, one in enumerate(entries) if one.counted]
    if not counted:
        return None
    axis = counted[0] + (len(shape) - len(entries))
    each = over(entries[counted[0]], Size(1, (ROWS,)))
    if len(counted) > 1 or each is None or each.counted or (node.op == "Expand" and shape[axis] != Size(1)):
        w.refuse("has a size that is computed of the number of rows")
    w.set_shape(node.outputs[0], entries)
    return [Rows(axis, each)]


SIZED: dict[str, Callable[[Walk, Node, Sequence[Kind]], Sequence[Kind] | None]] = {
    **dict.fromkeys(("Shape", "Size"), _shape),
    **dict.fromkeys(("Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Flatten"), _moved),
    "Gather": _gather, "Slice": _slice, "Concat": _concat, "ReduceProd": _product, "Equal": _arithmetic(_equal),
    "Mul": _arithmetic(lambda a, b: times((a, b))), "Div": _arithmetic(over), "Add": _arithmetic(_sum(1)),
    "Sub": _arithmetic(_sum(-1)), "Where": _arithmetic(_where),
    **dict.fromkeys(("ConstantOfShape", "Expand"), _filled),
}  # fmt: skip
