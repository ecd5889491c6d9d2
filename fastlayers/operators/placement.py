"""Elements put in other positions: CenterCropPad, ReverseSequence, TensorScatter, Col2Im, MaxUnpool."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..calls.geometry import Window, three
from ..ir.graph import Dim, Shape
from ..kernels.table import INTEGER, KINDS
from ._base import INT64, Spec, View, register, unknown
from ._traits import MOVES, PLAIN, Traits
from .calls import copy, indexable, indices, movable, strides_of
from .indexing import from_start, grid_of, scattered
from .shapes import axes_of, axis_of, known, need_kind, same_dtype
from .window import conv_size, window

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]

MOST_TABLE = 1 << 14  # places in a cache that goes around, from every beginning

# ---- CenterCropPad ---------------------------------------------------------------------------------------------------


def _crop_sizes(n: View, shape: Shape, wanted: Sequence[int] | None) -> Shape:
    axes = axes_of(n, n.get("axes"), len(shape)) if n.get("axes") is not None else tuple(range(len(shape)))
    if wanted is None:
        return tuple(None if i in axes else d for i, d in enumerate(shape))
    if len(wanted) != len(axes) or any(w < 0 for w in wanted):
        raise n.fail(f"the shape is {tuple(wanted)}, the axes {axes}: expected a size of at least 0 for each")
    found = dict(zip(axes, wanted, strict=True))
    return tuple(found.get(i, d) for i, d in enumerate(shape))


def _crop_infer(n: View) -> list[Spec]:
    """x with the given sizes: its middle, or x in the middle of zeros. What is left of an odd difference is after."""
    wanted, shape = known(n, 1), n.shape(0)
    if shape is None:
        return [Spec(None, n.spec(0).dtype)]
    return [Spec(_crop_sizes(n, shape, wanted), n.spec(0).dtype)]


def _crop_run(n: View, x: np.ndarray, wanted: np.ndarray) -> Arrays:
    shape: Any = _crop_sizes(n, x.shape, [int(w) for w in wanted.reshape(-1)])
    out = np.zeros(shape, x.dtype)
    from_, to = [], []
    for size, new in zip(x.shape, out.shape, strict=True):
        same = min(size, new)
        from_.append(slice((size - same) // 2, (size - same) // 2 + same))
        to.append(slice((new - same) // 2, (new - same) // 2 + same))
    out[tuple(to)] = x[tuple(from_)]
    return (out,)


register("CenterCropPad", _crop_infer, _crop_run, traits=Traits(steers=(1,)))

# ---- ReverseSequence -------------------------------------------------------------------------------------------------


def _reverse_axes(n: View, rank: int) -> tuple[int, int]:
    batch, time = n.get("batch_axis", 1), n.get("time_axis", 0)
    if {batch, time} != {0, 1} or rank < 2:
        raise n.fail(f"batch_axis is {batch}, time_axis {time}, x has {rank} axes: expected 0 and 1, or 1 and 0, and two axes")
    return batch, time


def _reverse_infer(n: View) -> list[Spec]:
    """x, of each sequence of which so many first steps are reversed."""
    need_kind(n, "iu", 1)
    shape, lengths = n.shape(0), n.shape(1)
    if shape is not None:
        batch, _ = _reverse_axes(n, len(shape))
        count = lengths[0] if lengths is not None and len(lengths) == 1 else None
        different = isinstance(count, int) and isinstance(shape[batch], int) and count != shape[batch]
        if different or (lengths is not None and len(lengths) != 1):
            raise n.fail(f"x has shape {shape}, the lengths {lengths}: expected one length a sequence, along axis {batch}")
    return [n.spec(0)]


def _reverse_run(n: View, x: np.ndarray, lengths: np.ndarray) -> Arrays:
    batch, time = _reverse_axes(n, x.ndim)
    steps = x.shape[time]
    if lengths.size and (lengths.min() < 0 or lengths.max() > steps):
        raise n.fail(f"the lengths are from {lengths.min()} to {lengths.max()}: expected 0 to {steps}")
    count = lengths.astype(np.int64)[:, None]
    at = np.arange(steps)[None]
    at = np.where(at < count, count - 1 - at, at)
    each = np.arange(len(lengths))[:, None]
    return (x[each, at] if batch == 0 else x[at.T, each.T],)


def _reverse_lower(n: View, b: Any) -> Any:
    if not indexable(n, 1):
        return False
    batch, _ = _reverse_axes(n, len(n.sizes(0)))
    x, lengths = b.input(0), indices(n, b, 1)
    step = math.prod(x.shape[2:]) * x.dtype.itemsize
    return b.call("reverse_sequence", x, lengths, b.output(0), batch == 0, step)


register("ReverseSequence", _reverse_infer, _reverse_run, _reverse_lower, MOVES._replace(whole="turns around"))

# ---- TensorScatter ---------------------------------------------------------------------------------------------------


def _tensor_scatter_infer(n: View) -> list[Spec]:
    """A cache (batch, …, length, …), in which an update (batch, …, steps, …) replaces steps, from each batch's own index on."""
    same_dtype(n, 0, 1)
    need_kind(n, "iu", 2)
    cache, update, at = n.shape(0), n.shape(1), n.shape(2) if n.has(2) else None
    if n.get("mode", "linear") not in ("linear", "circular"):
        raise n.fail(f"mode is {n.get('mode')!r}: expected 'linear' or 'circular'")
    if cache is not None:
        axis = axis_of(n, n.get("axis", -2), len(cache))
        if axis == 0:
            raise n.fail("axis is 0, that of the batch: expected another")
        if update is not None and (len(update) != len(cache) or any(map(_beyond, update, cache, _only(axis, len(cache))))):
            raise n.fail(f"the cache has shape {cache}, the update {update}: expected the same, and no more along axis {axis}")
        if at is not None and (len(at) != 1 or _beyond(at[0], cache[0], False)):
            raise n.fail(f"write_indices have shape {at}: expected ({cache[0]},)")
    return [n.spec(0)]


