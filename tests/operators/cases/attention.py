"""Attention as functions and layers make it, and positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case, case, numbers


def small(*shape: int) -> np.ndarray:
    return (np.sin(numbers(*shape) * 1.7) * 0.8).astype(np.float32)


def softmax(scores: np.ndarray, lengths: Any, causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Masked scores (n, h, l, s), and their weights; rows that see nothing are zeros."""
    rows, keys = scores.shape[-2:]
    open_ = np.ones((1, 1, rows, keys), bool) if lengths is None else np.arange(keys) < lengths[:, None, None, None]
    if causal:
        open_ = open_ & (np.arange(rows)[:, None] >= np.arange(keys))
    scores = np.where(open_, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
    return scores, np.where(np.isneginf(scores).all(-1, keepdims=True), 0, weights)


def rounded(*arrays: np.ndarray) -> list[np.ndarray]:
    return [a.astype(np.float32) for a in arrays]


def dot(
    label: str, q: Any, k: Any, v: Any, mask: Any = None, lengths: Any = None, causal: bool = False, need: Any = False
) -> Case:
    a, b, c = (small(*s).astype(np.float64) for s in (q, k, v))
    group = q[1] // k[1]
    scores = a @ b.repeat(group, 1).swapaxes(2, 3) * 0.5 + (0 if mask is None else mask)
    scores, weights = softmax(scores, lengths, causal)
    want = [weights @ c.repeat(group, 1), *([weights.mean(1)] if need else []), *([scores] if need else [])]
    inputs = [small(*q), small(*k), small(*v), mask, lengths]
    settings = {"scale": 0.5, "is_causal": causal, "enable_gqa": group > 1, "num_heads": None, "num_kv_heads": None, "offset": 0}
    settings |= {"need_weights": "mean" if need else False, "need_scores": bool(need)}
    return case("DotAttention", label, inputs, *rounded(*want), data=5, native=True, ulp=64, **settings)


def additive(label: str, q: Any, k: Any, v: Any, scale: Any, mask: Any, lengths: Any, causal: bool = False) -> Case:
    a, b, c = (small(*s).astype(np.float64) for s in (q, k, v))
    scores = (np.tanh(a[:, :, None] + b[:, None]) * (1 if scale is None else scale)).sum(3) + (0 if mask is None else mask)
    scores, weights = (x[:, 0] for x in softmax(scores[:, None], lengths, causal))
    inputs = [small(*q), small(*k), small(*v), None, None, scale, mask, lengths]
    settings = {"is_causal": causal, "need_weights": True, "need_scores": True}
    return case(
        "AdditiveAttention", label, inputs, *rounded(weights @ c, weights, scores), data=8, native=True, ulp=128, **settings
    )


def rotary(label: str, half: int, ids: Any = None, interleaved: int = 0) -> Case:
    x, cos, sin = small(2, 3, 5, 8), small(*((7, half) if ids is not None else (2, 5, half))), small(7, half)
    sin = sin if ids is not None else small(2, 5, half) * np.float32(0.5)
    c, s = (t[ids][:, None] if ids is not None else t[:, None] for t in (cos, sin))
    want = x.copy()
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        want[..., a] = x[..., a] * c[..., i] - x[..., b] * s[..., i]
        want[..., b] = x[..., a] * s[..., i] + x[..., b] * c[..., i]
    inputs = [x, cos, sin] if ids is None else [x, cos, sin, ids]
    return case("RotaryEmbedding", label, inputs, want, data=len(inputs), native=True, ulp=16, interleaved=interleaved)


_HARD = {"mode": "argmax", "seed": None, "scale": 1.0}
_QUERY, _KEYS, _VALUES = small(1, 2, 3), small(1, 4, 3), small(1, 4, 2)
_BEST = (_QUERY @ _KEYS.swapaxes(1, 2)).argmax(2)
_CHOICE = np.eye(4, dtype=np.float32)[_BEST]

CASES = [
    dot("plain", (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6)),
    dot("grouped, mask, lengths", (2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6), small(2, 1, 3, 5), np.array([5, 2])),
    dot("causal, all results", (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 6), small(3, 5), np.array([0, 4]), True, True),
    additive("plain", (2, 3, 4), (2, 5, 4), (2, 5, 6), None, None, None),
    additive("scale, mask, lengths", (2, 3, 4), (2, 5, 4), (2, 5, 6), small(4), small(3, 5), np.array([0, 4]), True),
    case(
        "HardAttention", "argmax", [_QUERY, _KEYS, _VALUES, None, None], _VALUES[:, _BEST[0]], _CHOICE, data=5, **_HARD,
    ),
    rotary("a row for each", 4),
    rotary("interleaved, part of a head", 3, interleaved=1),
    rotary("rows by number", 4, np.array([[0, 6, 1, 2, 3], [5, 4, 3, 2, 1]])),
]  # fmt: skip
