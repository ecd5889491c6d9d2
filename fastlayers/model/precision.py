"""What `precision` may be."""

from __future__ import annotations

from ..errors import ArgumentError
from ..kernels.table import HALVES

__all__ = ["half_of"]

_PRECISIONS = ("default", "strict", *HALVES)


def half_of(what: str, precision: object) -> int:
    """How weights are stored: 0 for float32, else the number of `kernels.table.HALVES`.

    Raises:
        ArgumentError: there is no such precision.
    """
    if not isinstance(precision, str) or precision not in _PRECISIONS:
        raise ArgumentError(f"{what}: precision is {precision!r}: expected one of {', '.join(map(repr, _PRECISIONS))}")
    return HALVES.get(precision, 0)
