"""Features without networks (ai.onnx.ml, and TfIdfVectorizer): of numbers, not of text."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ._base import FLOAT32, INT64, Spec, View, register
from ._shapes import like, need_kind, product
from ._traits import EACH, PLAIN

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]


register(
    "Binarizer",
    lambda n: need_kind(n, "fi", 0) or [n.spec(0)],  # type: ignore[func-returns-value]
    lambda n, x: ((x > n.get("threshold", 0.0)).astype(x.dtype),),
    traits=EACH,
)

# ---- ArrayFeatureExtractor -------------------------------------------------------------------------------------------


def _extract_infer(n: View) -> list[Spec]:
    """Elements of the last axis by their numbers; a vector is taken as a row."""
    need_kind(n, "iu", 1)
    x, indices = n.shape(0), n.shape(1)
    if x is None:
        return [Spec(None, n.spec(0).dtype)]
    if not x:
        raise n.fail("x has no axes: expected one at least")
    count = None if indices is None else product(indices)
    return [Spec((*(x[:-1] if len(x) > 1 else (1,)), count), n.spec(0).dtype)]


def _extract_run(n: View, x: np.ndarray, indices: np.ndarray) -> Arrays:
    at, size = indices.reshape(-1), x.shape[-1]
    if at.size and (at.min() < 0 or at.max() >= size):
        raise n.fail(f"the indices are from {at.min()} to {at.max()}: expected 0 to {size - 1}")
    return (np.take(x if x.ndim > 1 else x[None], at, axis=-1),)


register("ArrayFeatureExtractor", _extract_infer, _extract_run, traits=PLAIN)

# ---- LabelEncoder ----------------------------------------------------------------------------------------------------


def _labels(n: View) -> tuple[np.ndarray, np.ndarray, Any]:
    """Keys, values and what stands for all other keys."""

    def given(what: str) -> np.ndarray | None:
        for name, dtype in ((f"{what}_tensor", None), (f"{what}_int64s", INT64), (f"{what}_floats", FLOAT32)):
            if n.get(name) is not None:
                return np.asarray(n.get(name), dtype).reshape(-1)
        return None

    keys, values = given("keys"), given("values")
    if (
        keys is None
        or values is None
        or len(keys) != len(values)
        or keys.dtype.kind not in "fiub"
        or values.dtype.kind not in "fiub"
    ):
        raise n.fail("it has not as many numbers for keys as for values: expected one value a key")
    other = n.get("default_tensor")
    if other is not None and other.size == 1:
        return keys, values, other.reshape(-1)[0]
    return keys, values, n.get("default_int64", -1) if values.dtype.kind in "iu" else n.get("default_float", -0.0)


def _label_infer(n: View) -> list[Spec]:
    """The value of each key."""
    keys, values, _ = _labels(n)
    need_kind(n, "f" if keys.dtype.kind == "f" else "iub", 0)
    return [like(n.spec(0), values.dtype)]


def _label_run(n: View, x: np.ndarray) -> Arrays:
    keys, values, other = _labels(n)
    # Of keys that are there twice the last one counts.
    ordered, first = np.unique(keys[::-1], return_index=True)
    chosen = values[::-1][first]
    if not len(ordered):
        return (np.full(x.shape, other, values.dtype),)
    at = np.minimum(np.searchsorted(ordered, x), len(ordered) - 1)
    same = (ordered[at] == x) | ((ordered[at] != ordered[at]) & (x != x))
    return (np.where(same, chosen[at], np.asarray(other, values.dtype)),)


register("LabelEncoder", _label_infer, _label_run, traits=EACH)

# ---- TfIdfVectorizer -------------------------------------------------------------------------------------------------


def _grams(n: View) -> list[tuple[np.ndarray, int]]:
    """For each length that is counted: the sequences (count, length) of the pool, and the number of the first of them."""
    pool, starts = n.get("pool_int64s"), list(n.get("ngram_counts", ()))
    if pool is None:
        raise UnsupportedError(f"{n.where}: its pool is of strings, which are not supported")
    bounds, places, found, taken = [*starts, len(pool)], np.asarray(n.get("ngram_indexes", ()), np.int64), [], 0
    if any(a < 0 or a > b for a, b in pairwise(bounds)) or (places.size and places.min() < 0):
        raise n.fail(
            f"ngram_counts are {tuple(starts)} for a pool of {len(pool)}, or an index is negative: expected ascending numbers"
        )
    for i, (a, b) in enumerate(pairwise(bounds)):
        count = (b - a) // (i + 1)
        if n.get("min_gram_length", 1) <= i + 1 <= n.get("max_gram_length", 1):
            found.append((np.asarray(pool[a : a + count * (i + 1)], np.int64).reshape(count, i + 1), taken))
        taken += count
    if len(places) < taken:
        raise n.fail(f"there are {len(places)} ngram_indexes: expected one for every sequence of the pool")
    return found


def _tfidf_infer(n: View) -> list[Spec]:
    """x (n, length) or (length,): how often each sequence of the pool is in it, with up to max_skip_count left out between."""
    need_kind(n, "iu", 0)
    if n.get("mode") not in ("TF", "IDF", "TFIDF"):
        raise n.fail(f"mode is {n.get('mode')!r}: expected 'TF', 'IDF' or 'TFIDF'")
    _grams(n)
    shape, columns = n.shape(0), max(n.get("ngram_indexes", ()), default=-1) + 1
    weights, count = n.get("weights"), len(n.get("ngram_indexes", ()))
    if weights is not None and len(weights) != count:
        raise n.fail(f"there are {len(weights)} weights: expected {count}, one for every sequence of the pool")
    if shape is not None and len(shape) > 2:
        raise n.fail(f"x has shape {shape}: expected (n, length) or (length,)")
    return [Spec(None if shape is None else (*shape[:-1], columns), FLOAT32)]


def _tfidf_run(n: View, x: np.ndarray) -> Arrays:
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1] if x.ndim else 1).astype(np.int64)
    places, mode = np.asarray(n.get("ngram_indexes", ()), np.int64), n.get("mode")
    weights = np.asarray(n.get("weights") if mode != "TF" and n.get("weights") is not None else np.ones(len(places)), np.float32)
    out = np.zeros((len(rows), int(places.max(initial=-1)) + 1), np.float32)
    for pool, first in _grams(n):
        length = pool.shape[1]
        for step in range(1, n.get("max_skip_count", 0) + 2 if length > 1 else 2):
            reach = (length - 1) * step + 1
            if reach > rows.shape[1] or not len(pool):
                break
            windows = np.lib.stride_tricks.sliding_window_view(rows, reach, axis=1)[..., ::step]
            both = np.concatenate([pool, windows.reshape(-1, length)])
            which = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
            number = np.full(len(both), -1)
            number[which[: len(pool)]] = first + np.arange(len(pool))
            found = number[which[len(pool) :]].reshape(windows.shape[:2])
            row, column = np.nonzero(found >= 0)
            number = found[row, column]
            if mode == "IDF":
                out[row, places[number]] = weights[number]
            else:
                np.add.at(out, (row, places[number]), weights[number])
    return (out.reshape(*x.shape[:-1], out.shape[1]),)


register("TfIdfVectorizer", _tfidf_infer, _tfidf_run, traits=PLAIN)

# ---- TreeEnsemble ----------------------------------------------------------------------------------------------------

COMPARE: tuple[Any, ...] = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
MEMBER, SUM, AVERAGE = 6, 1, 0
NODES = ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")


def _trees(n: View) -> dict[str, np.ndarray]:
    """The ensemble's attributes as arrays, checked: nodes that no branch reaches twice, so that every way ends at a leaf."""
    found: dict[str, np.ndarray] = {name: np.asarray(n.get(f"nodes_{name}"), np.int64) for name in NODES}
    found["modes"], found["splits"] = n.get("nodes_modes").reshape(-1), n.get("nodes_splits").reshape(-1)
    count = len(found["modes"])
    missing = n.get("nodes_missing_value_tracks_true")
    found["missing"] = np.zeros(count, bool) if missing is None else np.asarray(missing, bool)
    found["roots"] = np.asarray(n.get("tree_roots"), np.int64)
    found["weights"], found["targets"] = n.get("leaf_weights").reshape(-1), np.asarray(n.get("leaf_targetids"), np.int64)
    if any(len(found[name]) != count for name in (*NODES, "splits", "missing")) or len(found["weights"]) != len(found["targets"]):
        raise n.fail("its nodes, or its leaves, have different numbers of attributes: expected one of each")
    if found["modes"].dtype.kind not in "iu" or (count and not 0 <= found["modes"].min() <= found["modes"].max() <= MEMBER):
        raise n.fail(f"nodes_modes are {found['modes'][:8]}: expected 0 to {MEMBER}")
    children = []
    for side in ("true", "false"):
        leaf, at = found[f"{side}leafs"] != 0, found[f"{side}nodeids"]
        if ((at < 0) | (at >= np.where(leaf, len(found["weights"]), count))).any():
            raise n.fail(f"nodes_{side}nodeids point to nodes or leaves that are not there")
        children.append(at[~leaf])
    everything = np.concatenate([*children, found["roots"]])
    if everything.size and (everything.min() < 0 or everything.max() >= count or np.bincount(everything).max() > 1):
        raise n.fail("its branches and roots do not reach each node once at most: expected trees")
    return found


