"""Products of two arrays of bytes: the heads of attention in vision transformers and BERT, and one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import KINDS

from . import Case
from .qconv import numbers


def _case(batch: int, m: int, k: int, n: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        kind = KINDS["uint8"]
        return {
            "a": numbers(rng, "uint8", batch, m, k), "b": numbers(rng, "uint8", batch, k, n),
            "out": np.empty((batch, m, n), np.uint8), "options": (kind, kind, kind, 120, 131, 128, 0.5 / (5000 * np.sqrt(k))),
        }  # fmt: skip

    flops, moved = 2.0 * batch * m * k * n, float(batch * (m * k + k * n + m * n))
    return Case("qmatmul", f"{batch} x {m}x{k}x{n}", arguments, flops, moved)


SIZES = ((12, 197, 64, 197), (12, 197, 197, 64), (12, 128, 64, 128), (12, 1, 64, 128))
CASES: tuple[Case, ...] = tuple(_case(*sizes) for sizes in SIZES)
