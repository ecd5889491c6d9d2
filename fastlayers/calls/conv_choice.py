"""The choice of a convolution's algorithm, and its reasons: in one place for functions, layers and programs.

What floats are multiplied in is chosen of their shapes by a cost model, `conv_costs`: a kernel of one channel a group, Winograd's
tiles, phases of a dilation, products of bfloat16, or the direct product. Which way the engine then goes over the results of a
direct product is its own choice (kernels/aot/conv.pyx), of the same shapes; it says which, and `WALKS` in words. A transposed
convolution is one product a group, or the phases of its strides; one of bytes a product, or one channel a group. A kernel of one
channel that is the product of a column and a row may be two convolutions, which a pass makes of it before the graph is bound.

``FASTLAYERS_CONV`` in the environment forces ``direct``, ``winograd2``, ``winograd4`` or ``winograd6``, or one of `WALKS`, which
all give the bits of ``direct``, wherever that can run: for tests and measurements. It is read when a convolution is first chosen.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

from .._tuples import NamedTuple
from ..errors import ArgumentError
from ..kernels import dispatch
from ..kernels.table import CONV_WALKS
from ..kernels.winograd_points import terms_of, tiles_of
from .conv_costs import PANEL, choose, expected, half_pays
from .conv_dilated import Phases, as_last, dilated_phases
from .geometry import Three, Window, five

__all__ = [
    "VARIABLE", "WALKS", "Choice", "Convolution", "bytes_alone", "chosen", "forced", "kernel_for", "two_passes_pay", "why",
    "why_bytes", "why_transposed",
]  # fmt: skip

VARIABLE = "FASTLAYERS_CONV"
_FORCED = {"direct": 0, "winograd2": 2, "winograd4": 4, "winograd6": 6, **dict.fromkeys(CONV_WALKS, 0)}
# Words for the engine's ways, and what speaks for each.
WALKS = dict(
    zip(
        CONV_WALKS,
        (
            "rows of pixels",
            "panels of pixels, of few channels and channels first",
            "lines of pixels, for few results a group",
            "without the padding, in which many taps are",
            "sixteen channels of several groups at a time",
        ),
        strict=True,
    )
)

# Multiplications that two passes must save, as a factor. Measured on depthwise convolutions of 7 to 224 pixels a side and 16 to
# 960 channels in both layouts and at every level, one pass takes, of the time of two: 0.5 for 3x3, 0.8 to 2.2 times for 5x5, 1.2
# to 2.9 for 7x7, 1.4 to 4.3 for 9x9, 2.2 to 5.7 for 11x11, 4.1 to 9.5 for 15x15.
_GAIN = 3

# Sizes of a result for which a direct convolution is chosen, whatever its own are.
_STEADY = (64, 64, 64)


class Convolution(NamedTuple):
    """Everything about a convolution but its operands. The window's padding is known.

    Attributes:
        window: what slides, one entry an axis.
        groups: of channels.
        mode: of the padding, as in `table.PAD_MODES`; 0 is zeros.
        x_last, out_last: whether channels are the last axis, of x, and of the result with its residual.
        packs: whether weights are packed for this one call, the time of which then counts.
        direct: see `kernel_for`.
        half: where its product may be one of bfloat16, how; see `kernels.halves`. 0: it may not.
    """

    window: Window
    groups: int
    mode: int
    x_last: bool
    out_last: bool
    packs: bool = False
    direct: bool = False
    half: Any = None


@cache
def forced() -> int | None:
    """The side of Winograd's tiles that the environment asks for, 0 for a direct convolution; None: it asks for nothing."""
    word = os.environ.get(VARIABLE, "")
    if word and word not in _FORCED:
        raise ArgumentError(f"{VARIABLE}: {word!r} is unknown: expected one of {', '.join(_FORCED)}")
    if word in CONV_WALKS and dispatch.engine() is not None:
        from ..kernels.aot.conv import force_walk

        force_walk(word)
    return _FORCED[word] if word else None


def _tile(
    out_dhw: tuple[int, int, int], i: int, o: int, kernel: tuple[int, ...], groups: int, packs: bool, stride: tuple[int, ...]
) -> int:
    wanted = forced()
    if wanted is None:
        return choose(out_dhw, i, o, kernel, groups, packs, stride)
    return wanted if wanted in tiles_of(kernel, stride) and min(out_dhw) > 0 else 0


