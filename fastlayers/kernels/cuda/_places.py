"""Positions of the values of a product: the pixels of a convolution in x and in the result, as kernels of tiles read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ._cuda import device

__all__ = [
    "BELOW", "FIELDS", "FIRST_TERM", "FIRST_WEIGHT", "INVALID", "SHIFT", "STEP", "TERMS", "Places", "first", "origin", "pixel",
    "spell", "valid",
]  # fmt: skip

# An entry of a table of terms: the term's tap above the SHIFT bits of its offset from tap 0, channel 0.
SHIFT = 40
BELOW = (1 << SHIFT) - 1
INVALID = 63  # the tap of a term that is none: no pixel has it
Ints = tuple[int, ...]


class Places(NamedTuple):
    """The parameters of one phase: results that have the same taps. A convolution has one phase, a matrix is a line of pixels."""

    rows: int  # of the product: pixels of all images
    image: int  # pixels of an image, of a plane, of a line
    plane: int
    line: int
    terms: int  # of a sum, the first one in the table, and where the weights begin
    first_term: int
    first_weight: int
    stride: Ints  # in x, between neighbouring pixels (d, h, w)
    begin: Ints  # pixel 0's tap 0 in x
    dilation: Ints
    size: Ints  # of x
    taps: Ints
    x_steps: Ints  # in memory, between images and along d, h, w
    first_out: int
    out_steps: Ints


def spell(places: Sequence[Places]) -> list[int]:
    """The values of `places`, as kernels read them."""
    return [n for place in places for field in place for n in (field if isinstance(field, tuple) else (field,))]


FIELDS = 31
TERMS, FIRST_TERM, FIRST_WEIGHT, STEP = 4, 5, 6, 25
_IMAGE, _PLANE, _LINE, _STRIDE, _BEGIN, _DILATION, _SIZE, _TAPS, _X, _OUT, _OUT_STEPS = 1, 2, 3, 7, 10, 13, 16, 19, 22, 26, 27


@device
def pixel(places: Any, here: int, row: int) -> Any:
    """Image, d, h and w of a row."""
    n, rest = row // places[here + _IMAGE], row % places[here + _IMAGE]
    d, rest = rest // places[here + _PLANE], rest % places[here + _PLANE]
    return n, d, rest // places[here + _LINE], rest % places[here + _LINE]


@device
def _start(places: Any, here: int, axis: int, position: int) -> Any:
    """Offset in x of tap 0 of a position."""
    return position * places[here + _STRIDE + axis] + places[here + _BEGIN + axis]


@device
def origin(places: Any, here: int, n: int, d: int, h: int, w: int) -> Any:
    """Offset of a pixel in the result."""
    o = here + _OUT_STEPS
    return places[here + _OUT] + n * places[o] + d * places[o + 1] + h * places[o + 2] + w * places[o + 3]


@device
def first(places: Any, here: int, n: int, d: int, h: int, w: int) -> Any:
    """Offset in x of a pixel's tap 0, channel 0: before the array, maybe."""
    d, h, w = _start(places, here, 0, d), _start(places, here, 1, h), _start(places, here, 2, w)
    s = here + _X
    return n * places[s] + d * places[s + 1] + h * places[s + 2] + w * places[s + 3]


@device
def valid(places: Any, here: int, d: int, h: int, w: int) -> int:
    """A bit for each tap (kd, kh, kw) of a pixel: does it are in x?"""
    d, h, w = _start(places, here, 0, d), _start(places, here, 1, h), _start(places, here, 2, w)
    line = 0
    for t in range(places[here + _TAPS + 2]):
        if w >= 0 and w < places[here + _SIZE + 2]:
            line |= 1 << t
        w += places[here + _DILATION + 2]
    found, shift = 0, 0
    for _ in range(places[here + _TAPS]):
        y = h
        for _ in range(places[here + _TAPS + 1]):
            if d >= 0 and d < places[here + _SIZE] and y >= 0 and y < places[here + _SIZE + 1]:
                found |= line << shift
            y += places[here + _DILATION + 1]
            shift += places[here + _TAPS + 2]
        d += places[here + _DILATION]
    return found
