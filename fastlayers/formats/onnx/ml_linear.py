"""LinearClassifier, LinearRegressor, SVMClassifier and SVMRegressor as matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._distinct import distinct
from ...errors import FormatError, UnsupportedError
from ...ir.graph import Node
from .ml_nodes import Nodes, floats_of, labels_of

__all__ = ["linear_classifier", "linear_regressor", "svm_classifier", "svm_regressor"]

_MOST_CLASSES = 1 << 16
_LARGEST_EXPONENT = 16  # of a squared distance in float32, whose error is some 1e-7 of it
_FAR = 1e18  # its square is a float32 as well


def _matrix(node: Node, name: str, rows: int) -> np.ndarray:
    """An attribute as (rows, columns)."""
    values = floats_of(node, name)
    if rows < 1 or not values.size or values.size % rows:
        raise FormatError(f"onnx: {node.op}: {name} has {values.size} values: expected some for each of {rows} rows")
    return values.reshape(rows, -1)


def _product(nodes: Nodes, x: str, weight: np.ndarray, bias: np.ndarray | None) -> str:
    """x Wᵀ + b. x may be one row without its axis."""
    rows = nodes.add("Flatten", x, axis=-1)  # (n, features), or one row
    given = () if bias is None else (nodes.constant(bias, "bias"),)
    return nodes.add("Gemm", rows, nodes.constant(np.ascontiguousarray(weight.T), "weight"), *given)


def linear_classifier(node: Node, version: int, make: Any) -> list[Node]:
    """One score a class, or one for the second of two."""
    nodes, labels = Nodes(node, make), labels_of(node, "classlabels_ints")
    intercepts = floats_of(node, "intercepts")
    transform = node.attributes.get("post_transform", "NONE")
    if not intercepts.size:  # left out: as many zeros as there are classes, since coefficients are flat
        intercepts = np.zeros(len(labels), np.float32)
    count = len(intercepts)
    if count > 1 and count != len(labels):
        raise FormatError(f"onnx: {node.op}: has {count} intercepts and {len(labels)} class labels: expected one for each")
    scores = _product(nodes, nodes.floats(node.inputs[0]), _matrix(node, "coefficients", count), intercepts)
    if count > 1:
        nodes.labels(nodes.best(scores), labels, 0)
        nodes.transformed(scores, transform, 1)
        return nodes.made
    if len(labels) != 2:
        raise UnsupportedError(f"{node.op} with one row of coefficients and {len(labels)} class labels")
    nodes.labels(nodes.above(scores, 0), labels, 0)
    nodes.transformed_two(scores, True, transform, 1)
    return nodes.made


def linear_regressor(node: Node, version: int, make: Any) -> list[Node]:
    """x Wᵀ + b, a row of W for each target."""
    nodes, targets = Nodes(node, make), node.attributes.get("targets", 1)
    intercepts = floats_of(node, "intercepts")
    if intercepts.size not in (0, targets):
        raise FormatError(f"onnx: {node.op}: has {intercepts.size} intercepts and {targets} targets: expected one for each")
    weight = _matrix(node, "coefficients", targets)
    scores = _product(nodes, nodes.floats(node.inputs[0]), weight, intercepts if intercepts.size else None)
    nodes.transformed(scores, node.attributes.get("post_transform", "NONE"), 0)
    return nodes.made


# ---- support vectors -------------------------------------------------------------------------------------------------


def _kernel(node: Node, nodes: Nodes, x: str, vectors: np.ndarray) -> str:
    """The kernel function of each row of x and each support vector: (n, vectors)."""
    kind = node.attributes.get("kernel_type", "LINEAR")
    gamma, shift, degree = [*floats_of(node, "kernel_params").tolist(), 0.0, 0.0, 3.0][:3]
    if floats_of(node, "kernel_params").size not in (0, 3):
        raise FormatError(f"onnx: {node.op}: kernel_params has {floats_of(node, 'kernel_params').size} values: expected 3")
    if kind == "RBF":
        return _distances(nodes, x, vectors, gamma)
    if kind == "LINEAR":
        return _product(nodes, x, vectors, None)
    if kind not in ("POLY", "SIGMOID"):
        raise UnsupportedError(f"{node.op} with kernel_type={kind!r:.80}")
    bias = np.full(len(vectors), shift, np.float32)
    products = _product(nodes, x, (gamma * vectors.astype(np.float64)).astype(np.float32), bias)
    if kind == "SIGMOID":
        return nodes.add("Tanh", products)
    return nodes.add("Pow", products, nodes.constant(np.float32(degree), "degree"))


def _distances(nodes: Nodes, x: str, vectors: np.ndarray, gamma: float) -> str:
    """exp(-gamma |x - v|^2), by the product of x and v. Distances do not change where both are moved: around the middle of the
    vectors, what is subtracted is least. Where that is still many times what exp takes for different, it is done in double.
    What is infinite is as far away as what is very far: infinities would cancel to NaN.
    """
    middle = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    near = vectors.astype(np.float64) - middle
    lengths = -gamma * (near**2).sum(axis=1)
    wide = bool(lengths.size and np.abs(lengths).max() > _LARGEST_EXPONENT)
    dtype = np.float64 if wide else np.float32
    features = nodes.constant(np.array([0, vectors.shape[1]]), "features")  # one feature would be repeated below
    rows = nodes.add("Reshape", nodes.add("Flatten", x, axis=-1), features)
    if wide:
        rows = nodes.cast(rows, 11)
    ends = (nodes.constant(np.asarray(end, dtype), "far") for end in (-_FAR, _FAR))
    rows = nodes.add("Clip", rows, *ends)
    rows = nodes.add("Sub", rows, nodes.constant(middle.astype(dtype), "middle"))
    products = _product(nodes, rows, (2 * gamma * near).astype(dtype), lengths.astype(dtype))
    own = nodes.add("ReduceSumSquare", rows, nodes.constant(np.array([1]), "axes"), keepdims=1)
    exponent = nodes.add("Sub", products, nodes.add("Mul", own, nodes.constant(np.asarray(gamma, dtype), "gamma")))
    if gamma > 0:
        exponent = nodes.add("Min", exponent, nodes.constant(np.asarray(0, dtype), "zero"))
    return nodes.add("Exp", nodes.floats(exponent) if wide else exponent)


def _mixed(groups: np.ndarray) -> np.ndarray:
    """An order in which the members of every group are spread evenly: what they add cancels early, and rounding with it."""
    place = np.empty(len(groups))
    for group in distinct(groups)[0]:
        mine = np.flatnonzero(groups == group)
        place[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
    return np.argsort(place, kind="stable")


def svm_regressor(node: Node, version: int, make: Any) -> list[Node]:
    """The sum of the kernel functions, or a linear function; of one class, 1 where it is above 0, else -1."""
    nodes, supports = Nodes(node, make), node.attributes.get("n_supports", 0)
    rho = floats_of(node, "rho")
    x = nodes.floats(node.inputs[0])
    weights = _matrix(node, "coefficients", 1)
    bias = rho[:1] if rho.size else None
    if supports > 0:
        vectors = _matrix(node, "support_vectors", supports)
        if weights.shape[1] != supports:
            raise FormatError(f"onnx: {node.op}: has {weights.shape[1]} coefficients for {supports} support vectors")
        order = _mixed(np.signbit(weights[0]))
        x, weights = _kernel(node, nodes, x, vectors[order]), weights[:, order]
    scores = _product(nodes, x, weights, bias)
    if node.attributes.get("one_class", 0):
        above = nodes.floats(nodes.add("Greater", scores, nodes.constant(np.float32(0), "zero")))
        two, one = nodes.constant(np.float32(2), "two"), nodes.constant(np.float32(1), "one")
        nodes.add("Sub", nodes.add("Mul", above, two), one, to=0)
        return nodes.made
    nodes.transformed(scores, node.attributes.get("post_transform", "NONE"), 0)
    return nodes.made


def svm_classifier(node: Node, version: int, make: Any) -> list[Node]:
    """Support vectors give a score for each pair of classes, which vote; a linear one gives a score for each class."""
    nodes, labels = Nodes(node, make), labels_of(node, "classlabels_ints")
    count, per_class = len(labels), node.attributes.get("vectors_per_class", ())
    if count >= _MOST_CLASSES:
        raise UnsupportedError(f"{node.op} of {count} classes")
    x, rho = nodes.floats(node.inputs[0]), floats_of(node, "rho")
    transform = node.attributes.get("post_transform", "NONE")
    if not sum(per_class):
        bias = np.broadcast_to(rho[:1] if rho.size else np.zeros(1, np.float32), (count,))
        return _linear_svm(nodes, x, _matrix(node, "coefficients", count), bias, labels, transform)
    if len(per_class) != count or min(per_class) < 0:
        raise FormatError(
            f"onnx: {node.op}: vectors_per_class is {tuple(per_class)[:8]} for {count} classes: expected one for each"
        )
    if count < 2:
        raise UnsupportedError(f"{node.op} with support vectors of one class")
    vectors = _matrix(node, "support_vectors", sum(per_class))
    pairs = count * (count - 1) // 2
    weights = floats_of(node, "coefficients")
    if weights.size < (count - 1) * len(vectors) or len(rho) < pairs:
        raise FormatError(
            f"onnx: {node.op}: has {weights.size} coefficients and {len(rho)} rho: expected {(count - 1) * len(vectors)}, {pairs}"
        )
    weight = _of_pairs(weights[: (count - 1) * len(vectors)].reshape(count - 1, -1), per_class)
    order = _mixed(np.repeat(np.arange(count), per_class))
    scores = _product(nodes, _kernel(node, nodes, x, vectors[order]), weight[:, order], rho[:pairs])
    if nodes.wants(0):
        nodes.labels(nodes.best(_votes(nodes, scores, count)), labels, 0)
    if not nodes.wants(1):
        return nodes.made
    a, b = (tuple(floats_of(node, name).tolist()) for name in ("prob_a", "prob_b"))
    if a:
        if len(a) != pairs or len(b) != pairs:
            raise FormatError(f"onnx: {node.op}: has {len(a)} prob_a and {len(b)} prob_b: expected {pairs}")
        shares = nodes.add("SvmProbabilities", scores, classes=count, prob_a=a, prob_b=b)
        nodes.transformed(shares, transform, 1)
    elif count > 2:
        nodes.transformed(scores, transform, 1)
    else:
        nodes.transformed_two(scores, transform != "NONE", transform, 1)
    return nodes.made


def _votes(nodes: Nodes, scores: str, count: int) -> str:
    """Number of pairs that each class wins, as exact floats: a score above 0 is for the first of its two classes."""
    first, second = np.triu_indices(count, 1)
    pairs = np.arange(len(first))
    change = np.zeros((len(first), count), np.float32)
    change[pairs, first], change[pairs, second] = 1, -1
    bias = np.bincount(second, minlength=count).astype(np.float32)
    above = nodes.floats(nodes.add("Greater", scores, nodes.constant(np.float32(0), "zero")))
    return nodes.add("Gemm", above, nodes.constant(change, "change"), nodes.constant(bias, "second"))


def _linear_svm(nodes: Nodes, x: str, weight: np.ndarray, bias: np.ndarray, labels: Any, transform: str) -> list[Node]:
    scores = _product(nodes, x, weight, bias)
    nodes.labels(nodes.best(scores), labels, 0)
    nodes.transformed(scores, transform, 1)
    return nodes.made


def _of_pairs(coefficients: np.ndarray, per_class: Any) -> np.ndarray:
    """(pairs, vectors): what each support vector adds to the score of two classes. Row j - 1 of the coefficients has, for the
    vectors of class i < j, those against j; row i those of class j against i.
    """
    ends = np.cumsum([0, *per_class])
    count = len(per_class)
    made = np.zeros((count * (count - 1) // 2, coefficients.shape[1]), np.float32)
    row = 0
    for i in range(count):
        for j in range(i + 1, count):
            first, second = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            made[row, first] = coefficients[j - 1, first]
            made[row, second] = coefficients[i, second]
            row += 1
    return made
