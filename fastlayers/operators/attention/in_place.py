"""Keys and values that are written into a cache where it is, at places that are known only when a program runs.

`program.caches` makes such nodes for memory that the package owns. They are told by an attribute that no file can have: what
writes to its inputs must not be asked for by a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import ShapeError
from ...kernels.table import KINDS, SCATTER
from .._base import View

if TYPE_CHECKING:
    from ..builder import Builder, Ref

__all__ = ["IN_PLACE", "is_in_place", "put"]


class _InPlace:
    """The value of the attribute that has a node append in place."""


IN_PLACE = _InPlace()


def is_in_place(n: View) -> bool:
    """Whether a node appends to its inputs."""
    return n.get("in_place") is IN_PLACE


def put(b: Builder, cache: Ref, new: Any, slots: Any) -> None:
    """Writes new (b, g, s, d) to its slots (b, g, s) of a cache (b, g, c, d)."""
    batch, g, capacity, d = cache.shape
    if new.shape[:2] != (batch, g) or new.shape[3:] != (d,) or slots.shape != new.shape[:3]:
        raise ShapeError(f"run: new keys or values have shape {new.shape}, the cache {cache.shape}")
    rows = cache.view((batch * g * capacity, d))
    b.call(
        "scatter", rows, slots, new.view((batch * g * new.shape[2], d)), rows, (batch, g, new.shape[2]),
        (g * capacity, capacity, 0), (capacity,), (1,), 4 * d, SCATTER["none"], KINDS["float32"],
    )  # fmt: skip
