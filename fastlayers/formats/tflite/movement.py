"""Rules of what moves elements or asks for shapes: new shapes, slices, joins, picks, padding, blocks of batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from .call import Call
from .slicing import slice_, split, strided_slice, unpack

__all__ = ["RULES"]

Rule = Callable[[Call], str | tuple[str, ...]]


def reshape(c: Call) -> str:
    """The new shape is an input, or an option in old files; a size of 0 is one, and copies nothing."""
    if c.has(1):
        given = c.constant(1)
        shape = c.x(1) if given is None else c.e.ints(c.ints(1, "the new shape"))
    elif c.options["new_shape"] is not None:
        shape = c.e.ints(c.options["new_shape"])
    else:
        c.fail("has no new shape")
    return c.e.node("Reshape", c.x(0), shape, allowzero=1)


def squeeze(c: Call) -> str:
    """All axes of size 1 if none are named."""
    axes = c.options["squeeze_dims"]
    return c.e.node("Squeeze", c.x(0), c.e.ints(axes) if axes else None)


def pack(c: Call) -> str:
    """Every input gets a new axis, along which they are joined."""
    if not c.inputs:
        c.fail("has no inputs")
    axis = c.options["axis"]
    parts = [c.e.node("Unsqueeze", c.x(i), c.e.ints([axis])) for i in range(len(c.inputs))]
    return c.e.node("Concat", *parts, axis=axis)


def concatenation(c: Call) -> str:
    """Along an axis that may be counted from the end."""
    names = tuple(c.x(i) for i in range(len(c.inputs)))
    return c.activated(c.e.node("Concat", *names, axis=c.options["axis"]))


def gather(c: Call) -> str:
    """Slices by index; with batch_dims each image has its own indices."""
    axis, batch = c.options["axis"], c.options["batch_dims"]
    x, indices = c.x(0), c.x(1)
    if not batch:
        return c.e.node("Gather", x, indices, axis=axis)
    batch, axis = c.axis(batch, c.rank(1) + 1), c.axis(axis, c.rank())
    if axis != batch:
        c.refuse(f"with batch_dims={batch} and axis={axis}, which differ")
    return c.e.node("GatherND", x, c.e.node("Unsqueeze", indices, c.e.ints([-1])), batch_dims=batch)


def transpose(c: Call) -> str:
    """With an order that is constant."""
    return c.e.node("Transpose", c.x(0), perm=tuple(c.ints(1, "an order of axes")))


def shape(c: Call) -> str:
    """Sizes in the dtype that the file asks for."""
    return c.cast(c.e.node("Shape", c.x(0)), c.dtype())


def rank(c: Call) -> str:
    """The number of axes."""
    return c.e.constant(np.array(c.rank(), np.int32))


def zeros_like(c: Call) -> str:
    """Zeros of x's shape."""
    return c.e.node("Expand", c.scalar(0, c.x(0)), c.e.node("Shape", c.x(0)))


def one_hot(c: Call) -> str:
    """on where a position is the index, off elsewhere; an index outside is nowhere."""
    indices, axis, count = c.x(0), c.options["axis"], c.rank() + 1
    axis = c.axis(axis, count)
    depth = c.e.node("Reshape", c.cast(c.x(1), c.e.dtype(indices)), c.e.ints([]))
    steps = c.e.node("Range", c.scalar(0, indices), depth, c.scalar(1, indices))
    wide = c.e.node("Reshape", steps, c.e.ints([-1] + [1] * (count - 1 - axis)))
    return c.e.node("Where", c.e.node("Equal", c.e.node("Unsqueeze", indices, c.e.ints([axis])), wide), c.x(2), c.x(3))


def reverse(c: Call) -> str:
    """Axes read from their ends."""
    axes = c.ints(1, "axes")
    edge = np.iinfo(np.int64)
    ends = [int(edge.min)] * len(axes)
    return c.e.node("Slice", c.x(0), c.e.ints([-1] * len(axes)), c.e.ints(ends), c.e.ints(axes), c.e.ints([-1] * len(axes)))


def where(c: Call) -> str:
    """The positions of nonzero elements, one per row."""
    return c.e.node("Transpose", c.e.node("NonZero", c.x(0)), perm=(1, 0))


def scatter_nd(c: Call) -> str:
    """Zeros to which updates are added at the indices."""
    zeros = c.e.node("Expand", c.scalar(0, c.x(1)), c.x(2))
    return c.e.node("ScatterND", zeros, c.x(0), c.x(1), reduction="add")


