"""Rules of rotary embeddings."""

from __future__ import annotations

from ..errors import ShapeError
from ..ir.checks import differ
from ..ir.graph import Dim, Shape

__all__ = ["rotary_rule"]


def rotary_rule(op: str, x: Shape, cos: Shape, sin: Shape, position_ids: Shape | None, heads: int | None, turned: Dim) -> None:
    """Raises unless cosines and sines have a row for each position of x, and a value for each pair of a head that is rotated.

    Args:
        op: as errors call it.
        x: ``(n, h, t, d)``, or ``(n, t, h d)`` with `heads`.
        cos: ``(t, r / 2)`` or ``(n, t, r / 2)``; ``(positions, r / 2)`` with `position_ids`.
        sin: likewise.
        position_ids: ``(n, t)``, or None.
        heads: how many are next to each other; None where they have an axis of their own.
        turned: r, how many values of a head are rotated; None: all.
    """
    if len(x) not in (3, 4) or (len(x) == 3) != (heads is not None):
        raise ShapeError(f"{op}: x has shape {x}, num_heads is {heads}: expected (n, h, t, d), or (n, t, h d) with num_heads")
    width = x[-1]
    if heads is not None:
        if isinstance(width, int) and width % heads:
            raise ShapeError(f"{op}: x has shape {x}, num_heads is {heads}: expected a multiple of it")
        width = width // heads if isinstance(width, int) else None
    steps = x[1] if heads is not None else x[2]
    if position_ids is None:
        fits = len(cos) == 2 and not differ(cos[0], steps)
        fits |= len(cos) == 3 and not differ(cos[1], steps) and (cos[0] == 1 or not differ(cos[0], x[0]))
        rule = f"({steps}, r / 2) or {(x[0], steps, 'r / 2')} without position_ids"
    else:
        fits, rule = len(cos) == 2, "(positions, r / 2) with position_ids"
        if len(position_ids) != 2 or differ(position_ids[0], x[0]) or differ(position_ids[1], steps):
            raise ShapeError(f"{op}: position_ids has shape {position_ids}: expected ({x[0]}, {steps})")
    if not fits or len(cos) != len(sin) or any(map(differ, cos, sin)):
        raise ShapeError(f"{op}: cos has shape {cos}, sin {sin}, x {x}: expected both {rule}")
    count = width if turned is None else turned
    if not isinstance(count, int):
        return
    if count % 2 or (isinstance(width, int) and count > width):
        raise ShapeError(f"{op}: {count} values of a head of {width} are rotated: expected an even number of them, at most all")
    if differ(cos[-1], count // 2):
        raise ShapeError(f"{op}: cos has shape {cos}: expected {count // 2} angles a position for {count} values of a head")
