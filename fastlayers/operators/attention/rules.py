"""Attention on checked operands: shapes of masks, and the kernel calls, on arrays here and in programs on memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._tuples import NamedTuple
from ...calls.machine import Machine
from ...errors import ArgumentError, DTypeError, ShapeError
from ...ir.checks import differ, integer, number
from ...ir.graph import Dim, Shape
from ...kernels.table import REDUCE, Activation

__all__ = [
    "FAR",
    "IDENTITY",
    "Settings",
    "additive_mask",
    "attend",
    "check_lengths",
    "four",
    "lengths_rule",
    "mask_rule",
    "offset_of",
    "scale_of",
    "wanted",
    "weigh",
    "weighted_sum",
]

IDENTITY = Activation(0)
FAR = 1 << 62


class Settings(NamedTuple):
    """Options of the kernels `attention` and `attention_weights`; see their references."""

    scale: float
    causal: bool = False
    offset: int = 0
    empty: int = 0
    k_transposed: bool = False
    heads_last: bool = False


# ---- arguments -----------------------------------------------------------------------------------------------------


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
    # More keys than there can be stand for all of them, and far from where 64 bits end.
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


def four(shape: Sequence[int], batched: bool) -> tuple[int, ...]:
    """A shape of two to four axes with four: axes of size 1 in front, or second if there are three of which one is the batch."""
    if len(shape) == 3 and batched:
        return (shape[0], 1, *shape[1:])
    return (*(1,) * (4 - len(shape)), *shape)


# ---- kernel calls ---------------------------------------------------------------------------------------------------


def attend(m: Machine, q: Any, k: Any, v: Any, mask: Any, lengths: Any, out: Any, s: Settings) -> None:
    """out = softmax(scale q kᵀ + mask) v, all scores but a tile of them never in memory."""
    m.call("attention", q, k, v, mask, lengths, out, *s)


def weigh(m: Machine, q: Any, k: Any, mask: Any, lengths: Any, weights: Any, scores: Any, mean: bool, s: Settings) -> None:
    """The weights (b, h, q, k), or their mean over the heads (b, q, k), and the scores; each of the two may be None."""
    q, k = (_heads_first(m, x) for x in (q, k)) if s.heads_last else (q, k)
    (b, h, rows, d), g = q.shape, k.shape[1]
    keys = k.shape[3] if s.k_transposed else k.shape[2]
    scores = m.temp((b, h, rows, keys)) if scores is None else scores
    own = m.temp((b, h, rows, keys)) if mean or weights is None else weights
    folded = (b * g, h // max(g, 1) * rows)
    inner = (d, keys) if s.k_transposed else (keys, d)
    m.call(
        "matmul",
        m.view(q, (*folded, d)),
        m.view(k, (b * g, *inner)),
        m.view(scores, (*folded, keys)),
        not s.k_transposed,
        IDENTITY,
    )
    m.call("attention_weights", scores, mask, lengths, scores, own, s.scale, s.causal, s.offset, s.empty)
    if mean and weights is not None:
        m.call("reduce", m.view(own, (b, h, rows * keys)), m.view(weights, (b, rows * keys)), REDUCE["mean"])


def weighted_sum(m: Machine, scores: Any, v: Any, lengths: Any, out: Any, s: Settings) -> None:
    """out = softmax(scores) v for scores (b, h, q, k) that are there: the mask of queries and keys of no width."""
    b, h, rows, keys = scores.shape
    nothing = m.temp((b, h, rows, 0)), m.temp((b, v.shape[1], keys, 0))
    m.call("attention", *nothing, v, scores, lengths, out, *s._replace(scale=1.0, k_transposed=False, heads_last=False))


def _heads_first(m: Machine, x: Any) -> Any:
    """(b, t, h, d) as (b, h, t, d)."""
    b, t, h, d = x.shape
    out = m.temp((b, h, t, d))
    if b * t * h * d:
        m.call("copy", x, out, (b, h, t, d), 0, (t * h * d, d, h * d, 1), 0, (h * t * d, t * d, d, 1), 4)
    return out