def _only(axis: int, rank: int) -> list[bool]:
    return [i == axis for i in range(rank)]


def _beyond(a: Dim, b: Dim, less: bool) -> bool:
    """Whether size a may not stand next to b: it is another one, or (`less`) more."""
    return isinstance(a, int) and isinstance(b, int) and (a > b if less else a != b)


def _tensor_scatter_run(n: View, cache: np.ndarray, update: np.ndarray, at: np.ndarray | None = None) -> Arrays:
    axis = axis_of(n, n.get("axis", -2), cache.ndim)
    size, steps = cache.shape[axis], update.shape[axis]
    first = np.zeros(cache.shape[0], np.int64) if at is None else at.astype(np.int64)
    last = size if n.get("mode", "linear") == "circular" else size - steps + 1
    if first.size and (first.min() < 0 or first.max() >= max(last, 1)):
        raise n.fail(f"write_indices are from {first.min()} to {first.max()}: expected 0 to {max(last, 1) - 1}")
    out = np.array(np.moveaxis(cache, axis, 1))
    where = (first[:, None] + np.arange(steps)) % max(size, 1)
    out[np.arange(len(first))[:, None], where] = np.moveaxis(update, axis, 1)
    return (np.moveaxis(out, 1, axis),)


def _tensor_scatter_lower(n: View, b: Any) -> Any:
    shape, update = n.sizes(0), n.sizes(1)
    axis = axis_of(n, n.get("axis", -2), len(shape))
    batch, between, size, inner = shape[0], math.prod(shape[1:axis]), shape[axis], math.prod(shape[axis + 1 :])
    steps, around = update[axis], n.get("mode", "linear") == "circular"
    if 0 in shape or 0 in update or (n.has(2) and not indexable(n, 2)) or (around and size * steps > MOST_TABLE):
        return False
    cut = (batch, between, steps)
    grid = grid_of(inner, cut, (between * size, size, 0), (size,), (1,))
    x, updates = b.input(0), b.input(1)
    places = np.arange(steps) + np.zeros((batch if not n.has(2) else 1, between, 1), np.int64)
    if not n.has(2):
        picks = b.constant(np.ascontiguousarray(places))
    else:
        first = from_start(b, indices(n, b, 2), size)
        if around:  # the places of each beginning
            table = b.constant((np.arange(size)[None, :, None] + np.arange(steps)) % size)
            rows = b.temp((1, batch, steps), INT64)
            b.call("gather", table, first.view((batch,)), rows, 8)
            first, places = rows.view((batch, 1, steps)), places * 0
        picks = b.temp(cut, INT64)
        b.call("integer", first.view((batch, 1, first.size // batch)), b.constant(places), picks, INTEGER["add"], KINDS["int64"])
    alone = all(b.root(ref) is not b.root(x) for ref in (picks, updates))
    scattered(b, x, picks, updates, b.output(0, over=x if alone else None), grid)
    return None


register("TensorScatter", _tensor_scatter_infer, _tensor_scatter_run, _tensor_scatter_lower, PLAIN)

# ---- Col2Im ----------------------------------------------------------------------------------------------------------


def _columns(n: View, image: Sequence[int], block: Sequence[int]) -> tuple[Window, tuple[int, ...]]:
    """The window and how many positions it has along each axis."""
    if len(image) != len(block) or not image or any(d < 1 for d in image):
        raise n.fail(f"the image has shape {tuple(image)}, the block {tuple(block)}: expected as many sizes, from 1 up")
    place = window(n, block, image)
    if min(n.get("pads") or (0,)) < 0:
        raise n.fail(f"pads are {n.get('pads')}: expected values of at least 0")
    return place, conv_size(n, image, place)  # type: ignore[return-value]


def _col2im_infer(n: View) -> list[Spec]:
    """x (n, c * block, positions): an image (n, c, sizes…), every element being the sum of what the blocks over it hold."""
    x, image, block, dtype = n.shape(0), known(n, 1), known(n, 2), n.spec(0).dtype
    if x is not None and len(x) != 3:
        raise n.fail(f"x has shape {x}: expected (n, c * block, positions)")
    if image is None or block is None:
        lengths = [s[0] for s in (n.shape(1), n.shape(2)) if s is not None and len(s) == 1 and isinstance(s[0], int)]
        return [unknown(lengths[0] + 2 if lengths else None, dtype)]
    _, places = _columns(n, image, block)
    batch, rows, count = (None,) * 3 if x is None else x
    if (isinstance(rows, int) and rows % math.prod(block)) or (isinstance(count, int) and count != math.prod(places)):
        raise n.fail(f"x has shape {x}: expected (n, c * {math.prod(block)}, {math.prod(places)})")
    return [Spec((batch, rows // math.prod(block) if isinstance(rows, int) else None, *image), dtype)]


def _col2im_run(n: View, x: np.ndarray, image: np.ndarray, block: np.ndarray) -> Arrays:
    sizes, kernel = [int(d) for d in image.reshape(-1)], [int(d) for d in block.reshape(-1)]
    place, places = _columns(n, sizes, kernel)
    if x.shape[1] % math.prod(kernel) or x.shape[2] != math.prod(places):
        raise n.fail(f"x has shape {x.shape}: expected (n, c * {math.prod(kernel)}, {math.prod(places)})")
    parts = x.reshape(x.shape[0], x.shape[1] // math.prod(kernel), math.prod(kernel), *places)
    assert place.pads is not None
    padded = [max(d + sum(p), 0) for d, p in zip(sizes, place.pads, strict=True)]
    out = np.zeros((*parts.shape[:2], *padded), x.dtype)
    for i, offset in enumerate(itertools.product(*map(range, kernel))):
        starts = [o * d for o, d in zip(offset, place.dilation, strict=True)]
        slices = (slice(a, a + (c - 1) * s + 1, s) for a, c, s in zip(starts, places, place.stride, strict=True))
        there = (slice(None), slice(None), *slices)
        out[there] += parts[:, :, i]
    inner = (slice(p[0], p[0] + d) for p, d in zip(place.pads, sizes, strict=True))
    whole = (slice(None), slice(None), *inner)
    return (out[whole],)


def _col2im_lower(n: View, b: Any) -> Any:
    image, block = known(n, 1), known(n, 2)
    if image is None or block is None or len(image) > 3 or not n.float32(0):
        return False
    place, places = _columns(n, image, block)
    batch, rows, _ = n.sizes(0)
    planes = batch * rows // math.prod(block)
    x, out = b.input(0).view((planes, math.prod(block), math.prod(places))), b.output(0).view((planes, math.prod(image)))
    return b.call("col2im", x, out, three(image), *place.in_three())


register("Col2Im", _col2im_infer, _col2im_run, _col2im_lower, Traits(steers=(1, 2)))

# ---- MaxUnpool -------------------------------------------------------------------------------------------------------


def _unpooled(n: View, shape: Shape) -> Shape:
    """The shape of what was pooled, as far as it is known."""
    kernel = tuple(int(k) for k in n.get("kernel_shape", ()))
    if len(shape) != len(kernel) + 2 or not kernel:
        raise n.fail(f"x has shape {shape}, kernel_shape is {kernel}: expected (n, c, sizes…), and one number for each size")
    place = window(n, kernel, None)
    assert place.pads is not None
    sizes: list[Dim] = []
    for d, k, s, pads in zip(shape[2:], kernel, place.stride, place.pads, strict=True):
        sizes.append((d - 1) * s + k - sum(pads) if isinstance(d, int) else None)
    if any(isinstance(s, int) and s < 0 for s in sizes):
        raise n.fail(f"the result would have sizes {tuple(sizes)}: expected at least 0")
    return (*shape[:2], *sizes)


def _unpool_infer(n: View) -> list[Spec]:
    """x put where `indices` say (positions in the flat result), zeros elsewhere; after it zeros up to output_shape."""
    need_kind(n, "iu", 1)
    x, dtype, wanted = n.shape(0), n.spec(0).dtype, known(n, 2)
    if x is not None and n.shape(1) is not None and any(map(_beyond, x, n.shape(1), (False,) * len(x))):  # type: ignore[arg-type]
        raise n.fail(f"x has shape {x}, the indices {n.shape(1)}: expected the same")
    own = None if x is None else _unpooled(n, x)
    if wanted is not None:
        if any(w < 0 for w in wanted) or (
            own is not None and (len(own) != len(wanted) or any(map(_beyond, own, wanted, (True,) * len(own))))
        ):
            raise n.fail(f"output_shape is {tuple(wanted)}: expected at least {own}")
        return [Spec(tuple(wanted), dtype)]
    return [Spec(None if own is None else (None,) * len(own) if n.has(2) else own, dtype)]


def _unpool_run(n: View, x: np.ndarray, indices: np.ndarray, wanted: np.ndarray | None = None) -> Arrays:
    shape: tuple[int, ...] = _unpooled(n, x.shape)  # type: ignore[assignment]
    count = math.prod(shape)
    if x.shape != indices.shape:
        raise n.fail(f"x has shape {x.shape}, the indices {indices.shape}: expected the same")
    if indices.size and (indices.min() < 0 or indices.max() >= count):
        raise n.fail(f"the indices are from {indices.min()} to {indices.max()}: expected 0 to {count - 1}")
    out = np.zeros(count, x.dtype)
    out[indices.reshape(-1).astype(np.int64)] = x.reshape(-1)
    out = out.reshape(shape)
    if wanted is None:
        return (out,)
    larger = tuple(int(w) for w in wanted.reshape(-1))
    if len(larger) != len(shape) or any(a < b for a, b in zip(larger, shape, strict=True)):
        raise n.fail(f"output_shape is {larger}: expected at least {shape}")
    whole = np.zeros(larger, x.dtype)
    whole[tuple(slice(d) for d in shape)] = out
    return (whole,)


def _unpool_lower(n: View, b: Any) -> Any:
    shape: tuple[int, ...] = _unpooled(n, n.sizes(0))  # type: ignore[assignment]
    count, dtype, wanted = math.prod(shape), n.spec(0).dtype, known(n, 2) or shape
    if not movable(dtype) or not indexable(n, 1) or not math.prod(n.sizes(0)) or n.sizes(0) != n.sizes(1):
        return False
    zero, out = b.constant(np.zeros(1, dtype)), b.output(0)
    whole = out if tuple(wanted) == shape else b.temp(shape, dtype)
    copy(b, zero, whole, (count,), 0, (0,), 0, (1,))
    x, picks = b.input(0), from_start(b, indices(n, b, 1), count)
    scattered(b, whole, picks, x, whole, grid_of(1, (x.size,), (0,), (count,), (1,)))
    if whole is not out:
        copy(b, zero, out, (out.size,), 0, (0,), 0, (1,))
        copy(b, whole, out, shape, 0, strides_of(shape), 0, strides_of(out.shape))
    return None


register("MaxUnpool", _unpool_infer, _unpool_run, _unpool_lower, Traits(steers=(2,)))
