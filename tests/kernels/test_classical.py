"""Kernels of classical models against plain loops: no values, extremes of int64, neighbours of keys, sequences, threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ShapeError
from fastlayers.kernels import dispatch
from fastlayers.kernels.grams import grams_of, table_of
from tests.guard import guarded

ENDS = np.iinfo(np.int64)


def placed(x: np.ndarray, keys: np.ndarray, form: Any = table_of) -> list[int]:
    table, offset = form(keys)
    out = guarded(np.zeros(x.shape, np.int64), "end")
    dispatch.kernel("places")(guarded(x, "end"), guarded(keys, "end"), guarded(table, "end"), out, offset)
    found: list[int] = out.reshape(-1).tolist()
    return found


def test_positions_of_keys(variant: str) -> None:
    rng = np.random.default_rng(0)
    for count, apart in ((0, 1), (1, 1), (2, 1 << 40), (7, 3), (300, 2), (301, 1 << 30)):
        keys = np.unique(rng.integers(-apart * count, apart * count + 1, count))
        near = np.concatenate([keys, keys + 1, keys - 1, [0, ENDS.min, ENDS.max]]).astype(np.int64)
        for x in (near, near[:0], near[:1], np.tile(near, 40)):
            where = {int(key): i for i, key in enumerate(keys)}
            assert placed(x, keys) == [where.get(int(v), len(keys)) for v in x]
    for keys in (np.array([ENDS.min, ENDS.max]), np.array([ENDS.max - 1, ENDS.max]), np.array([ENDS.min, ENDS.min + 2])):
        assert placed(np.array([ENDS.min, ENDS.max, 0, -1, ENDS.min + 2]), keys)[:2] == [
            *(keys.tolist().index(v) if v in keys else len(keys) for v in (ENDS.min, ENDS.max))
        ]
        # Found by searching too, where keys have a table.
        assert placed(keys, keys, lambda keys: (np.zeros(0, np.int64), 0)) == [0, 1]


def test_a_table_is_no_larger_than_its_keys_deserve() -> None:
    assert len(table_of(np.array([0, 1 << 40]))[0]) == 0
    assert len(table_of(np.arange(0, 100, 3))[0]) == 100


def counted(x: list[int], sequences: dict[tuple[int, ...], int], columns: int, steps: int, last: bool) -> list[float]:
    """Every window of every length and step."""
    out = [0.0] * columns
    for i in range(len(x)):
        for length in range(1, 5):
            for step in range(1, (1 if length == 1 else steps) + 1):
                window = tuple(x[i : i + (length - 1) * step + 1 : step])
                if len(window) == length and window in sequences:
                    column = sequences[window]
                    out[column] = 0.5 + column + (0 if last else out[column])
    return out


@pytest.mark.parametrize("last", [False, True])
def test_sequences_of_a_pool(variant: str, last: bool) -> None:
    rng = np.random.default_rng(1)
    for count, rows, length, steps in ((0, 3, 5, 1), (1, 1, 1, 1), (1, 0, 4, 2), (40, 7, 0, 1), (60, 33, 17, 1), (200, 9, 23, 4)):
        drawn = dict.fromkeys(tuple(rng.integers(0, 5, 1 + i % 4).tolist()) for i in range(count))
        sequences = {sequence: i for i, sequence in enumerate(drawn)}
        columns = len(sequences)
        tree = grams_of(list(sequences), range(columns), 0.5 + np.arange(columns), 5)
        x = rng.integers(0, 6, (rows, length))  # 5 begins no sequence, nor does what is no symbol at all
        x[rng.random(x.shape) < 0.05] = rng.choice([-1, ENDS.min, ENDS.max])
        out = guarded(np.full((rows, columns), np.nan, np.float32), "end")
        given = [guarded(array, "end") for array in tree]
        dispatch.kernel("grams")(guarded(x, "end"), *given, out, steps, last)
        expected = [counted(row, sequences, columns, steps, last) for row in x.tolist()]
        np.testing.assert_array_equal(out, np.reshape(expected, (rows, columns)))


def test_of_equal_sequences_the_last_counts() -> None:
    tree = grams_of([[1, 2], [1], [1, 2]], [0, 1, 2], [1.0, 2.0, 3.0], 3)
    assert tree.columns.tolist() == [1, 2]
    assert tree.weight.tolist() == [2.0, 3.0]


def of_pairs(row: Any, scale: Any, shift: Any, classes: int) -> list[float]:
    """libsvm's iteration, number by number."""
    r, at = [[0.0] * classes for _ in range(classes)], 0
    for i in range(classes):
        for j in range(i + 1, classes):
            z = float(row[at]) * scale[at] + shift[at]
            one = 0.0 if z > 700 else 1 / (1 + math.exp(z))
            r[i][j] = min(max(one, 1e-7), 1 - 1e-7)
            r[j][i] = 1 - r[i][j]
            at += 1
    each = range(classes)
    q = [[sum(r[k][i] ** 2 for k in each if k != i) if i == j else -r[j][i] * r[i][j] for j in each] for i in each]
    p = [1 / classes] * classes
    for _ in range(100):
        qp = [sum(q[i][j] * p[j] for j in each) for i in each]
        total = sum(p[i] * qp[i] for i in each)
        if max(abs(v - total) for v in qp) < 0.005 / classes:
            break
        for i in each:
            step = (total - qp[i]) / q[i][i]
            p[i] += step
            total = (total + step * (step * q[i][i] + 2 * qp[i])) / (1 + step) ** 2
            for j in each:
                qp[j] = (qp[j] + step * q[i][j]) / (1 + step)
                p[j] /= 1 + step
    return p


