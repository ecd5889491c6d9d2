"""Pools over windows and over whole maps. Layouts as in `conv`: `x_last` and `out_last`, which are equal here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls import pooling as calls
from ..calls.geometry import Window, five
from ..kernels.table import KINDS, REDUCE
from ..rules.maps import resized_rule, space_rule
from ._base import BOOL, FLOAT32, INT64, Spec, View, register
from ._layouts import maps, windows
from ._traits import Quantized, Traits
from .shapes import expect, product
from .window import arranged, check_work, conv_size, spatial, window

if TYPE_CHECKING:
    from .builder import Builder


def _place(n: View) -> tuple[Any, Window]:
    x, kernel = n.shape(0), n.get("kernel_shape")
    if not kernel or (x is not None and len(x) != len(kernel) + 2):
        raise n.fail(f"x has shape {x}, kernel_shape is {kernel}: expected a kernel of two axes less than x")
    return x, window(n, tuple(kernel), None if x is None else spatial(x, n.get("x_last", False)))


def pool_infer(n: View) -> list[Spec]:
    x, place = _place(n)
    if x is None:
        shape: Any = (None,) * (len(place.kernel) + 2)
    else:
        last = n.get("x_last", False)
        sizes = conv_size(n, spatial(x, last), place, bool(n.get("ceil_mode", 0)))
        made, given = product((*sizes, x[0], x[-1 if last else 1])), product(x)
        if made is not None and given is not None:
            check_work(n, made * math.prod(place.kernel), made + given)
        shape = arranged(x[0], x[-1 if last else 1], sizes, last)
    specs = [Spec(shape, n.spec(0).dtype)]
    return [*specs, Spec(shape, INT64)] if n.wants(1) else specs


def _usable(n: View, place: Window) -> bool:
    pads = place.pads
    return (
        n.float32()
        and not n.wants(1)
        and len(place.kernel) <= 3
        and pads is not None
        and all(p >= 0 for pair in pads for p in pair)
    )


def lp_pool_lower(n: View, b: Builder) -> Any:
    _, place = _place(n)
    if not _usable(n, place):
        return False
    options = float(n.get("p", 2)), not n.get("scaled")
    calls.powers(b.machine, b.input(0), b.output(0), place, n.get("x_last", False), *options)
    return True


def max_pool_lower(n: View, b: Builder) -> Any:
    _, place = _place(n)
    if n.spec(0).dtype.itemsize == 1 and n.spec(0).dtype.kind in "iu" and not n.wants(1):
        from .quantized.lowering import max_pool_lower as bytes_lower

        return bytes_lower(n, b, place)
    if n.wants(1):
        return _places_lower(n, b, place)
    if not _usable(n, place):
        return False
    calls.largest(b.machine, b.input(0), b.output(0), place, n.get("x_last", False))
    return True


def _places_lower(n: View, b: Builder, place: Window) -> Any:
    """With positions, of planes."""
    name, pads = n.spec(0).dtype.name, place.pads or ()
    known = name in ("float32", "float64", "int8", "uint8")
    if (
        not known
        or len(place.kernel) > 3
        or n.get("x_last")
        or n.get("storage_order")
        or any(p < 0 for pair in pads for p in pair)
    ):
        return False
    x, out, at = b.input(0), b.output(0), b.output(1)
    views = (ref.view(five(ref.shape, False)) for ref in (x, out, at))
    b.call("max_pool_places", *views, *place.in_three(), KINDS[name])
    return True


def average_pool_lower(n: View, b: Builder) -> Any:
    _, place = _place(n)
    if not _usable(n, place):
        return False
    options = bool(n.get("count_include_pad", 0)), n.get("divisor")
    calls.average(b.machine, b.input(0), b.output(0), place, n.get("x_last", False), *options)
    return True


def pooled(n: View, x: np.ndarray, kernel: Any, *options: Any) -> Sequence[np.ndarray]:
    """One of the reference's pools, which take any number of axes and every dtype that they can compute in."""
    _, place = _place(n)
    shape: Any = pool_infer(n)[0].shape
    out: np.ndarray = np.empty(shape, x.dtype)
    kernel(x, out, place.kernel, place.stride, place.dilation, sum(place.pads or (), ()), *options, n.get("x_last", False))
    return (out,)


