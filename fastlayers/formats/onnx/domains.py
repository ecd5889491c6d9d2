"""Operators of ONNX's domain for training. Those of ai.onnx.ml are in `ml`."""

from __future__ import annotations

from typing import Any

from ...ir.graph import Node
from .schema import Schema, parsed

__all__ = ["OTHERS"]

_TRAINING = """
Adagrad 1 3-* * decay_factor:f epsilon:f norm_coefficient:f
Adam 1 3-* * alpha:f beta:f epsilon:f norm_coefficient:f norm_coefficient_post:f
Momentum 1 3-* * alpha:f! beta:f! mode:s! norm_coefficient:f!
"""


def _same(node: Node, version: int, make: Any) -> list[Node]:
    return [node]


def _entries(table: str, **rules: Any) -> dict[str, tuple[Schema, Any]]:
    return {name: (schema, rules.get(name, _same)) for name, schema in parsed(table).items()}


OTHERS: dict[str, dict[str, tuple[Schema, Any]]] = {"ai.onnx.preview.training": _entries(_TRAINING)}
