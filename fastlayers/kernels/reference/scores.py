"""Attention whose scores are wanted as an array, in plain numpy: computed in float64, rounded at the end."""

from __future__ import annotations

import numpy as np

__all__ = ["additive_scores", "attention_weights", "masked", "weighed"]


def masked(
    scores: np.ndarray, mask: np.ndarray | None, lengths: np.ndarray | None, scale: float, causal: bool, offset: int
) -> np.ndarray:
    """scale x + mask as float32, -infinity for keys that causality or lengths forbid; (b, h, q, k), in float64.

    Rounded, since a score disappears next to -1e9 in float32: a row of nothing but such values weighs all keys alike.
    """
    rows, keys = scores.shape[2:]
    scores = scores * np.float64(np.float32(scale))
    if mask is not None:
        scores = (scores + mask).astype(np.float32).astype(np.float64)
    if causal:
        scores = np.where(np.arange(keys) <= np.arange(rows)[:, None] + offset, scores, -np.inf)
    if lengths is not None:
        scores = np.where(np.arange(keys) < lengths.reshape(-1, 1, 1, 1), scores, -np.inf)
    return scores


def weighed(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The softmax of scores along the last axis, 0 in rows of nothing but -infinity; and which rows those are, True."""
    largest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    nothing = largest == -np.inf
    weights = np.exp(scores - np.where(nothing, 0, largest))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.where(nothing, 0.0, weights), nothing


def attention_weights(
    x__bhqk: np.ndarray,
    mask__bhqk: np.ndarray | None,
    lengths__b: np.ndarray | None,
    scores__bhqk: np.ndarray,
    out__bhqk: np.ndarray,
    scale: float,
    causal: bool,
    offset: int,
    empty: int,
) -> None:
    """``scores = scale x + mask``, -infinity where causality or lengths forbid a key; ``out = softmax(scores)``.

    Args:
        mask__bhqk: None, or added; every axis has its full size or 1.
        lengths__b: None, or how many keys each entry of the batch has.
        scores__bhqk: may be x.
        causal: row i sees the keys j <= i + `offset` alone.
        empty: what a row of nothing but -infinity becomes: 0 zeros, 1 NaN.
    """
    if not out__bhqk.size:
        return
    with np.errstate(all="ignore"):
        scores = masked(x__bhqk.astype(np.float64), mask__bhqk, lengths__b, scale, causal, offset)
        weights, nothing = weighed(scores)
        out__bhqk[...] = np.where(nothing, np.nan if empty else 0, weights)
        scores__bhqk[...] = scores


def additive_scores(q__bqu: np.ndarray, k__bku: np.ndarray, scale__u: np.ndarray | None, out__bqk: np.ndarray) -> None:
    """``out = sum over u of scale tanh(q + k)``; a scale of None is ones."""
    with np.errstate(all="ignore"):
        for i in range(q__bqu.shape[1]):
            sums = np.tanh(q__bqu[:, i, None].astype(np.float64) + k__bku)
            out__bqk[:, i] = (sums if scale__u is None else sums * scale__u).sum(axis=2)
