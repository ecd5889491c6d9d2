"""Attention: encoders' and decoders' shapes, with the masks that exporters write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import Case, normal

Mask = Callable[[int, int], np.ndarray]


def _forbidden_by_adding(rows: int, keys: int) -> np.ndarray:
    """Causality as exporters spell it."""
    return np.triu(np.full((1, 1, rows, keys), -1e9, np.float32), 1)


def _padding(rows: int, keys: int) -> np.ndarray:
    """A quarter of the keys is padding."""
    return np.where(np.arange(keys) < keys - keys // 4, 0, -np.inf).astype(np.float32).reshape(1, 1, 1, keys)


def _bias(rows: int, keys: int) -> np.ndarray:
    """A number for every distance, as relative positions have it."""
    return (-0.1 * np.abs(np.arange(rows)[:, None] - np.arange(keys))).astype(np.float32).reshape(1, 1, rows, keys)


def _attention(
    batch: int,
    heads: int,
    rows: int,
    d: int,
    keys: int = 0,
    groups: int = 0,
    e: int = 0,
    causal: bool = False,
    mask: Mask | None = None,
    k_transposed: bool = False,
    heads_last: bool = False,
    lengths: tuple[int, ...] = (),
) -> Case:
    keys, groups, e = keys or rows, groups or heads, e or d

    def laid(*shape: int) -> tuple[int, ...]:
        return (shape[0], shape[2], shape[1], shape[3]) if heads_last else shape

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "q": normal(rng, *laid(batch, heads, rows, d)),
            "k": normal(rng, *laid(batch, groups, *((d, keys) if k_transposed else (keys, d)))),
            "v": normal(rng, *laid(batch, groups, keys, e)),
            "mask": None if mask is None else mask(rows, keys),
            "lengths": np.array(lengths) if lengths else None,
            "out": np.empty(laid(batch, heads, rows, e), np.float32),
            "scale": d**-0.5,
            "causal": causal,
            "offset": keys - rows,
            "empty": 0,
            "k_transposed": k_transposed,
            "heads_last": heads_last,
        }

    label = f"{batch}x{heads}x{rows}x{d}"
    label += f" {keys} keys" if keys != rows else ""
    label += f" {groups} groups" if groups != heads else ""
    label += f" values of {e}" if e != d else ""
    label += " causal" if causal else ""
    label += f" {mask.__name__.strip('_')}" if mask else ""
    label += " transposed" if k_transposed else ""
    label += " heads last" if heads_last else ""
    label += f" lengths {lengths}" if lengths else ""
    flops = 2.0 * batch * heads * rows * keys * (d + e) / (2 if causal or mask is _forbidden_by_adding else 1)
    return Case("attention", label, arguments, flops, 4.0 * batch * (heads * rows + groups * keys) * (d + e))


CASES: tuple[Case, ...] = (
    _attention(1, 12, 128, 64),
    _attention(1, 12, 512, 64),
    _attention(1, 12, 128, 64, heads_last=True),
    _attention(1, 12, 512, 64, heads_last=True),
    _attention(1, 12, 512, 64, causal=True),
    _attention(1, 12, 512, 64, mask=_forbidden_by_adding),
    _attention(1, 8, 2048, 64),
    _attention(8, 4, 64, 32),
    _attention(1, 12, 197, 64),
    _attention(1, 6, 1, 64, keys=448),
    _attention(1, 6, 1, 64, keys=1500),
    _attention(1, 32, 1, 64, keys=512, groups=4, causal=True),
    _attention(1, 4, 65, 40, mask=_forbidden_by_adding),
    _attention(2, 4, 50, 32, mask=_padding),
    _attention(16, 3, 49, 32, mask=_bias),
    _attention(1, 2, 100, 80, keys=77, e=24),
    _attention(1, 4, 60, 64, k_transposed=True),
    _attention(4, 12, 64, 32, heads_last=True, lengths=(64, 12, 33, 50)),
    _attention(1, 8, 1, 64, keys=300, groups=2, heads_last=True),
    _attention(1, 3, 33, 300, groups=1, causal=True),
)
