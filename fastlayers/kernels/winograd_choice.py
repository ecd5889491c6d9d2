"""Which algorithm a 3x3 convolution should run: the direct one, or Winograd's with tiles of 2 or 4. A cost model alone."""

from __future__ import annotations

__all__ = ["choose"]

# Nanoseconds, fitted to the times of 420 convolutions (2x2 to 112x112 pixels, 3 to 512 channels, 1 and 8 images, channels-first),
# each run directly and with both tiles in turn on one core with AVX-512, the least of some dozens. Where vectors are narrower all
# that is computed takes longer by about the same factor.
_CALL = 200.0  # what a call of `winograd` takes more
_DIRECT = 0.0133  # a multiply-add of the direct convolution, outputs rounded up to panels,
_PIXEL = 0.28  # and each of its inputs and outputs
_PRODUCT = 0.0145  # a multiply-add of the product of transformed tiles,
_INTO, _OUT = 0.21, 0.145  # and each of its inputs and outputs, with their transforms
# A weight that is read, from a near cache or, where there are more of them than it holds (1 MB), from further away: 27 GB/s.
_NEAR, _FAR, _REACH = 0.03, 0.15, 2**18
_PANEL = 16
# Fewer channels than this leave the product's sums too short, and the direct convolution has a way of its own for them.
_FEWEST = 8
# Winograd must be expected to be faster by this factor: its weights take 1.8 or 4 times the memory, and its errors are greater.
_GAIN = 1.15


def choose(x_shape_hw: tuple[int, int], channels_in: int, channels_out: int, batch: int) -> int:
    """The side of the tiles that `winograd` should work with, 2 or 4, or 0 where `conv` is expected to be as fast.

    Args:
        x_shape_hw: height and width of the output, which with the usual padding of 1 are those of the input.
        channels_in, channels_out: of a convolution 3x3 with stride, dilation and groups of 1.
        batch: number of images.
    """
    if channels_in < _FEWEST or min(*x_shape_hw, channels_out, batch) < 1:
        return 0
    times = {tile: _GAIN * _winograd(x_shape_hw, channels_in, channels_out, batch, tile) for tile in (2, 4)}
    best = min(times, key=times.__getitem__)
    return best if times[best] < _direct(x_shape_hw, channels_in, channels_out, batch) else 0


def _direct(size: tuple[int, int], c: int, o: int, batch: int) -> float:
    pixels, weights = batch * size[0] * size[1], 9 * c * _whole(o)
    return _with_weights(_DIRECT * pixels * weights, weights) + _PIXEL * pixels * (c + o)


def _winograd(size: tuple[int, int], c: int, o: int, batch: int, tile: int) -> float:
    positions = (tile + 2) ** 2
    numbers = batch * -(-size[0] // tile) * -(-size[1] // tile) * positions
    weights = c * _whole(o)
    transforms = numbers * (_INTO * _whole(c) + _OUT * _whole(o))
    return _CALL + _with_weights(_PRODUCT * numbers * weights, positions * weights) + transforms


def _with_weights(product: float, weights: int) -> float:
    """The time of a product with that of reading its weights, of which the product hides as much as half its own."""
    return product + max(0.0, weights * (_NEAR if weights <= _REACH else _FAR) - product / 2)


def _whole(channels: int) -> int:
    return -(-channels // _PANEL) * _PANEL
