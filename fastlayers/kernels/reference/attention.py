"""Attention in plain numpy: computed in float64 with all scores in memory, rounded at the end."""

from __future__ import annotations

import numpy as np

from .scores import masked, weighed

__all__ = ["attention"]


def attention(
    q__bhqd: np.ndarray,
    k__bgkd: np.ndarray,
    v__bgke: np.ndarray,
    mask__bhqk: np.ndarray | None,
    lengths__b: np.ndarray | None,
    out__bhqe: np.ndarray,
    scale: float,
    causal: bool,
    offset: int,
    empty: int,
    k_transposed: bool,
    heads_last: bool,
) -> None:
    """``out = softmax(scale q kᵀ + mask) v``. g heads of keys and values serve h heads of queries, h / g neighbours each.

    Args:
        mask__bhqk: None, or added to the scores; every axis has its full size or 1.
        lengths__b: None, or how many keys each entry of the batch has; those after are not read.
        causal: query i sees the keys j <= i + `offset` alone; the others weigh exactly 0.
        empty: the result of a query whose scores are all -infinity: 0 zeros, 1 NaN, 2 what weights of 0 give (zeros, if values
            are finite), also where a weight is NaN.
        k_transposed: k is (b, g, d, k).
        heads_last: q is (b, q, h, d), k (b, k, g, d), v (b, k, g, e), out (b, q, h, e); not with `k_transposed`.
    """
    if heads_last:
        q__bhqd, k__bgkd, v__bgke, out__bhqe = (x.swapaxes(1, 2) for x in (q__bhqd, k__bgkd, v__bgke, out__bhqe))
    if not out__bhqe.size:
        return
    b, h, rows, d = q__bhqd.shape
    g, keys = v__bgke.shape[1:3]
    grouped = (b, g, h // g * rows)
    k = (k__bgkd if k_transposed else k__bgkd.swapaxes(2, 3)).astype(np.float64)
    with np.errstate(all="ignore"):
        v = v__bgke.astype(np.float64)
        if lengths__b is not None:  # what is after a sequence may be NaN
            behind = np.arange(keys)[:, None] >= lengths__b.reshape(-1, 1, 1, 1)
            k, v = np.where(behind.swapaxes(2, 3), 0, k), np.where(behind, 0, v)
        scores = (q__bhqd.reshape(*grouped, d).astype(np.float64) @ k).reshape(b, h, rows, keys)
        weights, nothing = weighed(masked(scores, mask__bhqk, lengths__b, scale, causal, offset))
        out = (weights.reshape(*grouped, keys) @ v).reshape(out__bhqe.shape)
        if empty == 2:
            zeros = np.repeat((v * 0).sum(axis=2, keepdims=True), h // max(g, 1), axis=1)
            out__bhqe[...] = np.where(nothing | np.isnan(weights).any(axis=3, keepdims=True), zeros, out)
            return
        out__bhqe[...] = np.where(nothing, np.nan if empty else 0, out)
