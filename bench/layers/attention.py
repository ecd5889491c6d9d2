"""Attention: encoders' and decoders' shapes."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, normal, np


def _rng() -> np.random.Generator:
    return np.random.default_rng(1)


def sdpa(batch: int, heads: int, rows: int, keys: int, d: int, causal: bool = False, groups: int = 0) -> Pair:
    rng = _rng()
    groups = groups or heads
    q, k, v = normal(rng, batch, heads, rows, d), normal(rng, batch, groups, keys, d), normal(rng, batch, groups, keys, d)
    gqa = groups != heads

    def theirs(torch: Any) -> Any:
        tq, tk, tv = (torch.tensor(x) for x in (q, k, v))
        function = torch.nn.functional.scaled_dot_product_attention
        return lambda: function(tq, tk, tv, is_causal=causal, enable_gqa=gqa)

    function = fl.functional.scaled_dot_product_attention
    flops = 4.0 * batch * heads * rows * keys * d / (2 if causal else 1)
    return Pair(lambda: function(q, k, v, is_causal=causal, enable_gqa=gqa), theirs, flops)


def sdpa_mask(batch: int, heads: int, size: int, d: int) -> Pair:
    rng = _rng()
    q, k, v = (normal(rng, batch, heads, size, d) for _ in range(3))
    mask = np.arange(size) < np.linspace(size // 2, size, batch).astype(int)[:, None, None, None]

    def theirs(torch: Any) -> Any:
        tq, tk, tv, tm = (torch.tensor(x) for x in (q, k, v, mask))
        return lambda: torch.nn.functional.scaled_dot_product_attention(tq, tk, tv, tm)

    return Pair(lambda: fl.functional.scaled_dot_product_attention(q, k, v, mask), theirs, 4.0 * batch * heads * size * size * d)


_SDPA = ("scaled_dot_product_attention",)

ROWS = [
    Row(_SDPA, "B1 H12 S128 D64", partial(sdpa, 1, 12, 128, 128, 64)),
    Row(_SDPA, "B1 H12 S512 D64", partial(sdpa, 1, 12, 512, 512, 64)),
    Row(_SDPA, "B1 H12 S512 D64 causal", partial(sdpa, 1, 12, 512, 512, 64, True)),
    Row(_SDPA, "B1 H8 S2048 D64", partial(sdpa, 1, 8, 2048, 2048, 64)),
    Row(_SDPA, "B8 H4 S32 D32", partial(sdpa, 8, 4, 32, 32, 32)),
    Row(_SDPA, "B1 H8 one query, 512 keys D64", partial(sdpa, 1, 8, 1, 512, 64)),
    Row(_SDPA, "B1 H32 over 8, S128 D64 causal", partial(sdpa, 1, 32, 128, 128, 64, True, 8)),
    Row(_SDPA, "B4 H12 S128 D64, boolean mask", partial(sdpa_mask, 4, 12, 128, 64)),
]
