"""Hierarchical softmax: trees, every class enumerated in float64, sums of 1, the arg-max, work per class, errors."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

f = fl.functional
COUNTS = {n: (1000 / np.arange(1, n + 1) ** 1.3).astype(int) + 1 for n in (1, 2, 3, 5, 16, 17, 100, 1000)}


def trees(n: int) -> list[Any]:
    rng = np.random.default_rng(n)
    return [fl.ClassTree.balanced(n), fl.ClassTree.huffman(COUNTS[n]), fl.ClassTree.huffman(rng.permutation(COUNTS[n])), chain(n)]


def chain(n: int) -> Any:
    """A tree as deep as can be, for few classes."""
    m = min(n, 40) - 1
    if n > 40:
        return fl.ClassTree.huffman(2.0 ** -np.arange(n))
    right = np.arange(1, m + 1)
    return fl.ClassTree(-1 - np.arange(m), np.where(right < m, right, -1 - m))


def enumerated(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, tree: Any) -> np.ndarray:
    """Log-probabilities of all classes, each by its path, in float64."""
    z = x.astype(np.float64) @ weight.astype(np.float64).T + (0 if bias is None else bias)
    out = np.zeros((*x.shape[:-1], tree.num_classes))
    for c in range(tree.num_classes):
        for node, code in zip(*tree.path(c), strict=True):
            out[..., c] -= np.logaddexp(0, z[..., node] if code else -z[..., node])
    return out


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 17, 100])
@pytest.mark.parametrize("d", [1, 7, 64, 67])
def test_every_class_is_enumerated(n: int, d: int, variant: str) -> None:
    for tree in trees(n):
        for bias in (None, numbers(n - 1, seed=3)):
            x, weight = numbers(6, d), numbers(n - 1, d, seed=1) / np.float32(np.sqrt(d)) * 2
            want = enumerated(x, weight, bias, tree)
            got = f.hierarchical_log_softmax(x, weight, tree, bias)
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=4e-6)
            np.testing.assert_allclose(np.exp(got.astype(np.float64)).sum(-1), 1, rtol=0, atol=1e-6)
            rows, targets = np.repeat(x, n, 0), np.tile(np.arange(n), 6)
            one = f.hierarchical_log_prob(rows, targets, weight, tree, bias)
            np.testing.assert_allclose(one.reshape(6, n), want, rtol=2e-6, atol=4e-6)
            classes, best = f.hierarchical_argmax(x, weight, tree, bias)
            np.testing.assert_allclose(best, want.max(-1), rtol=2e-6, atol=4e-6)
            np.testing.assert_allclose(np.take_along_axis(want, classes[:, None], 1)[:, 0], want.max(-1), rtol=1e-6, atol=1e-5)
            assert classes.dtype == np.int64


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_a_thousand_classes_sum_to_1(scale: float, variant: str, threads: int) -> None:
    for tree in (fl.ClassTree.huffman(COUNTS[1000]), fl.ClassTree.balanced(1000)):
        x, weight = numbers(20, 96) * np.float32(scale), numbers(999, 96, seed=1) / np.float32(np.sqrt(96))
        got = f.hierarchical_log_softmax(x, weight, tree)
        np.testing.assert_allclose(np.exp(got.astype(np.float64)).sum(-1), 1, rtol=0, atol=1e-6)
        want = enumerated(x, weight, None, tree)
        assert np.max(np.abs(got - want) / np.maximum(1, np.abs(want))) < 1e-5
        classes, _ = f.hierarchical_argmax(x, weight, tree)
        np.testing.assert_array_equal(classes, want.argmax(-1))
        alone = f.hierarchical_log_softmax(x[7:8], weight, tree)
        np.testing.assert_allclose(alone, got[7:8], rtol=1e-6)


def test_equal_classes_give_the_lowest(variant: str) -> None:
    for n in (2, 4, 16):
        classes, log = f.hierarchical_argmax(np.ones((3, 2)), np.zeros((n - 1, 2)), fl.ClassTree.balanced(n))
        np.testing.assert_array_equal(classes, 0)
        np.testing.assert_allclose(log, -np.log(n), rtol=1e-6)


def test_nan_and_infinity(variant: str) -> None:
    tree = fl.ClassTree.balanced(4)
    x = np.array([[np.nan], [1e30], [-1e30]], np.float32)
    got = f.hierarchical_log_softmax(x, np.full((3, 1), 1e8), tree)
    assert np.isnan(got[0]).all()
    np.testing.assert_array_equal(np.exp(got[1:]), [[1, 0, 0, 0], [0, 0, 0, 1]])
    classes, _ = f.hierarchical_argmax(x, np.full((3, 1), 1e8), tree)
    assert 0 <= classes[0] < 4 and got[1].argmax() == classes[1] and got[2].argmax() == classes[2]
    assert np.isnan(f.hierarchical_log_prob(x[:1], [2], np.full((3, 1), 1e8), tree)).all()


# ---- trees ----


@pytest.mark.parametrize("n", [1, 2, 3, 5, 17, 100, 1000])
def test_trees_hold_every_class_once(n: int) -> None:
    for tree in trees(n):
        assert tree.num_classes == n and len(tree.order) == n - 1
        lengths = np.diff(tree.starts)
        assert tree.depth == lengths.max()
        assert sum(2.0 ** -lengths.astype(float)) == 1, "Kraft: a full binary tree"
        for c in range(0, n, 7):
            at = tree.order[0] if n > 1 else -1
            for node, code in zip(*tree.path(c), strict=True):
                assert node == at
                at = (tree.right if code else tree.left)[node]
            assert at == -1 - c
    balanced = np.diff(fl.ClassTree.balanced(n).starts)
    assert balanced.max() - balanced.min() <= 1


@pytest.mark.parametrize("n", [2, 3, 17, 100])
def test_huffman_has_the_least_expected_path(n: int) -> None:
    for seed in range(5):
        counts = np.random.default_rng(seed).integers(0, 50, n)
        heap = [int(c) for c in counts]
        heapq.heapify(heap)
        least = 0
        while len(heap) > 1:
            joined = heapq.heappop(heap) + heapq.heappop(heap)
            least += joined
            heapq.heappush(heap, joined)
        assert int((np.diff(fl.ClassTree.huffman(counts).starts) * counts).sum()) == least


def word2vec(counts: list[int]) -> tuple[list[list[int]], list[list[int]]]:
    """CreateBinaryTree of word2vec.c, for counts in descending order."""
    n = len(counts)
    count, binary, parent = counts + [10**15] * n, [0] * (2 * n), [0] * (2 * n)
    pos1, pos2 = n - 1, n
    for a in range(n - 1):
        least = []
        for _ in range(2):
            if pos1 >= 0 and count[pos1] < count[pos2]:
                least.append(pos1)
                pos1 -= 1
            else:
                least.append(pos2)
                pos2 += 1
        count[n + a] = count[least[0]] + count[least[1]]
        parent[least[0]] = parent[least[1]] = n + a
        binary[least[1]] = 1
    points, codes = [], []
    for c in range(n):
        path, bits, b = [], [], c
        while b != 2 * n - 2:
            bits.append(binary[b])
            b = parent[b]
            path.append(b - n)
        points.append(path[::-1])
        codes.append(bits[::-1])
    return points, codes


def test_huffman_is_word2vecs() -> None:
    for counts in ([9, 7, 7, 5, 3, 3, 3, 2, 1, 1], [1, 1], [100, 1, 1, 1, 1], list(range(50, 0, -1))):
        tree = fl.ClassTree.huffman(counts)
        points, codes = word2vec(counts)
        for c in range(len(counts)):
            assert tree.path(c)[0].tolist() == points[c] and tree.path(c)[1].tolist() == codes[c]
        again = fl.ClassTree.from_paths(points, codes)
        np.testing.assert_array_equal(again.left, tree.left)
        np.testing.assert_array_equal(again.right, tree.right)


def test_word2vecs_formula() -> None:
    """Training takes label = 1 - code for sigmoid(syn1[point] . x)."""
    tree = fl.ClassTree.huffman([5, 4, 3, 2])
    x, syn1 = numbers(8), numbers(3, 8, seed=1)
    for c in range(4):
        points, codes = tree.path(c)
        p = 1 / (1 + np.exp(-(syn1[points].astype(float) @ x)))
        want = np.log(np.where(1 - codes == 1, p, 1 - p)).sum()
        np.testing.assert_allclose(f.hierarchical_log_prob(x, c, syn1, tree), want, rtol=1e-5)


def test_a_path_costs_its_length() -> None:
    """The expected work is the logarithm of the number of classes, with counts as words have them."""
    for n in (1000, 20000):
        counts = 1e9 / np.arange(1, n + 1)
        expected = (np.diff(fl.ClassTree.huffman(counts).starts) * counts).sum() / counts.sum()
        assert expected < np.log2(n)


# ---- the layer ----


def test_layer(variant: str) -> None:
    layer = fl.HierarchicalSoftmax(6, 10, counts=COUNTS[100][:10], bias=True)
    weight, bias, x = numbers(9, 6), numbers(9), numbers(2, 4, 6)
    layer.load_state_dict({"weight": weight, "bias": bias})
    want = enumerated(x, weight, bias, layer.tree)
    targets = np.arange(8).reshape(2, 4)
    one = np.take_along_axis(want, targets[..., None], -1)[..., 0]
    np.testing.assert_allclose(layer(x), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(layer.log_prob(x, targets), one, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(layer.predict(x), want.argmax(-1))
    native = variant != "reference"
    model = fl.compile(layer, fl.graph.Input("x", ("n", 4, 6)), require_native=native)
    np.testing.assert_allclose(model(x), want, rtol=1e-5, atol=1e-5)
    feeds = (fl.graph.Input("x", ("n", "t", 6)), fl.graph.Input("y", ("n", "t"), np.int64))
    model = fl.compile(layer.log_prob, *feeds, require_native=native)
    np.testing.assert_allclose(model(x, targets), one, rtol=1e-5, atol=1e-5)
    with pytest.raises(fl.ShapeError, match="10 is out of range: expected 0 to 9"):
        model(x, targets + 3)
    assert repr(layer) == f"HierarchicalSoftmax(6, 10, depth={layer.tree.depth}, bias)"


def test_word2vecs_matrix_may_have_a_row_too_many() -> None:
    layer = fl.HierarchicalSoftmax(3, 5)
    layer.load_state_dict({"syn1": numbers(5, 3)})
    np.testing.assert_array_equal(layer.state_dict()["weight"], numbers(5, 3)[:4])


TREE = fl.ClassTree.balanced(4)
W = numbers(3, 2)
WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: f.hierarchical_log_prob(numbers(2), 4, W, TREE), fl.ArgumentError, "_prob: target 4 is out of range: expected 0 to"),
    (lambda: f.hierarchical_log_prob(numbers(2), -1, W, TREE), fl.ArgumentError, "target -1 is out of range"),
    (lambda: f.hierarchical_log_prob(numbers(2), 0.0, W, TREE), fl.DTypeError, "_log_prob: targets has dtype float64"),
    (lambda: f.hierarchical_log_prob(numbers(2, 2), [0], W, TREE), fl.ShapeError, r"_log_prob: targets has shape \(1,\)"),
    (lambda: f.hierarchical_log_prob(numbers(3), 0, W, TREE), fl.ShapeError, r"hierarchical_log_prob: x has shape \(3,\)"),
    (lambda: f.hierarchical_log_prob(numbers(2), 0, W[:2], TREE), fl.ShapeError, "hierarchical_log_prob: weight has shape"),
    (lambda: f.hierarchical_log_prob(numbers(2), 0, W, TREE, [1.0]), fl.ShapeError, "hierarchical_log_prob: bias has shape"),
    (lambda: f.hierarchical_log_prob(numbers(2), 0, W, None), fl.DTypeError, "hierarchical_log_prob: tree is of type NoneType"),
    (lambda: f.hierarchical_log_softmax(numbers(3), W, TREE), fl.ShapeError, "hierarchical_log_softmax: x has shape"),
    (lambda: f.hierarchical_log_softmax(numbers(2), W, "x"), fl.DTypeError, "hierarchical_log_softmax: tree"),
    (lambda: f.hierarchical_argmax(numbers(3), W, TREE), fl.ShapeError, "hierarchical_argmax: x has shape"),
    (lambda: f.hierarchical_argmax(fl.graph.Input("x", (2,)), W, TREE), fl.UnsupportedError, "hierarchical_argmax"),
    (lambda: fl.HierarchicalSoftmax(2, 0), fl.ArgumentError, "HierarchicalSoftmax: num_classes is 0"),
    (lambda: fl.HierarchicalSoftmax(2, 3, counts=[1, 2]), fl.ArgumentError, "num_classes is 3, the tree has 2 classes"),
    (lambda: fl.HierarchicalSoftmax(2, 4, [1, 2, 3, 4], TREE), fl.ArgumentError, "counts and tree are both given"),
    (lambda: fl.HierarchicalSoftmax(2, 4)(numbers(2)), fl.WeightsError, "called without weights"),
    (lambda: fl.ClassTree.huffman([]), fl.ShapeError, "ClassTree.huffman: counts"),
    (lambda: fl.ClassTree.huffman([1, -1]), fl.ArgumentError, "ClassTree.huffman: counts has a number below 0"),
    (lambda: fl.ClassTree.huffman([1, float("nan")]), fl.ArgumentError, "ClassTree.huffman"),
    (lambda: fl.ClassTree.balanced(0), fl.ArgumentError, "ClassTree.balanced: num_classes is 0"),
    (lambda: fl.ClassTree([1, 0], [-1, -2]), fl.ArgumentError, "ClassTree: the nodes are no tree"),
    (lambda: fl.ClassTree([0], [-1]), fl.ArgumentError, "ClassTree: the nodes are no tree"),
    (lambda: fl.ClassTree([5], [-1]), fl.ArgumentError, "ClassTree: a child is out of range"),
    (lambda: fl.ClassTree.from_paths([[0], [0]], [[0], [0]]), fl.ArgumentError, "from_paths: class 1: node 0 has another child"),
    (lambda: fl.ClassTree.from_paths([[0], [0]], [[0], [2]]), fl.ArgumentError, "from_paths: class 1"),
    (lambda: TREE.path(4), fl.ArgumentError, "ClassTree.path: target is 4"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), WRONG, ids=[text for _, _, text in WRONG])
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
