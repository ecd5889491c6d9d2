"""TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble as `Trees`, whose children are indices of nodes, or of leaves.

before: TreeEnsembleClassifier(x)      after: s = Trees(x, arrays), two scores of one, their transform, labels
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._distinct import distinct
from ...errors import FormatError, ShapeError, UnsupportedError
from ...ir.graph import Node
from ...operators.graphs import trimmed
from ...operators.ml.trees import AVERAGE, DEEPEST, INPUTS, MAX, MEMBER, MIN, SUM, trees_of
from .ml_nodes import TRANSFORMS, Nodes, labels_of

__all__ = ["tree_ensemble", "tree_ensemble_classifier", "tree_ensemble_regressor"]

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_AGGREGATES = {"AVERAGE": AVERAGE, "SUM": SUM, "MIN": MIN, "MAX": MAX}
_LISTS = ("featureids", "modes", "nodeids", "treeids", "truenodeids", "falsenodeids")


def _integers(node: Node, name: str) -> np.ndarray:
    return np.asarray(node.attributes.get(name, ()), np.int64).reshape(-1)


def _numbers(node: Node, name: str) -> np.ndarray:
    """An attribute that is a list of floats or, from version 3 on, a tensor of doubles."""
    tensor = node.attributes.get(f"{name}_as_tensor")
    if tensor is None:
        return np.asarray(node.attributes.get(name, ()), np.float32)
    if name in node.attributes:
        raise FormatError(f"onnx: {node.op}: has both {name} and {name}_as_tensor")
    if tensor.dtype not in (np.float32, np.float64):
        raise FormatError(f"onnx: {node.op}: {name}_as_tensor has dtype {tensor.dtype}: expected float32 or float64")
    return np.asarray(tensor).reshape(-1)


def _lists(node: Node, side: str) -> dict[str, np.ndarray]:
    """The trees of versions 1 and 3 as inputs of `Trees`. `side` is "target" or "class": what leaves are called."""
    given = {name: _integers(node, f"nodes_{name}") for name in _LISTS if name != "modes"}
    modes, values = node.attributes.get("nodes_modes", ()), _numbers(node, "nodes_values")
    count = len(modes)
    missing = _integers(node, "nodes_missing_value_tracks_true")
    missing = missing if missing.size else np.zeros(count, np.int64)
    sizes = {f"nodes_{name}": len(array) for name, array in given.items()} | {
        "nodes_values": len(values),
        "missing": len(missing),
    }
    if any(size != count for size in sizes.values()):
        raise FormatError(f"onnx: {node.op}: has {count} nodes_modes and {sizes}: expected one of each for every node")
    kinds = {mode: i for i, mode in enumerate((*_MODES, "LEAF"))}
    if unknown := [mode for mode in modes if mode not in kinds]:
        raise UnsupportedError(f"{node.op} with a node of mode {unknown[0]!r:.80}")
    mode = np.asarray([kinds[mode] for mode in modes], np.uint8)
    leaf = mode == len(_MODES)
    inner = ~leaf
    place = np.where(leaf, -1 - (np.cumsum(leaf) - 1), np.cumsum(inner) - 1)  # of nodes and leaves as children
    refs = [given["nodeids"], given["truenodeids"][inner], given["falsenodeids"][inner], _integers(node, f"{side}_nodeids")]
    trees = [given["treeids"], given["treeids"][inner], given["treeids"][inner], _integers(node, f"{side}_treeids")]
    if len(refs[3]) != len(trees[3]):
        raise FormatError(f"onnx: {node.op}: has {len(refs[3])} {side}_nodeids and {len(trees[3])} {side}_treeids")
    own, *others = _keys(refs, trees)
    order = np.argsort(own, kind="stable")
    ordered = own[order]
    if (ordered[1:] == ordered[:-1]).any():
        raise FormatError(f"onnx: {node.op}: two nodes of a tree have the same number")

    def found(keys: np.ndarray) -> np.ndarray:
        at = np.minimum(np.searchsorted(ordered, keys), max(count - 1, 0))
        if keys.size and (not count or (ordered[at] != keys).any()):
            raise FormatError(f"onnx: {node.op}: refers to a node that is not there")
        return order[at]

    true, false, said = (found(keys) for keys in others)
    roots = _roots(node, given["treeids"], np.concatenate([true, false]))
    _check_reached(node, roots, np.cumsum(inner) - 1, leaf, np.stack([true, false], axis=1))
    weights, ids = _numbers(node, f"{side}_weights"), _integers(node, f"{side}_ids")
    if len(weights) != len(ids) or len(ids) != len(said):
        raise FormatError(
            f"onnx: {node.op}: has {len(said)} {side}_nodeids, {len(ids)} {side}_ids, {len(weights)} {side}_weights"
        )
    at_leaf = leaf[said]  # what a branch is said to weigh, nothing reads
    which = -1 - place[said[at_leaf]]
    by_leaf = np.argsort(which, kind="stable")
    return {
        "roots": place[roots], "feature": given["featureids"][inner], "split": values[inner], "modes": mode[inner],
        "yes": place[true], "no": place[false], "missing": (missing[inner] != 0).astype(np.uint8),
        "starts": np.concatenate([[0], np.cumsum(np.bincount(which, minlength=int(leaf.sum())))]).astype(np.int64),
        "targets": ids[at_leaf][by_leaf], "weight": weights[at_leaf][by_leaf],
    }  # fmt: skip


def _keys(nodes: list[np.ndarray], trees: list[np.ndarray]) -> list[np.ndarray]:
    """One number for each pair of a tree's number and a node's, whose values a file may choose freely."""
    of_tree, of_node = np.concatenate(trees), np.concatenate(nodes)
    most = [int(part.max(initial=0)) + 1 for part in (of_tree, of_node)]
    if min(of_tree.min(initial=0), of_node.min(initial=0)) < 0 or most[0] * most[1] >= 1 << 63:  # values that are no positions
        (of_tree, of_node), most[1] = (np.searchsorted(distinct(part)[0], part) for part in (of_tree, of_node)), len(of_node)
    return np.split(of_tree * most[1] + of_node, np.cumsum([len(part) for part in nodes])[:-1])


def _roots(node: Node, trees: np.ndarray, children: np.ndarray) -> np.ndarray:
    """The first node of each tree that is no node's child, in the order in which trees begin."""
    top = np.ones(len(trees), bool)
    top[children] = False
    places = np.flatnonzero(top)
    with_root, first = distinct(trees[places])
    if len(with_root) != len(distinct(trees)[0]):
        raise FormatError(f"onnx: {node.op}: a tree has no root: its nodes are all children of others")
    found: np.ndarray = places[np.sort(first)]
    return found


