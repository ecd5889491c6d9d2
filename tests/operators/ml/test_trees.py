"""Trees against a walk node by node: every mode, missing values, infinities, every aggregate, one and two threads."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import ShapeError
from fastlayers.kernels import dispatch
from fastlayers.kernels.reference.trees import leaves_of
from fastlayers.kernels.tree_layout import AVERAGE, EQ, GT, GTE, LEQ, LT, MAX, MEMBER, MIN, SUM, trees_of
from fastlayers.kernels.tree_tops import tops_of

COMPARE = (operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne)
MODES = {"leq": (0,), "order": (0, 1, 2, 3), "equal": (0, 4, 5), "all": (0, 1, 2, 3, 4, 5, 6)}


class Forest:
    """Random trees, as the pack kernel takes them."""

    def __init__(
        self, rng: np.random.Generator, trees: int, depth: int, columns: int, targets: int, dtype: Any, modes: Any
    ) -> None:
        self.rng, self.columns, self.modes, self.leaves = rng, columns, modes, 0
        self.grid = np.round(rng.normal(size=12), 1).astype(dtype)
        self.nodes: list[list[Any]] = []
        roots = [self.grow(depth) for _ in range(trees)]
        columns_of = zip(*self.nodes, strict=True) if self.nodes else [()] * 6
        feature, split, mode, yes, no, missing = (np.array(column) for column in columns_of)
        sets = [[*rng.choice(self.grid, rng.integers(0, 5)), np.nan] for m in mode if m == MEMBER]
        counts = rng.integers(0, 3, self.leaves) if targets > 1 else np.ones(self.leaves, int)
        starts = np.concatenate([[0], np.cumsum(counts)])
        whole = [a.astype(np.int64) for a in (np.array(roots), feature, mode, yes, no, missing, starts)]
        members = np.array([v for values in sets for v in values], dtype) if sets else None
        self.arguments = (
            whole[0], whole[1], split.astype(dtype), *whole[2:6], members, whole[6],
            rng.integers(0, targets, starts[-1]), rng.normal(size=starts[-1]).astype(dtype), targets,
        )  # fmt: skip

    def grow(self, depth: int) -> int:
        """A child: a node, or a leaf."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            self.leaves += 1
            return -self.leaves
        at = len(self.nodes)
        special = rng.random() < 0.1
        split = rng.choice([np.inf, -np.inf, np.nan, 0.0]) if special else rng.choice(self.grid)
        self.nodes.append([rng.integers(self.columns), split, rng.choice(self.modes), 0, 0, rng.random() < 0.5])
        self.nodes[at][3], self.nodes[at][4] = self.grow(depth - 1), self.grow(depth - 1)
        return at


def walked(arguments: Any, x: np.ndarray, op: int) -> np.ndarray:
    """One comparison after the other."""
    roots, feature, split, mode, yes, no, missing, members, starts, targets, weight, count = arguments
    sets: dict[int, list[float]] = {}
    ends = iter(np.flatnonzero(mode == MEMBER).tolist())
    found: list[float] = []
    for value in [] if members is None else members:
        if np.isnan(value):
            sets[next(ends)], found = found, []
        else:
            found.append(value)
    out, seen = np.zeros((len(x), count)), np.zeros((len(x), count), bool)
    for r, row in enumerate(x):
        for at in roots.tolist():
            while at >= 0:
                value = row[feature[at]]
                taken = value in sets[at] if mode[at] == MEMBER else COMPARE[mode[at]](value, split[at])
                at = (yes if taken or (np.isnan(value) and missing[at]) else no)[at]
            for i in range(starts[-1 - at], starts[-at]):
                t, w = targets[i], float(weight[i])
                if op in (MIN, MAX):
                    out[r, t] = (min if op == MIN else max)(out[r, t], w) if seen[r, t] else w
                    seen[r, t] = True
                else:
                    out[r, t] += w
    return out / len(roots) if op == AVERAGE else out


