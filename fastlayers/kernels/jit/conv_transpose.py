"""Transposed convolution: an ordinary convolution with stride 1 for each phase of the stride, as `aot/conv_transpose.pyx`
explains."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..table import Activation
from .activation import unary
from .conv import Packed as Convolution
from .conv import conv_pack, execute

__all__ = ["conv_transpose", "conv_transpose_pack"]


class Phase(NamedTuple):
    """The outputs p of the full result with the same p mod stride: p = q * stride + remainder reads inputs from q + first on."""

    remainder: tuple[int, ...]
    first: tuple[int, ...]
    weights: Convolution | None  # None: no tap reaches them


class Packed(NamedTuple):
    """A convolution for every phase, and the bias or zeros."""

    phases: tuple[Phase, ...]
    bias: np.ndarray
    stride: tuple[int, ...]


def conv_transpose_pack(
    weight__iodhw: np.ndarray, bias__o: np.ndarray | None, stride: Sequence[int], dilation: Sequence[int], groups: int
) -> Packed:
    """Weights (c, o / groups, kd, kh, kw) of a transposed convolution with its stride, dilation and groups."""
    c, og, *kernel = weight__iodhw.shape
    # As a convolution has them: (o, c / groups, ...)
    grouped = weight__iodhw.reshape(groups, c // max(groups, 1), og, *kernel).swapaxes(1, 2)
    weight = grouped.reshape(groups * og, c // max(groups, 1), *kernel)
    steps = tuple(d // math.gcd(s, d) for s, d in zip(stride, dilation, strict=True))
    phases = []
    for remainder in itertools.product(*map(range, stride)):
        # The taps of this phase, those that read earlier inputs first: the last ones.
        taps = [
            [t for t in reversed(range(k)) if t * d % s == r]
            for k, s, d, r in zip(kernel, stride, dilation, remainder, strict=True)
        ]
        if not all(taps):
            phases.append(Phase(remainder, (0, 0, 0), None))
            continue
        first = tuple(-(t[0] * d // s) for t, s, d in zip(taps, stride, dilation, strict=True))
        part = weight[:, :, taps[0]][:, :, :, taps[1]][:, :, :, :, taps[2]]
        phases.append(Phase(remainder, first, conv_pack(part, bias__o, (1, 1, 1), steps, groups)))
    bias = np.zeros(groups * og, np.float32) if bias__o is None else bias__o.copy()
    return Packed(tuple(phases), bias, tuple(stride))


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
    space = slice(1, 4) if out_last else slice(2, 5)
    size, to = x.shape[1:4] if x_last else x.shape[2:], out.shape[space]
    for phase in packed.phases:
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
        if phase.weights is None:
            part[...] = packed.bias if out_last else packed.bias[:, None, None, None]
            unary(part, part, activation)
        else:
            before = [-(q + f) for q, f in zip(starts, phase.first, strict=True)]
            execute(x, phase.weights, part, size, count, before, x_last, out_last, False, None, activation)
        if not whole:
            out[places] = part
