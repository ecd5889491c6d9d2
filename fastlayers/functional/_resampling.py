"""Maps of other sizes: interpolation by torch's rules, and pixels made of channels and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls.machine import ARRAYS
from ..calls.resampling import resize
from ..errors import ArgumentError, ShapeError, UnsupportedError
from ..graph.arrays import as_float32, empty
from ..graph.ops import op
from ..graph.record import record
from ..ir.checks import flag, integer, integers, number
from ..ir.graph import Dim, Shape
from ..kernels import dispatch
from ..kernels.resize_tables import torch_tables
from ..rules.maps import resized_rule
from ..rules.shapes import blocks_rule
from ._conv_rules import channels_last
from ._pooling_rules import image, plain
from ._recorded import with_batch

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["interpolate", "pixel_shuffle", "pixel_unshuffle"]

# By name: what the tables call it, and over how many axes it goes (None: any).
MODES: dict[str, tuple[str, int | None]] = {
    "nearest": ("nearest", None), "nearest-exact": ("nearest-exact", None), "linear": ("linear", 1), "bilinear": ("linear", 2),
    "trilinear": ("linear", 3), "bicubic": ("cubic", 2), "area": ("area", None),
}  # fmt: skip


class Target:
    """The arguments of `interpolate` for x of a given rank, checked; sizes and factors have one entry per spatial axis."""

    def __init__(
        self, name: str, axes: int, size: Any, scale_factor: Any, mode: Any, align_corners: Any, recompute: Any, layout: Any
    ) -> None:
        if not isinstance(mode, str) or mode not in MODES:
            raise ArgumentError(f"{name}: mode is {mode!r}: expected one of {', '.join(map(repr, MODES))}")
        self.mode, wanted = MODES[mode]
        if wanted not in (None, axes):
            raise ArgumentError(f"{name}: mode is {mode!r}, x has {axes} spatial axes: expected {wanted}")
        if align_corners is not None and self.mode not in ("linear", "cubic"):
            raise ArgumentError(f"{name}: align_corners is {align_corners!r} with mode={mode!r}: expected None")
        if (size is None) == (scale_factor is None):
            raise ArgumentError(f"{name}: size is {size!r}, scale_factor {scale_factor!r}: expected one of them, the other None")
        if recompute and size is not None:
            raise ArgumentError(f"{name}: recompute_scale_factor is True with size: expected scale_factor")
        self.name, self.axes, self.last = name, axes, channels_last(name, layout, axes)
        self.align = align_corners is not None and flag(name, "align_corners", align_corners)
        self.sizes = None if size is None else integers(name, "size", size, axes, 1)
        self.scales: tuple[float, ...] | None = None
        if scale_factor is not None:
            given = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * axes
            self.scales = tuple(number(name, "scale_factor", s) for s in given)
            if len(self.scales) != axes or not all(0 < s < float("inf") for s in self.scales):
                raise ArgumentError(
                    f"{name}: scale_factor is {scale_factor!r}: expected a positive number, or {axes}, one per axis"
                )
        # torch computes coordinates with the given factor, not with the ratio of sizes, unless `recompute` is set.
        self.factors = None if recompute else self.scales

    def shape(self, x: Shape) -> Shape:
        """The shape of the result."""
        sizes = image(self.name, x, self.axes, self.last)
        out = resized_rule(self.name, x, sizes, self.sizes, self.scales)
        return (*x[: -1 - self.axes], *out, x[-1]) if self.last else (*x[: -self.axes], *out)


def _rule(x: Shape, size: Any, scale_factor: Any, mode: Any, align_corners: Any, recompute_scale_factor: Any, antialias: Any,
          layout: Any) -> Shape:  # fmt: skip
    _no_antialias(antialias)
    batch = len(x) - 2
    return Target("interpolate", batch, size, scale_factor, mode, align_corners, recompute_scale_factor, layout).shape(x)


def _no_antialias(antialias: Any) -> None:
    if antialias:
        raise UnsupportedError("interpolate: antialias is True: only ONNX's Resize has it here")


def _record(
    x: Any, size: Any, scale_factor: Any, mode: Any, align_corners: Any, recompute_scale_factor: Any, antialias: Any, layout: Any
) -> Any:
    t = Target("interpolate", x.ndim - 2, size, scale_factor, mode, align_corners, recompute_scale_factor, layout)
    own: dict[str, Any] = {"x_last": True} if t.last else {}
    own |= {"sizes": t.sizes} if t.sizes is not None else {"scales": t.scales}
    if t.mode == "area":
        return record("AdaptivePool", x, reduce="mean", **own)
    return record("Interpolate", x, mode=t.mode, align_corners=t.align, factors=t.factors, **own)


def _record_blocks(name: str, op: str, x: Any, block: Any, layout: str) -> Any:
    own: dict[str, Any] = {"x_last": True} if channels_last(name, layout, 2) else {}
    return with_batch(x, 2, lambda x: record(op, x, blocksize=int(block), mode="CRD", **own))


@op("interpolate", "x", _rule, _record, plain)
def interpolate(
    x: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
    *,
    layout: str = "nchw",
) -> np.ndarray:
    """Resamples all spatial axes: ``out[o] = sum over the taps around o's place in x of weight * x``, by torch's rules.

    A tap of weight 0 is left out: a NaN there does not reach the result (it does in torch). Where a scale leaves an axis its
    size, linear modes copy along it, and nearest does in two axes with at most 128 rows and columns, as torch does.

    Args:
        x: ``(n, c, l)``, ``(n, c, h, w)`` or ``(n, c, d, h, w)``, or with c after if `layout` is channels-last; any real dtype,
            computed in float32.
        size: sizes of the result along space, an int or one per axis; or None, with `scale_factor`.
        scale_factor: sizes are multiplied by it and rounded down; a number, or one per axis; or None, with `size`.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"`` (one axis), ``"bilinear"``, ``"bicubic"`` (two), ``"trilinear"``
            (three) or ``"area"`` (averages of bins, as `adaptive_avg_pool2d`).
        align_corners: for linear and cubic modes, whether the first and last pixels of x and of the result coincide; else pixels
            are areas whose corners do. None is False.
        recompute_scale_factor: whether positions follow the ratio of sizes in place of `scale_factor`.
        antialias: must be False.
        layout: channels first, ``"nchw"`` (or ``"ncl"``, ``"ncdhw"``), or last, ``"nhwc"`` (or ``"nlc"``, ``"ndhwc"``).

    Returns:
        float32 of the shape of x, with other sizes along space.

    Raises:
        ArgumentError: arguments do not fit, or shapes (a `ShapeError`).
        DTypeError: an argument is complex or not numeric.
        UnsupportedError: `antialias` is True.

    >>> import fastlayers as fl
    >>> fl.functional.interpolate([[[1.0, 3.0]]], scale_factor=2, mode="linear")
    array([[[1. , 1.5, 2.5, 3. ]]], dtype=float32)
    """
    x = as_float32(x, "interpolate", "x")
    _no_antialias(antialias)
    if not 3 <= x.ndim <= 5:
        raise ShapeError(f"interpolate: x has shape {x.shape}: expected (n, c, ...) with one to three spatial axes")
    target = Target("interpolate", x.ndim - 2, size, scale_factor, mode, align_corners, recompute_scale_factor, layout)
    shape: Any = target.shape(x.shape)
    if target.mode == "area":
        from . import _pooling_adaptive

        pool = getattr(_pooling_adaptive, f"adaptive_avg_pool{target.axes}d")
        space = shape[1:-1] if target.last else shape[2:]
        return pool(x, space, layout="nhwc" if target.last else "nchw")  # type: ignore[no-any-return]
    outer, inner = (x.shape[0], x.shape[-1]) if target.last else (x.shape[0] * x.shape[1], 1)
    first = 1 if target.last else 2
    sizes, wanted = (tuple(s[first : first + target.axes]) for s in (x.shape, shape))
    out = empty(shape)  # before the tables: a result that there is no memory for is refused by its name
    tables = torch_tables(sizes, wanted, target.mode, target.align, target.factors)
    resize(ARRAYS, x, out, outer, sizes, wanted, inner, tables)
    return out


def _blocks(name: str, x: Shape, factor: Any, layout: Any) -> Shape:
    """The shape of `pixel_shuffle` or `pixel_unshuffle`."""
    shuffle = name == "pixel_shuffle"
    r = integer(name, "upscale_factor" if shuffle else "downscale_factor", factor, 1)
    last = channels_last(name, layout, 2)
    h, w = image(name, x, 2, last)
    c = x[-1] if last else x[-3]

    def part(size: Dim, by: int, what: str) -> Dim:
        return blocks_rule(name, x, size, by, what)

    def times(size: Dim, by: int) -> Dim:
        return size * by if isinstance(size, int) else size if by == 1 else None

    if shuffle:
        c, h, w = part(c, r * r, "channels"), times(h, r), times(w, r)
    else:
        c, h, w = times(c, r * r), part(h, r, "rows"), part(w, r, "columns")
    return (*x[:-3], h, w, c) if last else (*x[:-3], c, h, w)


def _shuffled(name: str, x: Any, factor: Any, layout: Any) -> np.ndarray:
    x = as_float32(x, name, "x")
    shape: Any = _blocks(name, x.shape, factor, layout)
    out, r, last = empty(shape), int(factor), channels_last(name, layout, 2)
    # The small map is the one whose channels hold blocks.
    small = x.shape if name == "pixel_shuffle" else shape
    batch = x.shape[0] if x.ndim == 4 else 1
    if last:
        h, w, deep = small[-3:]
        c = deep // (r * r)
        sizes = (batch, h, r, w, r, c)
        narrow = (h * w * deep, w * deep, r, deep, 1, r * r)
        wide = (h * r * w * r * c, r * w * r * c, w * r * c, r * c, c, 1)
    else:
        deep, h, w = small[-3:]
        c = deep // (r * r)
        sizes = (batch, c, h, r, w, r)
        narrow = (deep * h * w, r * r * h * w, w, r * h * w, 1, h * w)
        wide = (c * r * h * r * w, r * h * r * w, r * r * w, r * w, r, 1)
    if out.size:
        x_strides, out_strides = (narrow, wide) if name == "pixel_shuffle" else (wide, narrow)
        dispatch.kernel("copy")(x, out, sizes, 0, x_strides, 0, out_strides, 4)
    return out


@op(
    "pixel_shuffle",
    "x",
    lambda x, upscale_factor, layout: _blocks("pixel_shuffle", x, upscale_factor, layout),
    lambda x, upscale_factor, layout: _record_blocks("pixel_shuffle", "DepthToSpace", x, upscale_factor, layout),
)
def pixel_shuffle(x: Tensor, upscale_factor: int, *, layout: str = "nchw") -> np.ndarray:
    """Makes blocks of pixels of channels: ``out[c, r h + i, r w + j] = x[(c r + i) r + j, h, w]``.

    Args:
        x: ``(n, c r r, h, w)``, or ``(n, h, w, c r r)`` if `layout` is channels-last, or the same without n; any real dtype.
        upscale_factor: r.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.

    Returns:
        float32 ``(n, c, h r, w r)`` or ``(n, h r, w r, c)``.

    Raises:
        ShapeError: the number of channels is no multiple of r r.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.pixel_shuffle([[[1.0]], [[2.0]], [[3.0]], [[4.0]]], 2)
    array([[[1., 2.],
            [3., 4.]]], dtype=float32)
    """
    return _shuffled("pixel_shuffle", x, upscale_factor, layout)


@op(
    "pixel_unshuffle",
    "x",
    lambda x, downscale_factor, layout: _blocks("pixel_unshuffle", x, downscale_factor, layout),
    lambda x, downscale_factor, layout: _record_blocks("pixel_unshuffle", "SpaceToDepth", x, downscale_factor, layout),
)
def pixel_unshuffle(x: Tensor, downscale_factor: int, *, layout: str = "nchw") -> np.ndarray:
    """Makes channels of blocks of pixels, inverse to `pixel_shuffle`: ``out[(c r + i) r + j, h, w] = x[c, r h + i, r w + j]``.

    Args:
        x: ``(n, c, h r, w r)``, or ``(n, h r, w r, c)`` if `layout` is channels-last, or the same without n; any real dtype.
        downscale_factor: r.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.

    Returns:
        float32 ``(n, c r r, h, w)`` or ``(n, h, w, c r r)``.

    Raises:
        ShapeError: a size along space is no multiple of r.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.pixel_unshuffle([[[1.0, 2.0], [3.0, 4.0]]], 2).shape
    (4, 1, 1)
    """
    return _shuffled("pixel_unshuffle", x, downscale_factor, layout)
