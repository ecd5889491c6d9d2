"""Resampling: ONNX's Resize, and Interpolate, fastlayers' own operator with the arguments of `functional.interpolate`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.graph import Dim, Shape
from ..kernels.reference.resize import along
from ..kernels.resize_tables import COORDINATES, NEAREST, Axis, Table, onnx_taps, torch_taps
from ..rules.maps import resized_rule
from ._base import Spec, View, register, unknown
from ._traits import Traits
from .shapes import axes_of
from .window import arranged, spatial

if TYPE_CHECKING:
    from .builder import Builder

__all__: list[str] = []

Tables = dict[int, tuple[Table, np.ndarray]]  # by axis: its taps, and which outputs are outside


def _given(n: View, i: int, values: Any = None) -> list[float] | None:
    """The values of input i if they are known; an empty one is none."""
    array = values if values is not None else n.value(i)
    return None if array is None else [float(v) for v in np.asarray(array).reshape(-1)]


def _absent(n: View, i: int) -> bool:
    return not n.has(i) or n.spec(i).shape == (0,)


def _resized(n: View, shape: Sequence[int], values: Sequence[Any] = ()) -> list[Axis | None]:
    """What becomes of every axis; None: it stays."""
    rank = len(shape)
    roi, scales, sizes = (_given(n, i, values[i] if i < len(values) else None) or None for i in (1, 2, 3))
    axes = axes_of(n, n.get("axes"), rank) if n.get("axes") else tuple(range(rank))
    if (scales is None) == (sizes is None):
        raise n.fail("expected either scales or sizes")
    if len(scales or sizes or ()) != len(axes):
        raise n.fail(f"{'scales' if scales else 'sizes'} are {scales or sizes}: expected {len(axes)}, one per axis")
    crop = n.get("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    if crop and (roi is not None or not n.has(1)) and len(roi or ()) != 2 * len(axes):
        raise n.fail(f"roi is {roi}: expected {2 * len(axes)} values, the starts of all axes and then their ends")
    if any(v <= 0 for v in scales or ()) or any(v < 0 for v in sizes or ()):
        raise n.fail(f"{'scales' if scales else 'sizes'} are {scales or sizes}: expected positive values")
    policy = n.get("keep_aspect_ratio_policy", "stretch")
    if policy not in ("stretch", "not_larger", "not_smaller"):
        raise n.fail(f"keep_aspect_ratio_policy is {policy!r}: expected stretch, not_larger or not_smaller")
    if sizes is not None:
        ratios = [want / shape[axis] if shape[axis] else 1.0 for want, axis in zip(sizes, axes, strict=True)]
        if policy != "stretch":
            ratios = [(min if policy == "not_larger" else max)(ratios)] * len(axes)
            sizes = [math.floor(ratio * shape[axis] + 0.5) for ratio, axis in zip(ratios, axes, strict=True)]
    else:
        ratios = scales or []
        sizes = [math.floor(np.float32(ratio) * np.float32(shape[axis])) for ratio, axis in zip(ratios, axes, strict=True)]
    found: list[Axis | None] = [None] * rank
    for k, axis in enumerate(axes):
        if crop or ratios[k] != 1 or int(sizes[k]) != shape[axis]:
            ends = (roi[k], roi[len(axes) + k]) if crop and roi else (0.0, 1.0)
            found[axis] = Axis(shape[axis], int(sizes[k]), ratios[k], *ends)
            if not shape[axis] and sizes[k]:
                raise n.fail(f"x has shape {tuple(shape)}: cannot make {int(sizes[k])} of nothing along axis {axis}")
    return found


def _tables(n: View, shape: Sequence[int], values: Sequence[Any] = ()) -> Tables:
    mode, coordinates = n.get("mode", "nearest"), n.get("coordinate_transformation_mode", "half_pixel")
    nearest = n.get("nearest_mode", "round_prefer_floor")
    for name, value, known in (
        ("mode", mode, ("nearest", "linear", "cubic")),
        ("coordinate_transformation_mode", coordinates, COORDINATES),
        ("nearest_mode", nearest, NEAREST),
    ):
        if value not in known:
            raise n.fail(f"{name} is {value!r}: expected one of {', '.join(known)}")
    a, exclude, antialias = n.get("cubic_coeff_a", -0.75), bool(n.get("exclude_outside", 0)), bool(n.get("antialias", 0))
    return {
        i: onnx_taps(axis, mode, coordinates, nearest, a, exclude, antialias)
        for i, axis in enumerate(_resized(n, shape, values))
        if axis is not None
    }


def resize_infer(n: View) -> list[Spec]:
    shape, dtype = n.shape(0), n.spec(0).dtype
    if shape is None:
        return [Spec(None, dtype)]
    if any(n.has(i) and n.value(i) is None and not _absent(n, i) for i in (2, 3)):
        return [unknown(len(shape), dtype)]
    if all(isinstance(d, int) for d in shape):
        axes = _resized(n, shape)  # type: ignore[arg-type]
        return [Spec(tuple(d if a is None else a.out for d, a in zip(shape, axes, strict=True)), dtype)]
    scales = None if _absent(n, 2) else _given(n, 2)
    if scales is None or n.get("axes"):
        return [unknown(len(shape), dtype)]
    sizes: list[Dim] = [
        math.floor(np.float32(s) * np.float32(d)) if isinstance(d, int) else d if s == 1 else None
        for d, s in zip(shape, scales, strict=True)
    ]
    return [Spec(tuple(sizes), dtype)]


def _span(tables: Tables) -> tuple[int, int] | None:
    """First and last + 1 of the axes that change, if they are three neighbours at most."""
    if not tables:
        return None
    first, last = min(tables), max(tables) + 1
    return (first, last) if last - first <= 3 else None


def _three(tables: Tables, first: int, last: int) -> tuple[Table | None, ...]:
    return (None,) * (3 - (last - first)) + tuple(tables[i][0] if i in tables else None for i in range(first, last))


def _five(shape: Sequence[int], first: int, last: int) -> tuple[int, ...]:
    ones = (1,) * (3 - (last - first))
    return (math.prod(shape[:first]), *ones, *shape[first:last], math.prod(shape[last:]))


def _lower(n: View, b: Builder, tables: Tables) -> Any:
    span = _span(tables)
    if not tables:
        return b.alias(0, b.input(0))
    if span is None or not n.float32(0) or any(outside.any() for _, outside in tables.values()):
        return False
    x = b.input(0)
    out, size = b.output(0), _five(x.shape, *span)
    packed = b.pack("resize_pack", lambda: (_three(tables, *span), size[1:]), kept=False)
    return b.call("resize", x.view(size), packed, out.view(_five(out.shape, *span)))


def _run(n: View, x: np.ndarray, tables: Tables) -> Sequence[np.ndarray]:
    exact = all(weight is None for (_, weight), _ in tables.values())
    y = x if exact else x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    for axis, (table, _) in tables.items():
        y = along(y, table, axis)
    for axis, (_, outside) in tables.items():
        if outside.any():
            y = np.where(outside.reshape(-1, *(1,) * (y.ndim - 1 - axis)), n.get("extrapolation_value", 0.0), y)
    if y.dtype.kind == "f" and x.dtype.kind in "iu":
        info = np.iinfo(x.dtype)
        y = np.clip(np.round(y), info.min, info.max)
    return (y.astype(x.dtype),)


def resize_lower(n: View, b: Builder) -> Any:
    if any(n.has(i) and n.value(i) is None and not _absent(n, i) for i in (1, 2, 3)):
        return False
    return _lower(n, b, _tables(n, n.sizes(0)))


def resize_run(n: View, x: np.ndarray, *values: Any) -> Sequence[np.ndarray]:
    """Every axis by its weighted taps, one after the other."""
    return _run(n, x, _tables(n, x.shape, (None, *values)))


register("Resize", resize_infer, resize_run, resize_lower, Traits(whole="resizes", steers=(2, 3)))


# ---- Interpolate ----------------------------------------------------------------------------------------------------------


def _sizes(n: View, x: Shape) -> tuple[Dim, ...]:
    """Of the result's space, by `sizes` or `scales`, one per axis."""
    return resized_rule(n.where, x, spatial(x, n.get("x_last", False)), n.get("sizes"), n.get("scales"))


def interpolate_infer(n: View) -> list[Spec]:
    shape, last = n.shape(0), n.get("x_last", False)
    if shape is None:
        return [Spec(None, n.spec(0).dtype)]
    return [Spec(arranged(shape[0], shape[-1 if last else 1], _sizes(n, shape), last), n.spec(0).dtype)]


def _interpolated(n: View, shape: Sequence[int]) -> Tables:
    last = n.get("x_last", False)
    space: Any = spatial(tuple(shape), last)
    factors = n.get("factors") or (None,) * len(space)
    found: Tables = {}
    for i, (size, out, factor) in enumerate(zip(space, _sizes(n, tuple(shape)), factors, strict=True), 1 if last else 2):
        if size != out or factor not in (None, 1):
            table = torch_taps(size, out, n.get("mode"), bool(n.get("align_corners")), factor)  # type: ignore[arg-type]
            found[i] = table, np.zeros(1, bool)
    return found


register(
    "Interpolate",
    interpolate_infer,
    lambda n, x: _run(n, x, _interpolated(n, x.shape)),
    lambda n, b: _lower(n, b, _interpolated(n, n.sizes(0))),
    Traits(whole="resizes"),
)
