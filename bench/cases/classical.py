"""Steps of classical models around their products."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.grams import grams_of, table_of

from . import Case


def _places(size: int, keys: int, apart: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        known = np.sort(rng.choice(apart * keys, keys, replace=False))
        table, offset = table_of(known)
        x = rng.integers(-5, apart * keys + 5, size)
        return {"x": x, "keys": known, "table": table, "out": np.zeros(size, np.int64), "offset": offset}

    return Case("places", f"{size} of {keys} keys, {apart} apart", arguments, moved=16.0 * size)


def _grams(rows: int, length: int, count: int, longest: int, samples: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        sequences = [rng.integers(0, 50, 1 + i % longest).tolist() for i in range(count)]
        tree = grams_of(sequences, range(count), np.ones(count, np.float32), 51)
        x, out = rng.integers(0, 52, (rows, length)), np.zeros((rows, count), np.float32)
        return {"x": x, **tree._asdict(), "out": out, "samples": samples, "last": False}

    return Case("grams", f"{rows}x{length} {count} to {longest}, {samples} steps", arguments, moved=4.0 * rows * count)


def _pairs(rows: int, classes: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        pairs = classes * (classes - 1) // 2
        x = rng.standard_normal((rows, pairs)).astype(np.float32)
        scale, shift = -1 - rng.random(pairs), 0.1 * rng.standard_normal(pairs)
        return {"x": x, "scale": scale, "shift": shift, "out": np.zeros((rows, classes), np.float32)}

    return Case("pair_probabilities", f"{rows}x{classes}", arguments, flops=40.0 * rows * classes**2)


CASES: tuple[Case, ...] = (
    _places(4000, 50, 3),
    _places(4000, 300, 1 << 20),
    _grams(1000, 20, 100, 2, 1),
    _grams(100, 60, 300, 3, 3),
    _pairs(1000, 3),
    _pairs(100, 10),
)
