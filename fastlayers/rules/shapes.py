"""Rules of what only rearranges or joins arrays, and of operands that are broadcast."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import ArgumentError, ShapeError
from ..ir.checks import differ
from ..ir.graph import Dim, Shape

__all__ = [
    "blocks_rule", "broadcast_rule", "concat_rule", "index_error", "permute_rule", "reshape_rule", "squeeze_rule", "step_rule",
]  # fmt: skip


def broadcast_rule(op: str, shapes: Sequence[Shape]) -> Shape:
    """The shape of operands together: aligned at the last axis, sizes are equal or 1."""
    result = shapes[0]
    for shape in shapes[1:]:
        if result[len(result) - len(shape) :] == shape and len(result) >= len(shape):
            continue
        long, short = (shape, result) if len(shape) >= len(result) else (result, shape)
        lead = len(long) - len(short)
        pairs = zip(long[lead:], short, strict=True)
        result = (*long[:lead], *[_together(op, x, y, shapes) for x, y in pairs])
    return result


def _together(op: str, x: Dim, y: Dim, shapes: Sequence[Shape]) -> Dim:
    if x == y or y == 1:
        return x
    if x == 1:
        return y
    if isinstance(x, int) and isinstance(y, int):
        *some, last = map(str, shapes)
        given = f"{', '.join(some)} and {last}"
        raise ShapeError(f"{op}: operands have shapes {given}: expected sizes that are equal or 1, aligned at the last axis")
    # One size is known and greater than 1: the other one must turn out to be it, or 1.
    return x if isinstance(x, int) else (y if isinstance(y, int) else None)


def concat_rule(op: str, shapes: Sequence[Shape | None], axis: int) -> Shape:
    """The shape of arrays one after the other; at least one shape is known, and `axis` is one of its axes."""
    at, first = next((i, shape) for i, shape in enumerate(shapes) if shape is not None)
    total: Dim = 0
    for i, shape in enumerate(shapes):
        if shape is None:
            total = None
            continue
        pairs = enumerate(zip(shape, first, strict=False))
        if len(shape) != len(first) or any(differ(a, b) for j, (a, b) in pairs if j != axis):
            raise ShapeError(f"{op}: input {i} has shape {shape}, input {at} {first}: expected equal sizes but along axis {axis}")
        total = total + shape[axis] if isinstance(total, int) and isinstance(shape[axis], int) else None  # type: ignore[operator]
    known = [shape for shape in shapes if shape is not None]
    sizes = [_common([shape[j] for shape in known], len(shapes)) for j in range(len(first))]
    sizes[axis] = total if len(shapes) > 1 else first[axis]
    return tuple(sizes)


def _common(sizes: Sequence[Dim], count: int) -> Dim:
    """The size that `count` arrays share: a number that one of them has, or a name that all have."""
    found = next((size for size in sizes if isinstance(size, int)), None)
    return sizes[0] if found is None and len(sizes) == count and len(set(sizes)) == 1 else found


def permute_rule(op: str, argument: str, x: Shape, order: Sequence[int] | None, given: object = None) -> tuple[int, ...]:
    """The order of the axes counted from the front; None reverses them. `given`: what errors quote, if not `order`."""
    found = tuple(range(len(x)))[::-1] if order is None else tuple(i + len(x) if i < 0 else i for i in order)
    if sorted(found) != list(range(len(x))):
        said = order if given is None else given
        raise ShapeError(f"{op}: {argument} is {said!r}, x has shape {x}: expected each of the {len(x)} axes once")
    return found


def step_rule(op: str, steps: Sequence[int]) -> None:
    """Raises unless every step of a slice leads somewhere."""
    if 0 in steps:
        raise ArgumentError(f"{op}: step is 0: expected another number")


def index_error(op: str, index: int, x: Shape, axis: int) -> ShapeError:
    """The error for an index outside of an axis; `x` is the shape, which may have no axes."""
    size = x[axis] if x else 0
    least, most = (-size, size - 1) if isinstance(size, int) else (None, None)
    return ShapeError(f"{op}: index {index} is out of range: expected {least} to {most} along axis {axis} of x {x}")


def squeeze_rule(op: str, x: Shape, axes: Sequence[int]) -> Shape:
    """The shape without some axes, counted from the front, which must have size 1."""
    for axis in axes:
        if differ(x[axis], 1):
            raise ShapeError(f"{op}: x has shape {x}: expected size 1 along axis {axis}")
    return tuple(size for i, size in enumerate(x) if i not in axes)


def reshape_rule(op: str, x: Shape | None, wanted: Sequence[int], copies: bool = False) -> Shape:
    """The new shape; a size that -1 stands for may stay unknown, or turn out to be a name.

    Args:
        op: as errors call it.
        x: the shape before.
        wanted: sizes, at most one of them -1.
        copies: whether 0 stands for the size that x has there.
    """
    text = f"{op}: shape is {tuple(wanted)}"
    if any(w < -1 for w in wanted) or wanted.count(-1) > 1:
        raise ShapeError(f"{text}: expected sizes of at least 0, at most one -1")
    if not copies and 0 in wanted and -1 in wanted:
        raise ShapeError(f"{text}: expected no -1 next to a 0, which leaves any size open")
    if copies and x is not None and any(w == 0 and i >= len(x) for i, w in enumerate(wanted)):
        raise ShapeError(f"{text}, x has shape {x}: expected no 0 for an axis that x does not have")
    copied = {i for i, w in enumerate(wanted) if w == 0 and copies}
    sizes: list[Dim] = [(None if x is None else x[i]) if i in copied else w for i, w in enumerate(wanted)]
    if x is None:
        return tuple(None if size == -1 else size for size in sizes)
    if -1 in wanted:
        left = [size for i, size in enumerate(x) if i not in copied]
        unknown = [size for size in left if not isinstance(size, int)]
        have = math.prod(size for size in left if isinstance(size, int))
        taken = math.prod(w for w in wanted if w > 0)
        at = wanted.index(-1)
        if unknown and have:
            sizes[at] = unknown[0] if len(unknown) == 1 and have == taken else None
        elif have % taken:
            raise ShapeError(_counts(op, x, wanted))
        else:
            sizes[at] = have // taken
    elif all(isinstance(size, int) for size in (*x, *sizes)) and math.prod(x) != math.prod(sizes):  # type: ignore[arg-type]
        raise ShapeError(_counts(op, x, wanted))
    return tuple(sizes)


def _counts(op: str, x: Shape, wanted: Sequence[int]) -> str:
    count = math.prod(size for size in x if isinstance(size, int))
    return f"{op}: x has shape {x} with {count} values: expected a shape of as many, got {tuple(wanted)}"


def blocks_rule(op: str, x: Shape, size: Dim, by: int, what: str) -> Dim:
    """A size cut into parts of `by`."""
    if isinstance(size, int) and size % by:
        raise ShapeError(f"{op}: x has shape {x}, {size} {what}: expected a multiple of {by}")
    return size // by if isinstance(size, int) else size if by == 1 else None