def _tree_infer(n: View) -> list[Spec]:
    """x (n, features): sums of leaves, or their mean, least or largest (n, targets)."""
    need_kind(n, "f", 0)
    shape, found = n.shape(0), _trees(n)
    if shape is not None and (len(shape) != 2 or (isinstance(shape[1], int) and found["featureids"].max(initial=-1) >= shape[1])):
        raise n.fail(f"x has shape {shape}: expected (n, features), more than {found['featureids'].max(initial=-1)}")
    if n.get("aggregate_function", 1) not in range(4) or n.get("post_transform", 0) not in range(5):
        raise n.fail(
            f"aggregate_function is {n.get('aggregate_function')}, post_transform {n.get('post_transform')}: are not known"
        )
    if n.get("post_transform", 0) == 4:
        raise UnsupportedError(f"{n.where}: post_transform is PROBIT, which is not supported")
    targets = n.get("n_targets", int(found["targets"].max(initial=-1)) + 1)
    if targets < 0 or (found["targets"].size and not 0 <= found["targets"].min() <= found["targets"].max() < targets):
        raise n.fail(f"leaf_targetids are not from 0 to {targets - 1}")
    if found["featureids"].min(initial=0) < 0:
        raise n.fail("nodes_featureids are negative")
    return [Spec((None if shape is None else shape[0], targets), n.spec(0).dtype)]