def max_pool_run(n: View, x: np.ndarray) -> Sequence[np.ndarray]:
    """The largest number of each window; with a second output, its position in the flat input."""
    from ..kernels.reference.pool_places import max_pool_places
    from ..kernels.reference.pooling import max_pool

    if not n.wants(1):
        return pooled(n, x, max_pool)
    _, place = _place(n)
    shape: Any = pool_infer(n)[0].shape
    out, at = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    first, y, index = (np.moveaxis(a, -1, 1) if n.get("x_last", False) else a for a in (x, out, at))
    max_pool_places(first, y, index, place.kernel, place.stride, place.dilation, sum(place.pads or (), ()), 0)
    if n.get("storage_order", 0):
        sizes = first.shape[2:]
        base = np.arange(math.prod(y.shape[:2])).reshape(*y.shape[:2], *(1,) * len(sizes)) * math.prod(sizes)
        column = np.append(np.arange(math.prod(sizes)).reshape(sizes, order="F"), -1)  # -1: no place in the image
        index[...] = base + column[index - base]
    return out, at


def average_pool_run(n: View, x: np.ndarray) -> Sequence[np.ndarray]:
    """The sum of each window over the number of its positions inside the image, or inside the image and its padding."""
    from ..kernels.reference.pooling import avg_pool, sum_pool

    if n.get("divisor"):
        return pooled(n, x, sum_pool, 1 / n.get("divisor"))
    return pooled(n, x, avg_pool, bool(n.get("count_include_pad", 0)))


def counted(n: View) -> np.ndarray:
    """By how many positions `AveragePool` divides the sum of each window, an array that broadcasts to the result."""
    from ..kernels.reference.pooling import places

    x, place = _place(n)
    last = n.get("x_last", False)
    pads, include = sum(place.pads or (), ()), bool(n.get("count_include_pad", 0))
    shape: Any = pool_infer(n)[0].shape
    space: Any = spatial(x, last)
    made: Any = spatial(shape, last)
    found = places(space, made, place.kernel, place.stride, place.dilation, pads, include)
    return np.moveaxis(found, 1, -1) if last else found


def lp_pool_run(n: View, x: np.ndarray) -> Sequence[np.ndarray]:
    """The p-norm of each window; if `scaled`, torch's formula: see the kernel `lp_pool`."""
    from ..kernels.reference.pooling import lp_pool

    return pooled(n, x, lp_pool, float(n.get("p", 2)), not n.get("scaled"))


AVERAGED = Traits(layout=windows(FLOAT32), time="window", quantized=Quantized("QLinearAveragePool", "one"))
_PLACES = windows(FLOAT32, np.dtype(np.int8), np.dtype(np.uint8))
register("MaxPool", pool_infer, max_pool_run, max_pool_lower, Traits(moves=True, layout=_PLACES, time="window"))
register("AveragePool", pool_infer, average_pool_run, average_pool_lower, AVERAGED)
register("LpPool", pool_infer, lp_pool_run, lp_pool_lower, Traits(time="window"))


# ---- whole maps -----------------------------------------------------------------------------------------------------------


def global_infer(n: View) -> list[Spec]:
    x = n.shape(0)
    if x is None:
        return [Spec(None, n.spec(0).dtype)]
    if len(x) < 3:
        raise n.fail(f"x has shape {x}: expected (n, c, ...)")
    space_rule(n.where, x, spatial(x, n.get("x_last", False)))
    # One pixel has the same memory in both layouts: the result has its channels first.
    return [Spec(arranged(x[0], x[-1 if n.get("x_last", False) else 1], (1,) * (len(x) - 2), False), n.spec(0).dtype)]


def _global(name: str, op: str, function: Any, traits: Traits) -> None:
    def lower(n: View, b: Builder) -> Any:
        p = n.get("p", 2) if op == "l" else ""
        if not n.float32() or p not in ("", 1, 2):
            return False
        calls.whole(b.machine, b.input(0), b.output(0), f"{op}{p}", n.get("x_last", False))
        return True

    def run(n: View, x: np.ndarray) -> Sequence[np.ndarray]:
        last = n.get("x_last", False)
        axes = tuple(range(1, x.ndim - 1) if last else range(2, x.ndim))
        y = function(n, x, axes).astype(x.dtype)
        return (np.moveaxis(y, -1, 1) if last else y,)

    register(name, global_infer, run, lower, traits)


