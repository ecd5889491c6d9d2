"""How the goldens made of cases are kept: one array of all values, and what they are, by label and part.

A thousand small arrays in an .npz would mostly be headers. Makers draw inputs and weights as multiples of 1/64, which float32
holds exactly and which compress well; only results need all their digits.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

# A case's arrays by part: "weights", "inputs", "outputs", ... as each maker says.
Case = dict[str, list[np.ndarray]]


def grid(rng: np.random.Generator, shape: tuple[int, ...], scale: float = 0.5) -> np.ndarray:
    """About normal numbers, multiples of 1/64."""
    return np.asarray(np.round(rng.standard_normal(shape) * scale * 64) / 64, np.float32)


def write(path: Path, cases: dict[str, Case]) -> None:
    index = {
        label: {part: [[array.dtype.kind, *array.shape] for array in arrays] for part, arrays in case.items()}
        for label, case in cases.items()
    }
    flat = [array.astype(np.float32).ravel() for case in cases.values() for arrays in case.values() for array in arrays]
    np.savez_compressed(path, index=np.array(json.dumps(index)), data=np.concatenate(flat))


def read(path: Path) -> dict[str, Case]:
    """Integers come back as int64, masks as bool, the rest as float32."""
    with np.load(path) as file:
        index, data = json.loads(str(file["index"])), file["data"]
    kinds = {"i": np.int64, "b": np.bool_, "f": np.float32}
    cases: dict[str, Case] = {}
    start = 0
    for label, parts in index.items():
        cases[label] = {part: [] for part in parts}
        for part, arrays in parts.items():
            for kind, *shape in arrays:
                stop = start + int(np.prod(shape))
                cases[label][part].append(data[start:stop].reshape(shape).astype(kinds[kind]))
                start = stop
    return cases


def drawn(label: str, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Weights that need not be stored: the label is the seed; small enough that deep sums stay near 1."""
    rng = np.random.default_rng(zlib.crc32(label.encode()))
    scale = [1 / np.sqrt(max(1, int(np.prod(shape[:-1])))) if len(shape) > 1 else 0.1 for shape in shapes]
    return [(rng.standard_normal(shape) * s).astype(np.float32) for shape, s in zip(shapes, scale, strict=True)]
