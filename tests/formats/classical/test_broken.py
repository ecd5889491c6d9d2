"""Classical models whose attributes were changed: one of our errors, or an answer of the right shape."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import FormatError, UnsupportedError

from .test_goldens import NAMES, golden

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.onnx

MANY = 24  # changed models of a golden


def changed(content: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """The model with one attribute of a node of ai.onnx.ml shortened, lengthened, moved or mixed up."""
    for _ in range(MANY):
        model = onnx.load_from_string(content)
        nodes = [n for n in model.graph.node if n.domain == "ai.onnx.ml" and n.attribute]
        if not nodes:
            return
        node = nodes[rng.integers(len(nodes))]
        attribute = node.attribute[rng.integers(len(node.attribute))]
        values = next((v for v in (attribute.ints, attribute.floats, attribute.strings) if len(v)), None)
        if values is None:
            if attribute.type == onnx.AttributeProto.INT:
                attribute.i = int(rng.choice([-1, 0, 1 << 40, 3]))
            elif attribute.type == onnx.AttributeProto.STRING:
                attribute.s = b"\xff"
            else:
                attribute.f = float("nan")
        else:
            how = rng.integers(4)
            at = int(rng.integers(len(values)))
            if how == 0:
                del values[at]
            elif how == 1:
                values.append(values[at])
            elif how == 2:
                strange: dict[type, list[Any]] = {
                    int: [-1, 1 << 40, 7, -(1 << 63)],
                    float: [np.nan, np.inf, -1e30],
                    bytes: [b"", b"\xff"],
                }
                choices = strange[type(values[at])]
                values[at] = choices[rng.integers(len(choices))]
            else:
                values[at] = values[int(rng.integers(len(values)))]
        yield model.SerializeToString()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(4)
def test_changed_attributes(name: str) -> None:
    content, feeds, _ = golden(name)
    rng = np.random.default_rng(NAMES.index(name))
    for broken in changed(content, rng):
        with warnings.catch_warnings(), contextlib.suppress(fl.Error):
            warnings.simplefilter("ignore")
            fl.load(broken).run(feeds)


def trees(kind: str, **given: Any) -> bytes:
    """A tree of one node: x[0] <= 0 ? leaf 1 : leaf 2."""
    side = "class" if kind == "Classifier" else "target"
    attributes: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_values": [0.0, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
        f"{side}_treeids": [0, 0], f"{side}_nodeids": [1, 2], f"{side}_ids": [0, 0], f"{side}_weights": [0.25, 0.75],
        **({"classlabels_int64s": [4, 9]} if side == "class" else {"n_targets": 1}), **given,
    }  # fmt: skip
    attributes = {key: value for key, value in attributes.items() if value is not None}
    outputs = ["y", "z"] if side == "class" else ["z"]
    node = onnx.helper.make_node(f"TreeEnsemble{kind}", ["x"], outputs, domain="ai.onnx.ml", **attributes)
    types = {"y": onnx.TensorProto.INT64, "z": onnx.TensorProto.FLOAT}
    graph = onnx.helper.make_graph(
        [node], "g", [onnx.helper.make_tensor_value_info("x", 1, [None, 1])],
        [onnx.helper.make_tensor_value_info(o, types[o], None) for o in outputs],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 15), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()  # type: ignore[no-any-return]


REFUSED: list[tuple[dict[str, Any], type[fl.Error], str]] = [
    ({"nodes_truenodeids": [0, 0, 0]}, FormatError, "cycles"),
    ({"nodes_truenodeids": [2, 0, 0], "nodes_falsenodeids": [0, 0, 0]}, FormatError, "cycles"),
    ({"nodes_truenodeids": [2, 0, 0]}, FormatError, "more than one way"),
    ({"nodes_treeids": [0, 0, 1], "target_treeids": [0, 1]}, FormatError, "a node that is not there"),
    ({"nodes_falsenodeids": [7, 0, 0]}, FormatError, "a node that is not there"),
    ({"nodes_nodeids": [0, 1, 1]}, FormatError, "the same number"),
    ({"nodes_modes": ["BRANCH_LEQ", "LEAF"]}, FormatError, "expected one of each"),
    ({"nodes_modes": ["BRANCH_UP", "LEAF", "LEAF"]}, UnsupportedError, "BRANCH_UP"),
    ({"nodes_featureids": [-1, 0, 0]}, FormatError, "features are from -1"),
    ({"target_ids": [0, 5]}, FormatError, "not all from 0 to 0"),
    ({"target_weights": [1.0]}, FormatError, "1 target_weights"),
    ({"target_nodeids": [1, 9]}, FormatError, "a node that is not there"),
    ({"base_values": [1.0, 2.0, 3.0]}, FormatError, "3 base_values"),
    ({"aggregate_function": "MEDIAN"}, UnsupportedError, "MEDIAN"),
    ({"post_transform": "SQUARE"}, UnsupportedError, "SQUARE"),
    ({"n_targets": -1}, FormatError, "targets"),
]


@pytest.mark.parametrize(("given", "error", "text"), REFUSED, ids=range(len(REFUSED)))
def test_refused_at_load(given: dict[str, Any], error: type[fl.Error], text: str) -> None:
    with pytest.raises(error, match=text):
        fl.load(trees("Regressor", **given))


X = np.array([[-1], [2], [np.nan]], np.float32)
LOGISTIC = 1 / (1 + np.exp(-np.array([[-0.25, 0.25], [-0.75, 0.75], [-0.75, 0.75]])))
# What onnxruntime 1.32 gives, but for the last.
CLASSES: list[tuple[str, dict[str, Any], list[int], Any]] = [
    ("shares", {}, [4, 9, 9], [[0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]),
    ("shares, logistic", {"post_transform": "LOGISTIC"}, [4, 9, 9], LOGISTIC),
    ("scores", {"class_weights": [-1.0, 2.0]}, [4, 9, 9], [[1, -1], [-2, 2], [-2, 2]]),
    ("base value", {"class_weights": [-1.0, 2.0], "base_values": [1.5]}, [9, 9, 9], [[-0.5, 0.5], [-3.5, 3.5], [-3.5, 3.5]]),
    ("missing goes left", {"nodes_missing_value_tracks_true": [1, 0, 0]}, [4, 9, 4], [[0.75, 0.25], [0.25, 0.75], [0.75, 0.25]]),
    ("of the second class", {"class_ids": [1, 1]}, [4, 9, 9], [[0, 0.25], [0, 0.75], [0, 0.75]]),
    ("of both", {"class_ids": [0, 1]}, [4, 9, 9], [[0.25, 0], [0, 0.75], [0, 0.75]]),
]


@pytest.mark.parametrize(("label", "given", "labels", "scores"), CLASSES, ids=[c[0] for c in CLASSES])
def test_two_classes(variant: str, label: str, given: dict[str, Any], labels: list[int], scores: Any) -> None:
    found = fl.load(trees("Classifier", **given)).run({"x": X})
    assert found["y"].tolist() == labels
    np.testing.assert_allclose(found["z"], scores, rtol=1e-6)


def test_strings_for_classes() -> None:
    found = fl.load(trees("Classifier", classlabels_int64s=None, classlabels_strings=["no", "yes"])).run({"x": X})
    assert found["y"].tolist() == ["no", "yes", "yes"] and found["y"].dtype == object
