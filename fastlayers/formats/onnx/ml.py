"""ai.onnx.ml: operators of classical models, as nodes of `operators`. Sums over trees are in `ml_trees`, products in `ml_linear`.

What becomes of a model's scores is shared: a transform is its own node, and a label is looked up by the number of its class.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import UnsupportedError
from ...ir.graph import Node
from . import ml_linear, ml_trees
from .ml_nodes import Nodes
from .schema import Schema, parsed

__all__ = ["TABLE"]

_SCORES = "classlabels_ints:is classlabels_strings:ss post_transform:s"
_NODES = """nodes_falsenodeids:is nodes_featureids:is nodes_hitrates:fs nodes_hitrates_as_tensor:t
  nodes_missing_value_tracks_true:is nodes_modes:ss nodes_nodeids:is nodes_treeids:is nodes_truenodeids:is nodes_values:fs
  nodes_values_as_tensor:t"""
_SCHEMAS = f"""
ArrayFeatureExtractor 1 2 1
Binarizer 1 1 1 threshold:f
CastMap 1 1 1 cast_to:s map_form:s max_map:i
CategoryMapper 1 1 1 cats_int64s:is cats_strings:ss default_int64:i default_string:s
DictVectorizer 1 1 1 int64_vocabulary:is string_vocabulary:ss
FeatureVectorizer 1 1-* 1 inputdimensions:is
Imputer 1 1 1 imputed_value_floats:fs imputed_value_int64s:is replaced_value_float:f replaced_value_int64:i
LabelEncoder 1 1 1 classes_strings:ss default_float:f default_int64:i default_string:s default_tensor:t keys_floats:fs
  keys_int64s:is keys_strings:ss keys_tensor:t values_floats:fs values_int64s:is values_strings:ss values_tensor:t
LinearClassifier 1 1 2 coefficients:fs! intercepts:fs multi_class:i {_SCORES}
LinearRegressor 1 1 1 coefficients:fs! intercepts:fs post_transform:s targets:i
Normalizer 1 1 1 norm:s
OneHotEncoder 1 1 1 cats_int64s:is cats_strings:ss zeros:i
SVMClassifier 1 1 2 coefficients:fs! kernel_params:fs kernel_type:s prob_a:fs prob_b:fs rho:fs support_vectors:fs
  vectors_per_class:is {_SCORES}
SVMRegressor 1 1 1 coefficients:fs! kernel_params:fs kernel_type:s n_supports:i one_class:i post_transform:s rho:fs
  support_vectors:fs
Scaler 1 1 1 offset:fs scale:fs
TreeEnsemble 5 1 1 aggregate_function:i leaf_targetids:is! leaf_weights:t! membership_values:t n_targets:i nodes_falseleafs:is!
  nodes_falsenodeids:is! nodes_featureids:is! nodes_hitrates:t nodes_missing_value_tracks_true:is nodes_modes:t! nodes_splits:t!
  nodes_trueleafs:is! nodes_truenodeids:is! post_transform:i tree_roots:is!
TreeEnsembleClassifier 1 1 2 base_values:fs base_values_as_tensor:t class_ids:is class_nodeids:is class_treeids:is
  class_weights:fs class_weights_as_tensor:t classlabels_int64s:is classlabels_strings:ss {_NODES} post_transform:s
TreeEnsembleRegressor 1 1 1 aggregate_function:s base_values:fs base_values_as_tensor:t n_targets:i {_NODES} post_transform:s
  target_ids:is target_nodeids:is target_treeids:is target_weights:fs target_weights_as_tensor:t
ZipMap 1 1 1 classlabels_int64s:is classlabels_strings:ss
"""


def _same(node: Node, version: int, make: Any) -> list[Node]:
    return [node]


def _label_encoder(node: Node, version: int, make: Any) -> list[Node]:
    """Version 1 maps between strings and their positions in a list; the input's dtype tells the direction."""
    given = dict(node.attributes)
    classes = given.pop("classes_strings", None)
    if version >= 2 and classes is None:
        return [node]
    if version >= 2 or any(name.startswith(("keys_", "values_")) for name in given):
        raise UnsupportedError("LabelEncoder with classes_strings and keys")
    return _mapped(node, tuple(classes or ()), tuple(range(len(classes or ()))), given)


def _category_mapper(node: Node, version: int, make: Any) -> list[Node]:
    given = node.attributes
    return _mapped(node, tuple(given.get("cats_strings", ())), tuple(given.get("cats_int64s", ())), given)


def _mapped(node: Node, strings: tuple[str, ...], integers: tuple[int, ...], given: Any) -> list[Node]:
    """Strings as integers, or back."""
    default = {"default_int64": given.get("default_int64", -1), "default_string": given.get("default_string", "_Unused")}
    return [Node("CategoryMapper", node.inputs, node.outputs, {"cats_strings": strings, "cats_int64s": integers, **default})]


def _imputer(node: Node, version: int, make: Any) -> list[Node]:
    """before: Imputer(x); after: Where(x is what stands for a missing value, the imputed ones, x). NaN differs from itself."""
    nodes, given, (x, *_) = Nodes(node, make), node.attributes, node.inputs
    integers = given.get("imputed_value_int64s")
    if integers is not None:
        values: Any = np.asarray(integers, np.int64)
        replaced: Any = np.int64(given.get("replaced_value_int64", 0))
    else:
        values = np.asarray(given.get("imputed_value_floats", ()), np.float32)
        replaced = np.float32(given.get("replaced_value_float", 0.0))
    if not values.size:
        raise UnsupportedError("Imputer without imputed values")
    imputed = nodes.add("CastLike", nodes.constant(values, "imputed"), x)
    if replaced != replaced:
        nodes.add("Where", nodes.add("Equal", x, x), x, imputed, to=0)
    else:
        nodes.add(
            "Where", nodes.add("Equal", x, nodes.add("CastLike", nodes.constant(replaced, "replaced"), x)), imputed, x, to=0
        )
    return nodes.made


def _normalizer(node: Node, version: int, make: Any) -> list[Node]:
    """before: Normalizer(x); after: x / the norm of its row, or x where that is 0."""
    norm = {"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}.get(node.attributes.get("norm", "MAX"))
    if norm is None:
        raise UnsupportedError(f"Normalizer with norm={node.attributes['norm']!r:.80}")
    nodes = Nodes(node, make)
    x = nodes.floats(node.inputs[0])
    size = nodes.add(norm, x, nodes.constant(np.array([-1]), "axes"), keepdims=1)
    zero, one = nodes.constant(np.float32(0), "zero"), nodes.constant(np.float32(1), "one")
    nodes.add("Div", x, nodes.add("Where", nodes.add("Equal", size, zero), one, size), to=0)
    return nodes.made


TABLE: dict[str, tuple[Schema, Any]] = {
    name: (
        schema,
        {
            "CategoryMapper": _category_mapper,
            "Imputer": _imputer,
            "LabelEncoder": _label_encoder,
            "LinearClassifier": ml_linear.linear_classifier,
            "LinearRegressor": ml_linear.linear_regressor,
            "Normalizer": _normalizer,
            "SVMClassifier": ml_linear.svm_classifier,
            "SVMRegressor": ml_linear.svm_regressor,
            "TreeEnsemble": ml_trees.tree_ensemble,
            "TreeEnsembleClassifier": ml_trees.tree_ensemble_classifier,
            "TreeEnsembleRegressor": ml_trees.tree_ensemble_regressor,
        }.get(name, _same),
    )
    for name, schema in parsed(_SCHEMAS).items()
}
