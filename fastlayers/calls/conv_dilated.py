"""A dilated convolution as ordinary ones over every d-th row and column: where its phases are. And what runs them.

Outputs with the same residue of their row by the dilation read inputs of one residue too, if the padding before is a whole number
of dilations: so each phase is a separate convolution without dilation, which Winograd's algorithm can do. Phases of equal sizes
are the slices of one volume with its channels last, as `winograd` takes them; along an axis whose size is no multiple of the
dilation there are two sizes, and so up to four volumes. 3x3 with a dilation of 2, 64 -> 64 at 28x28, takes 0.47 of the time,
512 -> 512 0.39 (AMD Zen 4).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from .._tuples import NamedTuple
from ..kernels.table import Activation
from ..kernels.winograd_points import tiles_of
from .conv_costs import choose_phases
from .geometry import Copy
from .machine import Machine

__all__ = ["Part", "Phases", "as_last", "dilated_phases", "run_dilated"]


class Part(NamedTuple):
    """The phases of one size: where the inputs and the results begin in their scratch, their shapes (n, slices, h, w, channels),
    the padding, and the copies to the one and from the other.
    """

    x_start: int
    x_shape: tuple[int, ...]
    out_start: int
    out_shape: tuple[int, ...]
    pads: tuple[int, ...]
    into: Copy
    back: Copy


class Phases(NamedTuple):
    """All parts, how many values the scratch of inputs and that of results have, and the side of Winograd's tiles."""

    parts: tuple[Part, ...]
    x_size: int
    out_size: int
    tile: int


def dilated_phases(
    x: Sequence[int],
    weight: Sequence[int],
    out: Sequence[int],
    groups: int,
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    mode: int,
    turned: int,
    packs: bool = False,
) -> Phases | None:
    """The phases of a convolution, or None where they cannot be separated or `conv` is expected to be as fast.

    Args:
        x, out: shapes (n, d, h, w, channels), whatever the layout is.
        weight: shape ``(o, i / groups, kd, kh, kw)``; strides, dilations and pads have three axes too.
        mode: of the padding, as in `table.PAD_MODES`; 0 is zeros.
        turned: how many of x and the result have their channels first, and are transposed on the way.
        packs: whether weights are packed for this one call, the time of which then counts.
    """
    if max(dilation) == 1:
        return None
    shapes, window = (tuple(x), tuple(weight), tuple(out)), (tuple(stride), tuple(dilation), tuple(pads))
    return _phases(*shapes, groups, *window, mode, turned, packs)


@functools.lru_cache(256)  # layers and functions ask in every call
def _phases(
    x: tuple[int, ...],
    weight: tuple[int, ...],
    out: tuple[int, ...],
    groups: int,
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    pads: tuple[int, ...],
    mode: int,
    turned: int,
    packs: bool,
) -> Phases | None:
    kernel = weight[2:]
    if mode or stride != (1, 1, 1) or not tiles_of(kernel) or kernel[0] > 1 or x[1] != 1 or any(pads[:2]):
        return None
    if x[1:4] != out[1:4] or 0 in x or 0 in out:
        return None
    along, shares = [], 1.0
    for axis in (1, 2):
        taps, step, before, size = kernel[axis], dilation[axis], pads[2 * axis], x[1 + axis]
        if taps == 1:
            step = 1
        if before % step or step > size:
            return None
        along.append((_sizes(size, step), step, (before // step, taps - 1 - before // step)))
        shares *= sum(max(0, size - abs(tap * step - before)) for tap in range(taps)) / (taps * size)
    (rows, down, pads_h), (columns, across, pads_w) = along
    volumes = [(ch * cw, high, wide) for _, ch, high in rows for _, cw, wide in columns]
    tile = choose_phases(volumes, shares, (1, x[2], x[3]), x[4], out[4], kernel, groups, turned, packs)
    if not tile:
        return None
    parts, x_start, out_start = [], 0, 0
    for i, ch, high in rows:
        for j, cw, wide in columns:
            block = (x[0], ch, cw, high, wide)
            shapes = [(x[0], ch * cw, high, wide, c) for c in (x[4], out[4])]
            into, back = (_copy(block, c, x[2:4], (i, j), (down, across)) for c in (x[4], out[4]))
            parts.append(
                Part(
                    x_start, shapes[0], out_start, shapes[1], (0, 0, *pads_h, *pads_w),
                    Copy(into.shape, into.out_offset, into.out_strides, x_start, into.x_strides),
                    Copy(back.shape, out_start, back.x_strides, back.out_offset, back.out_strides),
                )
            )  # fmt: skip
            pixels = x[0] * ch * cw * high * wide
            x_start, out_start = x_start + pixels * x[4], out_start + pixels * out[4]
    return Phases(tuple(parts), x_start, out_start, tile)


def as_last(shape: Sequence[int], last: bool) -> tuple[int, ...]:
    """A shape of five axes with its channels last."""
    return tuple(shape) if last else (shape[0], *shape[2:], shape[1])


def _sizes(size: int, step: int) -> list[tuple[int, int, int]]:
    """Residues with equally many positions: the first residue, how many there are, and the number."""
    longer, least = size % step, size // step
    return [(0, longer, least + 1)] * (longer > 0) + [(longer, step - longer, least)]


def _copy(block: tuple[int, ...], c: int, size: Sequence[int], first: tuple[int, int], steps: tuple[int, int]) -> Copy:
    """From phases in order, images x rows of phases x columns of phases x rows x columns, to their positions."""
    n, ch, cw, high, wide = block
    height, width = size
    together = (ch * cw * high * wide * c, cw * high * wide * c, high * wide * c, wide * c, c, 1)
    apart = (height * width * c, width * c, c, steps[0] * width * c, steps[1] * c, 1)
    return Copy((n, ch, cw, high, wide, c), 0, together, (first[0] * width + first[1]) * c, apart)


def run_dilated(m: Machine, found: Phases, packed: Any, x: Any, out: Any, x_last: bool, out_last: bool, act: Activation) -> None:
    """Inputs of the phases are cut out of x, all of one size are convolved, and their results are put where they belong."""
    source, result = x, out
    if not x_last:
        n, c, *space = x.shape
        source = m.temp((n, math.prod(space), c))
        m.call("transpose", m.view(x, (n, c, math.prod(space))), source)
    if not out_last:
        n, c, *space = out.shape
        result = m.temp((n, math.prod(space), c))
    inputs, results = m.temp((found.x_size,)), m.temp((found.out_size,))
    for part in found.parts:
        m.call("copy", source, inputs, *part.into, 4)
        given, made = m.part(inputs, part.x_shape, part.x_start), m.part(results, part.out_shape, part.out_start)
        m.call("winograd", given, packed, made, part.pads, True, True, None, act)
        m.call("copy", results, result, *part.back, 4)
    if not out_last:
        n, c, *space = out.shape
        m.call("transpose", result, m.view(out, (n, c, math.prod(space))))
