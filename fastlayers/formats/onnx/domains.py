"""Operators of ONNX's other domains: machine learning without networks, and training. Only what is about numbers."""

from __future__ import annotations

from typing import Any

from ...errors import UnsupportedError
from ...graph.ir import Node
from .schema import Schema, parsed

__all__ = ["OTHERS"]

_ML = """
ArrayFeatureExtractor 1 2 1
Binarizer 1 1 1 threshold:f
LabelEncoder 2 1 1 default_float:f default_int64:i default_string:s default_tensor:t keys_floats:fs keys_int64s:is keys_strings:ss
  keys_tensor:t values_floats:fs values_int64s:is values_strings:ss values_tensor:t
TreeEnsemble 5 1 1 aggregate_function:i leaf_targetids:is! leaf_weights:t! membership_values:t n_targets:i nodes_falseleafs:is!
  nodes_falsenodeids:is! nodes_featureids:is! nodes_hitrates:t nodes_missing_value_tracks_true:is nodes_modes:t! nodes_splits:t!
  nodes_trueleafs:is! nodes_truenodeids:is! post_transform:i tree_roots:is!
"""
_TRAINING = """
Adagrad 1 3-* * decay_factor:f epsilon:f norm_coefficient:f
Adam 1 3-* * alpha:f beta:f epsilon:f norm_coefficient:f norm_coefficient_post:f
Momentum 1 3-* * alpha:f! beta:f! mode:s! norm_coefficient:f!
"""


def _same(node: Node, version: int, make: Any) -> list[Node]:
    return [node]


def _label_encoder(node: Node, version: int, make: Any) -> list[Node]:
    if version < 2:
        raise UnsupportedError("LabelEncoder before version 2: its labels are strings")
    # A list of texts of one type and of the other: whoever encodes numbers as numbers leaves these out, or has them as defaults.
    if "keys_strings" in node.attributes or "values_strings" in node.attributes:
        raise UnsupportedError("LabelEncoder of strings")
    return [Node(node.op, node.inputs, node.outputs, {k: v for k, v in node.attributes.items() if k != "default_string"})]


def _entries(table: str, **rules: Any) -> dict[str, tuple[Schema, Any]]:
    return {name: (schema, rules.get(name, _same)) for name, schema in parsed(table).items()}


OTHERS: dict[str, dict[str, tuple[Schema, Any]]] = {
    "ai.onnx.ml": _entries(_ML, LabelEncoder=_label_encoder),
    "ai.onnx.preview.training": _entries(_TRAINING),
}
