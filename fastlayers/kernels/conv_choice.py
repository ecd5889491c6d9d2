"""Which kernel a convolution runs: the one place, for programs, layers and functions."""

from __future__ import annotations

from collections.abc import Sequence

from .winograd_choice import choose, half_pays
from .winograd_points import terms_of, tiles_of

__all__ = ["kernel_for"]


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
        direct: whether sums must be formed tap by tap.
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
    if half is not None and half_pays(out_dhw, weight, groups, dilation, half, tile, tuple(stride)):
        return "conv_half", 0
    return ("winograd", tile) if tile else ("conv", 0)
