"""Classifiers and regressors of ai.onnx.ml with every transform of their scores, and what formulas say that they give.

Where onnxruntime and onnx's reference evaluator differ, docs/export.md says which is followed; `onnxruntime_differs` and
`reference_differs` tell which cases these are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from tests.formats import onnx_build as build

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
KERNELS = ("LINEAR", "RBF", "POLY", "SIGMOID")
# Scores at 0 and 1/2 and beside them, equal scores, and one row that is not a number.
X = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5], [0.25, 0], [0, 2], [3, -1], [-2, 4], [0.75, 0.25], [np.nan, 1]])
GAMMA, SHIFT, DEGREE = 0.5, 0.25, 2.0
VECTORS = np.array([[0, 0], [1, 0], [0, 1], [0.5, -0.5], [2, 1]])
Raw = Callable[[np.ndarray], np.ndarray]
AGGREGATES: dict[str, Any] = {"SUM": np.sum, "AVERAGE": np.mean, "MIN": np.min, "MAX": np.max}


class Case(NamedTuple):
    """A node, the scores before its transform, what becomes of them, and the numbers of the labels (None: a regressor)."""

    op: str
    given: dict[str, Any]
    raw: Raw
    scored: Raw
    label: Raw | None = None
    version: int = 1

    @property
    def name(self) -> str:
        told = (f"{k}={v if isinstance(v, (str, int)) else len(v)}" for k, v in self.given.items() if not k.startswith("nodes_"))
        return f"{self.op} {' '.join(told)}"

    def model(self, dtype: str = "f4") -> bytes:
        """The model; x is (n, 2)."""
        outputs = "y" if self.label is None else "l y"
        made = build.node(self.op, "x", outputs, domain="ai.onnx.ml", **self.given)
        types = {"l": 8 if "classlabels_strings" in self.given else 7, "y": 1}
        infos = [build.value_info(name, None, types[name]) for name in outputs.split()]
        graph = build.graph([made], [build.value_info("x", ("n", 2), build.TYPES[dtype])], infos)
        return build.model(graph, build.field(8, build.field(1, "ai.onnx.ml") + build.field(2, self.version)))

    def expected(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """The outputs by name; labels as the file has them."""
        raw = self.raw(x.astype(np.float64))
        scores = {"y": self.scored(raw)}
        if self.label is None:
            return scores
        labels = next(np.array(v) for k, v in self.given.items() if k.startswith("classlabels"))
        return {"l": labels[self.label(raw)], **scores}


# ---- transforms ------------------------------------------------------------------------------------------------------


def transformed(name: str) -> Raw:
    """One transform of (n, scores)."""

    def probit(p: float) -> float:
        y, a = 2 * p - 1, 0.147
        if not -1 < y < 1:
            return math.nan if abs(y) != 1 else math.copysign(math.inf, y)
        log = math.log((1 - y) * (1 + y))
        v = 2 / (math.pi * a) + log / 2
        return math.copysign(math.sqrt(2 * (math.sqrt(v * v - log / a) - v)), y) if y else 0.0

    def shares(s: np.ndarray, keep: np.ndarray) -> np.ndarray:
        e = np.exp(s - s.max(axis=1, keepdims=True)) * keep
        total = e.sum(axis=1, keepdims=True)
        return e / np.where(total == 0, 1, total)

    return {
        "NONE": lambda s: s,
        "SOFTMAX": lambda s: shares(s, np.ones(s.shape)),
        "LOGISTIC": lambda s: 1 / (1 + np.exp(-s)),
        "SOFTMAX_ZERO": lambda s: shares(s, np.where(np.abs(s) <= 1e-7, 0, 1)),
        "PROBIT": lambda s: np.vectorize(probit, otypes=[float])(s),
    }[name]


def of_two(name: str, complement: bool) -> Raw:
    """One score a row as two: LOGISTIC of (-s, s), PROBIT of (1 - s, s), or (1 - s, s) or (-s, s) as they are."""
    if name == "LOGISTIC":
        return lambda s: transformed(name)(np.hstack([-s, s]))
    if name == "PROBIT":
        return lambda s: transformed(name)(np.hstack([1 - s, s]))
    return lambda s: np.hstack([(1 if complement else 0) - s, s])


def after(first: Raw, then: Raw) -> Raw:
    """One and then the other."""
    return lambda s: then(first(s))


def above(bound: float) -> Raw:
    """The second of two classes where the only score is above a bound."""
    return lambda s: (s[:, 0] > bound).astype(int)


def best(s: np.ndarray) -> np.ndarray:
    """The first of the highest scores."""
    return s.argmax(axis=1)


# ---- linear models and support vectors -------------------------------------------------------------------------------

WEIGHT = np.array([[1, -0.5], [0.5, 0.25], [0, 1]])
BIAS = np.array([0.0, 0.25, -0.5])


def labels(count: int, strings: bool, name: str = "ints") -> dict[str, Any]:
    return {"classlabels_strings": list("abc")[:count]} if strings else {f"classlabels_{name}": [5, 7, 9][:count]}


def _linear() -> Iterator[Case]:
    for t, rows, strings, many in product(TRANSFORMS, (1, 2, 3), (False, True), (0, 1)):
        weight, bias = WEIGHT[:rows], BIAS[:rows]
        given = {"coefficients": weight.reshape(-1).tolist(), "intercepts": bias.tolist(), "post_transform": t}
        given |= {"multi_class": many, **labels(max(rows, 2), strings)}
        rule = (of_two(t, True), above(0)) if rows == 1 else (transformed(t), best)
        yield Case("LinearClassifier", given, lambda x, w=weight, b=bias: x @ w.T + b, *rule)
    for t, rows in product(TRANSFORMS, (1, 2, 3)):
        weight, bias = WEIGHT[:rows], BIAS[:rows]
        given = {"coefficients": weight.reshape(-1).tolist(), "intercepts": bias.tolist(), "post_transform": t, "targets": rows}
        yield Case("LinearRegressor", given, lambda x, w=weight, b=bias: x @ w.T + b, transformed(t))


def kernel(kind: str, x: np.ndarray) -> np.ndarray:
    """(n, vectors)."""
    product_ = x @ VECTORS.T
    if kind == "RBF":
        return np.exp(-GAMMA * ((x[:, None] - VECTORS) ** 2).sum(axis=2))
    return {"LINEAR": product_, "POLY": (GAMMA * product_ + SHIFT) ** DEGREE, "SIGMOID": np.tanh(GAMMA * product_ + SHIFT)}[kind]


COEFFICIENTS = np.array([[0.5, -0.25, 0.75, -1.0, 0.125], [0.25, 0.5, -0.75, 0.25, 0.375]])
RHO, PROB_A, PROB_B = [0.125, -0.25, 0.0], [-1.0, -0.5, -2.0], [0.125, 0.25, 0.5]


def pair_scores(kind: str, per_class: list[int], x: np.ndarray) -> np.ndarray:
    """libsvm's decision values: of class i against j, the vectors of i by row j - 1, those of j by row i."""
    k, ends, found = kernel(kind, x), np.cumsum([0, *per_class]), []
    for i, j in combinations(range(len(per_class)), 2):
        of_i, of_j = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        found.append(k[:, of_i] @ COEFFICIENTS[j - 1, of_i] + k[:, of_j] @ COEFFICIENTS[i, of_j] + RHO[len(found)])
    return np.stack(found, axis=1)


