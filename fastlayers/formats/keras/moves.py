"""Operations of keras.ops that move elements: other shapes, parts, several as one; and what images and windows need."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._channels_last import MODES, resampling
from .build import FLOAT32, INT32, INT64, Build, Refused, Tensor
from .layer import tensors
from .operation import OPERATIONS, integer, listed, put

__all__: list[str] = []


@put("Reshape")
def reshape(b: Build, x: Tensor, newshape: Any = None, shape: Any = None) -> Tensor:
    """Another shape; null is the batch's size."""
    wanted = newshape if newshape is not None else shape
    sizes = [
        s if isinstance(s, Tensor) else -1 if s is None else integer(s)
        for s in (wanted if isinstance(wanted, (list, tuple)) else [wanted])
    ]
    return b.reshape(x, *(b.op("Cast", b.reshape(s, 1), to=7) if isinstance(s, Tensor) else s for s in sizes))


@put("Ravel")
def ravel(b: Build, x: Tensor) -> Tensor:
    """One axis."""
    return b.reshape(x, -1)


@put("Transpose")
def transpose(b: Build, x: Tensor, axes: Any = None) -> Tensor:
    """Axes in another order, all reversed by default."""
    return b.transpose(x, *x.axes(axes if axes is not None else (*range(x.rank - 1, -1, -1),)))


