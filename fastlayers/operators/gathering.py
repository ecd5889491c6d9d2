"""Elements picked or replaced by number: Gather and Scatter in their forms, OneHot, Compress, NonZero."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph.ir import Dim, Shape
from ._base import INT64, Spec, View, register, unknown
from ._calls import has, move, number, strides_of
from ._shapes import axis_of, need_kind, product, rank_of, same_dtype, scalar
from ._traits import MOVES, Traits
from .movement import movers

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]


def _positions(n: View, indices: np.ndarray, size: int) -> np.ndarray:
    """Indices counted from the front, all of them in range."""
    if indices.size and (indices.min() < -size or indices.max() >= size):
        wrong = indices[(indices < -size) | (indices >= size)][0]
        raise n.fail(f"index {wrong} is out of range: expected {-size} to {size - 1}")
    return np.where(indices < 0, indices + indices.dtype.type(size), indices) if indices.dtype.kind == "i" else indices


# ---- Gather ----------------------------------------------------------------------------------------------------------


def _gather_infer(n: View) -> list[Spec]:
    need_kind(n, "iu", 1)
    x, indices, dtype = n.shape(0), n.shape(1), n.spec(0).dtype
    if x is None or indices is None:
        return [Spec(None, dtype)]
    axis = axis_of(n, n.get("axis", 0), len(x))
    value, size = n.value(1), x[axis]
    if value is not None and isinstance(size, int):
        _positions(n, value, size)
    return [Spec((*x[:axis], *indices, *x[axis + 1 :]), dtype)]


def _gather_run(n: View, x: np.ndarray, indices: np.ndarray) -> Arrays:
    axis = axis_of(n, n.get("axis", 0), x.ndim)
    return (np.take(x, _positions(n, indices, x.shape[axis]), axis=axis),)


def _gather_lower(n: View, b: Any) -> Any:
    """A known index, or a row of known ones with equal steps, is a slice."""
    if not movers(n) or not has("gather"):
        return False
    shape, indices = n.sizes(0), n.value(1)
    axis = axis_of(n, n.get("axis", 0), len(shape))
    strides = strides_of(shape)
    if indices is not None:
        found = _positions(n, indices, shape[axis]).reshape(-1).astype(np.int64)
        steps = np.diff(found)
        if len(found) and (steps == steps[:1]).all():
            step = int(steps[0]) if len(steps) else 1
            taken, by = (
                [*shape[:axis], len(found), *shape[axis + 1 :]],
                [*strides[:axis], step * strides[axis], *strides[axis + 1 :]],
            )
            return move(b, b.input(0), taken, int(found[0]) * strides[axis], by)
    from_, to = number("KINDS", n.spec(1).dtype.name), number("KINDS", "int64")
    if n.spec(1).dtype != INT64 and indices is None and (from_ is None or to is None or not has("cast")):
        return False
    x = b.input(0)
    if indices is not None:
        picks = b.constant(indices.astype(np.int64))
    else:
        picks = b.input(1)
        if picks.dtype != INT64:
            given, picks = picks, b.temp(picks.shape, INT64)
            b.call("cast", given, picks, from_, to)
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


def _along(n: View, x: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, ...]:
    """Where GatherElements and ScatterElements look: an array of positions for each axis."""
    axis = axis_of(n, n.get("axis", 0), x.ndim)
    if any(i > s for k, (i, s) in enumerate(zip(indices.shape, x.shape, strict=True)) if k != axis):
        raise n.fail(f"indices have shape {indices.shape}, x has {x.shape}: expected at most its size but for axis {axis}")
    grid: list[np.ndarray] = list(np.ogrid[tuple(slice(s) for s in indices.shape)])
    grid[axis] = _positions(n, indices, x.shape[axis])
    return tuple(grid)


register("GatherElements", _elements_infer, lambda n, x, indices: (x[_along(n, x, indices)],), traits=MOVES)


def _nd_lengths(n: View, data: Shape, indices: Shape, batch: int) -> int | None:
    """How many axes a tuple of indices settles."""
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
    return (*grid, *(_positions(n, indices[..., k], data.shape[batch + k]) for k in range(last)))


def _gather_nd_run(n: View, data: np.ndarray, indices: np.ndarray) -> Arrays:
    return (data[_nd_index(n, data, indices, n.get("batch_dims", 0))],)


register("GatherND", _gather_nd_infer, _gather_nd_run, traits=MOVES)

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


ELEMENTS = Traits(work="elements")
register("ScatterElements", _scatter_infer, _scatter_elements_run, traits=ELEMENTS)
register("ScatterND", _scatter_infer, _scatter_nd_run, traits=ELEMENTS)

# ---- OneHot, Compress, NonZero ---------------------------------------------------------------------------------------


def _depth(n: View, depth: np.ndarray) -> int:
    found = int(scalar(n, 1, depth))
    if found < 0:
        raise n.fail(f"depth is {found}: expected at least 0")
    return found


def _one_hot_infer(n: View) -> list[Spec]:
    values = n.shape(2)
    if values is not None and (len(values) != 1 or (isinstance(values[0], int) and values[0] != 2)):
        raise n.fail(f"values have shape {values}: expected two numbers, for off and on")
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


register("OneHot", _one_hot_infer, _one_hot_run, traits=ELEMENTS._replace(steers=(1,)))


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
    found = np.nonzero(x) if x.ndim else ()
    return (np.array(found, np.int64).reshape(x.ndim, np.count_nonzero(x)),)


register("Compress", _compress_infer, _compress_run, traits=MOVES)
register("NonZero", _non_zero_infer, _non_zero_run, traits=ELEMENTS)
