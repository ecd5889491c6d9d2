"""Elements picked or replaced by number: Gather and Scatter in their forms, OneHot, Compress, NonZero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._tuples import NamedTuple
from ..ir.graph import Dim, Shape
from ..kernels.table import ARITHMETIC, KINDS, SCATTER
from ..rules.shapes import index_error
from ._base import INT64, Spec, View, register, unknown
from ._traits import MOVES, Traits
from .calls import MOST_AXES, has, indexable, merged, move, strides_of
from .calls import indices as int64_indices
from .movement import movers
from .shapes import axis_of, need_kind, product, rank_of, same_dtype, scalar

__all__ = ["Grid", "from_start", "grid_of", "scattered"]

Arrays = tuple[np.ndarray, ...]


def _positions(n: View, indices: np.ndarray, shape: Shape, axis: int) -> np.ndarray:
    """Indices of an axis, whose size is known, counted from the front; all of them in range."""
    size: Any = shape[axis]
    if indices.size and (indices.min() < -size or indices.max() >= size):
        wrong = indices[(indices < -size) | (indices >= size)][0]
        raise index_error(n.where, wrong, shape, axis)
    return np.where(indices < 0, indices + indices.dtype.type(size), indices) if indices.dtype.kind == "i" else indices


# ---- Gather ----------------------------------------------------------------------------------------------------------


def _gather_infer(n: View) -> list[Spec]:
    need_kind(n, "iu", 1)
    x, indices, dtype = n.shape(0), n.shape(1), n.spec(0).dtype
    if x is None or indices is None:
        return [Spec(None, dtype)]
    axis = axis_of(n, n.get("axis", 0), len(x))
    value = n.value(1)
    if value is not None and isinstance(x[axis], int):
        _positions(n, value, x, axis)
    return [Spec((*x[:axis], *indices, *x[axis + 1 :]), dtype)]


def _gather_run(n: View, x: np.ndarray, indices: np.ndarray) -> Arrays:
    axis = axis_of(n, n.get("axis", 0), x.ndim)
    return (np.take(x, _positions(n, indices, x.shape, axis), axis=axis),)


def _gather_lower(n: View, b: Any) -> Any:
    """A known index, or a row of known ones with equal steps, is a slice."""
    if not movers(n) or not has("gather"):
        return False
    shape, indices = n.sizes(0), n.value(1)
    axis = axis_of(n, n.get("axis", 0), len(shape))
    strides = strides_of(shape)
    if indices is not None:
        found = _positions(n, indices, shape, axis).reshape(-1).astype(np.int64)
        steps = np.diff(found)
        if len(found) and (steps == steps[:1]).all():
            step = int(steps[0]) if len(steps) else 1
            taken, by = (
                [*shape[:axis], len(found), *shape[axis + 1 :]],
                [*strides[:axis], step * strides[axis], *strides[axis + 1 :]],
            )
            return move(b, b.input(0), taken, int(found[0]) * strides[axis], by)
    if not indexable(n, 1):
        return False
    x, picks = b.input(0), int64_indices(n, b, 1)
    outer, inner, count = math.prod(shape[:axis]), math.prod(shape[axis + 1 :]), math.prod(n.sizes(1))
    view = x.view((outer, shape[axis], inner))
    return b.call("gather", view, picks.view((count,)), b.output(0).view((outer, count, inner)), x.dtype.itemsize)


register("Gather", _gather_infer, _gather_run, _gather_lower, MOVES._replace(time="gather", sizes="gather"))


def _elements_infer(n: View) -> list[Spec]:
    need_kind(n, "iu", 1)
    rank, other = rank_of(n, 0), rank_of(n, 1)
    if rank is not None and other is not None:
        if rank != other:
            raise n.fail(f"indices have shape {n.shape(1)}, x has {n.shape(0)}: expected the same number of axes")
        axis_of(n, n.get("axis", 0), rank)
    return [Spec(n.shape(1), n.spec(0).dtype)]


def _axis_along(n: View, x: Sequence[int], indices: Sequence[int]) -> int:
    """The axis that the indices are of; they reach no further than x along the others."""
    axis = axis_of(n, n.get("axis", 0), len(x))
    if any(i > s for k, (i, s) in enumerate(zip(indices, x, strict=True)) if k != axis):
        raise n.fail(f"indices have shape {tuple(indices)}, x has {tuple(x)}: expected at most its size but for axis {axis}")
    return axis


def _along(n: View, x: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, ...]:
    """Positions that GatherElements and ScatterElements read: an array for each axis."""
    axis = _axis_along(n, x.shape, indices.shape)
    grid: list[np.ndarray] = list(np.ogrid[tuple(slice(s) for s in indices.shape)])
    grid[axis] = _positions(n, indices, x.shape, axis)
    return tuple(grid)


class Grid(NamedTuple):
    """Rows of the kernels `pick` and `scatter`: the number of elements of each, the grid of positions with its steps, and the
    axes that indices are of with theirs.
    """

    inner: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    size: tuple[int, ...]
    stride: tuple[int, ...]


def grid_of(inner: int, shape: Sequence[int], steps: Sequence[int], size: Sequence[int], stride: Sequence[int]) -> Grid | None:
    """None if there are more axes than kernels take."""
    axes = merged(shape, steps, strides_of(shape))
    if len(axes) > MOST_AXES or len(size) > MOST_AXES:
        return None
    return Grid(inner, tuple(a[0] for a in axes), tuple(a[1] for a in axes), tuple(size), tuple(stride))


def _elements_grid(n: View) -> Grid | None:
    """Rows of one element, and tuples of one index."""
    shape, indices = n.sizes(0), n.sizes(1)
    axis = _axis_along(n, shape, indices)
    strides = strides_of(shape)
    return grid_of(1, indices, [0 if k == axis else s for k, s in enumerate(strides)], [shape[axis]], [strides[axis]])


def _nd_grid(n: View, batch: int) -> Grid | None:
    """Tuples of indices that settle the first axes, after those of the batch."""
    shape, indices = n.sizes(0), n.sizes(1)
    last = _nd_lengths(n, shape, indices, batch)
    assert last is not None
    if shape[:batch] != indices[:batch]:
        raise n.fail(f"x has shape {shape}, indices {indices}: expected the same {batch} batch axes")
    strides = strides_of(shape[: batch + last])
    steps = [*strides[:batch], *[0] * (len(indices) - 1 - batch)]
    return grid_of(math.prod(shape[batch + last :]), indices[:-1], steps, shape[batch : batch + last], strides[batch:])


def _leading(n: View) -> tuple[int, int]:
    """Number of axes that index the rows of x, and of those that index the rows picked or written."""
    shape, indices = n.sizes(0), n.sizes(1)
    if n.op in ("GatherElements", "ScatterElements"):
        return len(shape), len(indices)
    return n.get("batch_dims", 0) + indices[-1], len(indices) - 1


def _rows(ref: Any, grid: Grid, axes: int) -> Any:
    """An array as rows of the grid's size, which the first axes number."""
    return ref.view((math.prod(ref.shape[:axes]), grid.inner))


