"""Normalisations, and dropout, of which nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph.ir import Node
from ._base import LOWER, Lowering, rule, same

LOWER["dropout"] = same("Identity")


def _filled(s: Lowering, shape: tuple[int, ...], value: float) -> str:
    """A constant of one number, for what the function may leave out and the operator may not."""
    name = s.name("weight")
    s.constants[name] = np.full(shape, value, np.float32)
    return name


@rule
def _layer_norm(s: Lowering, node: Node, x: str, weight: str | None, bias: str | None) -> None:
    shape = node.attributes["normalized_shape"]
    inputs = (x, weight or _filled(s, shape, 1.0), bias)
    s.add("LayerNormalization", inputs, node.outputs, axis=-len(shape), epsilon=node.attributes["eps"])


@rule
def _rms_norm(s: Lowering, node: Node, x: str, weight: str | None) -> None:
    shape = node.attributes["normalized_shape"]
    inputs = (x, weight or _filled(s, shape, 1.0))
    s.add("RMSNormalization", inputs, node.outputs, axis=-len(shape), epsilon=node.attributes["eps"])


@rule
def _batch_norm(
    s: Lowering, node: Node, x: str, mean: str | None, variance: str | None, weight: str | None, bias: str | None
) -> None:
    get, rank = node.attributes, s.rank(node)
    known = next((s.constants[name].shape for name in (mean, variance) if name in s.constants), None)
    if known is not None:  # passes fold what is known whole
        weight, bias = weight or _filled(s, known, 1.0), bias or _filled(s, known, 0.0)
    attributes: dict[str, Any] = {"epsilon": get["eps"], "axis": get["axis"] % rank}
    if get["training"]:
        attributes["training_mode"], mean, variance = 1, None, None
    s.add("BatchNormalization", (x, weight, bias, mean, variance), node.outputs, **attributes)


def _with_channels_at_1(s: Lowering, node: Node, x: str, call: Callable[[str, Any], Any]) -> None:
    """An operator whose channels are axis 1, between transpositions where the function has them elsewhere."""
    rank = s.rank(node)
    at = node.attributes["axis"] % rank
    if at == 1:
        call(x, node.outputs)
        return
    order = [0, at, *(i for i in range(1, rank) if i != at)]
    x = s.add("Transpose", (x,), s.name("channels"), perm=tuple(order))
    y = s.name("channels")
    call(x, y)
    s.add("Transpose", (y,), node.outputs, perm=tuple(order.index(i) for i in range(rank)))


@rule
def _group_norm(s: Lowering, node: Node, x: str, weight: str | None, bias: str | None) -> None:
    groups = node.attributes["num_groups"]
    op, more = ("InstanceNormalization", {}) if groups is None else ("GroupNormalization", {"num_groups": groups})
    _with_channels_at_1(s, node, x, lambda x, y: s.add(op, (x, weight, bias), y, epsilon=node.attributes["eps"], **more))


@rule
def _local_response_norm(s: Lowering, node: Node, x: str) -> None:
    get = node.attributes

    def call(x: str, y: Any) -> None:
        attributes = {"size": get["size"], "alpha": get["alpha"], "beta": get["beta"], "bias": get["k"]}
        if get["size"] % 2:
            s.add("LRN", (x,), y, **attributes)
            return
        # The operator looks further ahead where sizes are even, the function further back.
        far = np.iinfo(np.int64).max
        ends = (s.ints(far), s.ints(-far), s.ints(1), s.ints(-1))
        turned = s.add("Slice", (x, *ends), s.name("turned"))
        s.add("Slice", (s.add("LRN", (turned,), s.name("turned"), **attributes), *ends), y)

    _with_channels_at_1(s, node, x, call)
