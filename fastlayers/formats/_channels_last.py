"""Layers of frameworks whose images have their channels last, written as nodes that take them so: no transposition anywhere.

Convolutions, pools and local response normalization have the attributes `x_last` and `out_last` for it; everything else is told
by its axes. Padding is "SAME", "VALID" or pairs (before, after). SAME is TensorFlow's: as much as makes ceil(size / stride)
windows, the odd one after, by the size that the image has when the model runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._windows import Crop, cropped_to, same_padding
from ..operators.graphs import GraphBuilder

__all__ = ["Padding", "conv", "conv_transpose", "depth_to_space", "padded", "pool", "resampling", "resize", "space_to_depth"]

Padding = str | Sequence[tuple[int, int]]


def padded(padding: Padding) -> dict[str, Any]:
    """The attributes that say how windows are padded."""
    if isinstance(padding, str):
        return {"auto_pad": {"SAME": "SAME_UPPER", "VALID": "VALID"}[padding]}
    return {"pads": (*(before for before, _ in padding), *(after for _, after in padding))}


def conv(
    e: GraphBuilder, x: str, weight: str, bias: str | None, strides: Sequence[int], dilations: Sequence[int], padding: Padding,
    groups: int = 1, out: str = "",
) -> str:  # fmt: skip
    """x (n, *space, c), weight (o, c / groups, *kernel), bias (o,) -> (n, *space, o)."""
    return e.node(
        "Conv", x, weight, bias, out=out, strides=tuple(strides), dilations=tuple(dilations), group=groups, x_last=True,
        out_last=True, **padded(padding),
    )  # fmt: skip


def conv_transpose(
    e: GraphBuilder, x: str, weight: str, bias: str | None, strides: Sequence[int], dilations: Sequence[int], same: bool,
    sizes: Sequence[int | None] | None = None, out: str = "",
) -> str:  # fmt: skip
    """x (n, *space, c), weight (c, o, *kernel), bias (o,) -> (n, *sizes, o).

    What a convolution of `sizes` with this padding would take away is added: SAME makes size * stride of an axis where no size is
    asked for, VALID (size - 1) * stride + max(reach, stride). The sizes of x must be known where a size is asked for.
    """
    kernel = e.shape(weight)
    assert kernel is not None
    reach = [d * (int(k) - 1) + 1 for k, d in zip(kernel[2:], dilations, strict=True)]
    space = (e.shape(x) or (None,) * len(kernel))[1:-1]
    crops: list[Crop] = []
    for i, (s, r) in enumerate(zip(strides, reach, strict=True)):
        want, size = None if sizes is None else sizes[i], space[i]
        if want is None or not isinstance(size, int):
            crops.append(cropped_to(r, s, same))
            continue
        lead = same_padding(want, r, s)[0] if same else 0
        rest = s * (size - 1) + r - lead - want
        crops.append(Crop(lead, max(rest, 0), max(-rest, 0)))
    before, after, more = zip(*crops, strict=True)
    return e.node(
        "ConvTranspose", x, weight, bias, out=out, strides=tuple(strides), dilations=tuple(dilations),
        pads=(*before, *after), output_padding=tuple(more), x_last=True, out_last=True,
    )  # fmt: skip


def pool(
    e: GraphBuilder, op: str, x: str, kernel: Sequence[int], strides: Sequence[int], padding: Padding, out: str = "", **more: Any
) -> str:
    """MaxPool, AveragePool or LpPool; an average leaves padding out."""
    return e.node(op, x, out=out, kernel_shape=tuple(kernel), strides=tuple(strides), x_last=True, **padded(padding), **more)


# TensorFlow's names of what ONNX's Resize does.
MODES = {"nearest": "nearest", "bilinear": "linear", "bicubic": "cubic"}


def resampling(method: str, align_corners: bool = False, half_pixel: bool = True, antialias: bool = False) -> dict[str, Any]:
    """The attributes of Resize for TensorFlow's "nearest", "bilinear" or "bicubic". `half_pixel`: as version 2 does, not 1.

    Positions are multiples of a step; the nearest element is (i + 0.5) * step, rounded down.
    """
    nearest = method == "nearest"
    middle = "tf_half_pixel_for_nn" if nearest else "half_pixel"
    return {
        "mode": MODES[method],
        "coordinate_transformation_mode": "align_corners" if align_corners else middle if half_pixel else "asymmetric",
        "nearest_mode": "round_prefer_ceil" if align_corners else "floor",
        "cubic_coeff_a": -0.5,
        "exclude_outside": int(method == "bicubic" or (antialias and not nearest)),
        "antialias": int(antialias and not nearest),
        "steps": True,
    }


def resize(e: GraphBuilder, x: str, sizes: str, method: str, align_corners: bool, half_pixel: bool, out: str = "") -> str:
    """Resamples (n, h, w, c) to `sizes`, two integers, by the rules of `resampling`."""
    return e.node("Resize", x, None, None, sizes, out=out, axes=(1, 2), **resampling(method, align_corners, half_pixel))


def _reshape(e: GraphBuilder, x: str, sizes: Sequence[int], out: str = "") -> str:
    return e.node("Reshape", x, e.ints(sizes), out=out)


def depth_to_space(e: GraphBuilder, x: str, block: int, out: str = "") -> str:
    """(n, h, w, block² c) -> (n, block h, block w, c)."""
    return _moved(e, x, block, False, out)


def space_to_depth(e: GraphBuilder, x: str, block: int, out: str = "") -> str:
    """(n, block h, block w, c) -> (n, h, w, block² c)."""
    return _moved(e, x, block, True, out)


def _moved(e: GraphBuilder, x: str, block: int, deep: bool, out: str) -> str:
    shape = e.shape(x)
    if shape is None or len(shape) != 4 or not all(isinstance(d, int) for d in shape[1:]):
        # Sizes that only the run knows: the operators of ONNX find them.
        first = e.node("Transpose", x, perm=(0, 3, 1, 2))
        # ONNX's SpaceToDepth and TensorFlow's agree: the block's place counts before the channel.
        turned = e.node("SpaceToDepth" if deep else "DepthToSpace", first, blocksize=block)
        return e.node("Transpose", turned, perm=(0, 2, 3, 1), out=out)
    _, h, w, c = (int(d) if isinstance(d, int) else 0 for d in shape)
    if deep:
        split, back = (0, h // block, block, w // block, block, c), (0, h // block, w // block, block * block * c)
    else:
        split, back = (0, h, w, block, block, c // (block * block)), (0, h * block, w * block, c // (block * block))
    turned = e.node("Transpose", _reshape(e, x, split), perm=(0, 1, 3, 2, 4, 5))
    return _reshape(e, turned, back, out)
