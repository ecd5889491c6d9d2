"""Linear attention: a prompt and one step of models with a state, all rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case, normal


def _linear(b: int, t: int, heads: int, groups: int, d: int, e: int, gates: int = 0, betas: int = 0, past: bool = True) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        keys = normal(rng, b, t, groups, d)
        keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True)  # or states grow without bound
        return {
            "q": normal(rng, b, t, heads * d), "k": keys.reshape(b, t, -1), "v": normal(rng, b, t, groups * e),
            "past": normal(rng, b, groups, d, e) if past else None,
            "gate": np.exp(-np.abs(normal(rng, b, t, groups * gates))) if gates else None,
            "beta": np.abs(np.tanh(normal(rng, b, t, betas))) if betas else None,
            "out": np.empty((b, t, heads * e), np.float32), "state": np.empty((b, groups, d, e), np.float32), "scale": d**-0.5,
        }  # fmt: skip

    label = f"{b}x{t} {heads}/{groups} heads {d}x{e}" + f" {gates} gates" * (gates > 0) + f" {betas} betas" * (betas > 0)
    flops = 2.0 * b * t * d * e * (heads + groups * (1 + (gates > 0) + (betas > 0)))
    return Case("linear_attention", label + " no past" * (not past), arguments, flops, 4.0 * b * groups * d * e)


CASES: tuple[Case, ...] = (
    _linear(1, 128, 8, 8, 64, 64, past=False),
    _linear(1, 128, 8, 4, 64, 128, gates=1, betas=4),
    _linear(1, 1, 16, 16, 128, 128, gates=1, betas=16),
    _linear(2, 9, 6, 3, 5, 70, gates=5, betas=1),
    _linear(2, 7, 2, 2, 3, 1, betas=2),
)
