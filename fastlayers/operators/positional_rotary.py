"""RotaryEmbedding: pairs of values rotated by their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls.attention import rotary
from ..rules.positions import rotary_rule
from ._base import INT64, Spec, View, register
from ._traits import PLAIN

if TYPE_CHECKING:
    from .builder import Builder

__all__ = ["turned"]


def _heads(n: View, rank: int) -> int | None:
    """Number of heads next to each other; None where they have their own axis."""
    if rank == 4:
        return None
    heads = int(n.get("num_heads", 0))
    if not heads and n.get("by_width", 0):  # they are as wide as the tables say
        x, cos = n.shape(0), n.shape(1)
        width, half = (None, None) if x is None or cos is None else (x[-1], cos[-1])
        if not isinstance(width, int) or not isinstance(half, int):
            return 1
        heads = width // max(2 * half, 1)
    return heads if heads > 0 else None


def _infer(n: View) -> list[Spec]:
    x, cos, sin, ids = n.shape(0), n.shape(1), n.shape(2), n.shape(3) if n.has(3) else None
    if x is not None and cos is not None and sin is not None and (ids is not None or not n.has(3)):
        # Files leave it to the tables how many values are rotated; what is recorded says it.
        turned = n.get("rotary_embedding_dim") or (2 * cos[-1] if cos and isinstance(cos[-1], int) else None)
        whole = n.get("whole", False) or not isinstance(turned, int)
        rotary_rule(n.where, x, cos, sin, ids, _heads(n, len(x)), None if whole else turned)
    return [n.spec(0)]


def turned(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool) -> np.ndarray:
    """(b, h, t, d) with its pairs rotated, in float64; cosines and sines are (t, r) or (b, t, r)."""
    c, s = (t.astype(np.float64) if t.ndim == 2 else t[:, None].astype(np.float64) for t in (cos, sin))
    r = cos.shape[-1]
    first, second = (slice(0, 2 * r, 2), slice(1, 2 * r, 2)) if interleaved else (slice(0, r), slice(r, 2 * r))
    x = x.astype(np.float64)
    out = x.copy()
    out[..., first] = x[..., first] * c - x[..., second] * s
    out[..., second] = x[..., first] * s + x[..., second] * c
    return np.asarray(out)


def _run(n: View, x: np.ndarray, cos: np.ndarray, sin: np.ndarray, ids: np.ndarray | None = None) -> Sequence[np.ndarray]:
    """The formula in float64."""
    heads = _heads(n, x.ndim)
    split = x.astype(np.float64) if heads is None else x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2).astype(np.float64)
    c, s = ((t if ids is None else t[ids]).astype(np.float64) for t in (cos, sin))
    out = turned(split, c, s, bool(n.get("interleaved", 0)))
    return ((out if heads is None else out.swapaxes(1, 2).reshape(x.shape)).astype(x.dtype),)


def _lower(n: View, b: Builder) -> Any:
    if not n.float32(0, 1, 2) or (n.has(3) and n.spec(3).dtype != INT64):
        return False
    x, cos, sin = (b.input(i) for i in range(3))
    heads = _heads(n, len(x.shape))
    steps = (x.shape[0], x.shape[2] if heads is None else x.shape[1])
    if n.has(3):
        ids, half = b.input(3), cos.shape[1]
        rows = [b.temp((*steps, half)) for _ in range(2)]
        for table, row in zip((cos, sin), rows, strict=True):
            count = steps[0] * steps[1]
            b.call("gather", table.view((1, table.shape[0], half)), ids.view((count,)), row.view((1, count, half)), 4)
        cos, sin = rows
    out = b.output(0)
    rotary(b.machine, x, cos, sin, out, bool(n.get("interleaved", 0)), heads)
    return True


register("RotaryEmbedding", _infer, _run, _lower, traits=PLAIN)
