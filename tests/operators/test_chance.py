"""Random numbers without a seed: others in every run and in every process, of the distribution that is asked for."""

from __future__ import annotations

import os

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.operators import View, chance
from fastlayers.operators._base import OPERATORS, Spec

from ..program.graphs import graph, node

F32 = np.dtype(np.float32)


def drawn(op: str, shape: tuple[int, ...], dtype: np.dtype = F32, **attributes: float) -> np.ndarray:
    """One run of RandomNormalLike or its kin."""
    x = np.zeros(shape, dtype)
    run = OPERATORS[op].run
    assert run is not None
    (made,) = run(View(node(f"y = {op}(x)", **attributes), [Spec(shape, dtype)], [None]), x)
    return made


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_numbers_are_of_their_distribution(dtype: str) -> None:
    kind = np.dtype(dtype)
    normal = drawn("RandomNormalLike", (200, 500), kind, scale=2.0, mean=1.0)
    uniform = drawn("RandomUniformLike", (200, 500), kind, low=-3.0, high=1.0)
    assert normal.dtype == uniform.dtype == kind
    assert abs(normal.mean(dtype=float) - 1) < 0.05 and abs(normal.std(dtype=float) - 2) < 0.05  # 7 standard errors
    assert abs(uniform.mean(dtype=float) + 1) < 0.05 and uniform.min() < -2.99 and 0.99 < uniform.max() <= 1
    plain = drawn("RandomNormalLike", (200, 500), kind)
    assert abs(plain.mean(dtype=float)) < 0.025 and abs(plain.std(dtype=float) - 1) < 0.025


def test_every_run_has_its_own() -> None:
    first, second = (drawn("RandomNormalLike", (50,)) for _ in range(2))
    assert not np.intersect1d(first, second).size
    seeded = [drawn("RandomNormalLike", (50,), seed=3.0) for _ in range(2)]
    np.testing.assert_array_equal(*seeded)
    np.testing.assert_array_equal(seeded[0], np.random.RandomState(3).standard_normal(50).astype(np.float32))


def test_a_child_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn("RandomNormalLike", (1,))
    before = chance._own
    assert before is not None
    state = before[1].bit_generator.state
    monkeypatch.setattr(os, "getpid", lambda: -1)
    child = drawn("RandomNormalLike", (50,))
    before[1].bit_generator.state = state
    parent = before[1].standard_normal(50, np.float32)
    assert not np.intersect1d(child, parent).size


def test_a_range_wider_than_float32_has() -> None:
    made = graph({"x": (100,)}, [node("y = RandomUniformLike(x)", low=-3e38, high=3e38)], ["y"])
    found = fl.Model(made).run({"x": np.zeros(100, np.float32)})["y"]
    assert np.isfinite(found).all() and found.min() < 0 < found.max()