@pytest.mark.usefixtures("kept_threads")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("modes", sorted(MODES))
def test_walks(variant: str, modes: str, dtype: Any) -> None:
    rng = np.random.default_rng([sorted(MODES).index(modes), np.dtype(dtype).itemsize])
    for trial, rows in enumerate((0, 1, 3, 7, 8, 9, 70) * 2):
        columns, targets, op = int(rng.integers(1, 6)), int(rng.integers(1, 5)), trial % 4
        forest = Forest(rng, int(rng.integers(1, 20)), int(rng.integers(0, 6)), columns, targets, dtype, MODES[modes])
        more = [np.inf, -np.inf, -0.0, np.nan] if trial % 2 else []
        x = rng.choice(np.array([*forest.grid, 0.07, *more], dtype), (rows, columns))
        packed = dispatch.kernel("tree_ensemble_pack")(*forest.arguments)
        made = []
        for threads in (1, 2):
            fl.set_num_threads(threads)
            out = np.full((rows, targets), 7, dtype)
            dispatch.kernel("tree_ensemble")(x, packed, None, out, op)
            made.append(out)
        want = walked(forest.arguments, x, op).astype(dtype)
        np.testing.assert_array_equal(made[0], made[1])
        np.testing.assert_allclose(made[0], want, rtol=1e-6, atol=1e-7)


def given(forest: Forest, rows: int, missing: bool) -> np.ndarray:
    """Rows of splits, of numbers between them and of what is none; all have to be told from each other."""
    more = [np.inf, -np.inf, -0.0, 0.07, *([np.nan] if missing else [])]
    return forest.rng.choice(np.array([*forest.grid, *more], np.float32), (rows, forest.columns))


@pytest.mark.usefixtures("kept_threads")
@pytest.mark.parametrize("columns", [3, 16, 17, 32, 33, 48, 49, 64, 65])
def test_tops_of_any_height_and_columns_of_any_number(variant: str, columns: int) -> None:
    """Which one level answers at once; rows that are fewer than eight are walked on all."""
    rng = np.random.default_rng(columns)
    for depth, targets, rows, op in ((1, 1, 8, SUM), (3, 3, 67, MIN), (4, 1, 259, SUM), (5, 2, 17, AVERAGE), (6, 1, 41, SUM),
                                     (9, 1, 16, SUM), (10, 4, 90, MAX), (6, 1, 300, SUM)):  # fmt: skip
        forest = Forest(rng, 7, depth, columns, targets, np.float32, (0, 1, 2, 3))
        packed = dispatch.kernel("tree_ensemble_pack")(*forest.arguments)
        for missing in (False, True):
            x, made = given(forest, rows, missing), []
            for threads in (1, 2):
                fl.set_num_threads(threads)
                out = np.full((rows, targets), 7, np.float32)
                dispatch.kernel("tree_ensemble")(x, packed, None, out, op)
                made.append(out)
            np.testing.assert_array_equal(made[0], made[1])
            np.testing.assert_allclose(made[0], walked(forest.arguments, x, op), rtol=1e-6, atol=1e-6)
            few = np.full((rows, targets), 7, np.float32)  # by threes, which are walked: the same bits
            for start in range(0, rows, 3):
                dispatch.kernel("tree_ensemble")(x[start : start + 3], packed, None, few[start : start + 3], op)
            np.testing.assert_array_equal(few, made[0])


@pytest.mark.parametrize("depth", [4, 5, 6, 9])
def test_every_way_out_of_a_top_is_where_a_walk_ends(depth: int) -> None:
    forest = Forest(np.random.default_rng(depth), 30, depth, 40, 1, np.float32, (0, 1, 2, 3))
    trees = trees_of(*forest.arguments)
    tops, x = tops_of(trees), given(forest, 200, True)
    assert tops is not None and tops.storeys == min(int(trees.depth.max()), 6)
    for tree in range(len(trees.roots)):
        node = np.ones(len(x), np.int64)
        for _ in range(tops.storeys):
            value = x[np.arange(len(x)), tops.feature[tree, node]]
            missing = (int(tops.missing[tree]) >> node.astype(object)) & 1
            node = 2 * node + np.where(np.isnan(value), missing.astype(np.int64), value <= tops.split[tree, node])
        ends = tops.exits[tree, node - (1 << tops.storeys)]
        leaves = ends < 0
        np.testing.assert_array_equal(-1 - ends[leaves], leaves_of(trees, x, tree)[leaves])
        assert leaves.all() or depth > 6