def kernel_for(
    channels: int,
    weight: Sequence[int],
    out_dhw: tuple[int, int, int],
    groups: int,
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    mode: int,
    turns: bool = False,
    direct: bool = False,
    packs: bool = False,
    half: int | None = None,
) -> tuple[str, int]:
    """The kernel, "depthwise", "winograd", "conv" or "conv_half", which is "conv" of bfloat16, and the side of Winograd's tiles.

    Args:
        channels: of the input.
        weight: shape ``(o, i / groups, kd, kh, kw)``; strides, dilations and pads have three axes too.
        out_dhw: sizes of the result's space.
        mode: of the padding, as in `table.PAD_MODES`; 0 is zeros.
        turns: whether one of input and result has its channels last, and the other one first.
        direct: whether sums must be formed tap by tap, and the choice may not depend on sizes: a sequence in pieces, of any
            lengths, is to have the bits of the whole.
        packs: whether weights are packed for this one call, the time of which then counts.
        half: where the processor multiplies bfloat16 and may: how many of input and result have their channels first.
    """
    if weight[1] == 1 and groups == channels > 1 and not turns:
        return "depthwise", 0
    tile = 0
    if tuple(dilation) == (1, 1, 1) and not mode and not direct and tiles_of(weight[2:], stride):
        # Of axes that `winograd` takes as they are
        across = pads[:2] if weight[2] == 1 else pads[2:] if terms_of(weight[2:]) == 1 else ()
        if not any(across):
            tile = _tile(out_dhw, channels, weight[0], tuple(weight[2:]), groups, packs, tuple(stride))
    if half is not None and direct:
        # Groups of fewer channels than a panel share vectors where their widths suit: in an order of their own, with AMX.
        steady = (1 if weight[2] == 1 else _STEADY[0], *_STEADY[1:])
        shared = groups > 1 and weight[1] < PANEL
        return ("conv", 0) if shared or not half_pays(steady, weight, groups, (1, 1, 1), half, 0) else ("conv_half", 0)
    if half is not None and half_pays(out_dhw, weight, groups, dilation, half, tile, tuple(stride)):
        return "conv_half", 0
    return ("winograd", tile) if tile else ("conv", 0)


def two_passes_pay(height: int, width: int) -> bool:
    """Whether a kernel of one channel that is the product of a column and a row is faster as these two; never where an algorithm
    is forced, since they round differently."""
    return forced() is None and height * width >= _GAIN * (height + width)


class Choice(NamedTuple):
    """An algorithm, with what it was chosen by: the kernel and the side of its tiles, or the phases of a dilated convolution."""

    kernel: str
    tile: int
    phases: Phases | None
    space: tuple[int, int, int]  # of the result


def chosen(
    c: Convolution, three: Three, x: Sequence[int], weight: Sequence[int], out: Sequence[int], residual: bool
) -> Choice:  # fmt: skip
    """The algorithm for shapes of five axes; `three` is the window's."""
    _, groups, mode, x_last, out_last, packs, direct, half = c
    _, stride, dilation, pads = three
    wanted = forced()
    space: Any = out[1:4] if out_last else out[2:]
    turned = 2 - x_last - out_last
    name, tile = kernel_for(
        x[-1 if x_last else 1], weight, space, groups, stride, dilation, pads, mode, x_last != out_last, direct, packs,
        turned if half else None,
    )  # fmt: skip
    found = None
    if name == "conv" and not residual and max(dilation) > 1 and not direct and wanted != 0:
        shapes = as_last(x, x_last), weight, as_last(out, out_last)
        found = dilated_phases(*shapes, groups, stride, dilation, pads, mode, turned, packs)
    return Choice(name, tile, found, space)


def why(c: Convolution, x: Sequence[int], weight: Sequence[int], out: Sequence[int], residual: bool) -> str:
    """The reason, in words, for the algorithm that `call` chooses for these shapes; "" where there is but one."""
    axes = len(c.window.kernel)
    taps, stride, dilation, _ = three = c.window.in_three()
    weight, x, out = (*weight[:2], *taps), five(x, c.x_last, axes), five(out, c.out_last, axes)
    name, tile, found, space = chosen(c, three, x, weight, out, residual)
    if name == "depthwise" or math.prod(taps) == 1:
        return "products of bfloat16" if name == "conv_half" else ""
    if found is not None:
        return f"phases of the dilation, tiles of {found.tile}"
    if forced() is not None:
        return f"{f'tiles of {tile}' if tile else 'direct'}, as {VARIABLE} says"
    best, share = expected(space, x[-1 if c.x_last else 1], weight[0], taps, c.groups, stride)
    if name == "conv_half":
        return "products of bfloat16"
    if tile:
        return f"tiles of {tile}, {share:.2f} of direct time expected"
    if not tiles_of(taps, stride):
        return f"no tiles for {'x'.join(map(str, c.window.kernel))}, strides {'x'.join(map(str, c.window.stride))}"
    if c.direct or max(dilation) > 1 or c.mode:
        return "sums tap by tap" if c.direct else "dilated" if max(dilation) > 1 else "padding that is not zeros"
    return f"tiles of {best} expected to take {share:.2f} of its time" if best else "too few channels for tiles"


def why_transposed(phases: bool) -> str:
    """The same of a transposed convolution, by whether it runs as phases of its strides."""
    said = "phases of the strides, one channel a group" if phases else "a product a group"
    return f"{said}, as {VARIABLE} says" if forced() == 0 else said


def bytes_alone(weight: Sequence[int], groups: int) -> bool:
    """Whether a convolution of bytes has one channel a group: its kernel forms no product then, and takes channels last alone."""
    return groups == weight[0] > 1 and weight[1] == 1


def why_bytes(weight: Sequence[int], groups: int) -> str:
    """The same of a convolution of bytes."""
    return "one channel a group, channels last" if bytes_alone(weight, groups) else "products of bytes"
