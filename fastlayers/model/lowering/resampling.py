"""Interpolation, and pixels made of channels and back."""

from __future__ import annotations

from typing import Any

from ...functional._geometry import channels_last
from ...functional.resampling import Target
from ...graph.ir import Node
from ._base import LOWER, Lowering, rule
from .pooling import with_batch


@rule
def _interpolate(s: Lowering, node: Node, x: str) -> None:
    get = node.attributes
    first = (get["size"], get["scale_factor"], get["mode"], get["align_corners"])
    t = Target("interpolate", s.rank(node) - 2, *first, get["recompute_scale_factor"], get["layout"])
    own: dict[str, Any] = {"x_last": True} if t.last else {}
    if t.mode != "area":
        own |= {"mode": t.mode, "align_corners": t.align, "factors": t.factors}
    elif t.sizes is None:
        own["scales"] = t.scales
    sized = {"sizes": t.sizes} if t.sizes is not None else {"scales": t.scales}
    if t.mode == "area":
        s.add("AdaptivePool", (x,), node.outputs, **{**own, **sized}, reduce="mean")
    else:
        s.add("Interpolate", (x,), node.outputs, **own, **sized)


def _blocks(s: Lowering, node: Node, x: str) -> None:
    shuffle = node.op == "pixel_shuffle"
    block = node.attributes["upscale_factor" if shuffle else "downscale_factor"]
    own: dict[str, Any] = {"x_last": True} if channels_last(node.op, node.attributes["layout"], 2) else {}
    operator = "DepthToSpace" if shuffle else "SpaceToDepth"
    with_batch(s, node, x, 2, lambda x, out: s.add(operator, (x,), out, blocksize=int(block), mode="CRD", **own))


LOWER.update(pixel_shuffle=_blocks, pixel_unshuffle=_blocks)
