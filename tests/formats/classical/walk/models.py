"""Random models of ai.onnx.ml, and rows whose values are their thresholds and the values next to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.formats import onnx_build as build

__all__ = ["TABLE", "TRANSFORMS", "Case", "draw", "kind_of"]

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
KERNELS = ("LINEAR", "RBF", "POLY", "SIGMOID")
MOST_NODES = 4000
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38, 16777216.0, 16777218.0, 1 / 3, 1e-3)


class Case(NamedTuple):
    """A node with its attributes, the outputs, the feeds, and what it is said to be.

    `exact`: whether sums of its scores are exact in float32, in any order.
    """

    op: str
    given: dict[str, Any]
    feeds: dict[str, np.ndarray]
    version: int
    outputs: str
    exact: bool = True

    def model(self, **changed: Any) -> bytes:
        """The model; `changed` are other attributes."""
        given = {name: value for name, value in (self.given | changed).items() if not isinstance(value, list) or value}
        made = build.node(self.op, " ".join(self.feeds), self.outputs, domain="ai.onnx.ml", **given)
        infos = [_info(name, x) for name, x in self.feeds.items()]
        types = {"l": 8 if "classlabels_strings" in given else 7, "y": 1, "z": self._type()}
        outputs = [build.value_info(name, None, types[name]) for name in self.outputs.split()]
        graph = build.graph([made], infos, outputs)
        return build.model(graph, build.field(8, build.field(1, "ai.onnx.ml") + build.field(2, self.version)))

    def _type(self) -> int:
        """Of an output that has the dtype of the input, or that of values that are looked up."""
        if self.op == "LabelEncoder":
            return next(
                t for name, t in (("values_strings", 8), ("values_int64s", 7), ("values_floats", 1)) if name in self.given
            )
        return _number(next(iter(self.feeds.values())))

    def told(self) -> str:
        """One line."""
        texts = (f"{k}={v if isinstance(v, (str, int, float)) or len(v) < 7 else len(v)}" for k, v in self.given.items())
        feeds = (f"{x.dtype}{x.shape}" for x in self.feeds.values())
        return f"{self.op} {self.version} {', '.join(feeds)} {' '.join(texts)}"


def _number(x: np.ndarray) -> int:
    return 8 if x.dtype.kind in "OU" else build.TYPES[x.dtype.str[1:]]


def _info(name: str, x: np.ndarray) -> bytes:
    return build.value_info(name, (f"n_{name}", *x.shape[1:]), _number(x))


class Draw:
    """What is drawn for a case."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def some(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def int(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def rows(self) -> int:
        return self.some(1, 1, 2, 3, 5, 7, 8, 9, 16, 31, 70, 129, 300)

    def dtype(self) -> Any:
        return self.some(np.float32, np.float32, np.float32, np.float64, np.int64, np.int32)

    def values(self, count: int, dtype: Any) -> np.ndarray:
        """Thresholds and the like, few of them different."""
        kind = self.some("normal", "normal", "round", "whole", "large", "special")
        x = self.rng.standard_normal(max(2, min(count, 30)))
        x = {"normal": x, "round": np.round(x, 1), "whole": np.round(4 * x), "large": np.round(x * 2.0**26), "special": x}[kind]
        if kind == "special":
            x[::2] = self.rng.choice(SPECIAL, len(x[::2]))
        return np.asarray(self.rng.choice(x, count), dtype)

    def near(self, shape: tuple[int, ...], points: np.ndarray, dtype: Any, nan: bool = True) -> np.ndarray:
        """Values at the points and next to them, in the precision of either; what is not finite too."""
        p = np.unique(points[np.isfinite(points)]) if points.size else np.zeros(1, np.float32)
        p = np.append(p, np.asarray([0.0], p.dtype))
        with np.errstate(over="ignore", under="ignore"):
            single = p.astype(np.float32)
            pool = [p, single, *(np.nextafter(a, a.dtype.type(s)) for a in (p, single) for s in (-np.inf, np.inf))]
            pool += [np.asarray(SPECIAL, dtype) if np.dtype(dtype).kind == "f" else np.asarray([0, 1])]
            if np.dtype(dtype).kind == "f":
                pool += [np.asarray([np.inf, -np.inf, *([np.nan, np.nan] if nan else [])])] * self.chance(0.6)
                found = np.concatenate([np.asarray(a, dtype) for a in pool])
            else:
                most = 2.0 ** (62 if dtype == np.int64 else 30)
                whole = np.clip(np.concatenate([np.asarray(a, np.float64) for a in pool]), -most, most).astype(dtype)
                found = np.concatenate([whole, whole + dtype(1), whole - dtype(1)])
                if self.chance(0.3):
                    found = np.append(found, np.asarray([(1 << 24) + 1, -(1 << 24) - 1, (1 << 30) + 1], dtype))
        return self.rng.choice(found, shape)

    def weights(self, count: int, exact: bool, dtype: Any = np.float32) -> np.ndarray:
        x = self.rng.standard_normal(count)
        if self.chance(0.25):
            x = abs(x)
        return np.asarray(np.round(x * 64) / 64 if exact else x, dtype)

    def labels(self, count: int, integers: str = "classlabels_ints") -> dict[str, Any]:
        if count > 1 and self.chance(0.3):  # onnxruntime ends the process where there is one string
            return {"classlabels_strings": [f"c{i}" for i in range(count)]}
        return {integers: list(range(count)) if self.chance(0.6) else [int(v) for v in self.rng.permutation(99)[:count] - 30]}


