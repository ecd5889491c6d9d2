"""Features without networks."""

from __future__ import annotations

import math

import numpy as np

from . import array, case, numbers

I64, I32, F64, U8 = np.int64, np.int32, np.float64, np.uint8
NAN = math.nan
# x[0] <= 3 ? (x[1] > 1 ? leaf 0 : leaf 1) : leaf 2
TREE = {
    "tree_roots": (0,), "nodes_modes": array([0, 3], U8), "nodes_featureids": (0, 1), "nodes_splits": array([3.0, 1.0]),
    "nodes_truenodeids": (1, 0), "nodes_trueleafs": (0, 1), "nodes_falsenodeids": (2, 1), "nodes_falseleafs": (1, 1),
    "leaf_targetids": (0, 1, 0), "leaf_weights": array([1.0, 20.0, 300.0]), "n_targets": 2,
}  # fmt: skip
ROWS = array([[3, 2], [0, 1], [4, 9], [NAN, 0]])
# The same node twice as two trees that are leaves: both of its branches end at one.
STUMPS = {
    "tree_roots": (0, 1), "nodes_modes": array([6, 1], U8), "nodes_featureids": (0, 0), "nodes_splits": array([0.0, 2.0]),
    "nodes_truenodeids": (0, 1), "nodes_trueleafs": (1, 1), "nodes_falsenodeids": (1, 1), "nodes_falseleafs": (1, 1),
    "leaf_targetids": (0, 0), "leaf_weights": array([4.0, -2.0]), "membership_values": array([1.0, 3.0, NAN]),
}  # fmt: skip
IN = array([[1], [2], [NAN]])
POOL = {"pool_int64s": (2, 3, 5, 4, 5, 6, 7, 8, 6, 7), "ngram_counts": (0, 4), "ngram_indexes": (0, 1, 2, 3, 4, 5, 6),
        "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, "mode": "TF"}  # fmt: skip
TEXT = array([1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8], I64)

CASES = [
    case("Binarizer", "plain", [array([[-1, 0, 2.5]])], [[0, 0, 1]]),
    case("Binarizer", "threshold", [array([1, 2, 3], I64)], [0, 0, 1], threshold=2.0),
    case("ArrayFeatureExtractor", "columns", [numbers(3, 4), array([[3, 0]], I64)], [[3, 0], [7, 4], [11, 8]], data=2),
    case("ArrayFeatureExtractor", "a vector is a row", [numbers(4), array([1], I64)], [[1]], data=2),
    case("LabelEncoder", "numbers", [array([3, 1, 2, 3], I64)], array([0.5, -1, 7, 0.5]), keys_int64s=(1, 3),
         values_floats=(-1.0, 0.5), default_float=7.0),
    case("LabelEncoder", "floats and NaN", [array([NAN, 2.0, 0.0])], array([5, 9, -1], I64), keys_floats=(2.0, NAN),
         values_int64s=(9, 5)),
    case("LabelEncoder", "tensors", [array([[1, 4]], I32)], array([[2, 3]], np.int16), keys_tensor=array([4, 4], I64),
         values_tensor=array([9, 3], np.int16), default_tensor=array([2], np.int16)),
    case("LabelEncoder", "no keys", [array([1.0])], array([-1], I64), keys_floats=(), values_int64s=()),
    case("TfIdfVectorizer", "one and two", [TEXT], array([0, 3, 1, 0, 1, 1, 1]), **POOL),
    case("TfIdfVectorizer", "left out between", [TEXT.reshape(2, 6)], array([[0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1]]),
         **{**POOL, "min_gram_length": 2, "max_skip_count": 3}),
    case("TfIdfVectorizer", "weights", [TEXT.astype(I32)], array([0, 2, 3, 0, 5, 6, 7]), **{**POOL, "mode": "IDF"},
         weights=tuple(float(i + 1) for i in range(7))),
    case("TfIdfVectorizer", "weights of sequences, not of places", [TEXT.astype(I32)], array([7, 6, 5, 0, 3, 6, 0]),
         **{**POOL, "mode": "TFIDF", "ngram_indexes": (6, 5, 4, 3, 2, 1, 0)}, weights=tuple(float(i + 1) for i in range(7))),
    case("TfIdfVectorizer", "too short", [TEXT[:1]], array([0, 0, 0, 0, 0, 0, 0]), **{**POOL, "mode": "TFIDF"}),
    case("TreeEnsemble", "a tree", [ROWS], [[1, 0], [0, 20], [300, 0], [300, 0]], **TREE),
    case("TreeEnsemble", "missing goes left", [ROWS[3:]], [[0, 20]], **TREE, nodes_missing_value_tracks_true=(1, 0)),
    case("TreeEnsemble", "double, logistic", [ROWS[:1].astype(F64)], [[1 / (1 + math.exp(-1)), 0.5]], **TREE, post_transform=2,
         ulp=2),
    case("TreeEnsemble", "softmax", [ROWS[:1]], array([[1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))]]), **TREE,
         post_transform=1, ulp=2),
    case("TreeEnsemble", "softmax of what is there", [ROWS[:1]], [[1, 0]], **TREE, post_transform=3),
    case("TreeEnsemble", "members, sums", [IN], [[2], [-4], [-4]], **STUMPS),
    case("TreeEnsemble", "means", [IN], [[1], [-2], [-2]], **STUMPS, aggregate_function=0),
    case("TreeEnsemble", "least", [IN], [[-2], [-2], [-2]], **STUMPS, aggregate_function=2),
    case("TreeEnsemble", "largest", [IN], [[4], [-2], [-2]], **STUMPS, aggregate_function=3),
    case("TreeEnsemble", "no rows", [IN[:0]], np.zeros((0, 1), np.float32), **STUMPS),
]  # fmt: skip
