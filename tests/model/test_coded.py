"""Models of strings and maps, which run as models of integers, next to dicts of Python; and those that must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import DTypeError, ShapeError
from fastlayers.model.coded import Coded

from ..formats import onnx_build as onnx

STRING, INT64 = 8, 7
COLORS = ["red", "green", "", "blue", "red"]  # one of them twice: the last one counts
NUMBERS = [3, 1, 4, 1, 5]
Feed = Any


def load(nodes: list[bytes], inputs: list[bytes], outputs: list[bytes], constants: Any = None) -> fl.Model:
    weights = [onnx.tensor(np.asarray(a), name) for name, a in (constants or {}).items()]
    ml = onnx.field(8, onnx.field(1, "ai.onnx.ml") + onnx.field(2, 3))
    return fl.load(onnx.model(onnx.graph(nodes, inputs, outputs, weights), ml, opset=20))


def ml(op: str, inputs: str, outputs: str, **attributes: Any) -> bytes:
    return onnx.node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)


def text(name: str, *shape: Any) -> bytes:
    return onnx.value_info(name, shape, STRING)


def whole(name: str, *shape: Any) -> bytes:
    return onnx.value_info(name, shape, INT64)


def runs(net: fl.Model) -> bool:
    return isinstance(net._runner, Coded)


def forms(array: np.ndarray) -> list[Any]:
    """One array of strings as callers have it; the first twice, since sizes that were seen take another way."""
    lists = [array.tolist()] if array.size else []  # which would lose its shape
    return [array, array, np.asarray(array.tolist(), "U").reshape(array.shape), *lists, np.asfortranarray(array)]


def drawn(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    return np.asarray([*COLORS, "violet", "r\u00e9d", "red\0"], object)[rng.integers(0, 8, shape)]


@pytest.mark.parametrize("shape", [(7,), (0, 3), (5, 3), (1, 1)])
def test_labels_of_strings(shape: tuple[int, ...], variant: str) -> None:
    numbered = ml("LabelEncoder", "x", "n", keys_strings=COLORS, values_int64s=NUMBERS, default_int64=-7)
    named = ml("LabelEncoder", "x", "s", keys_strings=COLORS, values_strings=["a", "b", "a", "red", "c"], default_string="?")
    back = ml("LabelEncoder", "n", "t", keys_int64s=NUMBERS, values_strings=COLORS, default_string="none")
    hot = ml("OneHotEncoder", "x", "h", cats_strings=["blue", "no", "green"])
    axes: Any = [None] * len(shape)
    outputs = [whole("n", *axes), text("s", *axes), text("t", *axes), onnx.value_info("h", (*axes, 3))]
    net = load([numbered, named, back, hot], [text("x", *axes)], outputs)
    assert runs(net)
    x = drawn(*shape)
    numbers, names = dict(zip(COLORS, NUMBERS, strict=True)), dict(zip(COLORS, ["a", "b", "a", "red", "c"], strict=True))
    for given in forms(x):
        found = net.run({"x": given})
        items = (
            x.reshape(-1).tolist() if not isinstance(given, np.ndarray) or given.dtype.kind == "O" else given.reshape(-1).tolist()
        )
        n = [numbers.get(item, -7) for item in items]
        assert found["n"].tolist() == np.reshape(n, shape).tolist()
        assert found["n"].dtype == np.int64
        assert found["s"].reshape(-1).tolist() == [names.get(item, "?") for item in items]
        texts = dict(zip(NUMBERS, COLORS, strict=True))
        assert found["t"].reshape(-1).tolist() == [texts.get(v, "none") for v in n]
        assert found["t"].shape == shape
        expected = [[float(item == category) for category in ("blue", "no", "green")] for item in items]
        np.testing.assert_array_equal(found["h"].reshape(-1, 3), np.reshape(expected, (-1, 3)))
        assert net(given)[1].tolist() == found["s"].tolist()


def test_columns_that_are_moved(variant: str) -> None:
    """An encoder of columns as skl2onnx writes it."""
    nodes = []
    for i, names in enumerate((["red", "blue"], ["green"], ["", "red"])):
        nodes.append(ml("ArrayFeatureExtractor", f"x at{i}", f"c{i}"))
        nodes.append(
            ml("LabelEncoder", f"c{i}", f"n{i}", keys_strings=names, values_int64s=[*range(len(names))], default_int64=-1)
        )
    nodes.append(onnx.node("Concat", "n0 n1 n2", "y", axis=1))
    net = load(nodes, [text("x", None, 3)], [whole("y", None, 3)], {f"at{i}": np.array([i]) for i in range(3)})
    assert runs(net)
    x = drawn(9, 3)
    tables = [{"red": 0, "blue": 1}, {"green": 0}, {"": 0, "red": 1}]
    expected = [[table.get(item, -1) for table, item in zip(tables, row, strict=True)] for row in x.tolist()]
    for given in forms(x)[:2]:
        assert net(given).tolist() == expected


@pytest.mark.parametrize("strings", [False, True])
def test_classes_and_maps_of_scores(strings: bool, variant: str) -> None:
    labels: dict[str, Any] = {"classlabels_strings": ["no", "yes", ""]} if strings else {"classlabels_ints": [4, 2, 9]}
    names = next(iter(labels.values()))
    keys = {"classlabels_strings" if strings else "classlabels_int64s": names}
    weight = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    linear = ml("LinearClassifier", "x", "l s", coefficients=weight.reshape(-1).tolist(), intercepts=[0.0, 0.1, 0.2], **labels)
    zipped = ml("ZipMap", "s", "m", **keys)
    net = load(
        [linear, zipped],
        [onnx.value_info("x", (None, 4))],
        [onnx.value_info("l", None, STRING if strings else INT64), onnx.value_info("m", None)],
    )
    assert runs(net)
    for rows in (1, 0, 5, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 4))
        scores = x.astype(np.float32) @ weight.T + np.float32([0.0, 0.1, 0.2])
        for given in (x, x.astype(np.float32)):
            label, maps = net(given)
            assert label.tolist() == [names[i] for i in scores.argmax(axis=1)]
            assert [[*row] for row in maps] == [names] * rows
            np.testing.assert_allclose(np.reshape([[*row.values()] for row in maps], (-1, 3)), scores, 0, 1e-6)


def test_sequences_of_strings(variant: str) -> None:
    pool = ["red", "blue", "red", "blue", "", ""]
    grams = {
        "mode": "TF",
        "min_gram_length": 1,
        "max_gram_length": 2,
        "max_skip_count": 1,
        "ngram_counts": [0, 2],
        "ngram_indexes": [0, 1, 2, 3],
    }
    net = load(
        [onnx.node("TfIdfVectorizer", "x", "y", pool_strings=pool, **grams)],
        [text("x", None, 6)],
        [onnx.value_info("y", (None, 4))],
    )
    assert runs(net)
    x = drawn(6, 6)
    expected = np.zeros((6, 4))
    for row, to in zip(x.tolist(), expected, strict=True):
        to[0], to[1] = row.count("red"), row.count("blue")
        for step in (1, 2):
            pairs = [*zip(row, row[step:], strict=False)]
            to[2] += pairs.count(("red", "blue"))
            to[3] += pairs.count(("", ""))
    for given in forms(x)[:2]:
        np.testing.assert_array_equal(net(given), expected)


def test_graphs_that_need_the_strings_run_as_they_are() -> None:
    same = load([onnx.node("Identity", "x", "y")], [text("x", None)], [text("y", None)])
    joined = load([onnx.node("StringConcat", "x x", "y")], [text("x", None)], [text("y", None)])
    strict = ml("OneHotEncoder", "x", "y", cats_strings=["red"], zeros=0)
    one = load([strict], [text("x", None)], [onnx.value_info("y", (None, 1))])
    label = ml("LabelEncoder", "x", "n", keys_strings=COLORS, values_int64s=NUMBERS)
    both = load([label, onnx.node("Identity", "x", "y")], [text("x", None)], [whole("n", None), text("y", None)])
    assert not any(map(runs, (same, joined, one, both)))
    x = np.array(["violet", "red"], object)
    assert [net.run({"x": x})["y"].tolist() for net in (same, both)] == [["violet", "red"]] * 2
    with pytest.raises(ShapeError, match="'violet' is none of its 1 categories"):
        one(x)


def test_what_is_no_string_is_refused(variant: str) -> None:
    label = ml("LabelEncoder", "x", "y", keys_strings=COLORS, values_int64s=NUMBERS)
    net = load([label], [text("x", None, 2)], [whole("y", None, 2)])
    good = drawn(3, 2)
    for _ in range(2):
        assert net(good).shape == (3, 2)
        for wrong in (1, None, b"red"):
            bad = good.copy()
            bad[2, 1] = wrong
            with pytest.raises(DTypeError, match=f"element 5 is of type {type(wrong).__name__}"):
                net(bad)
        with pytest.raises(ShapeError, match="input 'x' has shape"):
            net(drawn(3))
        with pytest.raises(DTypeError, match="its dtype is"):
            net(np.zeros((3, 2)))


def test_a_hostile_vocabulary_is_no_table() -> None:
    """Columns times strings would be 2^32 elements."""
    names = [f"{i}" for i in range(1 << 16)]
    hot = ml("OneHotEncoder", "x", "y", cats_strings=names)
    assert not runs(load([hot], [text("x", None)], [onnx.value_info("y", (None, None))]))