def _members(n: View, modes: np.ndarray) -> dict[int, np.ndarray]:
    """The numbers that each node of mode MEMBER tests for: they end at a NaN."""
    nodes, values = np.flatnonzero(modes == MEMBER), n.get("membership_values")
    values = np.zeros(0) if values is None else values.reshape(-1)
    ends = np.flatnonzero(np.isnan(values))
    if len(ends) != len(nodes):
        raise n.fail(f"membership_values has {len(ends)} sets: expected {len(nodes)}, one a node of mode MEMBER")
    return dict(zip(nodes.tolist(), np.split(values, ends + 1)[:-1], strict=True))


def _leaves(n: View, trees: dict[str, np.ndarray], members: dict[int, np.ndarray], x: np.ndarray, root: int) -> np.ndarray:
    """The leaf at which each row of one tree ends."""
    at, rows = np.full(len(x), root), np.arange(len(x))
    leaves = np.zeros(len(x), np.int64)
    while rows.size:
        here = at[rows]
        value, mode = x[rows, trees["featureids"][here]], trees["modes"][here]
        split, taken = trees["splits"][here], np.zeros(len(rows), bool)
        for code in np.unique(mode).tolist():
            mine = mode == code
            if code != MEMBER:
                taken[mine] = COMPARE[code](value[mine], split[mine])
                continue
            for node in np.unique(here[mine]).tolist():
                its = here == node
                taken[its] = np.isin(value[its], members[node])
        taken |= np.isnan(value) & trees["missing"][here]
        next_ = np.where(taken, trees["truenodeids"][here], trees["falsenodeids"][here])
        done = np.where(taken, trees["trueleafs"][here], trees["falseleafs"][here]) != 0
        leaves[rows[done]] = next_[done]
        at[rows] = next_
        rows = rows[~done]
    return leaves


def _tree_run(n: View, x: np.ndarray) -> Arrays:
    (spec,), trees, how = _tree_infer(n), _trees(n), n.get("aggregate_function", SUM)
    members = _members(n, trees["modes"])
    ends = {2: np.inf, 3: -np.inf}
    shape: Any = spec.shape
    out = np.full(shape, ends.get(how, 0.0))
    function: Any = {2: np.minimum, 3: np.maximum}.get(how, np.add)
    each = np.arange(len(x))
    for root in trees["roots"].tolist():
        leaves = _leaves(n, trees, members, x, root)
        where = (each, trees["targets"][leaves])
        out[where] = function(out[where], trees["weights"][leaves])
    if how == AVERAGE:
        out /= max(len(trees["roots"]), 1)
    # A target without a leaf has no least and no largest.
    return (_transformed(n.get("post_transform", 0), np.where(np.isinf(out), 0, out)).astype(x.dtype),)


def _transformed(how: int, scores: np.ndarray) -> np.ndarray:
    if how == 2:
        return np.asarray(1 / (1 + np.exp(-scores)))
    if how in (1, 3):
        share = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-math.inf))
        if how == 3:
            share = np.where(scores == 0, 0, share)
        return np.asarray(share / share.sum(axis=1, keepdims=True))
    return scores


register("TreeEnsemble", _tree_infer, _tree_run, traits=PLAIN)
