"""One model in onnxruntime and in fastlayers, and what is different."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import onnxruntime

import fastlayers as fl

from .models import TRANSFORMS, Case, draw, kind_of

__all__ = ["DIFFERENCES", "Difference", "compared", "kind_of", "one"]

# How far scores may be apart, as parts of the largest one: sums that are exact, and others.
EXACT, ROUNDED = 2e-6, 2e-5


def _transform(case: Case) -> str:
    given = case.given.get("post_transform", "NONE")
    return given if isinstance(given, str) else TRANSFORMS[given]


def _scores(case: Case) -> int:
    """How many there are before the transform."""
    given = case.given
    if case.op in ("TreeEnsembleRegressor", "TreeEnsemble"):
        return int(given["n_targets"])
    if case.op == "TreeEnsembleClassifier":
        ids, classes = len(set(given["class_ids"])), _classes(case)
        return 1 if classes == 2 and ids <= 1 else classes
    if case.op.startswith("Linear"):
        return int(given.get("targets", len(given.get("intercepts", ()))))
    if case.op == "SVMClassifier" and "vectors_per_class" in given:
        return _classes(case) * (_classes(case) - 1) // 2
    return _classes(case) if case.op == "SVMClassifier" else 1


def _classes(case: Case) -> int:
    return next((len(v) for k, v in case.given.items() if k.startswith("classlabels")), 0)


def _input(case: Case) -> np.ndarray:
    return next(iter(case.feeds.values()))


# Of our errors, those that refuse what onnxruntime computes.
REFUSED = ("base_values, of two classes of which leaves speak of one",)  # for which of them they are, nothing says


class Difference(NamedTuple):
    """A pattern of operators, the outputs that it is about, when, and in which way onnxruntime is not followed."""

    ops: str
    outputs: str
    when: Callable[[Case], bool]
    reason: str


def _partial(case: Case) -> bool:
    """Whether a leaf says nothing of some target or class."""
    given = case.given
    said = len(given.get("class_ids", given.get("target_ids", ())))
    return said < given["nodes_modes"].count("LEAF") * _scores(case)


def _least(case: Case) -> bool:
    given = case.given
    return _partial(case) and (given.get("aggregate_function") in ("MIN", "MAX") or any(n.startswith("base") for n in given))


def _passed(case: Case) -> float:
    """The largest sum that the leaves of trees may make on their way, each step of which onnxruntime rounds to float32."""
    given = case.given
    weights = next((v for k, v in given.items() if k in ("class_weights", "target_weights", "leaf_weights")), ())
    trees = len(given["tree_roots"]) if "tree_roots" in given else len(set(given.get("nodes_treeids", ())))
    return float(trees * np.abs(np.asarray(weights, np.float64)).max(initial=0))


def _sets(case: Case) -> bool:
    return "membership_values" in case.given


def _far(case: Case) -> bool:
    """Whether float32, or the dtype of integers, has no square of some value."""
    x = abs(_input(case).astype(np.float64))
    return bool(((x > (1e4 if _input(case).dtype.kind == "i" else 1e18)) | (x < 1e-18) & (x > 0)).any())


def _one_of_two(case: Case) -> bool:
    return _classes(case) == 2 and _scores(case) == 1


_ONE = "it leaves a transform of one score out"
_TREES = "TreeEnsemble.*"
_CLASSES = "TreeEnsembleClassifier"
DIFFERENCES: tuple[Difference, ...] = (
    Difference(".*", "yz", lambda c: _transform(c) != "NONE" and _scores(c) == 1 and not _one_of_two(c), _ONE),
    Difference(".*", "y", lambda c: _transform(c) == "PROBIT" and _one_of_two(c), "it writes one of two scores alone"),
    Difference(".*", "yz", lambda c: _transform(c) == "SOFTMAX_ZERO", "it gives NaN where all scores are 0"),
    Difference("TreeEnsemble", "z", lambda c: _transform(c) in ("SOFTMAX", "LOGISTIC"), "it takes each of them for the other"),
    Difference("TreeEnsemble", "z", _sets, "its sets are of small integers: see what a walk gives"),
    Difference("TreeEnsembleRegressor", "y", _least, "it takes 0 for what a leaf does not say, or leaves base values out"),
    Difference(_CLASSES, "ly", lambda c: _classes(c) == 1, "its label of a single class is 0 or 1"),
    Difference(_CLASSES, "ly", lambda c: _classes(c) == _scores(c) == 2, "its labels are 0 and 1, and it mixes base values up"),
    Difference(_CLASSES, "l", _partial, "it passes over classes of which the leaves of a row say nothing"),
    Difference(_CLASSES, "y", lambda c: _partial(c) and _one_of_two(c), "where leaves say nothing, the first class has 1"),
    Difference("Normalizer", "y", _far, "there are no squares of such values"),
    Difference("Normalizer", "y", lambda c: bool(np.isnan(_input(c).astype(np.float64)).any()), "it passes over NaN"),
    Difference("SVMClassifier", "l", lambda c: _classes(c) == _scores(c) == 2, "its label is not that of the higher score"),
    Difference(".*", "yz", lambda c: _transform(c) == "PROBIT", "near 0, 1/2 and 1 its float32 leaves half of the digits"),
    Difference(
        "LabelEncoder", "z", lambda c: c.version < 4 and bool(np.isnan(c.given.get("keys_floats", ())).any()), "NaN is no key"
    ),
)


def _known(case: Case, output: str) -> str | None:
    for d in DIFFERENCES:
        if re.fullmatch(d.ops, case.op) and output in d.outputs and d.when(case):
            return d.reason
    return None


def _words(error: BaseException) -> str:
    text = re.sub(r"[\w/.]*/[\w.]+:\d+ ", "", str(error).replace("\n", " "))
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "#", text)[:160]


def _theirs(data: bytes, feeds: dict[str, np.ndarray]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return [np.asarray(y) for y in session.run(None, feeds)]


def compared(case: Case) -> Iterator[tuple[str, str]]:
    """What there is to say of a case: ("fault" or a kind of refusal, words)."""
    data, outputs = case.model(), case.outputs.split()
    wanted, refused = None, None
    try:
        wanted = _theirs(data, case.feeds)
    except Exception as error:
        refused = error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fl.load(data)
            found = [np.asarray(y) for y in model.run(case.feeds).values()]
            n = len(_input(case))
            cut = int(np.sqrt(n))
            parts = [
                model.run({k: v[at] if len(v) == n else v for k, v in case.feeds.items()}) for at in (slice(cut), slice(cut, n))
            ]
    except fl.Error as error:
        if refused is None:
            known = any(text in str(error) for text in REFUSED)
            yield "refused" if known else "fault", f"refused: {type(error).__name__}: {_words(error)}"
        return
    except Exception as error:
        yield "fault", f"foreign {type(error).__name__}: {error}"
        return
    if len(case.feeds) == 1 or n > 1:
        for i, name in enumerate(outputs):
            joined = np.concatenate([np.asarray(list(part.values())[i]) for part in parts])
            if joined.tobytes() != found[i].tobytes() and found[i].dtype != object:
                yield "fault", f"{name}: rows have other values in other batches"
    if refused is not None:
        yield "onnxruntime refuses", f"refuses: {type(refused).__name__}: {_words(refused)}"
        return
    assert wanted is not None
    for name, got, want in zip(outputs, found, wanted, strict=True):
        told = _differs(case, got, want)
        if told and (reason := _known(case, name)):
            yield "differs", f"{name}: {reason}"
        elif told:
            yield "fault", f"{name}: {told}"


def _differs(case: Case, got: np.ndarray, want: np.ndarray) -> str:
    if got.shape != want.shape:
        return f"shape {got.shape}, onnxruntime's {want.shape}"
    if got.dtype.kind != want.dtype.kind and {got.dtype.kind, want.dtype.kind} - {"O", "U"}:
        return f"dtype {got.dtype}, onnxruntime's {want.dtype}"
    if want.dtype.kind == "f":
        finite = want[np.isfinite(want)]
        with np.errstate(all="ignore"):
            plain = _transform(case) == "NONE"  # the others are rounded as parts of 1
            bound = (EXACT if case.exact and plain else ROUNDED) * abs(finite).max(initial=0 if plain else 1)
            bound = max(bound, 2**-24 * _passed(case))
            near = (abs(got - want) <= bound) | (got == want) | (np.isnan(got) & np.isnan(want))
    else:
        near = np.asarray(got == want)
    if near.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~near)[0])
    row = _input(case)[at[0]] if _input(case).ndim and at[0] < len(_input(case)) else _input(case)
    return f"{int((~near).sum())} of {near.size} differ, at {at} {got[at]!r} for {want[at]!r}, of the row {row.tolist()!s:.200}"


_COMPARE = (operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne)


def _walked(case: Case) -> np.ndarray:
    """The scores of TreeEnsemble 5, from node to node."""
    g, x = case.given, _input(case)
    modes, splits, weights = g["nodes_modes"].tolist(), g["nodes_splits"], g["leaf_weights"].tolist()
    ends = np.flatnonzero(np.isnan(g["membership_values"]))
    sets = np.split(g["membership_values"], ends + 1)
    member = dict(zip(np.flatnonzero(g["nodes_modes"] == 6).tolist(), sets, strict=False))
    tracks, how = g["nodes_missing_value_tracks_true"] or [0] * len(modes), g["aggregate_function"]
    out: list[list[list[float]]] = [[[] for _ in range(g["n_targets"])] for _ in x]
    for row, found in zip(x, out, strict=True):
        for at in g["tree_roots"]:
            leaf = 0
            while not leaf:
                value = row[g["nodes_featureids"][at]]
                yes = value in member[at][:-1] if modes[at] == 6 else _COMPARE[modes[at]](value, splits[at])
                side = "true" if yes or (np.isnan(value) and tracks[at]) else "false"
                leaf, at = g[f"nodes_{side}leafs"][at], g[f"nodes_{side}nodeids"][at]
            found[g["leaf_targetids"][at]].append(weights[at])
    total = (lambda w: sum(w) / len(g["tree_roots"]), sum, min, max)[how]
    return np.array([[total(w) if w else 0 for w in row] for row in out], x.dtype).reshape(len(x), -1)


def one(seed: int) -> tuple[str, str, Iterator[tuple[str, str]]]:
    """The case of a seed, for `tests.random_walk`."""
    case = draw(seed)
    return case.op, case.told(), compared(case)
