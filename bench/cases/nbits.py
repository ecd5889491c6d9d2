"""Products with weights of few bits: shapes of language models of 0.5 to 7 billion weights, cut down, and awkward ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import NBITS_SUMS, UNARY, Activation

from . import Case, normal


def _case(
    m: int, k: int, n: int, bits: int = 4, block: int = 32, sums: str = "exact", zeros: str = "", activation: str = "identity"
) -> Case:  # fmt: skip
    blocks = -(-k // block)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        zero = None
        if zeros:
            zero = rng.integers(0, 1 << bits, (n, blocks)).astype(np.uint8 if zeros == "bytes" else np.float32)
        packed = {
            "weight": rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
            "scale": (rng.uniform(0.5, 1.5, (n, blocks)) / (np.sqrt(k) * (1 << bits - 2))).astype(np.float32),
            "zero": zero, "bias": normal(rng, n), "size": k, "bits": bits, "codes": None,
        }  # fmt: skip
        return {
            "x": normal(rng, m, k), "packed": packed, "out": np.empty((m, n), np.float32), "mode": NBITS_SUMS[sums],
            "activation": Activation(UNARY[activation].code),
        }  # fmt: skip

    label = (
        f"{m}x{k}->{n} {bits} bits by {block} {sums}"
        + f" zeros {zeros}" * bool(zeros)
        + f" {activation}" * (activation != "identity")
    )
    return Case("nbits", label, arguments, 2.0 * m * k * n, n * blocks * (block * bits / 8 + 4) + 4.0 * m * (k + n))


CASES: tuple[Case, ...] = (
    _case(1, 2048, 2048),
    _case(1, 2048, 2048, sums="integer"),
    _case(1, 896, 4864, 8, sums="integer"),
    _case(4, 896, 1024, 4, 128, "integer", "bytes"),
    _case(8, 896, 1024, 8, 64),
    _case(32, 896, 1024, sums="integer"),
    _case(3, 100, 37, 2, 16, "exact", "bytes", "silu"),
    _case(7, 300, 70, 2, 64, "integer", "floats", "relu"),
    _case(5, 1000, 19, 4, 256, "exact", "floats"),
)
