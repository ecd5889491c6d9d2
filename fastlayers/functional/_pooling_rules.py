"""Where the windows of a pool are: sizes of the result and how kernels are called. Computes no values of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._tuples import NamedTuple
from .._windows import same_padding
from ..errors import ArgumentError, ShapeError, UnsupportedError
from ..graph.arrays import as_float32, empty
from ..graph.record import record
from ..ir.checks import MOST_STEP, flag, integers
from ..ir.graph import Dim, Shape
from ..kernels import dispatch
from ..rules.windows import window_sizes
from ._conv_rules import window
from ._recorded import with_batch

__all__ = ["Pool", "five", "image", "no_indices", "plain", "pool", "pool_pads", "pool_shape", "record_pool", "run_pool"]


class Pool(NamedTuple):
    """The arguments of a pool, checked; everything about space has one entry an axis."""

    op: str
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[tuple[int, int], ...] | None  # None: "same"
    dilation: tuple[int, ...]
    ceil: bool
    last: bool

    @property
    def axes(self) -> int:
        """How many spatial axes there are."""
        return len(self.kernel)

    @property
    def reach(self) -> tuple[int, ...]:
        """The positions that a window spans, along each axis."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))


def pool(
    op: str, axes: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any, layout: Any = "nchw"
) -> Pool:
    """Checks the arguments of a pool over `axes` spatial axes."""
    kernel = integers(op, "kernel_size", kernel_size, axes, 1, MOST_STEP)
    place = window(op, axes, kernel if stride is None else stride, padding, dilation, 1, "zeros", layout)
    found = Pool(op, kernel, place.stride, place.padding, place.dilation, flag(op, "ceil_mode", ceil_mode), place.last)
    if found.ceil and isinstance(padding, str):
        raise ArgumentError(f"{op}: padding is {padding!r} and ceil_mode is True: expected values as padding with ceil_mode")
    for pair, reach in zip(found.padding or (), found.reach, strict=False):
        if max(pair) >= reach:
            raise ArgumentError(f"{op}: padding is {padding!r}: expected less than the {reach} positions that a window spans")
    return found


def no_indices(op: str, return_indices: Any) -> None:
    """Raises where positions are asked for."""
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
    sizes = image(p.op, x, p.axes, p.last)
    out = window_sizes(p.op, sizes, p.kernel, p.stride, p.dilation, p.padding, ceil=p.ceil)
    return (*x[: -1 - p.axes], *out, x[-1]) if p.last else (*x[: -p.axes], *out)


def pool_pads(p: Pool, x: Sequence[int]) -> tuple[int, ...]:
    """Padding of the three axes that kernels know, flat."""
    pads = [0, 0] * (3 - p.axes)
    for axis, size in enumerate(x[-1 - p.axes : -1] if p.last else x[-p.axes :]):
        if p.padding is not None:
            pads += p.padding[axis]
        else:
            pads += same_padding(size, p.reach[axis], p.stride[axis])
    return tuple(pads)


def five(shape: Sequence[int], axes: int, last: bool) -> tuple[int, ...]:
    """The shape of an image, with or without a batch, with a batch and three spatial axes."""
    batch, ones = shape[0] if len(shape) == axes + 2 else 1, (1,) * (3 - axes)
    inner = tuple(shape[-1 - axes :])
    return (batch, *ones, *inner) if last else (batch, inner[0], *ones, *inner[1:])


def run_pool(p: Pool, kernel: str, x: Any, *options: Any) -> np.ndarray:
    """Calls a kernel of pools; `options` are the arguments that only this one has."""
    x = as_float32(x, p.op, "x")
    shape: Any = pool_shape(p, x.shape)
    out, lead = empty(shape), (1,) * (3 - p.axes)
    windows = ((*lead, *p.kernel), (*lead, *p.stride), (*lead, *p.dilation), pool_pads(p, x.shape))
    function = dispatch.kernel(kernel)
    function(x.reshape(five(x.shape, p.axes, p.last)), out.reshape(five(shape, p.axes, p.last)), *windows, *options, p.last)
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
    found: dict[str, Any] = {"kernel_shape": place.kernel, "strides": place.stride, "dilations": place.dilation}
    if place.padding is None:
        found["auto_pad"] = "SAME_UPPER"
    else:
        found["pads"] = (*(before for before, _ in place.padding), *(after for _, after in place.padding))
    if place.ceil:
        found["ceil_mode"] = 1
    if place.last:
        found["x_last"] = True
    if operator == "LpPool":
        found |= {"p": float(norm_type), **({} if norm else {"scaled": True})}
    if count_include_pad and place.padding is not None:
        found["count_include_pad"] = 1
    if divisor_override is not None:
        found["divisor"] = divisor_override
    return with_batch(x, axes, lambda x: record(operator, x, **found))
