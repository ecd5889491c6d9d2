"""Rules of what is done with whole maps, and with boxes in them: global and adaptive pools, resampling, regions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import ArgumentError, ShapeError
from ..ir.checks import differ
from ..ir.graph import Dim, Shape

__all__ = ["boxes_rule", "resized_rule", "scale_rule", "space_rule"]


def space_rule(op: str, x: Shape, space: Sequence[Dim]) -> None:
    """Raises where a spatial axis has nothing of which there is a mean, a maximum or a neighbour."""
    if 0 in space:
        raise ShapeError(f"{op}: x has shape {x}: expected at least one number along each spatial axis")


def resized_rule(
    op: str, x: Shape, space: Sequence[Dim], sizes: Sequence[int] | None, scales: Sequence[float] | None
) -> tuple[Dim, ...]:
    """The sizes of the result along space: `sizes`, or those of x times the `scales`, rounded down."""
    from ..kernels.resize_tables import torch_size

    space_rule(op, x, space)
    if sizes is not None:
        return tuple(sizes)
    made = tuple(
        torch_size(d, s) if isinstance(d, int) else (d if s == 1 else None) for d, s in zip(space, scales or (), strict=True)
    )
    if 0 in made:
        raise ShapeError(f"{op}: scale_factor is {scales} for x of shape {x}: expected sizes of at least 1")
    return made


def boxes_rule(op: str, x: Shape | None, boxes: Shape | None, images: bool, last: bool = False) -> None:
    """Raises unless boxes, each with its image if `images`, are in maps with their channels first, or last."""
    if x is not None and len(x) != 4:
        raise ShapeError(f"{op}: x has shape {x} ({len(x)} axes): expected {'(n, h, w, c)' if last else '(n, c, h, w)'}")
    values = ("image", "x1", "y1", "x2", "y2")[not images :]
    if boxes is not None and (len(boxes) != 2 or differ(boxes[1], len(values))):
        raise ShapeError(f"{op}: boxes has shape {boxes}: expected (k, {len(values)}), each ({', '.join(values)})")


def scale_rule(op: str, spatial_scale: float) -> None:
    """Raises unless the factor of the coordinates of boxes is one."""
    if not 0 < spatial_scale < math.inf:
        raise ArgumentError(f"{op}: spatial_scale is {spatial_scale!r}: expected a positive number")