def _pick_lower(n: View, b: Any) -> Any:
    if not movers(n) or not indexable(n, 1):
        return False
    grid = _elements_grid(n) if n.op == "GatherElements" else _nd_grid(n, n.get("batch_dims", 0))
    if grid is None:
        return False
    x, picks, out = b.input(0), int64_indices(n, b, 1), b.output(0)
    given, made = _leading(n)
    rows = [_rows(x, grid, given), _rows(out, grid, made)]
    return b.call("pick", rows[0], picks, rows[1], *grid[1:], grid.inner * x.dtype.itemsize)


register("GatherElements", _elements_infer, lambda n, x, indices: (x[_along(n, x, indices)],), _pick_lower, MOVES)


def _nd_lengths(n: View, data: Shape, indices: Shape, batch: int) -> int | None:
    """Number of axes that a tuple of indices fixes."""
    last = indices[-1] if indices else 0
    if not 0 <= batch < min(len(data), len(indices)):
        raise n.fail(f"batch_dims is {batch} for shapes {data} and {indices}: expected less axes than either has")
    if isinstance(last, int):
        if not 1 <= last <= len(data) - batch:
            raise n.fail(f"indices have shape {indices}, x has {data}: expected a last axis of 1 to {len(data) - batch}")
        return last
    return None