def dynamic_update_slice(c: Call) -> str:
    """x with a part replaced; where the part begins is moved so that it is within."""
    x, part = c.e.shape(c.x(0)), c.e.shape(c.x(1))
    if x is None or part is None or not all(isinstance(d, int) for d in (*x, *part)):
        c.refuse("of unknown sizes")
    if len(x) != len(part) or any(p > d for p, d in zip(part, x, strict=True)):
        c.fail(f"the part has shape {part}, x {x}: expected as many axes, and none larger")
    count = math.prod(part) * len(part)
    c.converter.budget.take(8 * count, f"{c.converter.where}: {c.op}")
    grid = np.moveaxis(np.indices([int(d or 0) for d in part]).astype(np.int64, copy=False), 0, -1)
    most = c.e.ints([d - p for p, d in zip(part, x, strict=True)])
    start = c.e.node("Max", c.e.node("Min", c.cast(c.x(2), np.dtype(np.int64)), most), c.e.ints(0))
    return c.e.node("ScatterND", c.x(0), c.e.node("Add", c.e.constant(grid), start), c.x(1))


def reverse_sequence(c: Call) -> str:
    """Reverses the first steps of each sequence: as many as its length."""
    o, lengths = c.options, c.cast(c.x(1), np.dtype(np.int64))
    return c.e.node("ReverseSequence", c.x(0), lengths, time_axis=o["seq_dim"], batch_axis=o["batch_dim"])


def unique(c: Call) -> tuple[str, ...]:
    """The distinct elements in the order of their first positions, and for each position the index of its element."""
    made = c.e.many("Unique", (c.x(0),), ("", "", ""), {"sorted": 0})
    return made[0], c.cast(made[2], c.dtype(1)) if len(c.outputs) > 1 else made[2]


# ---- padding -----------------------------------------------------------------------------------------------------------


def _pairs(c: Call) -> list[tuple[int, int]]:
    """(before, after) of every axis."""
    flat = c.ints(1, "paddings")
    if len(flat) != 2 * c.rank() or min(flat, default=0) < 0:
        c.fail(f"paddings are {flat[:16]}: expected two values of at least 0 for each of {c.rank()} axes")
    return list(zip(flat[::2], flat[1::2], strict=True))


def pad(c: Call) -> str:
    """With zeros, or with a number that is an input."""
    if c.constant(1) is None:
        # (axes, 2) becomes (2, axes), flat.
        pads = c.e.node("Reshape", c.e.node("Transpose", c.x(1), perm=(1, 0)), c.e.ints([-1]))
    else:
        pairs = _pairs(c)
        pads = c.e.ints([a for a, _ in pairs] + [z for _, z in pairs])
    return c.e.node("Pad", c.x(0), pads, c.optional(2) or c.zero(0))


def mirror_pad(c: Call) -> str:
    """REFLECT leaves the edge out; SYMMETRIC repeats it, axis by axis, since ONNX has no such mode."""
    pairs, mode = _pairs(c), c.options["mode"]
    if mode == 0:
        return c.e.node("Pad", c.x(0), c.e.ints([a for a, _ in pairs] + [z for _, z in pairs]), mode="reflect")
    if mode != 1:
        c.fail(f"mode is {mode}: expected 0 or 1")
    x, least = c.x(0), int(np.iinfo(np.int64).min)
    for axis, (before, after) in enumerate(pairs):
        parts = [x]
        if before:
            parts.insert(0, _backward(c, x, axis, before - 1, least))
        if after:
            parts.append(_backward(c, x, axis, -1, -1 - after))
        if len(parts) > 1:
            x = c.e.node("Concat", *parts, axis=axis)
    return x


def _backward(c: Call, x: str, axis: int, start: int, end: int) -> str:
    return c.e.node("Slice", x, c.e.ints([start]), c.e.ints([end]), c.e.ints([axis]), c.e.ints([-1]))


# ---- blocks of batches -------------------------------------------------------------------------------------------------