def _check_reached(node: Node, roots: np.ndarray, number: np.ndarray, leaf: np.ndarray, children: np.ndarray) -> None:
    """Raises unless every node is reached from a root, in one way: else there are cycles, or what a root is cannot be told."""
    if children.size and np.bincount(children.reshape(-1)).max() > 1:
        raise FormatError(f"onnx: {node.op}: a node is reached in more than one way: expected trees, without cycles")
    reached, at, depth = 0, roots, 0
    while at.size:
        reached, depth = reached + len(at), depth + 1
        if depth > DEEPEST:
            raise FormatError(f"onnx: {node.op}: a tree is more than {DEEPEST} nodes deep")
        at = children[number[at[~leaf[at]]]].reshape(-1)
    if reached != len(leaf):
        lost = len(leaf) - reached
        raise FormatError(f"onnx: {node.op}: {lost} nodes are reached from no root: expected trees, without cycles")


def _trees(node: Node, nodes: Nodes, arrays: dict[str, Any], targets: int, aggregate: int, base: np.ndarray, **more: Any) -> str:
    """The sums, after a look at whether these are trees."""
    wide = any(arrays[name].dtype == np.float64 for name in ("split", "weight"))
    dtype = np.float64 if wide else np.float32
    arrays["split"], arrays["weight"] = arrays["split"].astype(dtype), arrays["weight"].astype(dtype)
    members = arrays.get("members")
    plain = (arrays[name] for name in INPUTS[:-2])
    roots, feature, split, modes, yes, no, missing, starts, ids, weight = plain
    try:
        trees_of(roots, feature, split, modes, yes, no, missing, members, starts, ids, weight, targets)
    except ShapeError as error:
        raise FormatError(f"onnx: {node.op}: {error}") from error
    given: list[str | None] = [nodes.constant(arrays[name], name) for name in INPUTS[:-2]]
    given.append(None if members is None else nodes.constant(members, "members"))
    given.append(nodes.constant(base.astype(np.float64), "base") if base.any() else None)
    return nodes.add("Trees", node.inputs[0], *trimmed(given), n_targets=targets, aggregate_function=aggregate, **more)


def _base(node: Node, targets: int) -> np.ndarray:
    base = _numbers(node, "base_values")
    if base.size not in (0, targets) and not (targets == 2 and base.size == 1):
        raise FormatError(f"onnx: {node.op}: has {base.size} base_values: expected {targets}")
    return base


def tree_ensemble_regressor(node: Node, version: int, make: Any) -> list[Node]:
    """Sums, means, minima or maxima, over the trees, of their leaves' values for each target."""
    nodes, given = Nodes(node, make), node.attributes
    arrays = _lists(node, "target")
    targets = given.get("n_targets", int(arrays["targets"].max(initial=-1)) + 1)
    aggregate = _AGGREGATES.get(given.get("aggregate_function", "SUM"))
    if aggregate is None:
        raise UnsupportedError(f"{node.op} with aggregate_function={given['aggregate_function']!r:.80}")
    base = _base(node, targets)
    base = base if base.size == targets else np.zeros(max(targets, 0), np.float32)
    scores = _trees(node, nodes, arrays, targets, aggregate, base)
    nodes.transformed(scores, given.get("post_transform", "NONE"), 0)
    return nodes.made


