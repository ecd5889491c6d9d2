"""Rules of pools over windows: arguments, sizes of the result, what is recorded; and what runs a pool on an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._tuples import NamedTuple
from ..calls.geometry import Window
from ..calls.machine import ARRAYS
from ..errors import ArgumentError, ShapeError, UnsupportedError
from ..graph.arrays import as_float32, empty
from ..graph.record import record
from ..ir.checks import MOST_STEP, flag, integers
from ..ir.graph import Dim, Shape
from ..rules.windows import window_sizes
from ._conv_rules import channels_last, padding_pairs
from ._recorded import with_batch

__all__ = ["Pool", "image", "no_indices", "plain", "pool", "pool_shape", "record_pool", "run_pool"]


class Pool(NamedTuple):
    """The arguments of a pool, checked. The pads of the window are None for "same"."""

    op: str
    window: Window
    ceil: bool
    last: bool


def pool(
    op: str, axes: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any, layout: Any = "nchw"
) -> Pool:
    """Checks the arguments of a pool over `axes` spatial axes."""
    kernel = integers(op, "kernel_size", kernel_size, axes, 1, MOST_STEP)
    strides = kernel if stride is None else integers(op, "stride", stride, axes, 1, MOST_STEP)
    pads, dilations = padding_pairs(op, padding, axes), integers(op, "dilation", dilation, axes, 1, MOST_STEP)
    last, ceil = channels_last(op, layout, axes), flag(op, "ceil_mode", ceil_mode)
    window = Window(kernel, strides, dilations, pads)
    if ceil and isinstance(padding, str):
        raise ArgumentError(f"{op}: padding is {padding!r} and ceil_mode is True: expected values as padding with ceil_mode")
    for pair, reach in zip(pads or (), window.reach, strict=False):
        if max(pair) >= reach:
            raise ArgumentError(f"{op}: padding is {padding!r}: expected less than the {reach} positions that a window spans")
    return Pool(op, window, ceil, last)


def no_indices(op: str, return_indices: Any) -> None:
    """Raises where indices of the maxima are asked for."""
    if return_indices:
        raise UnsupportedError(f"{op}: return_indices is {return_indices!r}: positions of the largest are not computed")


def image(op: str, x: Shape, axes: int, last: bool) -> tuple[Dim, ...]:
    """The sizes of x along space; raises unless x is an image, with or without a batch."""
    if len(x) not in (axes + 1, axes + 2):
        space = list("dhw"[3 - axes :]) if axes > 1 else ["l"]
        inner = ", ".join([*space, "c"] if last else ["c", *space])
        raise ShapeError(f"{op}: x has shape {x} ({len(x)} axes): expected (n, {inner}), or ({inner}) without a batch")
    return x[-1 - axes : -1] if last else x[-axes:]


def pool_shape(p: Pool, x: Shape) -> Shape:
    """Checks the shape of x and returns that of the result; sizes may be names or None."""
    kernel, stride, dilation, pads = p.window
    axes = len(kernel)
    out = window_sizes(p.op, image(p.op, x, axes, p.last), kernel, stride, dilation, pads, ceil=p.ceil)
    return (*x[: -1 - axes], *out, x[-1]) if p.last else (*x[:-axes], *out)


def run_pool(p: Pool, calls: Callable[..., None], x: Any, *options: Any) -> np.ndarray:
    """A pool of an array; `calls` is one of `calls.pooling`, and `options` are the arguments that it alone has."""
    x = as_float32(x, p.op, "x")
    shape: Any = pool_shape(p, x.shape)
    out, window, axes = empty(shape), p.window, len(p.window.kernel)
    if window.pads is None:
        window = window.padded(x.shape[-1 - axes : -1] if p.last else x.shape[-axes:])
    calls(ARRAYS, x, out, window, p.last, *options)
    return out


def plain(attributes: dict[str, Any]) -> None:
    """Makes sequences among recorded attributes tuples."""
    for name, value in attributes.items():
        if isinstance(value, (tuple, list)):
            attributes[name] = tuple(tuple(v) if isinstance(v, (tuple, list)) else v for v in value)


def record_pool(
    operator: str, axes: int, x: Any, return_indices: Any = False, count_include_pad: Any = False, divisor_override: Any = None,
    norm_type: Any = None, norm: Any = None, dilation: Any = 1, **given: Any,
) -> Any:  # fmt: skip
    """Records a pool over windows."""
    place = pool(operator, axes, dilation=dilation, **given)
    kernel, stride, dilation, pads = place.window
    found: dict[str, Any] = {"kernel_shape": kernel, "strides": stride, "dilations": dilation}
    if pads is None:
        found["auto_pad"] = "SAME_UPPER"
    else:
        found["pads"] = (*(before for before, _ in pads), *(after for _, after in pads))
    if place.ceil:
        found["ceil_mode"] = 1
    if place.last:
        found["x_last"] = True
    if operator == "LpPool":
        found |= {"p": float(norm_type), **({} if norm else {"scaled": True})}
    if count_include_pad and pads is not None:
        found["count_include_pad"] = 1
    if divisor_override is not None:
        found["divisor"] = divisor_override
    return with_batch(x, axes, lambda x: record(operator, x, **found))
