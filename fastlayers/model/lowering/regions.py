"""Pools over boxes."""

from __future__ import annotations

from typing import Any

from ...functional._checks import integers
from ...functional._geometry import channels_last
from ...graph.ir import Node
from ._base import Lowering, rule


def _layout(node: Node) -> dict[str, Any]:
    return {"x_last": True} if channels_last(node.op, node.attributes["layout"], 2) else {}


@rule
def _roi_pool(s: Lowering, node: Node, x: str, boxes: str) -> None:
    get = node.attributes
    size = integers(node.op, "output_size", get["output_size"], 2)
    s.add("MaxRoiPool", (x, boxes), node.outputs, pooled_shape=size, spatial_scale=float(get["spatial_scale"]), **_layout(node))


@rule
def _roi_align(s: Lowering, node: Node, x: str, boxes: str) -> None:
    get = node.attributes
    height, width = integers(node.op, "output_size", get["output_size"], 2)
    corners = s.add("Slice", (boxes, s.ints(1), s.ints(5), s.ints(1)), s.name("corners"))
    first = s.add("Slice", (boxes, s.ints(0), s.ints(1), s.ints(1)), s.name("images"))
    images = s.add("Cast", (s.add("Squeeze", (first, s.ints(1)), s.name("images")),), s.name("images"), to=7)
    s.add(
        "RoiAlign",
        (x, corners, images),
        node.outputs,
        output_height=height,
        output_width=width,
        spatial_scale=float(get["spatial_scale"]),
        sampling_ratio=max(int(get["sampling_ratio"]), 0),
        mode=get["mode"],
        coordinate_transformation_mode="half_pixel" if get["aligned"] else "output_half_pixel",
        **_layout(node),
    )
