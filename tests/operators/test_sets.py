"""Unique of integers that are close to each other, which are counted, next to numpy; and NonZero of several dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.ir.graph import Node
from fastlayers.operators import OPERATORS, Spec, View


def ran(op: str, x: np.ndarray, **attributes: Any) -> list[np.ndarray]:
    operator = OPERATORS[op]
    assert operator.run is not None
    return list(operator.run(View(Node(op, ("x",), ("y",), attributes), [Spec(x.shape, x.dtype)], [x]), x))


def test_distinct_integers() -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.int8, np.uint8, np.int32, np.uint64, np.int64):
        ends = np.iinfo(dtype)
        for low, high, count in ((0, 9, 50), (ends.max - 9, ends.max, 50), (ends.min, ends.min + 9, 7), (0, 0, 1), (5, 100, 0)):
            x = rng.integers(low, high, count, dtype=dtype, endpoint=True)
            want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
            for got, expected in zip(ran("Unique", x), want, strict=True):
                np.testing.assert_array_equal(got, expected.reshape(-1))
            assert ran("Unique", x)[0].dtype == dtype
    far = np.array([ends.min, ends.max, 0, ends.max])
    assert [part.tolist() for part in ran("Unique", far)] == [[ends.min, 0, ends.max], [0, 2, 1], [0, 2, 1, 2], [1, 1, 2]]
    came = ran("Unique", np.array([7, 3, 7, 5]), sorted=0)
    assert [part.tolist() for part in came] == [[7, 3, 5], [0, 1, 3], [0, 1, 0, 2], [2, 1, 1]]


def test_what_is_not_zero() -> None:
    for x in (np.array([0.0, -0.0, np.nan, 1, -np.inf]), np.array([[0, 3], [4, 0]]), np.array([[False, True]]), np.zeros((0, 2))):
        (got,) = ran("NonZero", x)
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, np.array(np.nonzero(x)))
    assert [ran("NonZero", np.array(v))[0].shape for v in (0.0, 2.0)] == [(0, 0), (0, 1)]