def _block(c: Call) -> tuple[list[int], list[tuple[int, int]], list[int]]:
    """Sizes of a block, what is padded or cropped, and the sizes of space and what follows, which must be known."""
    block, flat, found = c.ints(1, "a block"), c.ints(2, "paddings"), c.e.shape(c.x(0))
    if found is None or len(found) < len(block) + 1 or any(not isinstance(d, int) for d in found[1:]):
        c.refuse("of an image of unknown size")
    if min(block, default=0) < 1 or len(flat) != 2 * len(block) or min(flat, default=0) < 0:
        c.fail(f"the block is {block[:8]}, paddings are {flat[:16]}: expected sizes of at least 1, and two values for each")
    return block, list(zip(flat[::2], flat[1::2], strict=True)), [int(d) for d in found[1:]]


def _moved(c: Call, x: str, split: Sequence[int], order: Sequence[int], back: Sequence[int]) -> str:
    turned = c.e.node("Transpose", c.e.node("Reshape", x, c.e.ints(split)), perm=tuple(order))
    return c.e.node("Reshape", turned, c.e.ints(back))


def space_to_batch(c: Call) -> str:
    """Every position within a block becomes an image: (n, h b, ...) -> (b n, h, ...)."""
    block, pairs, sizes = _block(c)
    m, rest, x = len(block), sizes[len(block) :], c.x(0)
    if any(a or z for a, z in pairs):
        lead, tail = [0], [0] * len(rest)
        x = c.e.node("Pad", x, c.e.ints([*lead, *(a for a, _ in pairs), *tail, *lead, *(z for _, z in pairs), *tail]), c.zero(0))
    small = [(s + a + z) // b for s, (a, z), b in zip(sizes, pairs, block, strict=False)]
    split = [0, *(v for pair in zip(small, block, strict=True) for v in pair), *rest]
    order = [*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), *range(2 * m + 1, 2 * m + 1 + len(rest))]
    return _moved(c, x, split, order, [-1, *small, *rest])


def batch_to_space(c: Call) -> str:
    """The other way round, then the edges are cut off."""
    block, pairs, sizes = _block(c)
    m, rest = len(block), sizes[len(block) :]
    split = [*block, -1, *sizes]
    order = [m, *(v for i in range(m) for v in (m + 1 + i, i)), *range(2 * m + 1, 2 * m + 1 + len(rest))]
    large = [s * b for s, b in zip(sizes, block, strict=False)]
    x = _moved(c, c.x(0), split, order, [-1, *large, *rest])
    if not any(a or z for a, z in pairs):
        return x
    starts, ends = [a for a, _ in pairs], [s - z for s, (_, z) in zip(large, pairs, strict=True)]
    return c.e.node("Slice", x, c.e.ints(starts), c.e.ints(ends), c.e.ints(range(1, m + 1)))


def _unsqueeze(c: Call) -> str:
    return c.e.node("Unsqueeze", c.x(0), c.e.ints([c.number(1, "the axis")]))


RULES: dict[str, Rule] = {
    "BATCH_TO_SPACE_ND": batch_to_space,
    "BROADCAST_TO": lambda c: c.e.node("Expand", c.x(0), c.x(1)),
    "CONCATENATION": concatenation,
    "DYNAMIC_UPDATE_SLICE": dynamic_update_slice,
    "EXPAND_DIMS": _unsqueeze,
    "FILL": lambda c: c.e.node("Expand", c.x(1), c.x(0)),
    "GATHER": gather,
    "GATHER_ND": lambda c: c.e.node("GatherND", c.x(0), c.x(1)),
    "MIRROR_PAD": mirror_pad,
    "ONE_HOT": one_hot,
    "PACK": pack,
    "PAD": pad,
    "PADV2": pad,
    "RANGE": lambda c: c.e.node("Range", *(c.e.node("Reshape", c.x(i), c.e.ints([])) for i in range(3))),
    "RANK": rank,
    "RESHAPE": reshape,
    "REVERSE_SEQUENCE": reverse_sequence,
    "REVERSE_V2": reverse,
    "SCATTER_ND": scatter_nd,
    "SHAPE": shape,
    "SLICE": slice_,
    "SPACE_TO_BATCH_ND": space_to_batch,
    "SPLIT": split,
    "SPLIT_V": split,
    "SQUEEZE": squeeze,
    "STRIDED_SLICE": strided_slice,
    "TILE": lambda c: c.e.node("Tile", c.x(0), c.x(1)),
    "TRANSPOSE": transpose,
    "UNIQUE": unique,
    "UNPACK": unpack,
    "WHERE": where,
    "ZEROS_LIKE": zeros_like,
}
