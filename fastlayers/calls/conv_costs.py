"""Chooses the algorithm of a convolution: the direct one, or Winograd's with tiles of 2, 4 or 6. A cost model alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from ..kernels.winograd_points import kinds, sides, terms_of, tiles_of

__all__ = ["PANEL", "choose", "choose_phases", "expected", "half_pays"]

# Nanoseconds, fitted to the times of 420 convolutions (2x2 to 112x112 pixels, 3 to 512 channels, 1 and 8 images, channels-first),
# each run directly and with both tiles in turn on one core with AVX-512, the least of some dozens. Where vectors are narrower all
# that is computed takes longer by about the same factor.
_CALL = 200.0  # what a call of `winograd` takes more
_DIRECT = 0.0133  # a multiply-add of the direct convolution, outputs rounded up to panels,
_ALONG, _ALONG_TOO = 1.1, 2.2  # or so many more outputs than there are, where these are few and vectors are along pixels,
_PIXEL = 0.28  # and each of its inputs and outputs
_HALF, _HALF_PIXEL = 0.0068, 0.2  # the same of a direct convolution that multiplies bfloat16
# Groups of so many channels go sixteen channels at a time; the least part of their lanes and columns that must count.
_MIXED = {4: 0.75, 8: 0.92}
_PRODUCT = 0.0145  # a multiply-add of the product of transformed tiles,
_INTO, _OUT = 0.21, 0.145  # and each of its inputs and outputs, with their transforms along two axes
_INTO_LINE, _OUT_LINE = 0.21, 0.145  # or one
# Slices are brought in so many times where they are terms of products: blocks have their neighbours too.
_AGAIN = 1.2
# A weight that is read, from a near cache or, where there are more of them than it holds (1 MB), from further away: 27 GB/s.
_NEAR, _FAR, _REACH = 0.03, 0.15, 2**18
PANEL = 16  # columns of packed weights
# Fewer channels than this leave the product's sums too short, and the direct convolution has a way of its own for them.
_FEWEST = 8
# Where weights are packed for one call, what a call takes more, what packing a weight takes for each of its positions, and what
# the direct convolution's packing takes for each of its taps, which is left out then (measured, 16 to 256 channels).
_PACK_CALL, _PACK, _REORDER = 3000.0, 1.12, 0.4
# A dilated convolution's phases: three calls of kernels for each part, and each value that is moved, and transposed.
_PART = 1000.0
_MOVE, _TURN = 0.2, 0.15
# Winograd must be expected to be faster by this factor: its weights take 1.8 or 4 times the memory, and its errors are greater.
# Weights that are packed for one call are in memory no longer than that, and further calls with them gain more (eager-plans).
_GAIN, _GAIN_ONCE = 1.15, 0.95
# With a stride of 2 they take 4 times the memory and gain less: from so many pairs of channels on.
_GAIN_STRIDED, _STRIDED_PAIRS = 1.18, 2**15


@lru_cache(1024)  # layers of a network are alike, and each asks whenever it is bound
def choose(
    out_shape_dhw: tuple[int, int, int],
    channels_in: int,
    channels_out: int,
    kernel: tuple[int, ...] = (1, 3, 3),
    groups: int = 1,
    packs: bool = False,
    stride: tuple[int, ...] = (1, 1, 1),
) -> int:
    """The side of the tiles that `winograd` should work with, or 0 where `conv` is expected to be as fast.

    It depends on one sample alone: the algorithms differ in the last bits, and a sample has the same bits in every batch.

    Args:
        out_shape_dhw: depth, height and width of the output; those along which the kernel has taps are about the input's over the
            stride.
        channels_in, channels_out: of a convolution with a dilation of 1.
        kernel: taps along depth, height and width.
        packs: whether weights are packed for this one call, the time of which then counts.
    """
    c, o = channels_in // max(groups, 1), channels_out // max(groups, 1)
    if c < _FEWEST or min(*out_shape_dhw, o) < 1:
        return 0
    gain = _GAIN_ONCE if packs else _GAIN_STRIDED if max(stride[1:]) > 1 and c * o >= _STRIDED_PAIRS else _GAIN
    times = {
        tile: gain * _winograd(out_shape_dhw, c, o, kernel, tile, groups, stride)
        + (_packing(kernel, tile, c * o, stride) if packs else 0)
        for tile in tiles_of(kernel, stride)
    }
    best = min(times, key=times.__getitem__, default=0)
    return best if best and times[best] < _direct(out_shape_dhw, c, o, kernel, groups, stride) else 0


def expected(
    space: tuple[int, int, int], i: int, o: int, kernel: tuple[int, ...], groups: int, stride: tuple[int, ...]
) -> tuple[int, float]:
    """The best tiles of `winograd` and its expected time divided by the direct one's; 0 where it has no tiles."""
    i, o = i // max(groups, 1), o // max(groups, 1)
    if i < _FEWEST or min(*space, o) < 1:
        return 0, 1.0
    times = {tile: _winograd(space, i, o, kernel, tile, groups, stride) for tile in tiles_of(kernel, stride)}
    best = min(times, key=times.__getitem__, default=0)
    return best, times[best] / _direct(space, i, o, kernel, groups, stride) if best else 1.0


