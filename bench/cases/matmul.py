"""Products of two run-time operands: scores and values of attention, bilinear forms, a row against much memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import UNARY, Activation

from . import Case, normal


def _matmul(
    m: int, k: int, n: int, batch: int = 1, shared: str = "", transpose_b: bool = False, activation: str = "identity"
) -> Case:
    """`shared`: which operand, "a" or "b", is the same in the whole batch."""

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "a": normal(rng, 1 if shared == "a" else batch, m, k),
            "b": normal(rng, 1 if shared == "b" else batch, *((n, k) if transpose_b else (k, n)), fan_in=k),
            "out": np.empty((batch, m, n), np.float32),
            "transpose_b": transpose_b,
            "activation": Activation(UNARY[activation].code, *UNARY[activation].defaults),
        }

    label = f"{batch}x{m}x{k}x{n}" + (f" one {shared}" if shared else "") + (" transposed" if transpose_b else "")
    label += f" {activation}" if activation != "identity" else ""
    sizes = (1 if shared == "a" else batch) * m * k + (1 if shared == "b" else batch) * k * n + batch * m * n
    return Case("matmul", label, arguments, 2.0 * batch * m * n * k, 4.0 * sizes)


CASES: tuple[Case, ...] = (
    _matmul(128, 64, 128, batch=12, transpose_b=True),
    _matmul(128, 128, 64, batch=12),
    _matmul(512, 64, 512, batch=12, transpose_b=True),
    _matmul(512, 512, 512),
    _matmul(196, 768, 768, transpose_b=True, activation="gelu"),
    _matmul(49, 49, 32, batch=48),
    _matmul(1, 1024, 1024),
    _matmul(1, 1024, 1024, transpose_b=True),
    _matmul(4, 300, 70, batch=3),
    _matmul(3, 300, 70, batch=3, transpose_b=True, activation="relu"),
    _matmul(20, 100, 90, batch=6, shared="a"),
    _matmul(20, 100, 90, batch=6, shared="b", activation="tanh"),
    _matmul(8, 8, 8, batch=100, transpose_b=True),
    _matmul(5000, 40, 33),
)