def _gather_nd_infer(n: View) -> list[Spec]:
    need_kind(n, "iu", 1)
    data, indices, batch, dtype = n.shape(0), n.shape(1), n.get("batch_dims", 0), n.spec(0).dtype
    if data is None or indices is None:
        return [Spec(None, dtype)]
    last = _nd_lengths(n, data, indices, batch)
    return [Spec(None if last is None else (*indices[:-1], *data[batch + last :]), dtype)]


def _nd_index(n: View, data: np.ndarray, indices: np.ndarray, batch: int = 0) -> tuple[np.ndarray, ...]:
    """Tuples of indices as one array an axis."""
    last = _nd_lengths(n, data.shape, indices.shape, batch)
    assert last is not None
    if data.shape[:batch] != indices.shape[:batch]:
        raise n.fail(f"x has shape {data.shape}, indices {indices.shape}: expected the same {batch} batch axes")
    grid = [np.arange(s).reshape((-1,) + (1,) * (indices.ndim - 2 - k)) for k, s in enumerate(indices.shape[:batch])]
    return (*grid, *(_positions(n, indices[..., k], data.shape, batch + k) for k in range(last)))


def _gather_nd_run(n: View, data: np.ndarray, indices: np.ndarray) -> Arrays:
    return (data[_nd_index(n, data, indices, n.get("batch_dims", 0))],)


register("GatherND", _gather_nd_infer, _gather_nd_run, _pick_lower, MOVES)

# ---- Scatter ---------------------------------------------------------------------------------------------------------