def voted(count: int) -> Raw:
    def label(s: np.ndarray) -> np.ndarray:
        votes = np.zeros((len(s), count))
        for column, (i, j) in zip(s.T, combinations(range(count), 2), strict=True):
            votes[np.arange(len(s)), np.where(column > 0, i, j)] += 1
        return votes.argmax(axis=1)

    return label


def probabilities(count: int) -> Raw:
    """libsvm's multiclass_probability (Wu, Lin and Weng, 2004), row by row."""

    def of_row(s: np.ndarray) -> np.ndarray:
        r, q, p = np.zeros((count, count)), np.zeros((count, count)), np.full(count, 1 / count)
        for n, (i, j) in enumerate(combinations(range(count), 2)):
            r[i, j] = np.clip(1 / (1 + np.exp(PROB_A[n] * s[n] + PROB_B[n])), 1e-7, 1 - 1e-7)
            r[j, i] = 1 - r[i, j]
        for i in range(count):
            for j in range(count):
                q[i, j] = (r[:, i] ** 2).sum() if i == j else -r[j, i] * r[i, j]
        for _ in range(100):
            qp = q @ p
            if not np.abs(qp - p @ qp).max() >= 0.005 / count:  # NaN stops it as well
                break
            pqp = p @ qp
            for i in range(count):
                d = (pqp - qp[i]) / q[i, i]
                p[i] += d
                pqp = (pqp + d * (d * q[i, i] + 2 * qp[i])) / (1 + d) ** 2
                qp, p = (qp + d * q[i]) / (1 + d), p / (1 + d)
        return p

    return lambda s: np.stack([of_row(row) for row in s]) if len(s) else np.zeros((0, count))


