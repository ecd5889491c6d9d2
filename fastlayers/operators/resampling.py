"""Resampling: ONNX's Resize, and Interpolate, fastlayers' own operator with the arguments of `functional.interpolate`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls.resampling import AXES, resize
from ..ir.graph import Dim, Shape
from ..kernels.reference.resize import along
from ..kernels.resize_tables import COORDINATES, NEAREST, Axis, Rule, Table, onnx_taps, torch_tables
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


def _expect(n: View, given: list[float], name: str, count: int) -> None:
    """Raises unless scales or sizes are as many as they must be, and positive; a size may be 0."""
    if len(given) != count:
        raise n.fail(f"{name} are {given}: expected {count}, one per axis")
    if not all(0 <= v < math.inf for v in given) or (name == "scales" and 0 in given):
        raise n.fail(f"{name} are {given}: expected positive values")


def _resized(n: View, shape: Sequence[int], values: Sequence[Any] = ()) -> list[Axis | None]:
    """Resampling of every axis; None: the axis stays as it is."""
    rank = len(shape)
    roi, scales, sizes = (_given(n, i, values[i] if i < len(values) else None) or None for i in (1, 2, 3))
    axes = axes_of(n, n.get("axes"), rank) if n.get("axes") else tuple(range(rank))
    if (scales is None) == (sizes is None):
        raise n.fail("expected either scales or sizes")
    _expect(n, scales or sizes or [], "scales" if scales else "sizes", len(axes))
    crop = n.get("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    if crop and (roi is not None or not n.has(1)) and len(roi or ()) != 2 * len(axes):
        raise n.fail(f"roi is {roi}: expected {2 * len(axes)} values, the starts of all axes and then their ends")
    policy = n.get("keep_aspect_ratio_policy", "stretch")
    if policy not in ("stretch", "not_larger", "not_smaller"):
        raise n.fail(f"keep_aspect_ratio_policy is {policy!r}: expected stretch, not_larger or not_smaller")
    lengths = [shape[axis] for axis in axes]
    if sizes is None:
        ratios = scales or []
        outs = [_scaled(n, length, ratio) for length, ratio in zip(lengths, ratios, strict=True)]
    else:
        outs = [int(size) for size in sizes]
        ratios = [
            float(np.float32(out) / np.float32(length)) if length else 1.0 for out, length in zip(outs, lengths, strict=True)
        ]
        if policy != "stretch":
            ratios = [(min if policy == "not_larger" else max)(ratios)] * len(axes)
            outs = [_scaled(n, length, ratio, 0.5) for length, ratio in zip(lengths, ratios, strict=True)]
    found: list[Axis | None] = [None] * rank
    if outs == lengths and not crop:
        return found  # whatever the scales are
    copied = bool(n.get("antialias", 0)) and not crop
    for k, axis in enumerate(axes):
        if crop or outs[k] != lengths[k] or (ratios[k] != 1 and not copied):
            ends = (roi[k], roi[len(axes) + k]) if crop and roi else (0.0, 1.0)
            found[axis] = Axis(lengths[k], outs[k], ratios[k], *ends)
            if not lengths[k] and outs[k]:
                raise n.fail(f"x has shape {tuple(shape)}: cannot make {outs[k]} of nothing along axis {axis}")
    return found


def _scaled(n: View, size: int, scale: float, more: float = 0.0) -> int:
    """A size times a scale, in float32, and `more`, rounded down."""
    with np.errstate(over="ignore"):
        product = float(np.float32(size) * np.float32(scale))
    if not product < 2.0**62:
        raise n.fail(f"a scale is {scale:g}, x has {size} along its axis: expected a result of a size that there can be")
    return math.floor(product + more)


def _tables(n: View, shape: Sequence[int], values: Sequence[Any] = ()) -> Tables:
    rule = Rule(
        n.get("mode", "nearest"),
        n.get("coordinate_transformation_mode", "half_pixel"),
        n.get("nearest_mode", "round_prefer_floor"),
        n.get("cubic_coeff_a", -0.75),
        *(bool(n.get(name, 0)) for name in ("exclude_outside", "antialias", "steps")),
    )
    for name, value, known in (
        ("mode", rule.mode, ("nearest", "linear", "cubic")),
        ("coordinate_transformation_mode", rule.coordinates, COORDINATES),
        ("nearest_mode", rule.nearest, NEAREST),
    ):
        if value not in known:
            raise n.fail(f"{name} is {value!r}: expected one of {', '.join(known)}")
    axes = _resized(n, shape, values)
    return {i: onnx_taps(axis, rule) for i, axis in enumerate(axes) if axis is not None}


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
    _expect(n, scales, "scales", len(shape))
    sizes: list[Dim] = [
        _scaled(n, d, s) if isinstance(d, int) else d if s == 1 else None for d, s in zip(shape, scales, strict=True)
    ]
    return [Spec(tuple(sizes), dtype)]


def _span(tables: Tables) -> tuple[int, int] | None:
    """First and last + 1 of the axes that change, if they are as many neighbours as the kernel has."""
    if not tables:
        return None
    first, last = min(tables), max(tables) + 1
    return (first, last) if last - first <= AXES else None


def _lower(n: View, b: Builder, tables: Tables) -> Any:
    span = _span(tables)
    if not tables:
        return b.alias(0, b.input(0))
    if span is None or not n.float32(0) or any(outside.any() for _, outside in tables.values()):
        return False
    x, out, (first, last) = b.input(0), b.output(0), span
    outer, inner = math.prod(x.shape[:first]), math.prod(x.shape[last:])
    own = [tables[i][0] if i in tables else None for i in range(first, last)]
    return resize(b.machine, x, out, outer, x.shape[first:last], out.shape[first:last], inner, own)


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


def _crop_lower(n: View, b: Builder) -> Any:
    """A part of an image that is given by a value, as crop_and_resize has it."""
    plain = n.get("mode") == "linear" and not any(n.get(name) for name in ("axes", "exclude_outside", "antialias"))
    if n.get("coordinate_transformation_mode") != "tf_crop_and_resize" or not plain or not n.float32(0, 1) or n.sizes(1) != (8,):
        return False
    (out,) = resize_infer(n)
    if len(n.sizes(0)) != 4 or not out.static:
        return False
    return b.call("crop", b.input(0), b.input(1), b.output(0), float(n.get("extrapolation_value", 0.0)))


def resize_lower(n: View, b: Builder) -> Any:
    if n.has(1) and n.value(1) is None and not _absent(n, 1):
        return _crop_lower(n, b)
    if any(n.has(i) and n.value(i) is None and not _absent(n, i) for i in (1, 2, 3)):
        return False
    return _lower(n, b, _tables(n, n.sizes(0)))


def resize_run(n: View, x: np.ndarray, *values: Any) -> Sequence[np.ndarray]:
    """Every axis by its weighted taps, one after the other."""
    return _run(n, x, _tables(n, x.shape, (None, *values)))


register("Resize", resize_infer, resize_run, resize_lower, Traits(whole="resizes", steers=(2, 3)))


# ---- Interpolate ----------------------------------------------------------------------------------------------------------


def _sizes(n: View, x: Shape) -> tuple[Dim, ...]:
    """Spatial sizes of the result, by `sizes` or `scales`, one per axis."""
    return resized_rule(n.where, x, spatial(x, n.get("x_last", False)), n.get("sizes"), n.get("scales"))


def interpolate_infer(n: View) -> list[Spec]:
    shape, last = n.shape(0), n.get("x_last", False)
    if shape is None:
        return [Spec(None, n.spec(0).dtype)]
    return [Spec(arranged(shape[0], shape[-1 if last else 1], _sizes(n, shape), last), n.spec(0).dtype)]


def _interpolated(n: View, shape: Sequence[int]) -> Tables:
    last = n.get("x_last", False)
    space: Any = spatial(tuple(shape), last)
    outs: Any = _sizes(n, tuple(shape))
    tables = torch_tables(space, outs, n.get("mode"), bool(n.get("align_corners")), n.get("factors"))
    return {i: (table, np.zeros(1, bool)) for i, table in enumerate(tables, 1 if last else 2) if table is not None}


register(
    "Interpolate",
    interpolate_infer,
    lambda n, x: _run(n, x, _interpolated(n, x.shape)),
    lambda n, b: _lower(n, b, _interpolated(n, n.sizes(0))),
    Traits(whole="resizes"),
)
