"""Operators of images, spectra, sets and trees with arguments that no valid model has: an error of ours, soon, and no memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.errors import DTypeError, Error, LimitError, ShapeError, UnsupportedError
from fastlayers.ir.graph import Node
from fastlayers.operators import OPERATORS, Spec, View
from fastlayers.operators.reference import run_operator

from ..each import each
from .cases.features import POOL, ROWS, TEXT, TREE, trees, words
from .cases.vision import BOX, ONE, SCORE, K, X, offsets
from .models import one, run

F = np.zeros((2, 3), np.float32)
SUMS = {"n_targets": 2, "aggregate_function": 1}
ZEROS = offsets(*[(0, 0)] * 4)
PLACES = np.zeros((1, 1, 1, 2), np.float32)
LOSS = [np.zeros((2, 3), np.float32), np.array([0, 3])]
C, U = np.zeros((2, 4, 1), np.float32), np.zeros((2, 2, 1), np.float32)
STEP = [np.float32(1), np.int64(0)]


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


POINT, FIRST = np.ones((1, 1, 1), np.float32), np.zeros((1, 1, 1), np.int64)
# Operator, inputs, attributes, error, part of the message. Whether the rule or the values' way shows it is all the same.
WRONG: list[tuple[str, list[Any], dict[str, Any], type[Error], str]] = [
    ("GridSample", [X, PLACES[0]], {}, ShapeError, r"expected \(n, c, sizes…\)"),
    ("GridSample", [X, PLACES[..., :1]], {}, ShapeError, "as many axes"),
    ("GridSample", [np.concatenate([X, X]), PLACES], {}, ShapeError, "as many axes"),
    ("GridSample", [X, PLACES], {"mode": "area"}, ShapeError, "mode is 'area'"),
    ("GridSample", [X, PLACES], {"padding_mode": "wrap"}, ShapeError, "padding_mode 'wrap'"),
    ("GridSample", [X[:, :, :0], PLACES], {}, ShapeError, "expected pixels to read"),
    ("GridSample", [np.zeros((1,) * 22, np.float32), np.zeros((1,) * 21 + (20,), np.float32)], {}, ShapeError, "20 axes"),
    ("GridSample", [X, PLACES.astype(np.int64)], {}, DTypeError, "input 1 has dtype int64"),
    ("AffineGrid", [np.zeros((1, 2, 3), np.float32), i64(1, 1, 2, 0)], {}, ShapeError, "sizes from 1 up"),
    ("AffineGrid", [np.zeros((1, 2, 3), np.float32), i64(2, 1, 2, 2)], {}, ShapeError, "the first that of theta"),
    ("AffineGrid", [np.zeros((1, 2, 3), np.float32), i64(1, 1, 2)], {}, ShapeError, "and 4 values"),
    ("AffineGrid", [np.zeros((1, 3, 4), np.float32), i64(1, 1, 2, 2)], {}, ShapeError, "and 4 values"),
    ("NonMaxSuppression", [BOX[..., :3], SCORE, i64(1)], {}, ShapeError, r"\(images, count, 4\)"),
    ("NonMaxSuppression", [BOX, SCORE[..., :2], i64(1)], {}, ShapeError, "boxes have shape"),
    ("NonMaxSuppression", [BOX, SCORE, i64(1), f32(1.5)], {}, ShapeError, "iou_threshold is 1.5"),
    ("NonMaxSuppression", [BOX, SCORE, i64(1, 2)], {}, ShapeError, "input 2 has shape"),
    ("NonMaxSuppression", [BOX, SCORE, f32(np.inf)], {}, DTypeError, "input 2 has dtype float32"),
    ("NonMaxSuppression", [BOX, SCORE], {"center_point_box": 2}, ShapeError, "expected 0 or 1"),
    ("DeformConv", [K, ONE, ZEROS[:, :6]], {}, ShapeError, r"input 2 has shape \(1, 6, 2, 2\): expected \(1, 8, 2, 2\)"),
    ("DeformConv", [K, ONE, ZEROS], {"offset_group": 2}, ShapeError, "offset_group=2"),
    ("DeformConv", [K, ONE, ZEROS], {"group": 0}, ShapeError, "group=0"),
    ("DeformConv", [K, ONE, ZEROS], {"kernel_shape": (3, 3)}, ShapeError, "kernel_shape is"),
    ("DeformConv", [K, ONE, ZEROS, f32(0), ZEROS], {}, ShapeError, "input 4 has shape"),
    ("DeformConv", [K, ONE, ZEROS, f32(0, 1)], {}, ShapeError, "the bias has shape"),
    ("DeformConv", [K, ONE, ZEROS, np.float32(1)], {}, ShapeError, "the bias has shape"),
    ("BatchNormalization", [X, *[np.float32(1)] * 4], {}, ShapeError, "one value per channel"),
    ("Adam", [np.float32(1), np.int64(2), F, F, F, F], {"alpha": 1.0}, ShapeError, "alpha is 1.0"),
    ("DeformConv", [K[0], ONE[0], ZEROS], {}, ShapeError, "expected"),
    ("Col2Im", [np.zeros((1, 4, 4), np.float32), i64(3, 3), i64(2, 3)], {}, ShapeError, r"expected \(n, c \* 6"),
    ("Col2Im", [np.zeros((1, 4, 4), np.float32), i64(3, 3), i64(2, 2)], {"strides": (2, 2)}, ShapeError, "x has shape"),
    ("Col2Im", [np.zeros((1, 4, 4), np.float32), i64(3, 0), i64(2, 2)], {}, ShapeError, "from 1 up"),
    ("Col2Im", [np.zeros((1, 4, 4), np.float32), i64(3, 3), i64(2)], {}, ShapeError, "as many sizes"),
    ("Col2Im", [np.zeros((1, 2, 1), np.float32), i64(3), i64(2)], {"pads": (-1, 0)}, ShapeError, "pads are"),
    ("MaxUnpool", [X, np.zeros((1, 1, 3, 3), np.int64)], {"kernel_shape": (2, 2)}, ShapeError, "expected the same"),
    ("MaxUnpool", [POINT, i64(9).reshape(1, 1, 1)], {"kernel_shape": (2,)}, ShapeError, "expected 0 to 1"),
    ("MaxUnpool", [POINT, i64(-1).reshape(1, 1, 1)], {"kernel_shape": (2,)}, ShapeError, "from -1"),
    ("MaxUnpool", [POINT, FIRST, i64(1, 1, 1)], {"kernel_shape": (2,)}, ShapeError, "at least"),
    ("MaxUnpool", [POINT, FIRST], {"kernel_shape": (2, 2)}, ShapeError, "one number for each"),
    ("MaxUnpool", [POINT, FIRST], {"kernel_shape": (1,), "pads": (9, 0)}, ShapeError, "at least 0"),
    ("CenterCropPad", [F, i64(2, -1)], {}, ShapeError, "a size of at least 0"),
    ("CenterCropPad", [F, i64(2)], {}, ShapeError, "for each"),
    ("CenterCropPad", [F, i64(2)], {"axes": (5,)}, ShapeError, ": axis is 5"),
    ("ReverseSequence", [F, i64(4, 1)], {"batch_axis": 0, "time_axis": 1}, ShapeError, "the lengths are from 1 to 4"),
    ("ReverseSequence", [F, i64(1, 1)], {"batch_axis": 1, "time_axis": 1}, ShapeError, "expected 0 and 1"),
    ("ReverseSequence", [F, i64(1, 1)], {}, ShapeError, "one length a sequence"),
    ("TensorScatter", [C, U, i64(0, 3)], {}, ShapeError, "write_indices are from 0 to 3: expected 0 to 2"),
    ("TensorScatter", [C, U, i64(0, 4)], {"mode": "circular"}, ShapeError, "expected 0 to 3"),
    ("TensorScatter", [C, U, i64(0, 0)], {"axis": 0}, ShapeError, "that of the batch"),
    ("TensorScatter", [U, C], {}, ShapeError, "no more along axis 1"),
    ("TensorScatter", [C, U], {"mode": "ring"}, ShapeError, "mode is 'ring'"),
    ("Unique", [F], {"axis": 2}, ShapeError, "axis is 2"),
    ("Det", [F], {}, ShapeError, "expected square matrices"),
    ("NegativeLogLikelihoodLoss", LOSS, {}, ShapeError, "a target is 3: expected 0 to 2"),
    ("NegativeLogLikelihoodLoss", [F, i64(0)], {}, ShapeError, r"expected \(n, classes"),
    ("SoftmaxCrossEntropyLoss", [*LOSS, f32(1, 2)], {}, ShapeError, "one number a class"),
    ("SoftmaxCrossEntropyLoss", LOSS, {"reduction": "max"}, ShapeError, "reduction is 'max'"),
    ("DFT", [F], {}, ShapeError, "expected .…, size"),
    ("DFT", [X[0, :, :, :2], i64(0)], {}, ShapeError, "dft_length is 0"),
    ("DFT", [X[0, :, :, :2], None, i64(2)], {}, ShapeError, "another than the last"),
    ("DFT", [X[0, :, :, :2]], {"onesided": 1}, ShapeError, "takes real values"),
    ("DFT", [X[0, :, :0, :2]], {}, ShapeError, "x has 0 values along axis 1"),
    ("DFT", [X[0, :, :, :2], i64(1 << 62)], {}, LimitError, "dft_length"),
    ("STFT", [F, i64(1)], {}, ShapeError, "neither a window nor a frame_length"),
    ("STFT", [F, i64(0), None, i64(2)], {}, ShapeError, "frame_step is 0"),
    ("STFT", [F, i64(1), f32(1, 1), i64(3)], {}, ShapeError, r"window has shape \(2,\): expected \(3,\), frame_length"),
    ("STFT", [F, i64(1), None, i64(4)], {}, ShapeError, "at least 4 for frame_length=4"),
    ("HannWindow", [np.array(-1)], {}, ShapeError, "size is -1"),
    ("HannWindow", [i64(1, 2)], {}, ShapeError, "expected one number"),
    ("BlackmanWindow", [np.array(1 << 62)], {}, LimitError, "size is"),
    ("MelWeightMatrix", [np.array(2), np.array(8), np.array(0), f32(0), f32(1)], {}, ShapeError, "sample_rate is 0"),
    ("MelWeightMatrix", [np.array(2), np.array(8), np.array(9), f32(2), f32(1)], {}, ShapeError, "the lower one first"),
    ("MelWeightMatrix", [np.array(2), np.array(8), np.array(9), f32(0), f32(np.nan)], {}, ShapeError, "the lower one first"),
    ("RandomUniform", [], {"shape": (2, -1)}, ShapeError, "sizes of at least 0"),
    ("RandomNormalLike", [np.zeros(2, np.int64)], {}, DTypeError, "expected floats"),
    ("Bernoulli", [f32(0.5, 2)], {}, ShapeError, "no probabilities"),
    ("Bernoulli", [f32(np.nan)], {}, ShapeError, "no probabilities"),
    ("Multinomial", [F[:, :0]], {}, ShapeError, "expected .batch, classes"),
    ("Multinomial", [F], {"sample_size": -1}, ShapeError, "sample_size is -1"),
    ("Adam", [*STEP, F, F, F], {}, ShapeError, "it has 5 inputs"),
    ("Momentum", [*STEP, F, F, F[:1]], {"mode": "standard"}, ShapeError, "expected the same"),
    ("Momentum", [*STEP, F, F, F], {"mode": "heavy"}, ShapeError, "mode is 'heavy'"),
    ("ArrayFeatureExtractor", [F, i64(3)], {}, ShapeError, "the indices are from 3 to 3"),
    ("LabelEncoder", [F], {"keys_floats": (1.0,), "values_int64s": ()}, ShapeError, "one value a key"),
    ("LabelEncoder", [F], {"keys_int64s": (1,), "values_int64s": (1,)}, DTypeError, "float32"),
    ("TfIdfVectorizer", [TEXT], {**POOL, "ngram_counts": (4, 0)}, ShapeError, "ngram_counts"),
    ("TfIdfVectorizer", [TEXT], {**POOL, "ngram_indexes": (0, 1)}, ShapeError, "there are 2 ngram_indexes"),
    ("TfIdfVectorizer", [TEXT], {**POOL, "ngram_indexes": (0, -1)}, ShapeError, "an index is negative"),
    ("TfIdfVectorizer", [TEXT], {**POOL, "pool_int64s": None, "pool_strings": ("a",)}, DTypeError, "expected strings"),
    ("TfIdfVectorizer", [TEXT], {**POOL, "pool_strings": ("a",)}, ShapeError, "two pools"),
    ("TfIdfVectorizer", [TEXT], {**POOL, "mode": "TFIDF", "weights": (1.0,)}, ShapeError, "there are 1 weights: expected 7"),
    ("Trees", [ROWS, *trees(**{**TREE, "no": [-4, -2]})], SUMS, ShapeError, "children and roots are from -4 to 1"),
    ("Trees", [ROWS, *trees(**{**TREE, "yes": [1, 2]})], SUMS, ShapeError, "children and roots are from -3 to 2"),
    ("Trees", [ROWS, *trees(**{**TREE, "yes": [1, 0]})], SUMS, ShapeError, "expected trees, without cycles"),
    ("Trees", [ROWS, *trees(**{**TREE, "roots": [0, 0]})], SUMS, ShapeError, "expected trees, without cycles"),
    ("Trees", [ROWS, *trees(**{**TREE, "roots": [2]})], SUMS, ShapeError, "children and roots are"),
    ("Trees", [ROWS, *trees(**{**TREE, "feature": [0, 2]})], SUMS, ShapeError, "at least 3 columns"),
    ("Trees", [ROWS, *trees(**{**TREE, "feature": [0, -1]})], SUMS, ShapeError, "features are from -1"),
    ("Trees", [ROWS, *trees(**{**TREE, "feature": [0, 1 << 40]})], SUMS, ShapeError, "features are from 0"),
    ("Trees", [ROWS, *trees(**{**TREE, "feature": [0]})], SUMS, ShapeError, "vectors of one length"),
    ("Trees", [ROWS, *trees(**{**TREE, "modes": [0, 7]})], SUMS, ShapeError, "modes are from 0 to 7"),
    ("Trees", [ROWS, *trees(**{**TREE, "starts": [0, 2, 1, 3]})], SUMS, ShapeError, "do not ascend"),
    ("Trees", [ROWS, *trees(**{**TREE, "targets": [0, 9, 0]})], SUMS, ShapeError, "not all from 0 to 1"),
    ("Trees", [ROWS, *trees(**TREE, base=[1.0])], SUMS, ShapeError, "base values"),
    ("Trees", [ROWS, *trees(**TREE)], {**SUMS, "aggregate_function": 4}, ShapeError, "aggregate_function is 4"),
    ("Trees", [ROWS, *trees(**{**TREE, "modes": [6, 6]})], SUMS, ShapeError, "has 0 sets: expected 2"),
    ("Scaler", [ROWS], {"offset": (1.0, 2.0, 3.0)}, ShapeError, "offset has 3 values"),
    ("FeatureVectorizer", [ROWS], {"inputdimensions": (1, 2)}, ShapeError, "2 inputs|1 inputs"),
    ("OneHotEncoder", [ROWS], {}, ShapeError, "two lists of categories, or none"),
    ("OneHotEncoder", [i64(3)], {"cats_int64s": (1,), "zeros": 0}, ShapeError, "none of its 1 categories"),
    ("OneHotEncoder", [i64(3)], {"cats_strings": ("a",)}, DTypeError, "expected strings"),
    ("CategoryMapper", [i64(3)], {"cats_strings": ("a",)}, ShapeError, "as many strings as integers"),
    ("SvmProbabilities", [F], {"classes": 3, "prob_a": (1.0,), "prob_b": (1.0,)}, ShapeError, "expected"),
    ("StringConstant", [], {"values": ("a",), "shape": (2,)}, ShapeError, "for 1 strings"),
    ("StringConcat", [F, F], {}, DTypeError, "expected strings"),
    ("StringNormalizer", [words("a").reshape(1, 1, 1)], {}, ShapeError, "expected .c,. or .1, c."),
    ("StringNormalizer", [words("a")], {"locale": "tr_TR"}, UnsupportedError, "locale"),
    ("Cast", [words("a")], {"to": 1}, DTypeError, "could not convert"),
    ("BitCast", [words("a")], {"to": 7}, DTypeError, "expected floats"),
]  # fmt: skip


@each(("op", "inputs", "attributes", "error", "text"), WRONG, ids=[f"{w[0]}-{i}" for i, w in enumerate(WRONG)])
def test_wrong(op: str, inputs: list[Any], attributes: dict[str, Any], error: type[Error], text: str) -> None:
    arrays = [None if a is None else np.asarray(a) for a in inputs]
    node = Node(op, tuple(None if a is None else f"x{i}" for i, a in enumerate(arrays)), ("there",), attributes)
    view = View(node, [None if a is None else Spec(a.shape, a.dtype) for a in arrays], arrays)

    def go() -> None:
        OPERATORS[op].infer(view)
        run_operator(node, view, arrays)

    with pytest.raises(error, match=text) as caught:
        go()
    assert str(caught.value).startswith(f"{op} (there): ")


HUGE: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("CenterCropPad", [F, i64(1 << 40, 1 << 20)], {}),
    ("OneHot", [i64(0, 1), i64(1 << 60), f32(0, 1)], {}),
    ("Range", [np.int64(0), np.int64(1 << 60), np.int64(1)], {}),
    ("AffineGrid", [np.zeros((1, 2, 3), np.float32), i64(1, 1, 1 << 40, 1 << 20)], {}),
    ("DFT", [np.zeros((1, 4, 1), np.float32), i64(1 << 40)], {}),
    ("HannWindow", [i64(1 << 40)], {}),
    ("MelWeightMatrix", [i64(1 << 30), i64(1 << 30), i64(9), f32(0), f32(1)], {}),
    ("RandomUniform", [], {"shape": (1 << 40, 1 << 20)}),
    ("RandomNormal", [], {"shape": (1 << 62,) * 3}),
    ("Multinomial", [F], {"sample_size": 1 << 60}),
    ("MaxUnpool", [POINT, FIRST], {"kernel_shape": (1 << 60,)}),
    ("MaxUnpool", [POINT, FIRST, i64(1, 1, 1 << 60)], {"kernel_shape": (1,)}),
    ("Col2Im", [np.zeros((1, 1, 1), np.float32), i64(1 << 60), i64(1)], {"strides": (1 << 60,)}),
    ("TfIdfVectorizer", [TEXT], {**POOL, "ngram_indexes": (1 << 60,) * 7}),
    ("Trees", [ROWS, *trees(**TREE)], {**SUMS, "n_targets": 1 << 60}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), HUGE, ids=[f"{h[0]}-{i}" for i, h in enumerate(HUGE)])
def test_what_no_memory_holds(op: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    arrays = [np.asarray(a) for a in inputs]
    with pytest.raises((LimitError, ShapeError)):
        run(one(op, arrays, **attributes), arrays)


def test_without_a_seed_every_run_is_another() -> None:
    for op, arrays, attributes in (
        ("RandomNormal", [], {"shape": (8,)}),
        ("Dropout", [np.ones(64, np.float32), f32(0.5), np.array([True])], {}),
    ):
        made = one(op, arrays, **attributes)
        assert not np.array_equal(run(made, arrays)[0], run(made, arrays)[0])