def _support_vectors() -> Iterator[Case]:
    shared = {"support_vectors": VECTORS.reshape(-1).tolist(), "kernel_params": [GAMMA, SHIFT, DEGREE]}
    for t, kind, count, shares, strings in product(TRANSFORMS, KERNELS, (2, 3), (False, True), (False, True)):
        per_class, pairs = {2: [2, 3], 3: [2, 2, 1]}[count], count * (count - 1) // 2
        given = {
            "coefficients": COEFFICIENTS[: count - 1].reshape(-1).tolist(),
            "rho": RHO[:pairs],
            "vectors_per_class": per_class,
        }
        given |= {"kernel_type": kind, "post_transform": t, **shared, **labels(count, strings)}
        scored = of_two(t, t != "NONE") if count == 2 else transformed(t)
        if shares:
            given |= {"prob_a": PROB_A[:pairs], "prob_b": PROB_B[:pairs]}
            scored = after(probabilities(count), transformed(t))
        yield Case("SVMClassifier", given, lambda x, k=kind, c=per_class: pair_scores(k, c, x), scored, voted(count))
    for t, count, strings in product(TRANSFORMS, (1, 2, 3), (False, True)):
        given = {"coefficients": WEIGHT[:count].reshape(-1).tolist(), "rho": [0.25], "kernel_type": "LINEAR"}
        given |= {"kernel_params": shared["kernel_params"], "post_transform": t, **labels(count, strings)}
        yield Case("SVMClassifier", given, lambda x, w=WEIGHT[:count]: x @ w.T + 0.25, transformed(t), best)
    for t, kind, one in product(TRANSFORMS, (*KERNELS, ""), (0, 1)):
        weight = COEFFICIENTS[0] if kind else WEIGHT[0]
        given = {"coefficients": weight.tolist(), "rho": [0.25], "kernel_type": kind or "LINEAR", "one_class": one}
        given |= {"post_transform": t, "n_supports": len(VECTORS) if kind else 0, **shared}
        scored = (lambda s: np.where(s > 0, 1.0, -1.0)) if one else transformed(t)
        yield Case("SVMRegressor", given, lambda x, k=kind, w=weight: ((kernel(k, x) if k else x) @ w + 0.25)[:, None], scored)


# ---- trees -----------------------------------------------------------------------------------------------------------

SPLITS = (0.0, 0.5)  # of tree k, which looks at feature k: to the left where that is not above the split
LEAVES = {"shares": [[0.25, 0.75], [0.5, 0.25]], "mixed": [[-1.0, 2.0], [0.5, -0.5]], "ties": [[0.25, 0.5], [0.25, 0.0]]}


def _leaves(x: np.ndarray, tree: int) -> np.ndarray:
    return np.where(x[:, tree] <= SPLITS[tree], 0, 1)