def test_probabilities_of_pairs(variant: str) -> None:
    """To 1e-6: the same steps in double, whose sums have other orders."""
    rng = np.random.default_rng(2)
    for rows, classes in ((0, 3), (1, 2), (3, 1), (5, 0), (37, 3), (11, 7), (600, 4)):
        pairs = classes * (classes - 1) // 2
        x = (3 * rng.standard_normal((rows, pairs))).astype(np.float32)
        x[::5] *= 1000
        scale, shift = -1 - rng.random(pairs), rng.standard_normal(pairs)
        out = guarded(np.full((rows, classes), np.nan, np.float32), "end")
        dispatch.kernel("pair_probabilities")(guarded(x, "end"), guarded(scale, "end"), guarded(shift, "end"), out)
        if classes:
            expected = [of_pairs(row, scale, shift, classes) for row in x[:40]]
            np.testing.assert_allclose(out[:40], np.reshape(expected, (-1, classes)), 0, 1e-6)


def test_any_number_of_threads_has_the_same_bits(variant: str) -> None:
    rng = np.random.default_rng(3)
    x, scale = rng.standard_normal((5000, 6)).astype(np.float32), -1 - rng.random(6)
    found, before = [], fl.get_num_threads()
    for threads in (1, 2):
        fl.set_num_threads(threads)
        out = np.empty((5000, 4), np.float32)
        dispatch.kernel("pair_probabilities")(x, scale, scale, out)
        found.append(out)
    fl.set_num_threads(before)
    np.testing.assert_array_equal(*found)


def test_sizes_that_do_not_fit(variant: str) -> None:
    if not dispatch.variant(variant).steps:
        return  # the reference's are numpy's
    with pytest.raises(ShapeError, match="out has 2 elements: expected 3"):
        dispatch.kernel("places")(np.zeros(3, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(2, np.int64), 0)
    with pytest.raises(ShapeError, match="2 rows of 2 pairs"):
        dispatch.kernel("pair_probabilities")(np.zeros((2, 2), "f4"), np.zeros(2), np.zeros(2), np.zeros((2, 3), "f4"))
