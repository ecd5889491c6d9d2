"""Chooses the kernel of a convolution, in one place for programs, layers and functions."""

from __future__ import annotations

from collections.abc import Sequence

from ..kernels.winograd_points import terms_of, tiles_of
from .conv_costs import PANEL, choose, half_pays

__all__ = ["kernel_for"]

# Sizes of a result for which a direct convolution is chosen, whatever its own are.
_STEADY = (64, 64, 64)


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
            tile = choose(out_dhw, channels, weight[0], tuple(weight[2:]), groups, packs, tuple(stride))
    if half is not None and direct:
        # Groups of fewer channels than a panel share vectors where their widths suit: in an order of their own, with AMX.
        steady = (1 if weight[2] == 1 else _STEADY[0], *_STEADY[1:])
        shared = groups > 1 and weight[1] < PANEL
        return ("conv", 0) if shared or not half_pays(steady, weight, groups, (1, 1, 1), half, 0) else ("conv_half", 0)
    if half is not None and half_pays(out_dhw, weight, groups, dilation, half, tile, tuple(stride)):
        return "conv_half", 0
    return ("winograd", tile) if tile else ("conv", 0)
