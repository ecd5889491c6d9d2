"""Attention in all its kinds."""

from __future__ import annotations

import numpy as np

from ._base import E, Example

_ALLOWED = np.random.default_rng(0).random((4, 6)) < 0.6
_ALLOWED[1] = False  # a query that sees nothing
_SDPA = "scaled_dot_product_attention"

EXAMPLES: list[Example] = [
    E(_SDPA, (4, 3), (6, 3), (6, 5), None, None),
    E(_SDPA, (2, 4, 3), (2, 6, 3), (2, 6, 5), _ALLOWED, np.array([6, 2]), scale=0.7),
    E(_SDPA, (2, 4, 3), (2, 6, 3), (2, 6, 5), (2, 4, 6), None, is_causal=True, need_weights=True),
    E(_SDPA, (2, 4, 5, 3), (2, 2, 6, 3), (2, 2, 6, 5), (5, 6), None, enable_gqa=True, is_causal=True, offset=1),
    E(_SDPA, (2, 2, 5, 3), (2, 2, 6, 3), (2, 2, 6, 5), None, np.array([3, 0]), need_weights="mean", need_scores=True),
    E(_SDPA, (2, 4, 12), (2, 6, 6), (2, 6, 10), _ALLOWED, None, num_heads=4, num_kv_heads=2, is_causal=True, offset=None),
    E(_SDPA, (2, 4, 12), (2, 6, 12), (2, 6, 8), (2, 1, 1, 6), np.array([5, 6]), num_heads=4, need_weights="mean"),
    E(_SDPA, (2, 4, 12), (2, 6, 6), (2, 6, 6), None, None, num_heads=4, num_kv_heads=2, need_weights=True, need_scores=True),
    E(_SDPA, (0, 4, 3), (0, 6, 3), (0, 6, 5), None, None, need_weights=True),
    E("additive_attention", (4, 3), (6, 3), (6, 5), None, None, None, None, None),
    E("additive_attention", (2, 4, 3), (2, 6, 2), (2, 6, 5), (7, 3), (7, 2), (7,), _ALLOWED, np.array([6, 2])),
    E("additive_attention", (2, 4, 3), (2, 6, 3), (2, 6, 5), None, None, (3,), None, np.array([6, 0]), is_causal=True),
    E("additive_attention", (2, 4, 3), (2, 6, 7), (2, 6, 5), (7, 3), None, None, None, None, need_weights=True, need_scores=True),
    E("additive_attention", (0, 4, 3), (0, 6, 3), (0, 6, 5), None, None, None, None, None, need_weights=True),
    E("rotary_embedding", (2, 3, 5, 8), (5, 4), (5, 4), None),
    E("rotary_embedding", (2, 5, 24), (2, 5, 3), (2, 5, 3), None, num_heads=3, rotary_dim=6, interleaved=True),
    E("rotary_embedding", (2, 5, 24), (9, 4), (9, 4), np.array([[8, 0, 1, 2, 3], [0, 1, 2, 3, 4]]), num_heads=3),
    E("rotary_embedding", (0, 5, 24), (5, 4), (5, 4), None, num_heads=3),
    E("hard_attention", (4, 3), (6, 3), (6, 5), _ALLOWED, None),
    E("hard_attention", (2, 4, 3), (2, 6, 3), (2, 6, 5), None, np.array([6, 0]), mode="sample", seed=3),
    E("hard_attention", (2, 4, 3), (2, 0, 3), (2, 0, 5), None, None),
    E(_SDPA, (2, 4, 3), (2, 0, 3), (2, 0, 5), None, None, need_weights=True),
]
