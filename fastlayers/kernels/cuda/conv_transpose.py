"""Transposed convolutions as products of gathered pixels, phase by phase, all in one launch.

Outputs p with the same (p + before) mod stride form a phase: the same taps t reach them, those with t * dilation = p + before
(mod stride), from neighbouring inputs (p + before - t * dilation) / stride. So a phase is a convolution of stride 1 with a part
of the taps, in reverse: by ascending input, as the contract says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...errors import LimitError
from ..fits import fits, fits_taps
from ..table import PAD_MODES, Activation
from ._cuda import stream_pointer
from ._device import Array, on_device, upload
from ._places import Places
from ._product import Layout, Plan, multiply, plan
from ._window import sizes_of
from .conv import MOST_TAPS, Ints, Packed, aligned, padded, steps, table_of
from .gemm import columns_of

__all__ = ["conv_transpose", "conv_transpose_pack"]

_MOST_PHASES = 1 << 16


def _taps(kernel: int, stride: int, dilation: int, residue: int) -> Ints:
    """The taps of an axis that reach outputs of a residue, by ascending input."""
    return tuple(t for t in range(kernel - 1, -1, -1) if (t * dilation - residue) % stride == 0)


@lru_cache(256)
def _residues(kernel: Ints, stride: Ints, dilation: Ints) -> tuple[tuple[Ints, ...], ...]:
    """For each axis the taps of every residue."""
    return tuple(tuple(_taps(k, s, d, residue) for residue in range(s)) for k, s, d in zip(kernel, stride, dilation, strict=True))


@lru_cache(256)
def _starts(kernel: Ints, stride: Ints, dilation: Ints, channels: int) -> tuple[dict[Ints, int], int]:
    """The first row of the weights of each residue in a group, and the number of rows."""
    at, found = 0, {}
    residues = _residues(kernel, stride, dilation)
    for key in itertools.product(*map(range, stride)):
        found[key] = at
        at += math.prod(len(residues[axis][r]) for axis, r in enumerate(key)) * channels
    return found, at


def conv_transpose_pack(
    weight: np.ndarray, bias: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Packed:
    """Packs weight (c, o / groups, kd, kh, kw) and bias (o,) or None; stride and dilation are (d, h, w)."""
    if math.prod(stride) > _MOST_PHASES:
        raise LimitError(
            f"conv_transpose: stride is {tuple(stride)}: expected a product of at most {_MOST_PHASES}, its number of phases"
        )
    known = (groups * weight.shape[1],) if weight.ndim > 1 else (0,)
    fits_taps("conv_transpose_pack", (weight, bias), stride, dilation, groups, known)
    c, columns, *kernel = weight.shape
    groups, channels = max(groups, 1), c // max(groups, 1)
    taps_first = weight.reshape(groups, channels, columns, *kernel).transpose(0, 3, 4, 5, 1, 2)
    key = tuple(kernel), tuple(stride), tuple(dilation)
    residues, (starts, rows) = _residues(*key), _starts(*key, channels)
    packed = np.empty((groups, rows, columns), np.float32)
    for residue, start in starts.items():
        taken = [residues[axis][r] for axis, r in enumerate(residue)]
        if all(taken):
            part = taps_first[:, list(taken[0])][:, :, list(taken[1])][:, :, :, list(taken[2])]
            part = part.reshape(groups, math.prod(map(len, taken)) * channels, columns)
            packed[:, start : start + part.shape[1]] = part
    whole = np.stack([columns_of(w) for w in packed])
    return Packed(upload(whole), None if bias is None else upload(bias), *key, groups, channels, columns)


class _Axis(NamedTuple):
    """One phase of an axis: its first output, how many there are, their residue, the first input, the step between taps."""

    place: int
    outputs: int
    residue: int
    begin: int
    apart: int


def _axis(taps: tuple[Ints, ...], stride: int, dilation: int, before: int, space: int) -> list[_Axis]:
    found = []
    for place in range(min(stride, space)):
        residue = (place + before) % stride
        mine = taps[residue]
        begin = (place + before - mine[0] * dilation) // stride if mine else 0
        found.append(_Axis(place, -(-(space - place) // stride), residue, begin, dilation // math.gcd(dilation, stride)))
    return found


def _phases(kernel: Ints, stride: Ints, dilation: Ints, space: Ints, before: Ints) -> list[tuple[_Axis, ...]]:
    residues = _residues(kernel, stride, dilation)
    along = [_axis(*rest) for rest in zip(residues, stride, dilation, before, space, strict=True)]
    return list(itertools.product(*along))


@lru_cache(256)
def _plan(
    x: Ints, out: Ints, before: Ints, kernel: Ints, stride: Ints, dilation: Ints, groups: int, x_last: bool, out_last: bool,
    stored: int, numbered: bool, stream: int,
) -> Plan:  # fmt: skip
    """x and out: n, c, d, h, w; `before`: outputs that are left out, and as many inputs ahead of x as `padded_for` puts there."""
    (n, c, *size), (_, o, *space) = x, out
    channels = c // groups
    (x_steps, channel), (out_steps, _) = steps(size, c, x_last), steps(space, o, out_last)
    residues, (starts, _) = _residues(kernel, stride, dilation), _starts(kernel, stride, dilation, channels)
    found, tables, first = [], [], 0
    for axes in _phases(kernel, stride, dilation, tuple(space), before):
        key = tuple(a.residue for a in axes)
        taps = tuple(len(residues[i][r]) for i, r in enumerate(key))
        apart = tuple(a.apart for a in axes)
        table = table_of(taps, apart, x_steps, channels, channel, numbered)
        line, plane = axes[2].outputs, axes[1].outputs * axes[2].outputs
        image = axes[0].outputs * plane
        to = sum(a.place * step for a, step in zip(axes, out_steps[1:], strict=True))
        found.append(
            Places(
                n * image,
                image,
                plane,
                line,
                math.prod(taps) * channels,
                first,
                starts[key] * stored,
                (1, 1, 1),
                tuple(a.begin for a in axes),
                apart,
                tuple(size),
                taps if numbered else (1, 1, 1),
                x_steps,
                to,
                (out_steps[0], *(step * s for step, s in zip(out_steps[1:], stride, strict=True))),
            )
        )
        tables.append(table)
        first += len(table)
    return plan(found, np.concatenate(tables))


def _margins(packed: Packed, space: Ints, before: Ints, size: Ints) -> Ints:
    """Zeros before and after x, along each axis, with which every tap is in it; the first ones are whole strides of outputs."""
    needed: list[int] = []
    residues = _residues(packed.kernel, packed.stride, packed.dilation)
    for axis in range(3):
        phases = _axis(residues[axis], packed.stride[axis], packed.dilation[axis], before[axis], space[axis])
        ends = [a.begin + (a.outputs - 1) + (max(len(residues[axis][a.residue]), 1) - 1) * a.apart + 1 for a in phases]
        needed += [max(0, -min(a.begin for a in phases)), max(0, max(ends) - size[axis])]
    return tuple(needed)


@on_device
def conv_transpose(
    x: Array, packed: Packed, out: Array, pads: Sequence[int], x_last: bool, out_last: bool, activation: Activation
) -> None:
    """out = activation(transposed convolution of x + bias), the gradient of a cross-correlation as in every framework."""
    fits("conv_transpose", packed.sizes, (x, out), x_last | out_last << 1)
    if not out.size:
        return
    kernel, stride, dilation, groups = packed.kernel, packed.stride, packed.dilation, packed.groups
    before = tuple(pads[::2])
    _, o, *space = sizes_of(out, out_last)
    most = math.prod(max(map(len, taps)) for taps in _residues(kernel, stride, dilation))
    numbered = most <= MOST_TAPS
    if not numbered and x.size:
        margins = _margins(packed, tuple(space), before, sizes_of(x, x_last)[2:])
        x = padded(x, margins, PAD_MODES["zeros"], x_last)
        before = tuple(b + m * s for b, m, s in zip(before, margins[::2], stride, strict=True))
    size = sizes_of(x, x_last)[2:]
    stored, image = packed.weight.shape[2], math.prod(space)
    where = _plan(
        sizes_of(x, x_last), sizes_of(out, out_last), before, kernel, stride, dilation, groups, x_last, out_last, stored,
        numbered or not x.size, stream_pointer(),
    )  # fmt: skip
    column = 1 if out_last else image
    left = "gather4" if x_last and packed.channels % 4 == 0 and x.aligned else "gather"
    neighbours = (o if out_last else image if where.phases == 1 and stride == (1, 1, 1) else 1) % 4 == 0
    wide = neighbours and (groups == 1 or packed.columns % 4 == 0) and aligned(out)
    layout = Layout(
        packed.columns, stored, stored, groups, packed.channels * (1 if x_last else math.prod(size)),
        packed.weight.shape[1] * stored, packed.columns * column, packed.columns, column, not out_last, wide,
    )  # fmt: skip
    multiply(left, "columns4", x.flat, where, packed.weight.flat, packed.bias, None, out, layout, activation)
