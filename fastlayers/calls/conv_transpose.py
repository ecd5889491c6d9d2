"""Transposed convolution: its kernel calls. A depthwise one is made of ordinary depthwise ones, where its phases are.

Outputs p with the same (p + before) mod stride form one phase: they take the same taps t, those with t * dilation = p + before
(mod stride), from neighbouring inputs (p + before - t * dilation) / stride. So each phase is a depthwise convolution of stride 1
with a part of the taps in reverse, by ascending input, as `conv_transpose` adds them: results are equal bit for bit. The phases
are computed one after the other, then interleaved. `conv_transpose` itself makes of each group a product of one column, which
leaves most of a panel empty: 4x4 with stride 2 on 64 channels of 28x28 takes a third of the time this way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from .._tuples import NamedTuple
from ..kernels.table import Activation
from .conv_choice import forced
from .geometry import Copy, Window, five
from .machine import Machine

__all__ = ["Part", "Phases", "call", "phases", "planned"]

# Results of fewer values than this gain less than the calls of several kernels cost.
_FEWEST = 1 << 13
# More phases than this are not enumerated; the kernel refuses them.
_MOST = 1 << 16
Key = tuple[int, int]


class Part(NamedTuple):
    """One depthwise convolution: its weights' key, its padding (below 0 after x where its end is not read), and its result:
    where it begins in scratch, and its shape.
    """

    key: Key
    pads: tuple[int, ...]
    start: int
    shape: tuple[int, ...]


class Phases(NamedTuple):
    """The weights of the phases of one kernel, by the residues of p + before along h and w."""

    taps: tuple[tuple[tuple[int, ...], ...], ...]  # for h and w, for each residue: the taps, by ascending input
    first: tuple[tuple[int, ...], ...]  # the first input of a residue's output number 0
    stride: tuple[int, int]
    dilation: tuple[int, int]  # between the inputs of neighbouring taps of a phase

    def weights(self, weight: np.ndarray, key: Key) -> np.ndarray:
        """Weights (c * m, 1, 1, kh, kw) of one phase, of all (c, m, 1, kh, kw)."""
        part = weight[:, :, :, list(self.taps[0][key[0]])][..., list(self.taps[1][key[1]])]
        return np.ascontiguousarray(part.reshape(-1, 1, 1, *part.shape[3:]))

    def plan(
        self, x: Sequence[int], out: Sequence[int], pads: Sequence[int], last: bool
    ) -> tuple[list[Part], list[Copy], int] | None:
        """The convolutions, the copies and the size of the scratch for shapes of five axes in one layout.

        With a stride of 1 there are no copies: the one convolution gives the result. None: `conv_transpose` is to do it.
        """
        n, c, space = out[0], out[-1] if last else out[1], out[1:-1] if last else out[2:]
        sizes = x[1:-1] if last else x[2:]
        if n * c * space[0] * space[1] * space[2] < _FEWEST or sizes[0] != 1 or space[0] != 1 or pads[0] or 0 in sizes:
            return None
        (_, x_high, x_wide), (_, height, width), (sh, sw), along = sizes, space, self.stride, _along(self, pads[2], pads[4])
        if along is None or height < sh or width < sw:
            return None
        rows, columns = along
        parts, start, entries = [], 0, n * c
        for i, (key_h, above, below) in enumerate(rows):
            high = (height - i + sh - 1) // sh
            below += high - x_high
            for j, (key_w, left, right) in enumerate(columns):
                wide = (width - j + sw - 1) // sw
                shape = (n, 1, high, wide, c) if last else (n, c, 1, high, wide)
                parts.append(Part((key_h, key_w), (0, 0, above, below, left, right + wide - x_wide), start, shape))
                start += entries * high * wide
        return parts, ([] if len(parts) == 1 else self._copies(parts, space, last)), start

    def _copies(self, parts: list[Part], space: Sequence[int], last: bool) -> list[Copy]:
        (sh, sw), (height, width) = self.stride, space[1:]
        n, c = parts[0].shape[0], parts[0].shape[-1 if last else 1]
        if height % sh or width % sw:  # phases of different sizes
            return [self._copy(part, (i // sw, i % sw), (height, width), last) for i, part in enumerate(parts)]
        high, wide = height // sh, width // sw
        one = n * c * high * wide
        if last:
            sizes = (sh, n, high, wide, sw, c)
            return [Copy(sizes, 0, (sw * one, high * wide * c, wide * c, c, one, 1), 0,
                         (width * c, height * width * c, sh * width * c, sw * c, c, 1))]  # fmt: skip
        return [Copy((sh, n * c, high, wide, sw), 0, (sw * one, high * wide, wide, 1, one), 0,
                     (width, height * width, sh * width, sw, 1))]  # fmt: skip

    def _copy(self, part: Part, place: Key, size: tuple[int, int], last: bool) -> Copy:
        (sh, sw), (height, width) = self.stride, size
        if last:
            n, _, high, wide, c = part.shape
            along = (height * width * c, sh * width * c, sw * c, 1)
            return Copy(
                (n, high, wide, c), part.start, (high * wide * c, wide * c, c, 1), (place[0] * width + place[1]) * c, along
            )
        n, c, _, high, wide = part.shape
        to = (height * width, sh * width, sw)
        return Copy((n * c, high, wide), part.start, (high * wide, wide, 1), place[0] * width + place[1], to)


@lru_cache(256)
def _along(p: Phases, *before: int) -> list[list[tuple[int, int, int]]] | None:
    """For h and w, for each of the first outputs: the residue of its phase, the padding before, and that behind less the input's
    size and with the phase's number of outputs to be added; `before` as many outputs are cropped. None: a phase begins later.
    """
    found: list[list[tuple[int, int, int]]] = []
    for stride, first, taps, step, cropped in zip(p.stride, p.first, p.taps, p.dilation, before, strict=True):
        found.append([])
        for at in range(cropped, cropped + stride):
            key = at % stride
            start = first[key] + at // stride
            if start > 0:
                return None
            found[-1].append((key, -start, start + step * (len(taps[key]) - 1)))
    return found


@lru_cache(256)  # functions ask in every call
def phases(
    kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...], channels: int, groups: int
) -> Phases | None:
    """The phases of kernels (kd, kh, kw), or None where they are not for depthwise convolutions of a plane, or one has no tap."""
    if math.prod(stride) > _MOST or groups != channels or groups < 2 or kernel[0] != 1 or stride[0] != 1:
        return None
    taps: list[tuple[tuple[int, ...], ...]] = []
    first: list[tuple[int, ...]] = []
    for k, s, d in zip(kernel[1:], stride[1:], dilation[1:], strict=True):
        mine = [tuple(t for t in range(k - 1, -1, -1) if (t * d - residue) % s == 0) for residue in range(s)]
        if not all(mine):
            return None
        taps.append(tuple(mine))
        first.append(tuple((residue - some[0] * d) // s for residue, some in enumerate(mine)))
    steps = [int(d // np.gcd(d, s)) for s, d in zip(stride[1:], dilation[1:], strict=True)]
    return Phases(tuple(taps), tuple(first), (int(stride[1]), int(stride[2])), (steps[0], steps[1]))


@lru_cache(256)
def _settled(window: Window, channels: int, groups: int) -> tuple[Any, Any, Any, Any, Phases | None]:
    """Taps, stride, dilation and pads of a window in three axes, and the phases."""
    taps, stride, dilation, pads = window.in_three()
    return taps, stride, dilation, pads, phases(taps, stride, dilation, channels, groups)


def planned(
    window: Window, groups: int, x_last: bool, out_last: bool, x: Sequence[int], channels: int, out: Sequence[int]
) -> tuple[list[Part], list[Copy], int] | None:
    """The phases of a call, as `Phases.plan` has them, for shapes of five axes; None: `conv_transpose` is to do it."""
    _, _, _, pads, found = _settled(window, channels, groups)
    return None if found is None or x_last != out_last or forced() == 0 else found.plan(x, out, pads, x_last)


def call(
    m: Machine,
    window: Window,
    groups: int,
    x_last: bool,
    out_last: bool,
    x: Any,
    weight: np.ndarray,
    bias: np.ndarray | None,
    out: Any,
    act: Activation,
) -> None:
    """The kernel calls of a transposed convolution; x and out may be without a batch. The window's pads are what is cropped."""
    axes = len(window.kernel)
    x, out = m.view(x, five(x.shape, x_last, axes)), m.view(out, five(out.shape, out_last, axes))
    taps, stride, dilation, pads, found = _settled(window, weight.shape[0], groups)
    plan = planned(window, groups, x_last, out_last, x.shape, weight.shape[0], out.shape)
    if found is None or plan is None:
        packed = m.pack("conv_transpose_pack", lambda: (weight.reshape(*weight.shape[:2], *taps), bias, stride, dilation, groups))
        m.call("conv_transpose", x, packed, out, pads, x_last, out_last, act)
        return
    parts, copies, size = plan
    key: Key = (0, 0)

    def made() -> tuple[Any, ...]:
        return _arguments(found, key, weight, bias)

    run, _, _, part, pack = m
    scratch = m.temp((size,)) if copies else m.view(out, (size,))
    for key, around, start, shape in parts:
        packed = pack("depthwise_pack", made, key)
        run("depthwise", x, packed, part(scratch, shape, start), around, 0, x_last, None, act)
    for copy in copies:
        run("copy", scratch, out, *copy, 4)


def _arguments(found: Phases, key: Key, weight: np.ndarray, bias: np.ndarray | None) -> tuple[Any, ...]:
    """Arguments of `depthwise_pack` for one phase."""
    weight = weight.reshape(*weight.shape[:2], *(1,) * (5 - weight.ndim), *weight.shape[2:])
    return found.weights(weight, key), bias, (1, 1, 1), (1, *found.dilation), weight.shape[0]
