"""Normalisations."""

from __future__ import annotations

import numpy as np

from ...graph.ir import Node
from ._base import Lowering, rule


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
