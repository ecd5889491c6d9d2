"""Ensembles of decision trees: a boosted model, forests with a vector of shares at each leaf, every aggregate."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.tree_layout import AVERAGE, MAX, MEMBER, MIN, SUM

from . import Case

KINDS = {"sum": SUM, "mean": AVERAGE, "least": MIN, "largest": MAX}


def ensemble(
    rng: np.random.Generator, trees: int, depth: int, columns: int, targets: int, dtype: Any, modes: int
) -> dict[str, Any]:
    """The arguments of `tree_ensemble_pack`: trees some of whose branches end early; `modes`: how many of them there are."""
    nodes = (1 << depth) - 1
    count = trees * nodes
    child = 2 * np.arange(nodes) + 1
    first = np.arange(trees)[:, None] * nodes
    last = child >= nodes
    yes, no = (np.where(last, -1, first + side).reshape(-1) for side in (child, child + 1))
    early = rng.random(count) < 0.1
    yes[early] = -1
    ends = np.flatnonzero(np.concatenate([yes, no]) < 0)
    both = np.concatenate([yes, no])
    both[ends] = -1 - np.arange(len(ends))
    yes, no = np.split(both, 2)
    split = np.round(rng.standard_normal(count), 1).astype(dtype)
    mode = rng.integers(0, modes, count)
    sets = [np.append(np.round(rng.standard_normal(3), 1), np.nan) for _ in range(int((mode == MEMBER).sum()))]
    size = len(ends) * targets
    return {
        "roots": first[:, 0].copy(), "feature": rng.integers(0, columns, count), "split": split, "modes": mode,
        "yes": yes, "no": no,
        "missing": rng.integers(0, 2, count), "members": np.concatenate(sets).astype(dtype) if sets else None,
        "starts": np.arange(len(ends) + 1) * targets, "targets": np.tile(np.arange(targets), len(ends)),
        "weight": rng.standard_normal(size).astype(dtype), "size": targets,
    }  # fmt: skip


def _trees(
    rows: int, trees: int, depth: int, columns: int, targets: int = 1, how: str = "sum", dtype: Any = np.float32, modes: int = 1
) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        packed = ensemble(rng, trees, depth, columns, targets, dtype, modes)
        x = np.round(rng.standard_normal((rows, columns)), 1).astype(dtype)
        x[rng.random(rows) < 0.1, 0] = np.nan
        return {
            "x": x, "packed": packed, "base": rng.standard_normal(targets), "out": np.empty((rows, targets), dtype),
            "op": KINDS[how],
        }  # fmt: skip

    words = f"{rows}x{columns} {trees} of {depth} to {targets} {how} {np.dtype(dtype).name}" + f" {modes} modes" * (modes > 1)
    return Case("tree_ensemble", words, arguments, flops=2.0 * rows * trees * depth)


CASES: tuple[Case, ...] = (
    _trees(1, 500, 6, 30),
    _trees(100, 500, 6, 30),
    _trees(70, 100, 8, 20, 5, "mean"),
    _trees(9, 20, 5, 7, dtype=np.float64),
    _trees(33, 30, 4, 4, 3, "least", modes=7),
    _trees(8, 11, 4, 4, 2, "largest", np.float64, modes=7),
    _trees(67, 9, 3, 2000),
)
