"""Sums, means and extremes over axes; positions of extremes; running sums; the largest or smallest elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.graph import Dim, Shape
from ..kernels.table import KINDS
from ._base import FLOAT32, INT64, Spec, View, register, unknown
from ._traits import Layout, Quantized, Sides, Traits
from .arithmetic import truncated
from .calls import MOST_AXES, copy, has, merged, number, strides_of
from .shapes import axes_of, axis_of, known, like, need_kind, scalar

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]

# ---- Reduce* ---------------------------------------------------------------------------------------------------------


def _lowest(dtype: np.dtype[Any], sign: int) -> Any:
    """Result of the largest (sign 1) or smallest (-1) of no values."""
    if dtype.kind == "f":
        return dtype.type(-sign * np.inf)
    if dtype.kind == "b":
        return sign < 0
    return np.iinfo(dtype).min if sign > 0 else np.iinfo(dtype).max


def _mean(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    total = np.sum(x, axes, keepdims=True)
    count = math.prod(x.shape[a] for a in axes)
    return truncated(total, np.asarray(count, total.dtype))


def _log_sum_exp(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    most = np.max(x, axes, keepdims=True, initial=-np.inf)
    # An infinite maximum is the result, or becomes it: exp(x - 0) overflows or vanishes as it should.
    shift = np.where(np.isfinite(most), most, 0)
    return np.asarray(np.log(np.sum(np.exp(x - shift), axes, keepdims=True)) + shift)


# Operator: its name in table.REDUCE, its meaning for float64 or int64 (or uint64), and whether that needs floats.
REDUCTIONS: dict[str, tuple[str, Callable[[np.ndarray, tuple[int, ...]], np.ndarray], bool]] = {
    "ReduceSum": ("sum", lambda x, axes: np.sum(x, axes, keepdims=True), False),
    "ReduceMean": ("mean", _mean, False),
    "ReduceProd": ("prod", lambda x, axes: np.prod(x, axes, keepdims=True), False),
    "ReduceSumSquare": ("sum_square", lambda x, axes: np.sum(x * x, axes, keepdims=True), False),
    "ReduceL1": ("l1", lambda x, axes: np.sum(np.abs(x), axes, keepdims=True), False),
    "ReduceL2": ("l2", lambda x, axes: np.sqrt(np.sum(x * x, axes, keepdims=True)), True),
    "ReduceLogSum": ("log_sum", lambda x, axes: np.log(np.sum(x, axes, keepdims=True)), True),
    "ReduceLogSumExp": ("log_sum_exp", _log_sum_exp, True),
}


def _reduced_axes(n: View, rank: int, values: Sequence[int] | None) -> tuple[int, ...]:
    if not values:
        return () if n.get("noop_with_empty_axes", 0) else tuple(range(rank))
    return axes_of(n, values, rank)


def _without(n: View, shape: Shape, axes: Sequence[int]) -> Shape:
    """The shape with these axes reduced."""
    keep = n.get("keepdims", 1)
    return tuple(1 if i in axes else s for i, s in enumerate(shape) if keep or i not in axes)


def _shape(n: View) -> Shape | None:
    """The shape of x as its axes are counted: channels first, wherever they are in memory."""
    shape = n.shape(0)
    return _first(shape) if shape is not None and len(shape) > 2 and n.get("x_last", False) else shape


def _first(shape: Shape) -> Shape:
    """The shape of an image, given with its channels last, as with its channels first."""
    return (shape[0], shape[-1], *shape[1:-1])


def _reduce_infer(n: View) -> list[Spec]:
    need_kind(n, "fiub" if n.op in ("ReduceMax", "ReduceMin") else "fiu", 0)
    shape, axes, dtype = _shape(n), known(n, 1), n.spec(0).dtype
    if shape is None:
        return [Spec(None, dtype)]
    if n.has(1) and axes is None and n.shape(1) != (0,):
        return [unknown(len(shape) if n.get("keepdims", 1) else None, dtype)]
    return [Spec(_without(n, shape, _reduced_axes(n, len(shape), axes)), dtype)]


def _reduce_run(n: View, x: np.ndarray, axes: np.ndarray | None = None) -> Arrays:
    chosen = _reduced_axes(n, x.ndim, None if axes is None else [int(v) for v in axes.reshape(-1)])
    x = np.moveaxis(x, -1, 1) if x.ndim > 2 and n.get("x_last", False) else x
    shape: Any = _without(n, x.shape, chosen)
    if n.op == "ReduceMax":
        result = np.max(x, chosen, keepdims=True, initial=_lowest(x.dtype, 1))
    elif n.op == "ReduceMin":
        result = np.min(x, chosen, keepdims=True, initial=_lowest(x.dtype, -1))
    else:
        _, function, floats = REDUCTIONS[n.op]
        wide = np.float64 if floats or x.dtype.kind == "f" else np.uint64 if x.dtype.kind == "u" else np.int64
        result = function(x.astype(wide), chosen)
    return (np.asarray(result).astype(x.dtype).reshape(shape),)


def _reduce_lower(n: View, b: Any) -> Any:
    """One group of neighbouring axes, any other ones after they have been brought together."""
    axes, shape = known(n, 1), n.sizes(0)
    key = {"ReduceMax": "max", "ReduceMin": "min"}.get(n.op) or REDUCTIONS[n.op][0]
    code = number("REDUCE", key)
    dtype = n.spec(0).dtype
    if code is None or not has("reduce", "copy") or not _folds(dtype, key) or (n.has(1) and axes is None) or 0 in shape:
        return False
    if n.get("x_last", False):
        if not _whole_maps(n, len(shape), axes):
            return False
        cut = shape[0], math.prod(shape[1:-1]), shape[-1]
        return b.call("reduce", b.input(0).view(cut), b.output(0).view((cut[0], cut[2])), code)
    gone = {a for a in _reduced_axes(n, len(shape), axes) if shape[a] != 1}
    kept = [i for i in range(len(shape)) if i not in gone and shape[i] != 1]
    order = [*kept, *sorted(gone)]
    sizes, strides = [shape[i] for i in order], [strides_of(shape)[i] for i in order]
    if len(merged(sizes, strides, strides_of(sizes))) > MOST_AXES:
        return False
    x = b.input(0)
    if not gone and key in ("sum", "mean", "max", "min", "prod"):
        return b.alias(0, x)
    first, last = (min(gone), max(gone) + 1) if gone else (len(shape), len(shape))
    inside = [i for i in kept if first < i < last]
    outer, inner = math.prod(shape[:first]), math.prod(shape[last:])
    count = math.prod(shape[i] for i in gone)
    if inside:
        together = b.temp(sizes, dtype)
        copy(b, x, together, sizes, 0, strides, 0, strides_of(sizes))
        x, outer, inner = together, math.prod(shape[i] for i in kept), 1
    x, out = x.view((outer, count, inner)), b.output(0).view((outer, inner))
    return b.call("reduce", x, out, code) if n.float32(0) else b.call("fold", x, out, code, KINDS[dtype.name])


def _folds(dtype: np.dtype[Any], key: str) -> bool:
    """Whether kernels reduce arrays of this dtype."""
    if dtype == np.float32:
        return True
    if dtype.kind == "b":
        return key in ("max", "min")
    whole = ("sum", "mean", "max", "min", "prod", "sum_square", "l1")
    return dtype.name in KINDS and dtype != np.float16 and (key in whole or (dtype.kind == "f" and key in ("l2", "log_sum")))


def _map_sides(n: View) -> Sides | None:
    """Sides of a reduction of whole maps, as squeeze-and-excitation and classifiers begin with; its result has its channels
    first."""
    shape = n.shape(0)
    if shape is None or n.value(1) is None or n.spec(0).dtype != FLOAT32 or "x_last" in n.node.attributes:
        return None
    return Sides(((0,),), first=(-1,)) if _whole_maps(n, len(shape), known(n, 1)) else None


def _whole_maps(n: View, rank: int, axes: Sequence[int] | None) -> bool:
    """Whether all axes but the first two are reduced."""
    return rank > 2 and sorted(_reduced_axes(n, rank, axes)) == list(range(2, rank))


_MAPS = Layout("tied", _map_sides, lambda x, out: {"x_last": x})
REDUCED = Traits(layout=_MAPS, time="reduce", work="elements", steers=(1,))
for _name in (*REDUCTIONS, "ReduceMax", "ReduceMin"):
    register(
        _name,
        _reduce_infer,
        _reduce_run,
        _reduce_lower,
        REDUCED._replace(quantized=Quantized("QLinearReduceMean", "one") if _name == "ReduceMean" else None),
    )

# ---- ArgMax, ArgMin --------------------------------------------------------------------------------------------------


def _arg_infer(n: View) -> list[Spec]:
    need_kind(n, "fiu", 0)
    shape = n.shape(0)
    if shape is None:
        return [Spec(None, INT64)]
    axis = axis_of(n, n.get("axis", 0), len(shape))
    if shape[axis] == 0:
        raise n.fail(f"x has shape {shape}: axis {axis} has no elements to choose from")
    return [Spec(_without(n, shape, (axis,)), INT64)]


def _arg_run(n: View, x: np.ndarray) -> Arrays:
    axis = axis_of(n, n.get("axis", 0), x.ndim)
    function: Any = np.argmax if n.op == "ArgMax" else np.argmin
    last = n.get("select_last_index", 0)
    found = x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis) if last else function(x, axis=axis)
    shape: Any = _without(n, x.shape, (axis,))
    return (np.asarray(found, np.int64).reshape(shape),)


def _arg_lower(n: View, b: Any) -> Any:
    shape = n.sizes(0)
    axis = axis_of(n, n.get("axis", 0), len(shape))
    dtype, last = n.spec(0).dtype, bool(n.get("select_last_index", 0))
    plain = dtype == np.float32 and not last and shape[axis] < 1 << 31
    if not plain and (dtype.name not in KINDS or dtype == np.float16):
        return False
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    x, out = b.input(0).view((outer, shape[axis], inner)), b.output(0).view((outer, inner))
    if plain:
        return b.call("argmax", x, out, n.op == "ArgMin")
    return b.call("arg_extreme", x, out, KINDS[dtype.name], n.op == "ArgMin", last)


register("ArgMax", _arg_infer, _arg_run, _arg_lower, traits=Traits(time="reduce", work="elements"))
register("ArgMin", _arg_infer, _arg_run, _arg_lower, traits=Traits(time="reduce", work="elements"))

# ---- running sums ----------------------------------------------------------------------------------------------------


def _running_infer(n: View) -> list[Spec]:
    need_kind(n, "fiu", 0)
    axis, shape = known(n, 1), n.shape(0)
    if axis is not None and len(axis) != 1:
        raise n.fail(f"the axis is {tuple(axis)}: expected one number")
    if axis is not None and shape is not None:
        axis_of(n, axis[0], len(shape))
    return [like(n.spec(0))]


def _running_run(n: View, x: np.ndarray, axis: np.ndarray) -> Arrays:
    at = axis_of(n, int(scalar(n, 1, axis)), x.ndim)
    sums = n.op == "CumSum"
    y: np.ndarray = np.flip(x, at) if n.get("reverse", 0) else x
    wide: Any = np.float32 if x.dtype == np.float16 else x.dtype
    if n.get("exclusive", 0):
        # One element of 0 (or 1) before, the last one dropped.
        first = [s if k != at else min(s, 1) for k, s in enumerate(x.shape)]
        rest = np.take(y, range(x.shape[at] - 1), axis=at) if x.shape[at] else y
        y = np.concatenate([np.full(first, 0 if sums else 1, x.dtype), rest], axis=at)
    y = np.cumsum(y, axis=at, dtype=wide) if sums else np.cumprod(y, axis=at, dtype=wide)
    return ((np.flip(y, at) if n.get("reverse", 0) else y).astype(x.dtype, copy=False),)


def _running_lower(n: View, b: Any) -> Any:
    axis, source = n.value(1), KINDS.get(n.spec(0).dtype.name)
    if axis is None or n.spec(0).dtype.name not in ("float32", "int32", "int64"):
        return False
    x = b.input(0)
    at = axis_of(n, int(scalar(n, 1, axis)), len(x.shape))
    cut = (math.prod(x.shape[:at]), x.shape[at], math.prod(x.shape[at + 1 :]))
    flags = bool(n.get("exclusive", 0)), bool(n.get("reverse", 0))
    return b.call("running_sum", x.view(cut), b.output(0).view(cut), source, *flags)


register("CumSum", _running_infer, _running_run, _running_lower, Traits(time="cumsum", work="elements"))
register("CumProd", _running_infer, _running_run, traits=Traits(work="elements"))

# ---- TopK ------------------------------------------------------------------------------------------------------------


def _k(n: View, k: np.ndarray, size: Dim) -> int:
    found = int(scalar(n, 1, k))
    if found < 0 or (isinstance(size, int) and found > size):
        raise n.fail(f"k is {found}: expected 0 to {size}, the size of the axis")
    return found


def _top_infer(n: View) -> list[Spec]:
    need_kind(n, "fiu", 0)
    shape, dtype, k = n.shape(0), n.spec(0).dtype, n.value(1)
    if shape is None:
        return [Spec(None, dtype), Spec(None, INT64)]
    axis = axis_of(n, n.get("axis", -1), len(shape))
    result = (*shape[:axis], None if k is None else _k(n, k, shape[axis]), *shape[axis + 1 :])
    return [Spec(result, dtype), Spec(result, INT64)]


def _top_run(n: View, x: np.ndarray, k: np.ndarray) -> Arrays:
    """Sorted, whether it is asked for or not; of equal elements the first comes first."""
    axis = axis_of(n, n.get("axis", -1), x.ndim)
    count, size = _k(n, k, x.shape[axis]), x.shape[axis]
    if n.get("largest", 1):
        # A stable sort of the reversed axis, read from its end, keeps equal elements in their order.
        order = size - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    order = np.take(order, range(count), axis=axis).astype(np.int64)
    return np.take_along_axis(x, order, axis=axis), order


def _top_lower(n: View, b: Any) -> Any:
    dtype, shape = n.spec(0).dtype, n.sizes(0)
    axis = axis_of(n, n.get("axis", -1), len(shape))
    if n.value(1) is None or dtype.name not in KINDS or shape[axis] >= 1 << 32:
        return False
    outer, inner, k = math.prod(shape[:axis]), math.prod(shape[axis + 1 :]), _k(n, n.value(1), shape[axis])  # type: ignore[arg-type]
    x = b.input(0).view((outer, shape[axis], inner))
    made = []
    for i, other in enumerate((dtype, INT64)):
        made.append(b.output(i).view((outer, k, inner)) if n.wants(i) else b.temp((outer, k, inner), other))
    return b.call("topk", x, *made, KINDS[dtype.name], not n.get("largest", 1))


register("TopK", _top_infer, _top_run, _top_lower, Traits(time="along", steers=(1,)))
