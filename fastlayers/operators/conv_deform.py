"""DeformConv: a convolution each of whose taps reads the image next to its place, by offsets that are given."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tuples import NamedTuple
from ..calls.geometry import Window
from ..kernels.reference.grid import PIXELS, grid_sample
from ..kernels.table import BINARY, BORDERS
from ._base import Spec, View, register
from ._costs import convolution
from ._traits import Traits
from .activation import wide
from .calls import copy
from .fused import IDENTITY
from .shapes import need_kind, same_dtype
from .window import conv_size, window

if TYPE_CHECKING:
    from .builder import Builder

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]
BETWEEN_PIXELS = (2, BORDERS["zeros"], PIXELS)  # how grid_sample reads: linear, zeros outside, positions in pixels


def _window(n: View) -> tuple[tuple[int, ...], Window] | None:
    """Sizes of the weights and the window, if the weights' shape is known."""
    w = n.shape(1)
    if w is None or any(not isinstance(d, int) for d in w):
        return None
    kernel = tuple(n.get("kernel_shape") or w[2:])
    if len(w) != 4 or kernel != tuple(w[2:]):
        raise n.fail(f"the weights have shape {w}, kernel_shape is {kernel}: expected (o, c, kh, kw), and the last two of them")
    return w, window(n, kernel, None)  # type: ignore[return-value]


def _infer(n: View) -> list[Spec]:
    """x (n, c, h, w), weights (o, c / group, kh, kw), offsets (n, offset_group * kh * kw * 2, oh, ow), bias, mask."""
    need_kind(n, "f")
    same_dtype(n)
    x, offset, dtype, found = n.shape(0), n.shape(2), n.spec(0).dtype, _window(n)
    if (x is not None and len(x) != 4) or (offset is not None and len(offset) != 4):
        raise n.fail(f"x has shape {x}, the offsets {offset}: expected four axes each; others are not supported")
    if x is None or found is None:
        return [Spec((None,) * 4, dtype)]
    w, place = found
    group, parts = n.get("group", 1), n.get("offset_group", 1)
    if group < 1 or parts < 1 or w[0] % group or (isinstance(x[1], int) and (x[1] != w[1] * group or x[1] % parts)):
        raise n.fail(f"x has shape {x}, the weights {w}, group={group}, offset_group={parts}: expected {w[1]} * group channels")
    space = conv_size(n, x[2:], place)
    taps = math.prod(w[2:]) * parts
    for i, rows in ((2, 2 * taps), (4, taps)):
        have = n.shape(i) if n.has(i) else None
        want = (x[0], rows, *space)
        if have is not None and (
            len(have) != 4 or any(a != b for a, b in zip(have, want, strict=True) if isinstance(a, int) and isinstance(b, int))
        ):
            raise n.fail(f"input {i} has shape {have}: expected {want}")
    bias = n.shape(3) if n.has(3) else None
    if bias is not None and (len(bias) != 1 or (isinstance(bias[0], int) and bias[0] != w[0])):
        raise n.fail(f"the bias has shape {bias}: expected {(w[0],)}")
    return [Spec((x[0], w[0], *space), dtype)]


class _Parts(NamedTuple):
    """Sizes of everything: images, groups of channels with their own offsets, taps, positions; the window."""

    images: int
    parts: int
    taps: int
    out: tuple[int, int]
    window: Window

    @property
    def places(self) -> int:
        """The number of positions that all taps read in an image."""
        return self.taps * self.out[0] * self.out[1]


def _parts(n: View) -> _Parts:
    shape: Any = _infer(n)[0].shape
    w, place = _window(n)  # type: ignore[misc]
    return _Parts(shape[0], n.get("offset_group", 1), w[2] * w[3], shape[2:], place)