def _mean(n: View, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    from .normalization import mean_of

    return mean_of(x, axes)


_WHOLE = Traits(layout=maps(FLOAT32), time="image", whole="looks at")
_global(
    "GlobalAveragePool", "mean", _mean,
    _WHOLE._replace(whole="averages over", quantized=Quantized("QLinearGlobalAveragePool", "one")),
)  # fmt: skip
_global("GlobalMaxPool", "max", lambda n, x, axes: x.max(axes, keepdims=True), _WHOLE)
_global(
    "GlobalLpPool", "l",
    lambda n, x, axes: (np.abs(x.astype(np.float64)) ** n.get("p", 2)).sum(axes, keepdims=True) ** (1 / n.get("p", 2)),
    _WHOLE._replace(layout=None),
)  # fmt: skip


# ---- bins, and time: operators of our own ---------------------------------------------------------------------------------


def _mean_or_max(n: View) -> None:
    if n.get("reduce") not in ("mean", "max"):
        raise n.fail(f"reduce is {n.get('reduce')!r}: expected 'mean' or 'max'")


def adaptive_infer(n: View) -> list[Spec]:
    """sizes: of the result along space, 0 keeps one; reduce: "mean" or "max"."""
    _mean_or_max(n)
    x, last = n.shape(0), n.get("x_last", False)
    if x is None:
        return [Spec((None,) * (len(n.get("sizes") or n.get("scales")) + 2), n.spec(0).dtype)]
    space = spatial(x, last)
    if n.get("scales"):
        sizes = resized_rule(n.where, x, space, None, n.get("scales"))
    else:
        space_rule(n.where, x, space)
        sizes = tuple(want or size for want, size in zip(n.get("sizes"), space, strict=True))
    return [Spec(arranged(x[0], x[-1 if last else 1], sizes, last), n.spec(0).dtype)]


def adaptive_lower(n: View, b: Builder) -> Any:
    if not n.float32():
        return False
    calls.adaptive(b.machine, b.input(0), b.output(0), n.get("reduce"), n.get("x_last", False))
    return True


def adaptive_run(n: View, x: np.ndarray) -> Sequence[np.ndarray]:
    """Bin i of an axis reaches from floor(i * in / out) to ceil((i + 1) * in / out)."""
    from ..kernels.reference.adaptive import adaptive_pool

    last = n.get("x_last", False)
    shape: Any = adaptive_infer(n)[0].shape
    wide = np.zeros(shape, np.float32)
    adaptive_pool(x.reshape(five(x.shape, last)), wide.reshape(five(wide.shape, last)), REDUCE[n.get("reduce")], last)
    return (wide.astype(x.dtype),)


register("AdaptivePool", adaptive_infer, adaptive_run, adaptive_lower, Traits(whole="averages over"))


def time_infer(n: View) -> list[Spec]:
    """Inputs x, lengths, mask; reduce: "mean" or "max"; batch_first."""
    _mean_or_max(n)
    x = n.shape(0)
    if x is None:
        return [Spec((None, None), n.spec(0).dtype)]
    count, steps = (x[0], x[1]) if n.get("batch_first") else (x[1], x[0])
    expect(n, 1, count, dtype=INT64)
    expect(n, 2, count, steps, dtype=BOOL)
    return [Spec((count, x[2]), n.spec(0).dtype)]


def time_lower(n: View, b: Builder) -> Any:
    if not n.float32(0):
        return False
    operands = b.input(0), b.optional(1), b.optional(2), b.output(0)
    calls.over_time(b.machine, *operands, n.get("reduce"), bool(n.get("batch_first")))
    return True


def time_run(n: View, x: np.ndarray, lengths: np.ndarray | None = None, mask: np.ndarray | None = None) -> Sequence[np.ndarray]:
    """The mean or the largest number over the valid steps, 0 of none."""
    from ..kernels.reference.time_pooling import time_pool

    first = bool(n.get("batch_first"))
    out = np.zeros((x.shape[0 if first else 1], x.shape[2]), x.dtype)
    time_pool(x, lengths, mask, out, REDUCE[n.get("reduce")], first)
    return (out,)


register("TimePool", time_infer, time_run, time_lower, Traits(whole="averages over"))
