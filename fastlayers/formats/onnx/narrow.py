"""Finds the values of a model whose element type numpy lacks (`operators.narrow`). Arrays do not show it: theirs is wider.

ONNX's types follow from a node's inputs and attributes alone; a model's own words (inputs, outputs, value_info) come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._codes import CODES
from ...errors import UnsupportedError
from ...ir.graph import Graph, Node
from ...operators.narrow import NARROW
from .elements import ELEMENTS
from .schema import is_graph

__all__ = ["Narrowed", "coded", "told"]

NUMBERS = {kind.name: number for number, kind in ELEMENTS.items() if number in NARROW}
# Operators whose first result has another type than their first input: the attribute that says which one, if it is given (""
# where there is none), and the input that says it otherwise (None: the type is one that numpy has).
_RESULT: dict[str, tuple[str, int | None]] = {
    "Cast": ("to", None), "BitCast": ("to", None), "CastLike": ("", 1), "Where": ("", 1), "OneHot": ("", 2),
    "DequantizeLinear": ("output_dtype", 1), "QuantizeLinear": ("output_dtype", 2), "EyeLike": ("dtype", 0),
    "Bernoulli": ("dtype", 0), "RandomNormalLike": ("dtype", 0), "RandomUniformLike": ("dtype", 0),
    "RandomNormal": ("dtype", None), "RandomUniform": ("dtype", None),
    "MelWeightMatrix": ("output_datatype", None), "ConstantOfShape": ("", None),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), ("output_datatype", None)),
    **dict.fromkeys(
        (
            "And", "ArgMax", "ArgMin", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual",
            "Multinomial", "NonMaxSuppression", "NonZero", "Not", "Or", "Shape", "Size", "Xor", "SequenceLength",
            "OptionalHasElement",
        ),
        ("", None),
    ),
}  # fmt: skip
# Operators all of whose results have the type of the first input; of others only the first has.
_ALL = frozenset({"Attention", "GRU", "LSTM", "RNN", "Split"})


def told(graph: Any) -> dict[str, int]:
    """The codes of the element types that a graph of the reader names, by the names of its values."""
    infos = (*graph.inputs, *getattr(graph, "value_info", {}).values(), *graph.outputs)
    found = {info.name: getattr(info, "elem_type", 0) for info in infos}
    return {**found, **{name: NUMBERS.get(kind, 0) for name, kind in getattr(graph, "widened", {}).items()}}


def coded(graph: Any) -> dict[str, str]:
    """The initializers of floats of 8 bits that DequantizeLinear alone reads, with their types: those need not become float32.

    Scales must be known and float32, zero points be left out or zeros. None where a graph within may read them.
    """
    found = {name: kind for name, kind in getattr(graph, "widened", {}).items() if kind in CODES and name in graph.initializers}
    found = {name: kind for name, kind in found.items() if name not in {v.name for v in graph.outputs}}
    for node in graph.nodes if found else ():
        if any(is_graph(value) for value in node.attributes.values()):
            return {}
        plain = node.op_type == "DequantizeLinear" and node.domain in ("", "ai.onnx") and len(node.inputs) > 1
        scale, zero = (graph.initializers.get(name) if name else None for name in (*node.inputs, "", "", "")[1:3])
        plain = plain and scale is not None and scale.dtype == np.float32 and node.attributes.get("output_dtype", 0) in (0, 1)
        plain = plain and (not any(node.inputs[2:3]) or (zero is not None and not zero.any()))
        for name in node.inputs[1:] if plain else node.inputs:
            found.pop(name, None)
    return found


class Narrowed:
    """ONNX's codes of such types by the unique names of values; 0 for a value that is known to have another one."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {}

    def note(self, name: str, number: int) -> None:
        """Number of the element type that a model declares for a value, or 0 if it declares none."""
        if number:
            self.of[name] = number if number in NARROW else 0

    def node(self, op: str, inputs: Sequence[str | None], outputs: Sequence[str], attributes: Any) -> None:
        """Follows the types through a node; what is noted already stays."""
        branch = attributes.get("then_branch", attributes.get("body"))
        if isinstance(branch, Graph):
            # The condition that Loop's body also gives is no result of the node.
            given = branch.outputs[1:] if op == "Loop" else branch.outputs
            for name, value in zip(outputs, given, strict=False):
                self._follow(name, value.name)
            return
        key, at = _RESULT.get(op, ("", 0))
        if key and attributes.get(key):
            if outputs[0] not in self.of:
                self.note(outputs[0], attributes[key])
        elif at is not None and at < len(inputs):
            for name in outputs if op in _ALL else outputs[:1]:
                self._follow(name, inputs[at])

    def _follow(self, name: str, other: str | None) -> None:
        if name and other in self.of:
            self.of.setdefault(name, self.of[other])

    def settled(self, node: Node) -> Node:
        """The node with what it takes from an input's type as an attribute instead."""
        if node.op == "CastLike" and len(node.inputs) > 1 and (number := self.of.get(node.inputs[1] or "")):
            return Node("Cast", node.inputs[:1], node.outputs, {**node.attributes, "to": number})
        if node.op == "BitCast" and self.of.get((*node.inputs, None)[0] or ""):
            raise UnsupportedError("BitCast of elements that numpy does not have")
        if node.op == "GatherBlockQuantized" and self.of.get(node.inputs[0] or ""):  # one number an element, not some in a byte
            return Node(node.op, node.inputs, node.outputs, {**node.attributes, "apart": 1})
        number = self.of.get(node.inputs[2] or "") if node.op == "QuantizeLinear" and len(node.inputs) > 2 else 0
        if number and not node.attributes.get("output_dtype"):
            return Node(node.op, node.inputs, node.outputs, {**node.attributes, "output_dtype": number})
        return node
