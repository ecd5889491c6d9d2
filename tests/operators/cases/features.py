"""Classical models and strings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.operators.ml.trees import INPUTS

from . import array, case, numbers

I64, I32, F64, U8 = np.int64, np.int32, np.float64, np.uint8
NAN = math.nan


def words(*values: str) -> np.ndarray:
    """Strings."""
    made = np.empty(len(values), object)
    made[:] = values
    return made


def trees(**given: Any) -> list[Any]:
    """The inputs of Trees after x, by their names; what is not given is left out."""
    floats = ("split", "weight", "members", "base")
    found = [None if given.get(n) is None else array(given[n], np.float32 if n in floats else I64) for n in INPUTS]
    while found[-1] is None:
        found.pop()
    return found


# x[0] <= 3 ? (x[1] > 1 ? leaf 0 : leaf 1) : leaf 2
TREE = {
    "roots": [0], "feature": [0, 1], "split": [3, 1], "modes": [0, 3], "yes": [1, -1], "no": [-3, -2], "missing": [0, 0],
    "starts": [0, 1, 2, 3], "targets": [0, 1, 0], "weight": [1, 20, 300],
}  # fmt: skip
ROWS = array([[3, 2], [0, 1], [4, 9], [NAN, 0]])
# x == 1 or x == 3 ? leaf 0 : leaf 1; and a tree that is leaf 1.
STUMPS = {
    "roots": [0, -2], "feature": [0], "split": [0], "modes": [6], "yes": [-1], "no": [-2], "missing": [0],
    "starts": [0, 1, 2], "targets": [0, 0], "weight": [4, -2], "members": [1, 3, NAN],
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
    case("Trees", "a tree", [ROWS, *trees(**TREE)], [[1, 0], [0, 20], [300, 0], [300, 0]], n_targets=2, aggregate_function=1,
         native=True),
    case("Trees", "missing goes left", [ROWS[3:], *trees(**{**TREE, "missing": [1, 0]})], [[0, 20]], n_targets=2,
         aggregate_function=1, native=True),
    case("Trees", "base values, a row", [ROWS[0], *trees(**TREE, base=[0.5, -1])], [[1.5, -1]], n_targets=2, aggregate_function=1,
         native=True),
    case("Trees", "doubles", [ROWS.astype(F64), *trees(**TREE)], array([[1, 0], [0, 20], [300, 0], [300, 0]]), n_targets=2,
         aggregate_function=1, native=True),
    case("Trees", "doubles stay", [array([[3 + 1e-9, 2]], F64), *trees(**TREE)], array([[300, 0]], F64), n_targets=2,
         aggregate_function=1, same_dtype=1, native=True),
    case("Trees", "integers", [array([[3, 2], [4, 0]], I64), *trees(**TREE)], array([[1, 0], [300, 0]]), n_targets=2,
         aggregate_function=1, native=True),
    case("Trees", "members, sums", [IN, *trees(**STUMPS)], [[2], [-4], [-4]], n_targets=1, aggregate_function=1, native=True),
    case("Trees", "means", [IN, *trees(**STUMPS)], [[1], [-2], [-2]], n_targets=1, aggregate_function=0, native=True),
    case("Trees", "least", [IN, *trees(**STUMPS)], [[-2], [-2], [-2]], n_targets=1, aggregate_function=2, native=True),
    case("Trees", "largest", [IN, *trees(**STUMPS)], [[4], [-2], [-2]], n_targets=1, aggregate_function=3, native=True),
    case("Trees", "no rows", [IN[:0], *trees(**STUMPS)], np.zeros((0, 1), np.float32), n_targets=1, aggregate_function=1,
         native=True),
    case("Scaler", "columns", [array([[1, 2], [3, 4]])], [[0, 0], [1, 20]], offset=(1.0, 2.0), scale=(0.5, 10.0), native=True),
    case("Scaler", "doubles beyond float32", [array([[1e9 + 0.5]], F64)], array([[0.5]]), offset=(1e9,)),
    case("FeatureVectorizer", "cut and filled up", [array([[1, 2]]), array([[3, 4]], I64)], [[1, 3, 4, 0]],
         inputdimensions=(1, 3), data=2),
    case("OneHotEncoder", "integers", [array([[2, 5], [9, 2]], I64)], array([[[1, 0], [0, 1]], [[0, 0], [1, 0]]]),
         cats_int64s=(2, 5)),
    case("OneHotEncoder", "floats are cut off", [array([5.7, NAN, -0.5])], [[0, 0, 1], [0, 0, 0], [0, 1, 0]],
         cats_int64s=(2, 0, 5)),
    case("OneHotEncoder", "strings", [words("b", "", "a")], array([[0, 1], [0, 0], [1, 0]]), cats_strings=("a", "b")),
    case("CategoryMapper", "to integers", [words("b", "c")], array([4, -1], I64), cats_strings=("a", "b"), cats_int64s=(3, 4)),
    case("CategoryMapper", "to strings", [array([[4], [5]], I64)], words("b", "_Unused").reshape(2, 1), cats_strings=("a", "b"),
         cats_int64s=(3, 4)),
    case("LabelEncoder", "strings", [words("b", "a", "z")], array([2, 1, -1], I64), keys_strings=("a", "b"),
         values_int64s=(1, 2)),
    case("LabelEncoder", "to strings", [array([2.0, 7.0])], words("two", "?"), keys_floats=(2.0,), values_strings=("two",),
         default_string="?"),
    case("TfIdfVectorizer", "strings", [words("the", "cat", "sat", "the", "cat")], array([2, 1, 2]),
         pool_strings=("the", "sat", "the", "cat"), ngram_counts=(0, 2), ngram_indexes=(0, 1, 2), min_gram_length=1,
         max_gram_length=2, max_skip_count=0, mode="TF"),
    case("Probit", "quantiles of the normal distribution", [array([0.5, 0.975, 0.1])], [0, 1.9590494, -1.2817129], ulp=8),
    case("SoftmaxZero", "zeros stay", [array([[0, math.log(3), 0, 0.0], [0, 0, 0, 0]])], [[0, 1, 0, 0], [0, 0, 0, 0]], ulp=2),
    case("SoftmaxZero", "of others too", [array([[math.log(2), math.log(6)]])], [[0.25, 0.75]], ulp=4),
    case("SvmProbabilities", "even", [array([[0, 0, 0]])], array([[1, 1, 1]]) / np.float32(3), classes=3,
         prob_a=(-1.0, -1.0, -1.0), prob_b=(0.0, 0.0, 0.0), ulp=4),
    case("StringConstant", "a matrix", [], words("a", "b").reshape(1, 2), values=("a", "b"), shape=(1, 2)),
    case("StringNormalizer", "stop words", [words("Monday", "x", "TUESDAY")], words("MONDAY", "TUESDAY"), stopwords=("X",),
         case_change_action="UPPER"),
    case("StringNormalizer", "nothing is left", [words("a").reshape(1, 1)], words("").reshape(1, 1), stopwords=("a",),
         is_case_sensitive=1),
    case("StringConcat", "broadcast", [words("a", "b"), words("c")], words("ac", "bc"), data=2),
    case("StringSplit", "by blanks", [words("a  b c", "")], words("a", "b", "c", "", "", "").reshape(2, 3), array([3, 0], I64)),
    case("StringSplit", "once", [words("a.b.c")], words("a", "b.c").reshape(1, 2), array([2], I64), delimiter=".", maxsplit=1),
]  # fmt: skip
