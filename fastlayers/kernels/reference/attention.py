"""Attention in plain numpy: computed in float64 with all scores in memory, rounded at the end."""

from __future__ import annotations

import numpy as np

__all__ = ["attention"]


def attention(
    q__bhqd: np.ndarray,
    k__bgkd: np.ndarray,
    v__bgke: np.ndarray,
    mask__bhqk: np.ndarray | None,
    out__bhqe: np.ndarray,
    scale: float,
    causal: bool,
    offset: int,
    empty: int,
    k_transposed: bool,
) -> None:
    """``out = softmax(scale q kᵀ + mask) v``. g heads of keys and values serve h heads of queries, h / g neighbours each.

    Args:
        mask__bhqk: None, or added to the scores; every axis has its full size or 1.
        causal: query i sees the keys j <= i + `offset` alone; the others weigh exactly 0.
        empty: the result of a query whose scores are all -infinity: 0 zeros, 1 NaN.
        k_transposed: k is (b, g, d, k).
    """
    if not out__bhqe.size:
        return
    b, h, rows, d = q__bhqd.shape
    g, keys = v__bgke.shape[1:3]
    grouped = (b, g, h // g * rows)
    k = (k__bgkd if k_transposed else k__bgkd.swapaxes(2, 3)).astype(np.float64)
    with np.errstate(all="ignore"):
        scores = (q__bhqd.reshape(*grouped, d).astype(np.float64) @ k).reshape(b, h, rows, keys) * np.float64(np.float32(scale))
        if mask__bhqk is not None:
            # Rounded, since a score disappears beside -1e9 in float32: a row of nothing but such numbers weighs all keys alike.
            scores = (scores + mask__bhqk).astype(np.float32).astype(np.float64)
        if causal:
            scores = np.where(np.arange(keys) <= np.arange(rows)[:, None] + offset, scores, -np.inf)
        largest = scores.max(axis=3, keepdims=True, initial=-np.inf)
        nothing = largest == -np.inf
        weights = np.exp(scores - np.where(nothing, 0, largest))
        weights /= weights.sum(axis=3, keepdims=True)
        weights[np.broadcast_to(nothing, weights.shape)] = 0
        out = (weights.reshape(*grouped, keys) @ v__bgke.astype(np.float64)).reshape(out__bhqe.shape)
        out__bhqe[...] = np.where(nothing, np.nan if empty else 0, out)
