"""Elements in other positions: transposed, joined, cut, repeated. Views where the memory allows it, strided copies elsewhere."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.graph import Dim, Shape
from ..rules.shapes import concat_rule, permute_rule, step_rule
from ._base import Spec, View, register, unknown
from ._traits import MOVES, Quantized, Traits, one_input, same_shape
from .calls import copy, has, indexable, indices, movable, move, strides_of
from .shapes import axes_of, axis_of, broadcast, known, rank_of, same_dtype

__all__ = ["movers", "slices"]

Arrays = tuple[np.ndarray, ...]


def movers(n: View, i: int = 0) -> bool:
    """Whether input i can go through the copy kernel."""
    return has("copy") and movable(n.spec(i).dtype)


# ---- Transpose -------------------------------------------------------------------------------------------------------


def _order(n: View, shape: Shape) -> tuple[int, ...]:
    return permute_rule(n.where, "perm", shape, n.get("perm"))


def _transpose_infer(n: View) -> list[Spec]:
    shape, order = n.shape(0), n.get("perm")
    if shape is None:
        return [unknown(None if order is None else len(order), n.spec(0).dtype)]
    return [Spec(tuple(shape[i] for i in _order(n, shape)), n.spec(0).dtype)]


def _transpose_lower(n: View, b: Any) -> Any:
    if not movers(n):
        return False
    shape = n.sizes(0)
    order, strides = _order(n, shape), strides_of(shape)
    return move(b, b.input(0), [shape[i] for i in order], 0, [strides[i] for i in order])


register(
    "Transpose",
    _transpose_infer,
    lambda n, x: (x.transpose(_order(n, x.shape)),),
    _transpose_lower,
    MOVES._replace(time="transpose"),
)

# ---- Concat ----------------------------------------------------------------------------------------------------------


def _concat_infer(n: View) -> list[Spec]:
    if not n.inputs:
        raise n.fail("has no inputs: expected at least one")
    dtype = same_dtype(n)
    shapes = [n.shape(i) for i in range(len(n.inputs))]
    first = next((s for s in shapes if s is not None), None)
    if first is None:
        return [Spec(None, dtype)]
    return [Spec(concat_rule(n.where, shapes, _concat_axis(n, len(first))), dtype)]


def _concat_axis(n: View, rank: int) -> int:
    axis = n.get("axis")
    if axis is None:
        raise n.fail("has no attribute axis: expected one")
    return axis_of(n, axis, rank)


def _concat_run(n: View, *arrays: np.ndarray) -> Arrays:
    return (np.concatenate(arrays, axis=_concat_axis(n, arrays[0].ndim)),)


def _concat_lower(n: View, b: Any) -> Any:
    """Parts that are one after the other are written where they belong by their producers, if nothing hinders it."""
    if not movers(n):
        return False
    shapes = [n.sizes(i) for i in range(len(n.inputs))]
    axis = _concat_axis(n, len(shapes[0]))
    outer, inner = math.prod(shapes[0][:axis]), math.prod(shapes[0][axis + 1 :])
    length = sum(shape[axis] for shape in shapes)
    refs = [b.input(i) for i in range(len(shapes))]
    full = [i for i, shape in enumerate(shapes) if 0 not in shape]
    if len(full) == 1:
        return b.alias(0, refs[full[0]])
    out = b.output(0)
    at = taken = 0
    for i, (ref, shape) in enumerate(zip(refs, shapes, strict=True)):
        size = shape[axis] * inner
        if i >= taken and outer == 1:
            # Parts that an earlier concatenation has put together, as each layer of a DenseNet does, go as one.
            whole, count = b.joined(refs[i:])
            if b.place(whole, out, at):
                taken = i + count
        if i >= taken:
            copy(b, ref, out, (outer, size), 0, (size, 1), at, (length * inner, 1))
        at += size
    return None


JOINED = Traits(time="concat", sizes="concat", work="elements", nothing=one_input, quantized=Quantized("QLinearConcat", "all"))
register("Concat", _concat_infer, _concat_run, _concat_lower, JOINED)

# ---- Split -----------------------------------------------------------------------------------------------------------


def _parts(n: View, size: int) -> list[int]:
    """Equal parts; the last one is smaller if they cannot be equal."""
    count = n.get("num_outputs") or len(n.node.outputs)
    if count != len(n.node.outputs):
        raise n.fail(f"num_outputs is {count}: it has {len(n.node.outputs)} outputs")
    part = -(-size // count)
    last = size - part * (count - 1)
    if last < 0:
        raise n.fail(f"{size} elements cannot be split into {count} parts of {part}")
    return [part] * (count - 1) + [last]


def _split_sizes(n: View, size: int, wanted: Sequence[int] | None) -> list[int]:
    if wanted is None:
        return _parts(n, size)
    if len(wanted) != len(n.node.outputs) or any(w < 0 for w in wanted) or sum(wanted) != size:
        raise n.fail(f"parts of {tuple(wanted)} for {len(n.node.outputs)} outputs: expected sizes that add up to {size}")
    return list(wanted)


def _split_infer(n: View) -> list[Spec]:
    shape, dtype, count = n.shape(0), n.spec(0).dtype, len(n.node.outputs)
    if shape is None:
        return [Spec(None, dtype)] * count
    axis, wanted = axis_of(n, n.get("axis", 0), len(shape)), known(n, 1)
    size = shape[axis]
    parts: Sequence[Dim]
    if isinstance(size, int) and (wanted is not None or not n.has(1)):
        parts = _split_sizes(n, size, wanted)
    else:
        parts = wanted if wanted is not None and len(wanted) == count else [size if count == 1 else None] * count
    return [Spec((*shape[:axis], part, *shape[axis + 1 :]), dtype) for part in parts]


def _split_run(n: View, x: np.ndarray, split: np.ndarray | None = None) -> Arrays:
    axis = axis_of(n, n.get("axis", 0), x.ndim)
    sizes = _split_sizes(n, x.shape[axis], None if split is None else [int(v) for v in split.reshape(-1)])
    return tuple(np.split(x, list(itertools.accumulate(sizes))[:-1], axis=axis))


def _split_lower(n: View, b: Any) -> Any:
    wanted = known(n, 1)
    if not movers(n) or (n.has(1) and wanted is None):
        return False
    shape = n.sizes(0)
    axis, x, strides, at = axis_of(n, n.get("axis", 0), len(shape)), b.input(0), strides_of(shape), 0
    for i, size in enumerate(_split_sizes(n, shape[axis], wanted)):
        if n.wants(i):
            # At most two axes are left of such a part, so the kernel takes it.
            move(b, x, (*shape[:axis], size, *shape[axis + 1 :]), at * strides[axis], strides, i)
        at += size
    return None


register("Split", _split_infer, _split_run, _split_lower, MOVES._replace(time="split", steers=(1,)))

# ---- Slice -----------------------------------------------------------------------------------------------------------


def slices(n: View, rank: int, bounds: Sequence[Sequence[int] | None]) -> list[tuple[int, int, int, int]]:
    """(axis, start, end, step) of starts, ends, axes and steps; bounds are not yet cut off at the sizes."""
    starts, ends, axes, steps = bounds
    assert starts is not None
    assert ends is not None
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise n.fail(
            f"starts {tuple(starts)}, ends {tuple(ends)}, axes {tuple(axes)}, steps {tuple(steps)}: expected equal lengths"
        )
    step_rule(n.where, steps)
    return list(zip(axes_of(n, axes, rank), starts, ends, steps, strict=True))


def _bounds(n: View) -> list[list[int] | None] | None:
    """Starts, ends, axes and steps as far as they were given, or None if one of them is not known."""
    found = [known(n, i) for i in range(1, 5)]
    if not (n.has(1) and n.has(2)):
        raise n.fail("starts or ends are missing: expected both")
    return None if any(n.has(i + 1) and found[i] is None for i in range(4)) else found


def _taken(size: int, start: int, end: int, step: int) -> range:
    """The positions that are taken along an axis. Unlike Python, a start far below 0 is element 0, going backward too."""
    start, end = start + size * (start < 0), end + size * (end < 0)
    if step > 0:
        return range(min(max(start, 0), size), min(max(end, 0), size), step)
    return range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step) if size else range(0, 0, step)


def _ranges(n: View, shape: Sequence[int], bounds: Sequence[Sequence[int] | None]) -> list[range]:
    """The positions that are taken along each axis."""
    found = [range(size) for size in shape]
    for axis, start, end, step in slices(n, len(shape), bounds):
        found[axis] = _taken(shape[axis], start, end, step)
    return found


def _slice_infer(n: View) -> list[Spec]:
    shape, dtype, bounds = n.shape(0), n.spec(0).dtype, _bounds(n)
    if shape is None:
        return [Spec(None, dtype)]
    if bounds is None:
        axes = known(n, 3)
        touched = set(axes_of(n, axes, len(shape))) if axes is not None else set(range(len(shape)))
        return [Spec(tuple(None if i in touched else s for i, s in enumerate(shape)), dtype)]
    sizes: list[Dim] = list(shape)
    for axis, start, end, step in slices(n, len(shape), bounds):
        size = shape[axis]
        if isinstance(size, int):
            sizes[axis] = len(_taken(size, start, end, step))
        elif start == 0 and end > 1 << 30 and step == 1:
            sizes[axis] = size  # everything
        else:
            sizes[axis] = None
    return [Spec(tuple(sizes), dtype)]


def _slice_run(n: View, x: np.ndarray, *given: np.ndarray | None) -> Arrays:
    bounds = [None if a is None else [int(v) for v in a.reshape(-1)] for a in (*given, None, None)[:4]]
    taken = _ranges(n, x.shape, bounds)
    return (x[tuple(slice(r.start, None if r.stop < 0 else r.stop, r.step) if r else slice(0) for r in taken)],)


def _cut_axis(n: View) -> int | None:
    """The axis that is cut at positions that only a run knows; None if that is not one axis in steps of 1."""
    rank, axes = len(n.sizes(0)), known(n, 3)
    if n.has(3) and axes is None:
        return None
    found = axes_of(n, axes, rank) if axes is not None else tuple(range(rank))
    plain = not n.has(4) or known(n, 4) == [1]
    return found[0] if len(found) == 1 and plain and all(indexable(n, i) and n.sizes(i) == (1,) for i in (1, 2)) else None


def _slice_most(n: View) -> list[Spec] | None:
    return None if _cut_axis(n) is None else [n.spec(0)]


def _slice_lower(n: View, b: Any) -> Any:
    if b.counter is not None:
        shape, axis = n.sizes(0), _cut_axis(n)
        cut = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))  # type: ignore[index, operator, arg-type]
        x, ends, out = b.input(0), [indices(n, b, i) for i in (1, 2)], b.output(0)
        return b.call("cut", x.view(cut), *ends, out.view((out.size,)), b.counter, x.dtype.itemsize)
    bounds = _bounds(n)
    if not movers(n) or bounds is None:
        return False
    shape = n.sizes(0)
    strides, taken = strides_of(shape), _ranges(n, shape, bounds)
    offset = sum(r.start * s for r, s in zip(taken, strides, strict=True))
    return move(b, b.input(0), [len(r) for r in taken], offset, [r.step * s for r, s in zip(taken, strides, strict=True)])


_SLICE = MOVES._replace(time="slice", sizes="slice", steers=(1, 2, 3, 4), counts=_slice_most)
register("Slice", _slice_infer, _slice_run, _slice_lower, _SLICE)

# ---- Expand, Tile ----------------------------------------------------------------------------------------------------


def _expand_infer(n: View) -> list[Spec]:
    wanted, dtype = known(n, 1), n.spec(0).dtype
    if wanted is not None:
        return [Spec(broadcast(n, [n.shape(0), tuple(wanted)]), dtype)]
    length, rank = n.shape(1), rank_of(n, 0)
    if rank is None or length is None or len(length) != 1 or not isinstance(length[0], int):
        return [Spec(None, dtype)]
    return [unknown(max(rank, length[0]), dtype)]


def _expand_run(n: View, x: np.ndarray, shape: np.ndarray) -> Arrays:
    wanted = broadcast(n, [x.shape, tuple(int(v) for v in shape.reshape(-1))])
    return (np.broadcast_to(x, wanted),)  # type: ignore[arg-type]


def _expand_lower(n: View, b: Any) -> Any:
    wanted = known(n, 1)
    if not movers(n) or wanted is None:
        return False
    shape: Any = broadcast(n, [n.shape(0), tuple(wanted)])
    own = (1,) * (len(shape) - len(n.sizes(0))) + n.sizes(0)
    strides = [0 if o != s else t for o, s, t in zip(own, shape, strides_of(own), strict=True)]
    return move(b, b.input(0), shape, 0, strides)


def _tile_infer(n: View) -> list[Spec]:
    shape, repeats, dtype = n.shape(0), known(n, 1), n.spec(0).dtype
    if shape is None:
        return [Spec(None, dtype)]
    if repeats is None:
        return [unknown(len(shape), dtype)]
    _check_repeats(n, len(shape), repeats)
    return [
        Spec(
            tuple(
                s * r if isinstance(s, int) else s if r == 1 else 0 if r == 0 else None
                for s, r in zip(shape, repeats, strict=True)
            ),
            dtype,
        )
    ]


def _check_repeats(n: View, rank: int, repeats: Sequence[int]) -> None:
    if len(repeats) != rank or any(r < 0 for r in repeats):
        raise n.fail(f"repeats are {tuple(repeats)}: expected {rank} values of at least 0")


def _tile_run(n: View, x: np.ndarray, repeats: np.ndarray) -> Arrays:
    counts = [int(v) for v in repeats.reshape(-1)]
    _check_repeats(n, x.ndim, counts)
    return (np.tile(x, counts),)


def _tile_lower(n: View, b: Any) -> Any:
    repeats = known(n, 1)
    if not movers(n) or repeats is None:
        return False
    shape = n.sizes(0)
    split = [size for pair in zip(repeats, shape, strict=True) for size in pair]
    strides = [step for s in strides_of(shape) for step in (0, s)]
    return move(b, b.input(0), split, 0, strides)


register("Expand", _expand_infer, _expand_run, _expand_lower, MOVES._replace(sizes="filled", nothing=same_shape, steers=(1,)))
register("Tile", _tile_infer, _tile_run, _tile_lower, MOVES._replace(steers=(1,)))