def tree_ensemble(node: Node, version: int, make: Any) -> list[Node]:
    """Version 5: nodes and leaves are numbered separately."""
    nodes, given = Nodes(node, make), node.attributes
    modes, splits, weight = (np.asarray(given[name]).reshape(-1) for name in ("nodes_modes", "nodes_splits", "leaf_weights"))
    if modes.dtype.kind not in "iu" or splits.dtype.kind != "f" or weight.dtype.kind != "f":
        raise FormatError(
            f"onnx: {node.op}: its modes, splits or weights are of dtypes {modes.dtype}, {splits.dtype}, {weight.dtype}"
        )
    children = {}
    for side in ("true", "false"):
        leaf, at = _integers(node, f"nodes_{side}leafs") != 0, _integers(node, f"nodes_{side}nodeids")
        if len(leaf) != len(at) or (at < 0).any():
            raise FormatError(f"onnx: {node.op}: nodes_{side}leafs and nodes_{side}nodeids do not fit each other")
        children[side] = np.where(leaf, -1 - at, at)
    members = given.get("membership_values")
    missing = _integers(node, "nodes_missing_value_tracks_true")
    arrays: dict[str, Any] = {
        "roots": _integers(node, "tree_roots"), "feature": _integers(node, "nodes_featureids"),
        "split": splits if splits.dtype == np.float64 else splits.astype(np.float32), "modes": modes.astype(np.int64),
        "yes": children["true"], "no": children["false"],
        "missing": ((missing if missing.size else np.zeros(len(modes), np.int64)) != 0).astype(np.uint8),
        "starts": np.arange(len(weight) + 1), "targets": _integers(node, "leaf_targetids"),
        "weight": weight if weight.dtype == np.float64 else weight.astype(np.float32),
    }  # fmt: skip
    if members is not None and (modes == MEMBER).any():
        arrays["members"] = np.asarray(members).reshape(-1)
    if (arrays["roots"] < 0).any():
        raise FormatError(f"onnx: {node.op}: a root is negative")
    # A tree of one leaf is a node both of whose children are that leaf.
    targets = given.get("n_targets", int(arrays["targets"].max(initial=-1)) + 1)
    transform, aggregate = given.get("post_transform", 0), given.get("aggregate_function", SUM)
    if transform not in range(len(TRANSFORMS)) or aggregate not in range(4):
        raise UnsupportedError(f"{node.op} with post_transform={transform}, aggregate_function={aggregate}")
    scores = _trees(node, nodes, arrays, targets, aggregate, np.zeros(0), same_dtype=1)
    nodes.transformed(scores, TRANSFORMS[transform], 0)
    return nodes.made


def tree_ensemble_classifier(node: Node, version: int, make: Any) -> list[Node]:
    """Scores of classes and the label of the best. Of two classes, leaves may speak of one alone: then a score above 0, or above
    0.5 where all weights are shares, is for the second.
    """
    nodes, labels = Nodes(node, make), labels_of(node, "classlabels_int64s")
    arrays, count = _lists(node, "class"), len(labels)
    transform = node.attributes.get("post_transform", "NONE")
    base, ids = _base(node, count), distinct(arrays["targets"])[0]
    if count == 2 and len(ids) <= 1:
        second = bool(len(ids)) and ids[0] == 1
        if base.size > (0 if second else 1) and base.any():
            raise UnsupportedError(f"{node.op} with {base.size} base_values, of two classes of which leaves speak of one")
        arrays["targets"] = arrays["targets"] - (1 if second else 0)
        shares = bool((arrays["weight"] >= 0).all())
        score = _trees(node, nodes, arrays, 1, SUM, base[:1] if base.size else np.zeros(1))
        if nodes.wants(0):
            nodes.labels(nodes.above(score, 0.5 if shares else 0.0), labels, 0)
        if not second:
            nodes.transformed_two(score, shares, transform, 1)
        elif nodes.wants(1):  # nothing for the first, as in onnxruntime
            zero = nodes.constant(np.array([[0, 1]], np.float32), "second")
            nodes.transformed(nodes.add("Gemm", score, zero), transform, 1)
        return nodes.made
    base = base if base.size == count else np.concatenate([base, np.zeros(count - base.size)])
    scores = _trees(node, nodes, arrays, count, SUM, base)
    if nodes.wants(0):
        nodes.labels(nodes.best(scores), labels, 0)
    nodes.transformed(scores, transform, 1)
    return nodes.made