def test_what_has_no_tops() -> None:
    def tops(columns: int, dtype: Any, modes: Any, depth: int = 5) -> Any:
        return tops_of(trees_of(*Forest(np.random.default_rng(0), 9, depth, columns, 1, dtype, modes).arguments))

    assert tops(64, np.float32, (0,)) is not None
    assert tops(64, np.float64, (0,)) is None  # half as many to a vector
    assert tops(64, np.float32, (4, 5)) is None  # nodes that ask twice
    assert tops(500, np.float32, (0,)) is None
    assert tops(5, np.float32, (0,), 0) is None  # leaves alone
    many = np.arange(2000)  # of one node each, whose tops would be far larger than they are
    stumps = (many, 0 * many, many.astype(np.float32), 0 * many, -1 - 2 * many, -2 - 2 * many, 0 * many, None, np.arange(4001),
              np.zeros(4000, np.int64), np.ones(4000, np.float32), 1)  # fmt: skip
    assert tops_of(trees_of(*stumps)) is None


def test_a_row_has_the_same_bits_in_every_batch(variant: str) -> None:
    rng = np.random.default_rng(3)
    forest = Forest(rng, 40, 6, 5, 3, np.float32, (0,))
    packed = dispatch.kernel("tree_ensemble_pack")(*forest.arguments)
    x = rng.normal(size=(3001, 5)).astype(np.float32)  # of which tasks are larger than those of few rows
    x[::5, 2] = np.nan

    def run(part: np.ndarray) -> np.ndarray:
        out = np.empty((len(part), 3), np.float32)
        dispatch.kernel("tree_ensemble")(part, packed, np.arange(3.0), out, 1)
        return out

    whole = run(x)
    for start, stop in ((0, 1), (5, 13), (64, 131), (3, 70), (80, 100), (2990, 3001), (0, 2400)):
        np.testing.assert_array_equal(run(x[start:stop].copy()), whole[start:stop])


@pytest.mark.parametrize("mode", [LEQ, LT, GTE, GT, EQ, MEMBER])
def test_a_missing_value_may_be_the_only_one_that_goes_somewhere(variant: str, mode: int) -> None:
    """Below a node whose split is NaN, or whose set is empty. Who counted only the ways of numbers ended eight rows too early, on
    a node, and read what is before the weights."""
    split = np.array([0 if mode == MEMBER else np.nan, 0, 1, 2], np.float32)
    sets = np.array([np.nan], np.float32) if mode == MEMBER else None
    zeros = np.zeros(5, np.int64)
    given = (zeros[:1], np.array([0, 1, 1, 1]), split, np.array([mode, 0, 0, 0]), np.array([1, -1, -2, -3]),
             np.array([-5, 2, 3, -4]), np.array([1, 1, 0, 1]), sets, np.arange(6), zeros,
             np.arange(1, 6).astype(np.float32), 1)  # fmt: skip
    x = np.array([[np.nan, value] for value in (-1, 0.5, 1.5, 3, np.nan)] + [[0, 0]] * 5 + [[np.nan, 9]] * 9, np.float32)
    packed, out = dispatch.kernel("tree_ensemble_pack")(*given), np.empty((len(x), 1), np.float32)
    dispatch.kernel("tree_ensemble")(x, packed, None, out, SUM)
    assert out[:, 0].tolist() == walked(given, x, SUM)[:, 0].tolist() == [1, 2, 3, 4, 1, *[5] * 5, *[4] * 9]
    assert trees_of(*given).depth.tolist() == [4]


def test_chains_are_no_trees() -> None:
    one = np.zeros(2, np.int64)
    given = (
        one[:1],
        one,
        np.zeros(2, np.float32),
        one,
        np.array([1, 0]),
        np.array([-1, -1]),
        one,
        None,
        np.array([0, 1]),
        one[:1],
    )
    with pytest.raises(ShapeError, match="without cycles"):
        trees_of(*given, np.ones(1, np.float32), 1)


def test_a_deep_chain_is_no_trouble(variant: str) -> None:
    depth = 5000
    at = np.arange(depth)
    zero = np.zeros(depth, np.int64)
    packed = dispatch.kernel("tree_ensemble_pack")(
        at[:1], zero, at.astype(np.float32), zero, -1 - at, np.append(at[1:], -1 - depth), zero, None, np.arange(depth + 2),
        np.zeros(depth + 1, np.int64), np.arange(depth + 1).astype(np.float32), 1,
    )  # fmt: skip
    x = np.array([[-1], [17], [17.5], [1e9]], np.float32)
    out = np.empty((4, 1), np.float32)
    dispatch.kernel("tree_ensemble")(x, packed, None, out, 1)
    assert out.reshape(-1).tolist() == [0, 17, 18, depth]