def _read(p: _Parts, offset: np.ndarray) -> np.ndarray:
    """The positions that every tap reads, in pixels: (images * parts, taps * oh * ow, 2), x before y."""
    (oh, ow), (kh, kw) = p.out, p.window.kernel
    at = np.empty((p.images * p.parts, kh, kw, oh, ow, 2), offset.dtype)
    given = offset.reshape(p.images * p.parts, kh, kw, 2, oh, ow)
    before = [pad[0] for pad in p.window.pads or ()]
    rows, columns = (
        np.arange(size) * stride - pad + (np.arange(k) * dilation)[:, None]
        for size, stride, pad, k, dilation in zip(p.out, p.window.stride, before, (kh, kw), p.window.dilation, strict=True)
    )
    at[..., 1] = given[:, :, :, 0] + rows[:, None, :, None].astype(offset.dtype)
    at[..., 0] = given[:, :, :, 1] + columns[None, :, None, :].astype(offset.dtype)
    return at.reshape(p.images * p.parts, p.places, 2)


def _run(
    n: View, x: np.ndarray, w: np.ndarray, offset: np.ndarray, bias: np.ndarray | None = None, mask: np.ndarray | None = None
) -> Arrays:
    p, group, count = _parts(n), n.get("group", 1), len(x) * n.get("offset_group", 1)
    y = wide(x)
    read = np.zeros((count, x.shape[1] // p.parts, p.places), y.dtype)
    if read.size and math.prod(x.shape[2:]):
        grid_sample(y.reshape(count, x.shape[1] // p.parts, -1), _read(p, wide(offset)), read, x.shape[2:], *BETWEEN_PIXELS)
    if mask is not None:
        read = read * wide(mask).reshape(count, 1, p.places)
    terms = w.shape[1] * p.taps
    out = wide(w).reshape(group, w.shape[0] // group, terms) @ read.reshape(len(x), group, terms, p.out[0] * p.out[1])
    out = out.reshape(len(x), w.shape[0], *p.out)
    if bias is not None:
        out = out + wide(bias)[:, None, None]
    return (out.astype(x.dtype, copy=False),)


def _lower(n: View, b: Builder) -> Any:
    """The positions are numpy's, what is there and all sums the kernels'."""
    group, weight = n.get("group", 1), n.sizes(1)
    p, shape = _parts(n), n.sizes(0)
    repeated = shape[0] if group > 1 else 1  # the weights of every image's groups
    if not n.float32() or not math.prod(shape) or not p.places or not weight[0]:
        return False
    count, channels, terms = p.images * p.parts, shape[1] // p.parts, weight[1] * p.taps
    grid, read = b.temp((count, p.places, 2)), b.temp((count, channels, p.places))
    b.python(partial(_step, p), [b.input(2)], [grid])
    b.call("grid_sample", b.input(0).view((count, channels, shape[2] * shape[3])), grid, read, shape[2:], *BETWEEN_PIXELS)
    if n.has(4):
        masked = b.temp(read.shape)
        b.call("binary", read, b.input(4).view((count, 1, p.places)), masked, BINARY["multiply"], IDENTITY)
        read = masked
    known, rows = n.value(1), weight[0] // group
    if repeated > 1 and known is not None:
        left = b.constant(np.tile(known.reshape(group, -1, terms), (repeated, 1, 1)))
    elif repeated > 1:
        left, each = b.temp((repeated * group, rows, terms)), weight[0] * terms
        copy(b, b.input(1), left, (repeated, each), 0, (0, 1), 0, (each, 1))
    else:
        left = b.input(1).view((group, rows, terms))
    pixels = p.out[0] * p.out[1]
    total = b.temp((p.images, weight[0], pixels)) if n.has(3) else b.output(0)
    b.call(
        "matmul",
        left,
        read.view((p.images * group, terms, pixels)),
        total.view((p.images * group, rows, pixels)),
        False,
        IDENTITY,
    )
    if n.has(3):
        out = b.output(0).view((p.images, weight[0], pixels))
        b.call("binary", total, b.input(3).view((1, weight[0], 1)), out, BINARY["add"], IDENTITY)
    return None


def _step(p: _Parts, offset: np.ndarray) -> Arrays:
    return (_read(p, offset),)


register("DeformConv", _infer, _run, _lower, Traits(multiply_adds=convolution()))