def half_pays(
    out_shape_dhw: tuple[int, int, int],
    weight: Sequence[int],
    groups: int,
    dilation: Sequence[int],
    turned: int,
    tile: int,
    stride: tuple[int, ...] = (1, 1, 1),
) -> bool:
    """Whether a direct convolution that multiplies bfloat16 is expected to be faster than float32's direct or Winograd's one.

    Args:
        weight: shape ``(o, i / groups, kd, kh, kw)``.
        turned: how many of input and result have their channels transposed to the end, and back, for it.
        tile: what `choose` found.
    """
    o, c, kernel, taps = weight[0] // max(groups, 1), weight[1], tuple(weight[2:]), math.prod(weight[2:])
    if groups > 1 and o == c in _MIXED and kernel[0] == 1 and not turned:
        columns, least = out_shape_dhw[2], _MIXED[c]
        whole = _whole(weight[0]) * min(-(-columns // 7) * 7, -(-columns // 8) * 8)
        return out_shape_dhw[0] == 1 and weight[0] * columns >= least * whole
    if o < PANEL or c * taps < (4 if taps > 1 else 2) * PANEL or (groups > 1 and c < PANEL):
        return False  # bound by reading and writing pixels
    if any((k - 1) * d > size for k, d, size in zip(kernel, dilation, out_shape_dhw, strict=True)):
        return False  # most taps are in the padding, which the direct convolution leaves out
    pixels, weights = math.prod(out_shape_dhw), taps * c * _whole(o)
    time = _with_weights(_HALF * pixels * weights, weights / 2, groups) + (_HALF_PIXEL + _TURN * turned / 2) * pixels * (c + o)
    if tile:
        return time < _winograd(out_shape_dhw, c, o, kernel, tile, groups, stride)
    return time < _direct(out_shape_dhw, c, o, kernel, groups, stride)


def choose_phases(
    volumes: Sequence[tuple[int, int, int]],
    share: float,
    out_shape_dhw: tuple[int, int, int],
    channels_in: int,
    channels_out: int,
    kernel: tuple[int, ...],
    groups: int,
    turned: int,
    packs: bool = False,
) -> int:
    """`choose` for a dilated convolution that would be made of others without dilation, over `volumes`, all with one tile.

    Args:
        share: of the taps of all outputs, those that are not in the padding: the direct convolution leaves out the others.
        turned: how many of input and result have their channels transposed to the end, and back, for it.
    """
    c, o = channels_in // max(groups, 1), channels_out // max(groups, 1)
    if c < _FEWEST or min(*out_shape_dhw, o) < 1:
        return 0
    values = math.prod(out_shape_dhw) * (c + o)
    times = {
        tile: sum(_GAIN * _winograd(volume, c, o, kernel, tile, groups) + _PART for volume in volumes)
        + _MOVE * values + _TURN * values * turned / 2
        + (_packing(kernel, tile, c * o) if packs else 0)
        for tile in tiles_of(kernel)
    }  # fmt: skip
    best = min(times, key=times.__getitem__)
    return best if times[best] < share * _direct(out_shape_dhw, c, o, kernel, groups) else 0


def _packing(kernel: tuple[int, ...], tile: int, pairs: int, stride: tuple[int, ...] = (1, 1, 1)) -> float:
    """Additional cost of packing weights between so many pairs of channels for tiles."""
    return _PACK_CALL + pairs * (_PACK * terms_of(kernel) * math.prod(kinds(kernel, tile, stride)) - _REORDER * math.prod(kernel))


@lru_cache(256)
def _deep(depth: int, kernel: tuple[int, ...], step: int = 1) -> tuple[float, int]:
    """Average number of taps, as terms of products, of a slice, and the number that any slice has: those in the padding are
    left out. The direct convolution does so too.
    """
    taps = terms_of(kernel)
    away = [
        -(-max(taps // 2 - tap, tap - taps // 2 - step + 1) // step) for tap in range(taps)
    ]  # slices whose tap is in the padding
    slices = [depth - max(n, 0) for n in away if n < depth]
    return sum(slices) / depth, len(slices)


def _direct(
    size: tuple[int, int, int], c: int, o: int, kernel: tuple[int, ...], groups: int = 1, stride: tuple[int, ...] = (1, 1, 1)
) -> float:
    mean, all_ = _deep(size[0], kernel, stride[0])
    pixels, weights = math.prod(size), math.prod(kernel) // terms_of(kernel) * c * min(_whole(o), _ALONG * (o + _ALONG_TOO))
    return _with_weights(_DIRECT * pixels * mean * weights, all_ * weights, groups) + _PIXEL * pixels * (
        math.prod(stride) * c + o
    )


def _winograd(
    size: tuple[int, int, int],
    c: int,
    o: int,
    kernel: tuple[int, ...],
    tile: int,
    groups: int = 1,
    stride: tuple[int, ...] = (1, 1, 1),
) -> float:
    positions, terms = sides(kernel, tile, stride), terms_of(kernel)
    along = kernel[0] // terms, *kernel[1:]  # taps that make tiles
    tiles = math.prod(-(-n // tile) if taps > 1 else n for n, taps in zip(size, along, strict=True))
    line, again = 1 in positions, _AGAIN if terms > 1 and size[0] > 1 else 1.0
    mean, all_ = _deep(size[0], kernel, stride[0])
    values, weights = tiles * math.prod(positions), c * _whole(o)
    transforms = values * (
        (_INTO_LINE if line else _INTO) * again * stride[0] * _whole(c) + (_OUT_LINE if line else _OUT) * _whole(o)
    )
    return (
        _CALL
        + _with_weights(_PRODUCT * values * mean * weights, math.prod(kinds(kernel, tile, stride)) * all_ * weights, groups)
        + transforms
    )


def _with_weights(product: float, weights: float, groups: int) -> float:
    """The time of a group's product with that of reading its weights, of which the product hides as much as half its own. Where
    they are is a matter of those of all groups.
    """
    return product + max(0.0, weights * (_NEAR if weights * groups <= _REACH else _FAR) - product / 2)


def _whole(channels: int) -> int:
    return -(-channels // PANEL) * PANEL