REDUCTIONS: dict[str, Callable[..., Any] | None] = {
    "none": None,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _scatter_infer(n: View) -> list[Spec]:
    need_kind(n, "iu", 1)
    same_dtype(n, 0, 2)
    if n.get("reduction", "none") not in REDUCTIONS:
        raise n.fail(f"reduction is {n.get('reduction')!r}: expected one of {', '.join(REDUCTIONS)}")
    if n.op == "ScatterElements":
        _elements_infer(n)
        a, z = n.shape(1), n.shape(2)
        if (
            a is not None
            and z is not None
            and (len(a) != len(z) or any(p != q for p, q in zip(a, z, strict=True) if isinstance(p, int) and isinstance(q, int)))
        ):
            raise n.fail(f"indices have shape {a}, updates {z}: expected the same")
    elif (data := n.shape(0)) is not None and (indices := n.shape(1)) is not None:
        _nd_lengths(n, data, indices, 0)
    return [n.spec(0)]


def _put(n: View, data: np.ndarray, where: tuple[np.ndarray, ...], updates: np.ndarray) -> Arrays:
    result = np.array(data)
    function: Any = REDUCTIONS[n.get("reduction", "none")]
    if function is None:
        result[where] = updates
    else:
        function.at(result, where, updates)
    return (result,)


def _scatter_elements_run(n: View, data: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> Arrays:
    return _put(n, data, _along(n, data, indices), updates)


def _scatter_nd_run(n: View, data: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> Arrays:
    where = _nd_index(n, data, indices)
    expected = (*indices.shape[:-1], *data.shape[indices.shape[-1] :])
    if updates.shape != expected:
        raise n.fail(f"updates have shape {updates.shape}: expected {expected}")
    return _put(n, data, where, updates)


def _scatter_lower(n: View, b: Any) -> Any:
    dtype, reduction = n.spec(0).dtype, n.get("reduction", "none")
    combines = dtype.name in KINDS and dtype.kind != "b" and dtype != np.float16
    if not movers(n) or not indexable(n, 1) or (reduction != "none" and not combines):
        return False
    grid = _elements_grid(n) if n.op == "ScatterElements" else _nd_grid(n, 0)
    if grid is None:
        return False
    expected = n.sizes(1) if n.op == "ScatterElements" else (*n.sizes(1)[:-1], *n.sizes(0)[n.sizes(1)[-1] :])
    if n.sizes(2) != expected:
        raise n.fail(f"updates have shape {n.sizes(2)}: expected {expected}")
    x, picks, updates = b.input(0), int64_indices(n, b, 1), b.input(2)
    # In the place of x, unless that is read as something else too.
    alone = all(b.root(ref) is not b.root(x) for ref in (picks, updates))
    out = b.output(0, over=x if alone else None)
    given, made = _leading(n)
    rows = [_rows(x, grid, given), _rows(updates, grid, made), _rows(out, grid, given)]
    size, source = grid.inner * dtype.itemsize, KINDS.get(dtype.name, 0)
    return b.call("scatter", rows[0], picks, rows[1], rows[2], *grid[1:], size, SCATTER[reduction], source)


def scattered(b: Any, x: Any, picks: Any, updates: Any, out: Any, grid: Grid | None) -> None:
    """Rows of `updates` put into `out`, which has x's others and may be x, where indices say. `grid`: of less axes than kernels
    take.
    """
    assert grid is not None
    itemsize = grid.inner * out.dtype.itemsize
    rows = [ref.view((ref.size // grid.inner, grid.inner)) for ref in (x, updates, out)]
    b.call("scatter", rows[0], picks, *rows[1:], *grid[1:], itemsize, SCATTER["none"], 0)


def from_start(b: Any, picks: Any, size: int) -> Any:
    """Indices as kernels take them, of which those below 0 are out of range: they count from the end there."""
    unsigned = np.dtype(np.uint64)
    given, most = picks._replace(dtype=unsigned), b.constant(np.array(size, unsigned))
    made = b.temp(picks.shape, unsigned)
    b.call("arithmetic", given, most, made, ARITHMETIC["minimum"], KINDS["uint64"])
    return made._replace(dtype=INT64)


ELEMENTS = Traits(work="elements")
register("ScatterElements", _scatter_infer, _scatter_elements_run, _scatter_lower, ELEMENTS)
register("ScatterND", _scatter_infer, _scatter_nd_run, _scatter_lower, ELEMENTS)

# ---- OneHot, Compress, NonZero ---------------------------------------------------------------------------------------


def _depth(n: View, depth: np.ndarray) -> int:
    found = int(scalar(n, 1, depth))
    if found < 0:
        raise n.fail(f"depth is {found}: expected at least 0")
    return found


def _one_hot_infer(n: View) -> list[Spec]:
    values = n.shape(2)
    if values is not None and (len(values) != 1 or (isinstance(values[0], int) and values[0] != 2)):
        raise n.fail(f"values have shape {values}: expected two values, for off and on")
    shape, dtype, depth = n.shape(0), n.spec(2).dtype, n.value(1)
    if shape is None:
        return [Spec(None, dtype)]
    axis = axis_of(n, n.get("axis", -1), len(shape) + 1)
    return [Spec((*shape[:axis], None if depth is None else _depth(n, depth), *shape[axis:]), dtype)]


def _one_hot_run(n: View, indices: np.ndarray, depth: np.ndarray, values: np.ndarray) -> Arrays:
    count = _depth(n, depth)
    axis = axis_of(n, n.get("axis", -1), indices.ndim + 1)
    at = np.expand_dims(indices.astype(np.int64), axis)
    steps = np.arange(count).reshape((-1,) + (1,) * (indices.ndim - axis))
    return (np.where(np.where(at < 0, at + count, at) == steps, values[1], values[0]),)


def _one_hot_lower(n: View, b: Any) -> Any:
    if not movers(n, 2) or n.value(1) is None or n.spec(0).dtype.name not in KINDS or n.spec(0).dtype.kind == "b":
        return False
    shape, dtype = n.sizes(0), n.spec(2).dtype
    axis = axis_of(n, n.get("axis", -1), len(shape) + 1)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis:])
    at, out = int64_indices(n, b, 0).view((outer, inner)), b.output(0)
    return b.call("one_hot", at, b.input(2), out.view((outer, out.shape[axis], inner)), dtype.itemsize)


register("OneHot", _one_hot_infer, _one_hot_run, _one_hot_lower, ELEMENTS._replace(steers=(1,)))


def _compress_axis(n: View, rank: int) -> int | None:
    return None if n.get("axis") is None else axis_of(n, n.get("axis"), rank)


def _compress_infer(n: View) -> list[Spec]:
    need_kind(n, "b", 1)
    shape, condition, dtype = n.shape(0), n.value(1), n.spec(0).dtype
    if shape is None:
        return [unknown(1 if n.get("axis") is None else None, dtype)]
    axis = _compress_axis(n, len(shape))
    size = product(shape) if axis is None else shape[axis]
    count: Dim = None if condition is None or not isinstance(size, int) else int(condition.reshape(-1)[:size].sum())
    return [Spec((count,) if axis is None else (*shape[:axis], count, *shape[axis + 1 :]), dtype)]


def _compress_run(n: View, x: np.ndarray, condition: np.ndarray) -> Arrays:
    axis = _compress_axis(n, x.ndim)
    size = x.size if axis is None else x.shape[axis]
    return (np.compress(condition.reshape(-1)[:size], x, axis=axis),)


def _non_zero_infer(n: View) -> list[Spec]:
    value = n.value(0)
    return [Spec((rank_of(n, 0), None if value is None else int(np.count_nonzero(value))), INT64)]


def _non_zero_run(n: View, x: np.ndarray) -> Arrays:
    if not x.ndim:
        return (np.zeros((0, np.count_nonzero(x)), np.int64),)
    # numpy is several times as fast at booleans as at numbers.
    return (np.array(np.nonzero(x != 0 if x.dtype.kind in "fiuc" else x), np.int64),)


def _compress_cut(n: View) -> tuple[int, int, int]:
    """The axes before the one that is chosen from, that one, those after it."""
    shape = n.sizes(0)
    axis = _compress_axis(n, len(shape))
    if axis is None:
        return 1, math.prod(shape), 1
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _compress_most(n: View) -> list[Spec]:
    (spec,), (_, size, _) = _compress_infer(n), _compress_cut(n)
    most = min(size, math.prod(n.sizes(1)))
    return [Spec(tuple(most if d is None else d for d in spec.shape or ()), spec.dtype)]


def _compress_lower(n: View, b: Any) -> Any:
    if b.counter is None:
        return False
    x, out = b.input(0), b.output(0)
    cut = _compress_cut(n)
    return b.call("compress", x.view(cut), b.input(1), out.view((out.size,)), b.counter, x.dtype.itemsize)


def _non_zero_most(n: View) -> list[Spec] | None:
    shape = n.sizes(0)
    if not 0 < len(shape) <= MOST_AXES or n.spec(0).dtype.name not in KINDS:
        return None
    return [Spec((len(shape), math.prod(shape)), INT64)]


def _non_zero_lower(n: View, b: Any) -> Any:
    if b.counter is None:
        return False
    x, out = b.input(0), b.output(0)
    return b.call("non_zero", x, out.view((out.size,)), b.counter, KINDS[x.dtype.name])


register("Compress", _compress_infer, _compress_run, _compress_lower, MOVES._replace(counts=_compress_most))
register("NonZero", _non_zero_infer, _non_zero_run, _non_zero_lower, ELEMENTS._replace(counts=_non_zero_most))
