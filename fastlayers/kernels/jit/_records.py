"""Records that several kernels take in the place of lists of integers: named tuples of integers, floats and other records.

Compiled functions get them by value: a field costs what an argument does. Those of one kernel alone are in its file.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

__all__ = [
    "IDENTITY", "NOTHING", "Act", "Axes", "Columns", "End", "Filter", "Image", "Int", "Lines", "Mask", "Panels", "Real",
    "Rows", "Space", "Span", "Steps", "Sums", "Taps",
]  # fmt: skip


# Fields of records that are passed to emitted functions too, where they are values of LLVM.
Int: TypeAlias = Any
Real: TypeAlias = Any


class Act(NamedTuple):
    """An activation: its code, 0 for none, and its parameters."""

    code: Int
    a: Real
    b: Real


class End(NamedTuple):
    """Epilogue of a sum: bias and residual (addresses, 0 for none), the stride of their lines, activation."""

    bias: Int
    residual: Int
    line: Int
    act: Act


IDENTITY = Act(0, 0.0, 0.0)
NOTHING = End(0, 0, 0, IDENTITY)


class Rows(NamedTuple):
    """The left operand of a product: a table of the rows' addresses, and `count` runs of their terms, pairs (offset, length)."""

    at: Int
    runs: Int
    count: Int


class Panels(NamedTuple):
    """The right operand: floats from a row of a panel to the next, and from a panel to the next."""

    at: Int
    row: Int
    panel: Int


class Sums(NamedTuple):
    """Destination of sums, in lines with this stride; `more`: they are added to its values."""

    at: Int
    line: Int
    more: Int


class Lines(NamedTuple):
    """m lines of k floats."""

    at: Int
    line: Int
    m: Int
    k: Int


class Columns(NamedTuple):
    """n of the `all` columns of a packed matrix, from `first` on."""

    at: Int
    all: Int
    first: Int
    n: Int


class Axes(NamedTuple):
    """A number each for the three spatial axes."""

    d: Int
    h: Int
    w: Int


class Mask(NamedTuple):
    """Floats of a mask from an entry of the batch, a head, a query and a key to the next; 0 where all share one."""

    b: Int
    h: Int
    q: Int
    k: Int


class Space(NamedTuple):
    """Three axes of a convolution: sizes of x and of the result, kernel, stride, dilation, and the padding before x."""

    d: Int
    h: Int
    w: Int
    od: Int
    oh: Int
    ow: Int
    kd: Int
    kh: Int
    kw: Int
    sd: Int
    sh: Int
    sw: Int
    dd: Int
    dh: Int
    dw: Int
    bd: Int
    bh: Int
    bw: Int


class Image(NamedTuple):
    """An image from its group's first channel on: `taken` of its `channels`, which are the last axis if `last`."""

    at: Int
    last: Int
    channels: Int
    taken: Int
    d: Int
    h: Int
    w: Int


class Span(NamedTuple):
    """Positions first, first + step, .. of an axis, `count` of them."""

    first: Int
    step: Int
    count: Int


class Filter(NamedTuple):
    """Weights and biases of depthwise kernels."""

    weight: Int
    bias: Int


class Taps(NamedTuple):
    """The size of a kernel, and floats from one tap to the next along each axis."""

    kd: Int
    kh: Int
    kw: Int
    plane: Int
    line: Int
    tap: Int


class Steps(NamedTuple):
    """Taps along an axis, with stride `step`."""

    count: Int
    step: Int
