"""Rules of Fourier transforms: whole ones, of frames, and back."""

from __future__ import annotations

from .._arguments import shown
from ..errors import ArgumentError, ShapeError
from ..ir.checks import differ, same_shape
from ..ir.graph import Dim, Shape

__all__ = ["NORMS", "bins_rule", "frames_rule", "norm_rule", "pairs_rule", "points_rule", "window_rule"]

NORMS = ("backward", "ortho", "forward")


def norm_rule(op: str, norm: object) -> str:
    """The divisor of results."""
    if not isinstance(norm, str) or norm not in NORMS:
        raise ArgumentError(f"{op}: norm is {shown(norm)}: expected one of {', '.join(map(repr, NORMS))}")
    return norm


def pairs_rule(op: str, x: Shape) -> None:
    """Raises unless x are complex numbers as pairs of real and imaginary part."""
    if len(x) < 2 or differ(x[-1], 2):
        raise ShapeError(f"{op}: x has shape {x}: expected (..., n, 2), complex numbers as pairs")


def points_rule(op: str, size: Dim, axis: int, reals: bool) -> Dim:
    """The points of a transform of all that x has along an axis; `reals`: of the half spectrum that they are made of."""
    if not isinstance(size, int):
        return None if reals else size
    if size < 1 + reals:
        raise ShapeError(f"{op}: x has {size} values along axis {axis}: expected at least {1 + reals}")
    return 2 * (size - 1) if reals else size


def window_rule(op: str, window: Shape | None, size: Dim, argument: str) -> None:
    """Raises unless a window, if there is one, has the size that an argument says."""
    if window is not None and window != (size,):
        same_shape(op, "window", window, (size,), argument)


def frames_rule(op: str, x: Dim, least: int, size: int, argument: str) -> None:
    """Raises where a signal is too short for one frame of the size that an argument says."""
    if isinstance(x, int) and x < least:
        raise ShapeError(f"{op}: x has {x} values: expected at least {least} for {argument}={size}")


def bins_rule(op: str, bins: Dim, want: Dim) -> None:
    """Raises unless a spectrum has as many frequencies as a transform back takes."""
    if differ(bins, want):
        raise ShapeError(f"{op}: x has {bins} frequencies: expected {want}")