# ---- trees -----------------------------------------------------------------------------------------------------------


class _Forest:
    """Nodes of trees, in the order in which they were grown: a branch is (feature, mode, children), a leaf is None."""

    def __init__(self, d: Draw) -> None:
        self.d, self.columns = d, d.some(1, 2, 3, 5, 8, 17, 40)
        self.modes = d.some((0,), (0,), (0,), (1,), (0, 1, 2, 3), (4,), (5,), (0, 4), tuple(range(6)))
        self.full = d.chance(0.4)
        count, self.depth = d.some(1, 2, 3, 8, 33, 100, 300), d.some(0, 1, 2, 3, 4, 5, 6, 7, 9, 12)
        self.trees: list[list[Any]] = []
        room = MOST_NODES
        for _ in range(count):
            self.nodes: list[Any] = []
            self.grow(self.depth, max(1, room // count))
            self.trees.append(self.nodes)

    def grow(self, depth: int, room: int) -> int:
        d, at = self.d, len(self.nodes)
        self.nodes.append(None)
        if depth and len(self.nodes) + 2 < room and (self.full or d.chance(0.75)):
            left = self.grow(depth - 1, room)
            right = self.grow(depth - 1 if self.full or d.chance(0.7) else 0, room)
            self.nodes[at] = (d.int(0, self.columns - 1), d.some(*self.modes), (left, right))
        return at


def _missing(d: Draw, nodes: list[Any]) -> list[int]:
    return [int(node is not None and d.chance(0.5)) for node in nodes] if d.chance(0.6) else []


def _lists(d: Draw, side: str, targets: list[int], wide: bool) -> tuple[dict[str, Any], _Forest, np.ndarray, bool]:
    """The attributes of versions 1 and 3."""
    forest, exact = _Forest(d), d.chance(0.8)
    flat = [node for tree in forest.trees for node in tree]
    ids = [(t, i) for t, tree in enumerate(forest.trees) for i in range(len(tree))]
    dtype = np.float64 if wide else np.float32
    splits = d.values(len(flat), dtype)
    if wide and d.chance(0.5):
        splits = splits + splits * 1e-12  # no float32
    said, every = [], d.chance(0.7)
    for (tree, i), node in zip(ids, flat, strict=True):
        if node is None:
            many = len(targets) if every else 1 if d.chance(0.8) else d.int(0, len(targets))
            said += [(tree, i, target) for target in d.rng.permutation(targets)[:many].tolist()]
    weights = d.weights(len(said), exact, dtype)
    splits = np.where([node is None for node in flat], splits.dtype.type(0), splits)
    given: dict[str, Any] = {
        "nodes_treeids": [t for t, _ in ids], "nodes_nodeids": [i for _, i in ids],
        "nodes_featureids": [node[0] if node else 0 for node in flat],
        "nodes_modes": [MODES[node[1]] if node else "LEAF" for node in flat],
        "nodes_truenodeids": [node[2][0] if node else 0 for node in flat],
        "nodes_falsenodeids": [node[2][1] if node else 0 for node in flat],
        "nodes_missing_value_tracks_true": _missing(d, flat),
        f"{side}_treeids": [s[0] for s in said], f"{side}_nodeids": [s[1] for s in said], f"{side}_ids": [s[2] for s in said],
    }  # fmt: skip
    if wide:
        given |= {"nodes_values_as_tensor": splits, f"{side}_weights_as_tensor": weights}
    else:
        given |= {"nodes_values": splits.tolist(), f"{side}_weights": weights.tolist()}
    return given, forest, splits, exact


def _base(d: Draw, count: int, wide: bool) -> dict[str, Any]:
    if d.chance(0.6):
        return {}
    base = d.weights(count, True, np.float64 if wide else np.float32)
    return {"base_values_as_tensor": base} if wide else {"base_values": base.tolist()}


def _tree_input(d: Draw) -> tuple[bool, Any]:
    """Whether thresholds are of doubles, and the dtype of the rows."""
    wide = d.chance(0.2)
    return wide, np.float64 if wide else d.dtype()


def tree_regressor(d: Draw, op: str) -> Case:
    wide = d.chance(0.25)
    dtype = np.float64 if wide else d.some(np.float32, np.float32, np.float64)  # onnxruntime has no others
    targets = d.some(1, 1, 1, 2, 3, 5)
    given, forest, splits, exact = _lists(d, "target", list(range(targets)), wide)
    given |= {"n_targets": targets, **_base(d, targets, wide)}
    if d.chance(0.6):
        given["aggregate_function"] = d.some(*AGGREGATES)
    if d.chance(0.4):
        given["post_transform"] = d.some(*TRANSFORMS)
    x = d.near((d.rows(), forest.columns + d.int(0, 2)), splits, dtype)
    return Case(op, given, {"x": x}, 3 if wide or d.chance(0.7) else 1, "y", exact)


def tree_classifier(d: Draw, op: str) -> Case:
    wide, dtype = _tree_input(d)
    classes = d.some(1, 2, 2, 2, 3, 4, 7)
    spoken = [d.int(0, 1)] if classes == 2 and d.chance(0.7) else list(range(classes))
    given, forest, splits, exact = _lists(d, "class", spoken, wide)
    given |= d.labels(classes, "classlabels_int64s")
    if len(spoken) > 1 or classes == 1:
        given |= _base(d, classes, wide)
    elif d.chance(0.3) and spoken == [0]:
        given |= _base(d, 1, wide)
    if d.chance(0.5):
        given["post_transform"] = d.some(*TRANSFORMS)
    x = d.near((d.rows(), forest.columns + d.int(0, 2)), splits, dtype)
    return Case(op, given, {"x": x}, 3 if wide or d.chance(0.7) else 1, "l y", exact)


def tree_ensemble(d: Draw, op: str) -> Case:
    """Version 5: branches and leaves are numbered separately; a tree of one leaf is a branch with that leaf twice."""
    dtype, forest, exact, targets = d.some(np.float32, np.float32, np.float64), _Forest(d), d.chance(0.8), d.some(1, 1, 2, 4)
    branches: list[Any] = []
    leaves = 0
    roots = []
    for tree in forest.trees:
        numbers = []
        first = len(branches)
        for node in tree:
            numbers.append((0, len(branches)) if node else (1, leaves))
            if node:
                branches.append(None)
            else:
                leaves += 1
        roots.append(first)
        if len(tree) == 1:
            branches.append((0, 0, numbers[0], numbers[0]))
        for (leaf, number), node in zip(numbers, tree, strict=True):
            if not leaf:
                branches[number] = (node[0], node[1], *(numbers[child] for child in node[2]))
    splits, modes = d.values(len(branches), dtype), np.array([b[1] for b in branches], np.uint8)
    given: dict[str, Any] = {
        "tree_roots": roots, "nodes_featureids": [b[0] for b in branches], "nodes_splits": splits, "nodes_modes": modes,
        "nodes_trueleafs": [b[2][0] for b in branches], "nodes_truenodeids": [b[2][1] for b in branches],
        "nodes_falseleafs": [b[3][0] for b in branches], "nodes_falsenodeids": [b[3][1] for b in branches],
        "nodes_missing_value_tracks_true": _missing(d, branches), "n_targets": targets,
        "leaf_targetids": d.rng.integers(0, targets, leaves).tolist(), "leaf_weights": d.weights(leaves, exact, dtype),
        "aggregate_function": d.int(0, 3),
    }  # fmt: skip
    if d.chance(0.3):
        chosen = d.rng.random(len(branches)) < 0.4
        if d.chance(0.5):  # as onnxruntime can have them
            splits = given["nodes_splits"] = d.rng.integers(1, 33, len(splits)).astype(dtype)
        sets = [[*d.rng.choice(splits, d.int(1, 5)), np.nan] for _ in range(int(chosen.sum()))]
        if sets:
            given |= {
                "nodes_modes": np.where(chosen, 6, modes).astype(np.uint8),
                "membership_values": np.concatenate(sets).astype(dtype),
            }
    if d.chance(0.4):
        given["post_transform"] = d.int(0, 4)
    x = d.near((d.rows(), forest.columns + d.int(0, 2)), splits, dtype)
    return Case(op, given, {"x": x}, 5, "z", exact)


# ---- products --------------------------------------------------------------------------------------------------------


def _plain(d: Draw, columns: int, dtype: Any = None) -> np.ndarray:
    dtype = dtype or d.dtype()
    x = np.round(d.rng.standard_normal((d.rows(), columns)) * 8) / d.some(1, 8)
    return np.asarray(x, dtype)


def _rows(d: Draw, rows: int, columns: int) -> list[float]:
    exact: list[float] = d.weights(rows * columns, True).tolist()
    return exact


def _transform(d: Draw) -> dict[str, Any]:
    return {"post_transform": d.some(*TRANSFORMS)} if d.chance(0.5) else {}


def linear(d: Draw, op: str) -> Case:
    rows, columns = d.some(1, 1, 2, 3, 5), d.some(1, 2, 3, 8, 17)
    given = {"coefficients": _rows(d, rows, columns), **_transform(d)}
    if op == "LinearRegressor":
        given |= {"targets": rows} | ({"intercepts": _rows(d, 1, rows)} if d.chance(0.7) else {})
        return Case(op, given, {"x": _plain(d, columns, np.float32)}, 1, "y")
    given |= {"intercepts": _rows(d, 1, rows), "multi_class": d.int(0, 1), **d.labels(max(rows, 2))}
    return Case(op, given, {"x": _plain(d, columns)}, 1, "l y")


def _kernel(d: Draw) -> dict[str, Any]:
    kind = d.some(*KERNELS)
    return {"kernel_type": kind, "kernel_params": [d.some(0.5, 0.125, 1.0), d.some(0.0, 0.25, -1.0), d.some(2.0, 3.0, 1.0)]}


def svm(d: Draw, op: str) -> Case:
    columns, count = d.some(1, 2, 3, 8), d.some(1, 2, 5, 17)
    kernel = _kernel(d)
    x = _plain(d, columns) / d.some(1, 8) if d.chance(0.5) else _plain(d, columns, np.float32)
    feeds = {"x": np.asarray(x, np.float32)}
    if op == "SVMRegressor":
        whole = d.chance(0.7)
        given = {
            "coefficients": _rows(d, 1, count if whole else columns),
            "rho": _rows(d, 1, 1),
            "one_class": d.int(0, 1),
        } | kernel
        given |= {"n_supports": count, "support_vectors": _rows(d, count, columns)} if whole else {"kernel_type": "LINEAR"}
        return Case(op, given | _transform(d), feeds, 1, "y", False)
    classes = d.some(2, 2, 3, 4)
    given = {**kernel, **_transform(d), **d.labels(classes)}
    if d.chance(0.25):
        given |= {"coefficients": _rows(d, classes, columns), "rho": _rows(d, 1, 1), "kernel_type": "LINEAR"}
        return Case(op, given, feeds, 1, "l y", False)
    per = [d.int(1, 5) for _ in range(classes)]
    pairs = classes * (classes - 1) // 2
    given |= {"support_vectors": _rows(d, sum(per), columns), "vectors_per_class": per, "rho": _rows(d, 1, pairs)}
    given |= {"coefficients": _rows(d, classes - 1, sum(per))}
    if d.chance(0.4):
        given |= {"prob_a": (-abs(d.weights(pairs, True)) - 0.5).tolist(), "prob_b": _rows(d, 1, pairs)}
    return Case(op, given, feeds, 1, "l y", False)


def scaler(d: Draw, op: str) -> Case:
    columns = d.some(1, 2, 3, 8, 17)
    many = d.some(1, columns)
    x = d.near((d.rows(), columns), d.values(9, np.float32), d.dtype())
    return Case(
        op, {"offset": d.values(many, np.float32).tolist(), "scale": d.values(many, np.float32).tolist()}, {"x": x}, 1, "y"
    )


def normalizer(d: Draw, op: str) -> Case:
    x = d.near((d.rows(), d.some(1, 2, 3, 8, 17)), d.values(9, np.float32), d.dtype(), nan=d.chance(0.5))
    return Case(op, {"norm": d.some("MAX", "L1", "L2")}, {"x": x}, 1, "y")


def binarizer(d: Draw, op: str) -> Case:
    bound = d.values(1, np.float32)
    x = d.near((d.rows(), d.some(1, 2, 3, 8, 17)), bound, np.float32)
    return Case(op, {"threshold": float(bound[0])}, {"x": x}, 1, "z")


def imputer(d: Draw, op: str) -> Case:
    columns, dtype = d.some(1, 2, 3, 8), d.some(np.float32, np.int64)
    many, values = d.some(1, columns), d.values(5, np.float32)
    x = d.near((d.rows(), columns), values, dtype)
    if dtype == np.int64:
        given: dict[str, Any] = {"imputed_value_int64s": d.rng.integers(-9, 9, many).tolist()}
        given["replaced_value_int64"] = int(x.flat[0])
    else:
        given = {"imputed_value_floats": d.values(many, np.float32).tolist()}
        given["replaced_value_float"] = d.some(float("nan"), float(values[0]), 0.0, float("inf"))
    return Case(op, given, {"x": x}, 1, "z")


def one_hot(d: Draw, op: str) -> Case:
    categories, zeros = (d.rng.permutation(40)[: d.int(1, 9)] - 9).tolist(), int(d.chance(0.7))
    shape = (d.rows(), *d.some((), (1,), (3,)))
    if d.chance(0.3):
        texts = [f"c{v}" for v in categories]
        x = d.rng.choice(np.array([*texts, *(["", "other"] if zeros else [])], object), shape)
        return Case(op, {"cats_strings": texts, "zeros": zeros}, {"x": x}, 1, "y")
    x = d.rng.choice(np.array([*categories, *([99, -99] if zeros else [])]), shape)
    x = x.astype(d.some(np.int64, np.float32, np.float64))
    if x.dtype.kind == "f" and zeros and d.chance(0.4):
        x.flat[0] += 0.5
    return Case(op, {"cats_int64s": categories, "zeros": zeros}, {"x": x}, 1, "y")


def label_encoder(d: Draw, op: str) -> Case:
    count = d.int(1, 9)
    keys = d.some("strings", "int64s", "floats")
    values = d.some("strings", "int64s", "floats")
    made = {
        "strings": [f"k{i}" for i in d.rng.permutation(20)[:count]], "int64s": (d.rng.permutation(30)[:count] - 15).tolist(),
        "floats": np.unique(d.near((count,), d.values(9, np.float32), np.float32)).tolist(),
    }  # fmt: skip
    count = len(made[keys])
    other: dict[str, Any] = {
        "strings": [f"v{i}" for i in range(count)],
        "int64s": list(range(5, 5 + count)),
        "floats": [i / 4 for i in range(count)],
    }
    given = {f"keys_{keys}": made[keys], f"values_{values}": other[values]}
    if d.chance(0.5):
        given |= {"default_string": "none", "default_int64": -7, "default_float": 0.25}
    shape = (d.rows(), *d.some((), (2,)))
    if keys == "strings":
        x: Any = d.rng.choice(np.array([*made[keys], "", "nothing"], object), shape)
    elif keys == "int64s":
        x = d.rng.choice(np.array([*made[keys], 0, 1 << 40]), shape)
    else:
        x = d.near(shape, np.array(made[keys], np.float32), np.float32)
    return Case(op, given, {"x": x}, d.some(2, 4), "z")


def extractor(d: Draw, op: str) -> Case:
    columns = d.int(1, 9)
    at = d.rng.integers(0, columns, (1, d.int(1, 5)))
    return Case(op, {}, {"x": _plain(d, columns), "i": at}, 1, "z")


def vectorizer(d: Draw, op: str) -> Case:
    n, widths, dtype = d.rows(), [d.int(1, 4) for _ in range(d.int(1, 4))], d.dtype()
    feeds = {f"x{i}": np.asarray(np.round(d.rng.standard_normal((n, w)) * 9), dtype) for i, w in enumerate(widths)}
    return Case(op, {"inputdimensions": widths}, feeds, 1, "y")


TABLE: dict[str, Callable[[Draw, str], Case]] = {
    **dict.fromkeys(("TreeEnsembleRegressor", "TreeEnsembleRegressor again"), tree_regressor),
    **dict.fromkeys(("TreeEnsembleClassifier", "TreeEnsembleClassifier again"), tree_classifier),
    **dict.fromkeys(("TreeEnsemble", "TreeEnsemble again"), tree_ensemble),
    "LinearRegressor": linear, "LinearClassifier": linear, "SVMRegressor": svm, "SVMClassifier": svm, "Scaler": scaler,
    "Normalizer": normalizer, "Binarizer": binarizer, "Imputer": imputer, "OneHotEncoder": one_hot,
    "LabelEncoder": label_encoder, "ArrayFeatureExtractor": extractor, "FeatureVectorizer": vectorizer,
}  # fmt: skip


def kind_of(seed: int) -> str:
    """The operator of a seed."""
    return str(Draw(seed).some(*TABLE)).partition(" ")[0]


def draw(seed: int) -> Case:
    """The case of a seed."""
    d = Draw(seed)
    name = d.some(*TABLE)
    return TABLE[name](d, name.partition(" ")[0])