def trees(side: str, ids: list[list[int]], weights: list[list[float]]) -> tuple[dict[str, Any], Raw]:
    """Two trees of two leaves each, leaf i of tree k with weights[k][i] for each of ids[i]; and what they give: (n, 3, trees)."""
    given: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2] * 2, "nodes_featureids": [0, 0, 0, 1, 1, 1],
        "nodes_values": [SPLITS[0], 0.0, 0.0, SPLITS[1], 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"] * 2,
        "nodes_truenodeids": [1, 0, 0] * 2, "nodes_falsenodeids": [2, 0, 0] * 2, "nodes_missing_value_tracks_true": [0] * 6,
    }  # fmt: skip
    said = [(tree, leaf, target) for tree in range(2) for leaf in range(2) for target in ids[leaf]]
    given |= {f"{side}_treeids": [s[0] for s in said], f"{side}_nodeids": [1 + s[1] for s in said]}
    given |= {f"{side}_ids": [s[2] for s in said], f"{side}_weights": [weights[t][leaf] / (1 << i) for t, leaf, i in said]}

    def raw(x: np.ndarray) -> np.ndarray:
        out = np.full((len(x), 3, 2), np.nan)
        for tree, leaf, target in said:
            out[_leaves(x, tree) == leaf, target, tree] = weights[tree][leaf] / (1 << target)
        return out

    return given, raw


def _classifiers() -> Iterator[Case]:
    for t, (kind, weights), strings in product(TRANSFORMS, LEAVES.items(), (False, True)):
        for second, base in product((False, True), (0.0, 0.125)):  # leaves that speak of one of two classes
            if second and base:
                continue
            given, raw = trees("class", [[int(second)]] * 2, [[w * (1 + second) for w in row] for row in weights])
            given |= {"post_transform": t, **labels(2, strings, "int64s")} | ({"base_values": [base]} if base else {})
            shares = kind != "mixed"
            scored = of_two(t, shares)
            if second:
                scored = after(lambda s: np.hstack([0 * s, s]), transformed(t))
            yield Case(
                "TreeEnsembleClassifier", given,
                lambda x, r=raw, c=int(second), b=base: np.nansum(r(x)[:, c : c + 1], axis=2) + b,
                scored, above(0.5 if shares else 0), 3,
            )  # fmt: skip
        for count, base in product((2, 3), ([], [0.125, 0.25, -0.25])):
            given, raw = trees("class", [list(range(count)), list(range(count))[::-1]], weights)
            given |= {"post_transform": t, **labels(count, strings, "int64s")} | ({"base_values": base[:count]} if base else {})
            yield Case(
                "TreeEnsembleClassifier", given,
                lambda x, r=raw, c=count, b=tuple(base[:count]) or 0: np.nansum(r(x)[:, :c], axis=2) + b,
                transformed(t), best, 3,
            )  # fmt: skip


NUMBERED = ("AVERAGE", "SUM", "MIN", "MAX")


def _summed(given: dict[str, Any], aggregate: str, x: np.ndarray) -> np.ndarray:
    """What the leaves of two trees of version 5 say of each target; 0 where none speaks of it. A mean is of all trees."""
    found = np.full((len(x), given["n_targets"], 2), np.nan)
    for tree in range(2):
        leaf = 2 * tree + _leaves(x, tree)
        found[np.arange(len(x)), np.array(given["leaf_targetids"])[leaf], tree] = given["leaf_weights"][leaf]
    least, most = np.nanmin(found, axis=2, initial=np.inf), np.nanmax(found, axis=2, initial=-np.inf)
    total = np.nansum(found, axis=2)
    return np.where(np.isnan(found).all(axis=2), 0, {"SUM": total, "AVERAGE": total / 2, "MIN": least, "MAX": most}[aggregate])


