"""Transposed convolution: an ordinary convolution with stride 1 for each phase of the stride, as `aot/conv_transpose.pyx`
explains."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..table import PAD_MODES, Activation
from ._tile import panels_of
from .activation import unary
from .conv import Packed as Convolution
from .conv import conv_pack, execute
from .depthwise import Packed as Filters
from .depthwise import depthwise, depthwise_pack

__all__ = ["conv_transpose", "conv_transpose_pack"]


class Phase(NamedTuple):
    """The outputs p of the full result with the same p mod stride: p = q * stride + remainder reads inputs from q + first on.

    Where all phases along w read the same inputs, they are made at once (`merged`): their channels lie side by side in a product.
    """

    remainder: tuple[int, ...]
    first: tuple[int, ...]
    weights: Convolution | Filters | None  # None: no tap reaches them


class Packed(NamedTuple):
    """A convolution for every phase, and the bias or zeros."""

    phases: tuple[Phase, ...]
    bias: np.ndarray
    stride: tuple[int, ...]
    merged: bool


def conv_transpose_pack(
    weight__iodhw: np.ndarray, bias__o: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Packed:
    """Weights (c, o / groups, kd, kh, kw) of a transposed convolution with its stride, dilation and groups."""
    c, og, *kernel = weight__iodhw.shape
    # As a convolution has them: (o, c / groups, ...)
    grouped = weight__iodhw.reshape(groups, c // max(groups, 1), og, *kernel).swapaxes(1, 2)
    weight = grouped.reshape(groups * og, c // max(groups, 1), *kernel)
    bias = np.zeros(groups * og, np.float32) if bias__o is None else bias__o.copy()
    steps = tuple(d // math.gcd(s, d) for s, d in zip(stride, dilation, strict=True))
    alone = groups > 1 and c == groups and og == 1  # a filter a channel

    def taps_of(axis: int, remainder: int) -> list[int]:
        # Those that read earlier inputs first: the last ones.
        return [t for t in reversed(range(kernel[axis])) if t * dilation[axis] % stride[axis] == remainder]

    def pack(part: np.ndarray, biases: np.ndarray) -> Convolution | Filters:
        if alone:
            return depthwise_pack(part, biases, (1, 1, 1), steps, groups)
        return conv_pack(part, biases, (1, 1, 1), steps, groups)

    columns = [taps_of(2, r) for r in range(stride[2])]
    same = {(len(taps), taps[0] * dilation[2] // stride[2]) if taps else (0, 0) for taps in columns}
    merged = groups == 1 and stride[2] > 1 and len(same) == 1 and panels_of(stride[2] * og) < stride[2] * panels_of(og)
    phases = []
    for remainder in itertools.product(range(stride[0]), range(stride[1]), range(1 if merged else stride[2])):
        taps = [taps_of(axis, r) for axis, r in enumerate(remainder)]
        if not all(taps):
            phases.append(Phase(remainder, (0, 0, 0), None))
            continue
        first = tuple(-(t[0] * d // s) for t, s, d in zip(taps, stride, dilation, strict=True))
        part = weight[:, :, taps[0]][:, :, :, taps[1]]
        if merged:  # channels (phase, o)
            whole = np.concatenate([part[:, :, :, :, along] for along in columns])
            phases.append(Phase(remainder, first, pack(whole, np.tile(bias, stride[2]))))
        else:
            phases.append(Phase(remainder, first, pack(part[:, :, :, :, taps[2]], bias)))
    return Packed(tuple(phases), bias, tuple(stride), merged)


def conv_transpose(
    x: np.ndarray,
    packed: Packed,
    out: np.ndarray,
    pads: Sequence[int],
    x_last: bool,
    out_last: bool,
    activation: Activation,
) -> None:
    """Transposed convolution with its epilogue. See README.md for the shapes."""
    if not out.size:
        return
    size, to = x.shape[1:4] if x_last else x.shape[2:], out.shape[1:4] if out_last else out.shape[2:]
    for phase in packed.phases:
        if packed.merged:
            _merged(x, packed, phase, out, size, to, pads, x_last, out_last, activation)
            continue
        starts = [-((r - b) // s) for r, b, s in zip(phase.remainder, pads[::2], packed.stride, strict=True)]  # of q
        begins = [q * s + r - b for q, s, r, b in zip(starts, packed.stride, phase.remainder, pads[::2], strict=True)]
        count = tuple(len(range(b, n, s)) for b, n, s in zip(begins, to, packed.stride, strict=True))
        if 0 in count:
            continue
        axes = tuple(slice(b, None, s) for b, s in zip(begins, packed.stride, strict=True))
        places = (slice(None), *axes) if out_last else (slice(None), slice(None), *axes)
        shape = (len(out), *count, out.shape[4]) if out_last else (*out.shape[:2], *count)
        whole = shape == out.shape
        part = out if whole else np.empty(shape, np.float32)
        before = [-(q + f) for q, f in zip(starts, phase.first, strict=True)]
        if phase.weights is None:
            part[...] = packed.bias if out_last else packed.bias[:, None, None, None]
            unary(part, part, activation)
        elif isinstance(phase.weights, Filters):
            given = x
            if x_last != out_last:
                given = np.ascontiguousarray(np.moveaxis(x, -1, 1) if x_last else np.moveaxis(x, 1, -1))
            around = tuple(n for b in before for n in (b, 1))  # what lies behind x is read as zeros, however much it is
            depthwise(given, phase.weights, part, around, PAD_MODES["zeros"], out_last, None, activation)
        else:
            execute(x, phase.weights, part, size, count, before, x_last, out_last, False, None, activation)
        if not whole:
            out[places] = part


def _merged(
    x: np.ndarray,
    packed: Packed,
    phase: Phase,
    out: np.ndarray,
    size: Sequence[int],
    to: Sequence[int],
    pads: Sequence[int],
    x_last: bool,
    out_last: bool,
    activation: Activation,
) -> None:
    """All phases along w at once: q of the columns goes from the first that has an output to the last."""
    s = packed.stride[2]
    starts = [-((r - b) // n) for r, b, n in zip(phase.remainder[:2], pads[:4:2], packed.stride[:2], strict=True)]
    begins = [q * n + r - b for q, n, r, b in zip(starts, packed.stride[:2], phase.remainder[:2], pads[:4:2], strict=True)]
    count = [len(range(b, n, t)) for b, n, t in zip(begins, to[:2], packed.stride[:2], strict=True)]
    first, last = pads[4] // s, (pads[4] + to[2] - 1) // s
    count.append(last + 1 - first)
    if 0 in count:
        return
    channels = out.shape[4] if out_last else out.shape[1]
    part = np.empty((len(out), *count, s * channels), np.float32)
    if phase.weights is None:
        part[...] = np.tile(packed.bias, s)
        unary(part, part, activation)
    else:
        assert isinstance(phase.weights, Convolution)
        before = [-(q + f) for q, f in zip([*starts, first], phase.first, strict=True)]
        execute(x, phase.weights, part, size, count, before, x_last, True, False, None, activation)
    # (..., q, phase, o): neighbouring phases are neighbouring columns
    skipped = pads[4] - first * s
    columns = part.reshape(len(out), *count[:2], count[2] * s, channels)[:, :, :, skipped : skipped + to[2]]
    axes = tuple(slice(b, None, t) for b, t in zip(begins, packed.stride[:2], strict=True))
    places = (slice(None), *axes) if out_last else (slice(None), slice(None), *axes)
    out[places] = columns if out_last else np.moveaxis(columns, -1, 1)
