"""Values of `precision` and `weights`."""

from __future__ import annotations

from ..errors import ArgumentError
from ..kernels.table import HALVES

__all__ = ["PRECISIONS", "WEIGHTS", "half_of", "storage"]

PRECISIONS = ("default", "strict", *HALVES)
_BITS = {"int8": 8, "int4": 4}
WEIGHTS = ("float32", *HALVES, *_BITS)


def half_of(what: str, precision: object) -> int:
    """The storage of weights: 0 for float32, else the number of `kernels.table.HALVES`.

    Raises:
        ArgumentError: there is no such precision.
    """
    if not isinstance(precision, str) or precision not in PRECISIONS:
        raise ArgumentError(f"{what}: precision is {precision!r}: expected one of {', '.join(map(repr, PRECISIONS))}")
    return HALVES.get(precision, 0)


def storage(what: str, precision: object, weights: object) -> tuple[int, int]:
    """The storage of weights: `half_of` or 0, and the bits of products' matrices or 0.

    Raises:
        ArgumentError: there is no such precision, no such way to store weights, or not both together.
    """
    half = half_of(what, precision)
    if not isinstance(weights, str) or weights not in WEIGHTS:
        raise ArgumentError(f"{what}: weights is {weights!r}: expected one of {', '.join(map(repr, WEIGHTS))}")
    if half and weights not in ("float32", precision):
        raise ArgumentError(f"{what}: weights is {weights!r}, precision is {precision!r}: expected one of them alone")
    if precision == "strict" and weights in HALVES:
        told = "expected 'float32', 'int8' or 'int4'"
        raise ArgumentError(f"{what}: weights is {weights!r}, precision is 'strict': {told}")
    return half or HALVES.get(weights, 0), _BITS.get(weights, 0)