def _regressors() -> Iterator[Case]:
    for t, (kind, weights), targets, (name, function) in product(TRANSFORMS, LEAVES.items(), (1, 2), AGGREGATES.items()):
        if kind == "ties":
            continue
        given, raw = trees("target", [list(range(targets))] * 2, weights)
        base = [0.125, 0.25][:targets]
        more = {"aggregate_function": name, "n_targets": targets, "post_transform": t}
        yield Case(
            "TreeEnsembleRegressor", given | more | {"base_values": base},
            lambda x, r=raw, c=targets, f=function, b=tuple(base): f(r(x)[:, :c], axis=2) + b, transformed(t), None, 3,
        )  # fmt: skip
        # Version 5: a leaf speaks of one target.
        made: dict[str, Any] = {
            "nodes_featureids": [0, 1], "nodes_splits": np.array(SPLITS, np.float32), "nodes_modes": np.zeros(2, np.uint8),
            "nodes_truenodeids": [0, 2], "nodes_falsenodeids": [1, 3], "nodes_trueleafs": [1, 1], "nodes_falseleafs": [1, 1],
            "leaf_targetids": [i * (targets - 1) for i in (0, 1, 1, 0)], "tree_roots": [0, 1], "n_targets": targets,
            "leaf_weights": np.array(weights, np.float32).reshape(-1), "post_transform": TRANSFORMS.index(t),
            "aggregate_function": list(NUMBERED).index(name),
        }  # fmt: skip
        yield Case("TreeEnsemble", made, lambda x, m=made, f=name: _summed(m, f, x), transformed(t), None, 5)


CASES = [*_linear(), *_support_vectors(), *_classifiers(), *_regressors()]


# ---- what others do --------------------------------------------------------------------------------------------------


def transform_of(case: Case) -> str:
    """The name of the transform."""
    given: Any = case.given["post_transform"]
    return given if isinstance(given, str) else TRANSFORMS[given]


def onnxruntime_differs(case: Case) -> str | None:
    """In which way onnxruntime is not followed, as docs/export.md says."""
    t, given = transform_of(case), case.given
    raw, scored = (f(np.zeros((1, 2))).shape[1] for f in (case.raw, lambda x: case.scored(case.raw(x))))
    if t == "PROBIT" and (raw, scored) == (1, 2) and "prob_a" not in given and 1 not in given.get("class_ids", ()):
        return "it writes one of two scores and leaves the other as memory was"
    if t != "NONE" and scored == 1 and not given.get("one_class") and (t != "PROBIT" or case.op == "SVMRegressor"):
        return "it leaves a transform of one score out"
    if case.op == "TreeEnsemble" and t in ("SOFTMAX", "LOGISTIC"):
        return "it takes each of them for the other"
    if case.op == "SVMClassifier" and raw == 2:
        return "its label of two classes is not that of the higher score"
    if case.op == "TreeEnsembleClassifier" and raw == 2:
        return "its labels are 0 and 1, and it mixes base values up"
    return None


def reference_differs(case: Case) -> str | None:
    """In which way onnx's reference evaluator is not followed, or what it cannot do."""
    t, given = transform_of(case), case.given
    raw, scored = (f(np.zeros((1, 2))).shape[1] for f in (case.raw, lambda x: case.scored(case.raw(x))))
    if (raw, scored) == (1, 2) and (t != "LOGISTIC" or case.op == "TreeEnsembleClassifier"):
        return "its two scores of one are transforms of (-s, s)"
    if t != "NONE" and case.label is None:
        return "it has no transforms of regressors"
    if case.op == "SVMClassifier" and ((raw == 1 and scored == 1) or "prob_a" in given or "classlabels_strings" in given):
        return "its support vectors of one class, with strings, or with probabilities of more than two classes are wrong"
    if case.op == "SVMClassifier" and "vectors_per_class" not in given:
        return "its linear support vectors choose labels otherwise"
    if given.get("base_values"):
        return "it adds one base value to both classes"
    if case.op == "TreeEnsemble" and given["n_targets"] == 2 and given["aggregate_function"] > 1:
        return "its least or largest of nothing is that of all float32"
    return None