@put("Swapaxes")
def swapaxes(b: Build, x: Tensor, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    order = list(range(x.rank))
    i, j = x.axis(axis1), x.axis(axis2)
    order[i], order[j] = j, i
    return b.transpose(x, *order)


@put("Moveaxis")
def moveaxis(b: Build, x: Tensor, source: Any, destination: Any) -> Tensor:
    """Axes moved to other positions."""
    from_, to = x.axes(source), x.axes(destination)
    order = [a for a in range(x.rank) if a not in from_]
    for place, axis in sorted(zip(to, from_, strict=True)):
        order.insert(place, axis)
    return b.transpose(x, *order)


@put("ExpandDims")
def expand_dims(b: Build, x: Tensor, axis: Any) -> Tensor:
    """New axes of size 1."""
    many = listed(axis)
    return b.unsqueeze(x, *sorted(x.axis(a, len(many)) for a in many))


@put("Squeeze")
def squeeze(b: Build, x: Tensor, axis: Any = None) -> Tensor:
    """Without axes of size 1."""
    chosen = [i for i, s in enumerate(x.sizes) if s == 1] if axis is None else x.axes(axis)
    return b.squeeze(x, *chosen) if chosen else x


@put("Concatenate", "Append")
def concatenate(b: Build, xs: Any, *more: Any, axis: Any = 0) -> Tensor:
    """One after the other."""
    parts = tensors([xs, *more])
    wanted = parts[0].dtype
    for part in parts[1:]:
        wanted = np.result_type(wanted, part.dtype) if part.dtype != wanted else wanted
    wanted = FLOAT32 if wanted.kind == "f" else wanted
    return b.concat([b.cast(p, wanted) for p in parts], int(axis))


@put("Stack")
def stack(b: Build, x: Any, *more: Any, axis: int = 0) -> Tensor:
    """Along a new axis."""
    parts = tensors([x, *more])
    at = parts[0].axis(axis, 1)
    joined: Tensor = concatenate(b, [b.unsqueeze(p, at) for p in parts], axis=at)
    return joined


@put("Unstack")
def unstack(b: Build, x: Tensor, num: Any = None, axis: int = 0) -> list[Tensor]:
    """Every place of an axis by itself."""
    return [b.take(x, axis, i) for i in range(x.size(axis))]


@put("Split", "ArraySplit")
def split(b: Build, x: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Equal parts, or parts between indices."""
    size = x.size(axis)
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count < 1 or size % count:
            raise ValueError(f"{size} cannot be split into {count}")
        ends = [size // count * (i + 1) for i in range(count)]
    else:
        ends = [integer(i) for i in indices_or_sections] + [size]
    starts = [0, *ends[:-1]]
    return [b.slice(x, axis, start, end) for start, end in zip(starts, ends, strict=True)]


@put("Tile")
def tile(b: Build, x: Tensor, repeats: Any) -> Tensor:
    """The whole repeated along axes."""
    counts = [integer(r) for r in (repeats if isinstance(repeats, (list, tuple)) else [repeats])]
    counts = [1] * (x.rank - len(counts)) + counts
    x = b.unsqueeze(x, *range(len(counts) - x.rank)) if len(counts) > x.rank else x
    return b.op("Tile", x, b.ints(*counts))


@put("Repeat")
def repeat(b: Build, x: Tensor, repeats: Any, axis: Any = None) -> Tensor:
    """Every element repeated along an axis."""
    if axis is None:
        x, axis = b.reshape(x, -1), 0
    count, axis = integer(repeats), x.axis(axis)
    wide = b.unsqueeze(x, axis + 1)
    tiled = b.op("Tile", wide, b.ints(*(count if a == axis + 1 else 1 for a in range(wide.rank))))
    size = x.sizes[axis]
    sizes = [b.shape_of(x, a) if a != axis else (size * count if isinstance(size, int) else -1) for a in range(x.rank)]
    return b.reshape(tiled, *sizes)


@put("Flip")
def flip(b: Build, x: Tensor, axis: Any = None) -> Tensor:
    """Axes the other way round."""
    for a in range(x.rank) if axis is None else listed(axis):
        x = b.flip(x, a)
    return x


@put("Roll")
def roll(b: Build, x: Tensor, shift: Any, axis: Any = None) -> Tensor:
    """Axes rolled cyclically."""
    if axis is None:
        raise Refused("roll without an axis")
    for by, a in zip(listed(shift), listed(axis), strict=True):
        by %= x.size(a)
        x = b.concat([b.slice(x, a, x.size(a) - by, None), b.slice(x, a, 0, x.size(a) - by)], a) if by else x
    return x


@put("Pad")
def pad(b: Build, x: Tensor, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> Tensor:
    """More around."""
    pairs = (
        [(pad_width, pad_width)] * x.rank
        if isinstance(pad_width, int)
        else [(p, p) if isinstance(p, int) else tuple(p) for p in pad_width]
    )
    pairs = pairs * x.rank if len(pairs) == 1 else pairs
    modes = {"constant": "constant", "reflect": "reflect", "edge": "edge", "symmetric": None, "wrap": "wrap"}
    if modes.get(mode) is None:
        raise Refused(f"mode is {mode!r}")
    value = None if constant_values is None else b.operand(constant_values, x.dtype)
    return b.op("Pad", x, b.ints(*(p[0] for p in pairs), *(p[1] for p in pairs)), value, mode=mode)


@put("GetItem")
def get_item(b: Build, x: Tensor, key: Any) -> Tensor:
    """Numpy's indexing with integers, slices, ... and null; a tensor of integers alone."""
    keys = list(key) if isinstance(key, (list, tuple)) else [key]
    if len(keys) == 1 and isinstance(keys[0], Tensor):
        return b.op("Gather", x, b.cast(keys[0], INT64), axis=0)
    if any(isinstance(k, Tensor) for k in keys):
        raise Refused("indexing with tensors and slices together")
    used = sum(k is not None and k is not ... for k in keys)
    at = keys.index(...) if ... in keys else len(keys)
    keys[at : at + 1] = [slice(None)] * (x.rank - used)
    axis, gone, new, place = 0, [], [], 0
    for k in keys:
        if k is None:
            new.append(place)
            place += 1
            continue
        if isinstance(k, slice):
            if (k.start, k.stop, k.step) != (None, None, None):
                step = 1 if k.step is None else integer(k.step)
                start, stop = (None if v is None else integer(v) for v in (k.start, k.stop))
                x = b.slice(x, axis, start, stop, step)
            place += 1
        else:
            i = integer(k)
            x = b.slice(x, axis, i, i + 1 if i != -1 else None)
            gone.append(axis)
        axis += 1
    x = b.squeeze(x, *gone) if gone else x
    return b.unsqueeze(x, *new) if new else x


@put("Take")
def take(b: Build, x: Tensor, indices: Any, axis: Any = None) -> Tensor:
    """Positions of an axis by index."""
    if axis is None:
        x, axis = b.reshape(x, -1), 0
    return b.op("Gather", x, b.cast(_integers(b, indices), INT64), axis=x.axis(axis))


@put("TakeAlongAxis")
def take_along_axis(b: Build, x: Tensor, indices: Any, axis: Any = None) -> Tensor:
    """Values picked along an axis, by a position for each place of the result."""
    if axis is None:
        raise Refused("take_along_axis without an axis")
    return b.op("GatherElements", x, b.cast(_integers(b, indices), INT64), axis=x.axis(axis))


def _integers(b: Build, value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else b.constant(np.array(value, np.int64))


@put("OneHot")
def one_hot(b: Build, x: Tensor, num_classes: int, axis: int = -1, dtype: Any = None) -> Tensor:
    """1 at a place, 0 elsewhere."""
    hot = b.op(
        "OneHot", b.cast(x, INT64), b.constant(np.array(int(num_classes), np.int64)), np.array([0, 1], np.float32), axis=int(axis)
    )
    return hot if dtype is None else b.cast_to(hot, dtype)


@put("TopK")
def top_k(b: Build, x: Tensor, k: int, sorted: bool = True) -> list[Tensor]:
    """The k largest, and where they are."""
    values, places = b.many("TopK", 2, x, b.ints(int(k)), axis=x.rank - 1)
    return [values, b.cast(places, INT32)]


def _filled(value: Any) -> Any:
    def run(b: Build, x: Tensor, fill_value: Any = None, dtype: Any = None) -> Tensor:
        number = b.operand(fill_value if value is None else value, x.dtype)
        return b.op("Expand", b.cast(number, x.dtype) if dtype is None else b.cast_to(number, dtype), b.op("Shape", x))

    return run


OPERATIONS.update(ZerosLike=_filled(0), OnesLike=_filled(1), FullLike=_filled(None))


@put("BroadcastTo")
def broadcast_to(b: Build, x: Tensor, shape: Any) -> Tensor:
    """Repeated to a shape; null stays."""
    return b.op("Expand", x, b.ints(*(1 if s is None else integer(s) for s in shape)))


def _triangle(upper: int) -> Any:
    def run(b: Build, x: Tensor, k: int = 0) -> Tensor:
        return b.op("Trilu", x, b.constant(np.array(int(k), np.int64)), upper=upper)

    return run


OPERATIONS.update(Tril=_triangle(0), Triu=_triangle(1))


def _window(kind: str) -> Any:
    def run(b: Build, x: Tensor, pool_size: Any, strides: Any = None, padding: str = "valid", data_format: Any = None) -> Tensor:
        axes = x.rank - 2
        size = (pool_size,) * axes if isinstance(pool_size, int) else tuple(pool_size)
        step = size if strides is None else (strides,) * axes if isinstance(strides, int) else tuple(strides)
        attributes: dict[str, Any] = {"auto_pad": "SAME_UPPER"} if padding == "same" else {"pads": (0,) * (2 * axes)}
        if data_format != "channels_first":
            attributes["x_last"] = True
        return b.op(kind, b.floats(x), kernel_shape=size, strides=step, **attributes)

    return run


OPERATIONS.update(MaxPool=_window("MaxPool"), AveragePool=_window("AveragePool"))


@put("Resize")
def resize(
    b: Build, images: Tensor, size: Any, interpolation: str = "bilinear", antialias: bool = False, data_format: Any = None,
    crop_to_aspect_ratio: bool = False, pad_to_aspect_ratio: bool = False, fill_mode: str = "constant", fill_value: float = 0.0,
) -> Tensor:  # fmt: skip
    """Images of another size; `fill_mode` and `fill_value` are for what is padded to a ratio, which is refused."""
    if crop_to_aspect_ratio or pad_to_aspect_ratio:
        raise Refused("crop_to_aspect_ratio or pad_to_aspect_ratio")
    if interpolation not in MODES:
        raise Refused(f"interpolation {interpolation!r}")
    first = images.rank - 3 + (data_format == "channels_first")
    return b.op(
        "Resize", b.floats(images), None, None, b.ints(*(integer(s) for s in size)), axes=(first, first + 1),
        **resampling(interpolation, antialias=bool(antialias)),
    )  # fmt: skip
