"""Cases of the packed matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import UNARY, Activation

from . import Case, normal


def _linear(m: int, k: int, n: int, activation: str = "identity", residual: bool = False) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, m, k),
            "packed": {"weight": normal(rng, n, k, fan_in=k), "bias": normal(rng, n)},
            "out": np.empty((m, n), np.float32),
            "residual": normal(rng, m, n) if residual else None,
            "activation": Activation(UNARY[activation].code, *UNARY[activation].defaults),
        }

    label = f"{m}x{k}x{n}" + (f" {activation}" if activation != "identity" else "") + (" residual" if residual else "")
    return Case("linear", label, arguments, 2.0 * m * n * k, 4.0 * (m * k + n * k + m * n))


CASES: tuple[Case, ...] = (
    _linear(1, 10, 10),
    _linear(1, 256, 256),
    _linear(1, 1024, 1024),
    _linear(1, 4096, 4096),
    _linear(8, 1024, 1024),
    _linear(49, 2048, 1000),
    _linear(128, 768, 768),
    _linear(128, 768, 3072),
    _linear(128, 768, 3072, "gelu"),
    _linear(128, 3072, 768, residual=True),
    _linear(196, 256, 1024, "relu"),
    _linear(784, 1152, 128),
    _linear(1000, 64, 48, "relu", residual=True),
)
