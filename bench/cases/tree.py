"""Hierarchical softmax over a vocabulary, vectors of 128."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.functional._tree_classes import ClassTree

from . import Case, normal


def _tree(n: int) -> ClassTree:
    """Counts as words have them: inversely as their rank."""
    return ClassTree.huffman(1e6 / np.arange(1, n + 1))


def _log_prob(rows: int, d: int, n: int, bias: bool) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        tree = _tree(n)
        return {
            "x": normal(rng, rows, d),
            "weight": normal(rng, n - 1, d, fan_in=d),
            "bias": normal(rng, n - 1) if bias else None,
            "targets": rng.integers(0, n, rows),
            "starts": tree.starts,
            "points": tree.points,
            "codes": tree.codes,
            "out": np.empty(rows, np.float32),
        }

    return Case("tree_log_prob", f"{rows}x{d} of {n}" + (" bias" if bias else ""), arguments, flops=2.0 * rows * d * np.log2(n))


def _distribution(rows: int, n: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        tree = _tree(n)
        out = np.empty((rows, n), np.float32)
        return {"x": normal(rng, rows, n - 1), "order": tree.order, "left": tree.left, "right": tree.right, "out": out}

    return Case("tree_distribution", f"{rows} of {n}", arguments, moved=8.0 * rows * n)


def _argmax(rows: int, d: int, n: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        tree = _tree(n)
        return {
            "x": normal(rng, rows, d) * 3,
            "weight": normal(rng, n - 1, d, fan_in=d),
            "bias": None,
            "order": tree.order,
            "left": tree.left,
            "right": tree.right,
            "ids": np.zeros(rows, np.int64),
            "out": np.empty(rows, np.float32),
            "depth": tree.depth,
        }

    return Case("tree_argmax", f"{rows}x{d} of {n}", arguments, flops=2.0 * rows * d * np.log2(n))


CASES: tuple[Case, ...] = (
    _log_prob(64, 128, 2000, False),
    _log_prob(5, 37, 50, True),
    _distribution(4, 2000),
    _argmax(16, 128, 500),
)
