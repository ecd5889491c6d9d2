"""Normalization: layers of transformers, batch normalization that no convolution took in, local response of older networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import UNARY, Activation

from . import Case, normal


def _layer_norm(rows: int, n: int, rms: bool = False, bias: bool = True) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, rows, n) * 4 + 1,
            "weight": normal(rng, n),
            "bias": normal(rng, n) if bias else None,
            "out": np.empty((rows, n), np.float32),
            "epsilon": 1e-5,
            "rms": rms,
        }

    label = f"{rows}x{n}" + (" rms" if rms else "") + ("" if bias else " no bias")
    return Case("layer_norm", label, arguments, moved=8.0 * rows * n)


def _group_norm(outer: int, channels: int, inner: int, groups: int) -> Case:
    shape = (outer, channels, inner)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, *shape) * 4 + 1,
            "weight": normal(rng, channels),
            "bias": normal(rng, channels),
            "out": np.empty(shape, np.float32),
            "groups": groups,
            "epsilon": 1e-5,
        }

    return Case("group_norm", f"{'x'.join(map(str, shape))} {groups}", arguments, moved=8.0 * outer * channels * inner)


def _affine(outer: int, channels: int, inner: int, activation: str = "relu") -> Case:
    shape = (outer, channels, inner)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, *shape),
            "scale": normal(rng, channels),
            "shift": normal(rng, channels),
            "out": np.empty(shape, np.float32),
            "activation": Activation(UNARY[activation].code, *UNARY[activation].defaults),
        }

    return Case("affine", f"{'x'.join(map(str, shape))} {activation}", arguments, moved=8.0 * outer * channels * inner)


def _lrn(outer: int, channels: int, inner: int, size: int = 5, beta: float = 0.75) -> Case:
    shape = (outer, channels, inner)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        out = np.empty(shape, np.float32)
        return {"x": normal(rng, *shape) * 4, "out": out, "size": size, "alpha": 0.1, "beta": beta, "bias": 1.0}

    return Case("lrn", f"{'x'.join(map(str, shape))} {size} {beta}", arguments, moved=8.0 * outer * channels * inner)


CASES: tuple[Case, ...] = (
    _layer_norm(128, 768),
    _layer_norm(3136, 96),
    _layer_norm(196, 32, bias=False),
    _layer_norm(16, 4096, rms=True, bias=False),
    _layer_norm(1, 768),
    _group_norm(1, 64, 3136, 32),
    _group_norm(2, 512, 49, 512),
    _group_norm(128, 48, 1, 4),
    _affine(1, 64, 3136),
    _affine(3136, 64, 1),
    _affine(1, 1024, 49),
    _affine(16, 512, 4, "identity"),
    _affine(2000, 10, 1, "silu"),
    _lrn(1, 64, 3136),
    _lrn(3136, 64, 1),
    _lrn(1, 96, 49, 4, 0.6),
)
