"""Arguments of attention: their rules, and masks as values that are added."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, DTypeError, ShapeError
from ...ir.checks import differ, integer, number
from ...ir.graph import Dim, Shape

__all__ = ["FAR", "additive_mask", "check_lengths", "lengths_rule", "mask_rule", "offset_of", "scale_of", "wanted"]

FAR = 1 << 62


def mask_rule(op: str, mask: Shape | None, whole: Shape) -> None:
    """Raises unless a mask broadcasts to the shape of the scores."""
    if mask is None:
        return
    fits = len(mask) <= len(whole)
    for size, full in zip(mask[::-1], whole[::-1], strict=False):
        fits &= not (isinstance(size, int) and size != 1 and differ(size, full))
    if not fits:
        raise ShapeError(f"{op}: attn_mask has shape {mask}: expected one that broadcasts to the scores' {whole}")


def lengths_rule(op: str, lengths: Shape | None, batch: Dim, where: str) -> None:
    """Raises unless there is one length for every entry of the batch."""
    if lengths is not None and (len(lengths) != 1 or differ(lengths[0], batch)):
        raise ShapeError(f"{op}: lengths has shape {lengths}: expected ({batch},), one for every entry of the batch of {where}")


def check_lengths(op: str, lengths: np.ndarray | None, keys: int) -> None:
    """Raises unless every length is 0 .. keys."""
    if lengths is not None and lengths.size and not (lengths.min() >= 0 and lengths.max() <= keys):
        raise ArgumentError(f"{op}: lengths has {lengths.min()} .. {lengths.max()}: expected 0 .. {keys}, the number of keys")


def scale_of(op: str, scale: Any, width: Dim) -> float | None:
    """The factor of the scores: 1 / sqrt(d) by default; None where d is not known yet."""
    if scale is not None:
        return number(op, "scale", scale)
    return None if not isinstance(width, int) else max(width, 1) ** -0.5


def offset_of(op: str, offset: Any) -> int | None:
    """The number of keys before the first query's own; None: keys less queries."""
    # An offset beyond FAR means all keys, or none; kernels add numbers to it, which must not leave 64 bits.
    return None if offset is None else max(-FAR, min(integer(op, "offset", offset), FAR))


def wanted(op: str, need_weights: Any) -> bool | str:
    """Whether weights are to be returned: False, True, or "mean" over all heads."""
    if not isinstance(need_weights, (bool, np.bool_)) and need_weights != "mean":
        raise DTypeError(f"{op}: need_weights is {need_weights!r}: expected False, True or 'mean'")
    return need_weights if isinstance(need_weights, str) else bool(need_weights)


def additive_mask(mask: np.ndarray | None) -> np.ndarray | None:
    """A mask as values to be added: where a boolean one is False, -infinity."""
    if mask is None or mask.dtype != np.bool_:
        return mask
    numbers: np.ndarray = np.where(mask, np.float32(0), np.float32(-np.inf))
    return numbers
