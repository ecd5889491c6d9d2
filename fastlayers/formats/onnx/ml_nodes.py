"""Helpers that the rules of ai.onnx.ml share: nodes that are added one by one, transforms of scores, and labels of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import FormatError, UnsupportedError
from ...ir.graph import Node
from .contrib_nodes import Nodes as _Nodes

__all__ = ["TRANSFORMS", "Labels", "Nodes", "floats_of", "labels_of"]

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")  # as ai.onnx.ml 5 values them
_NODES = {"LOGISTIC": "Sigmoid", "SOFTMAX_ZERO": "SoftmaxZero", "PROBIT": "Probit"}
Labels = tuple[str, ...] | np.ndarray


class Nodes(_Nodes):
    """The nodes that take the place of one of a classical model."""

    def add(self, op: str, *inputs: str | None, to: int | None = None, **attributes: Any) -> str:
        """A node; the name of its output: output `to` of the node that is replaced, or a new one."""
        return super().add(op, *inputs, name="" if to is None else self.node.outputs[to], **attributes)

    def wants(self, i: int) -> bool:
        """Whether output i is used."""
        return i < len(self.node.outputs) and bool(self.node.outputs[i])

    def cast(self, x: str | None, number: int) -> str:
        """x as ONNX's dtype of that number."""
        return super().add("Cast", x, to=number)

    def floats(self, x: str | None) -> str:
        """x as float32."""
        return self.cast(x, 1)

    def integers(self, x: str) -> str:
        """x as int64."""
        return self.cast(x, 7)

    def transformed(self, scores: str, transform: str, to: int) -> None:
        """Output `to`: the scores, transformed."""
        if not self.wants(to):
            return
        if transform == "NONE":
            self.add("Identity", scores, to=to)
        elif transform == "SOFTMAX":
            self.add("Softmax", scores, to=to, axis=-1)
        elif transform in _NODES:
            self.add(_NODES[transform], scores, to=to)
        else:
            raise UnsupportedError(f"{self.node.op} with post_transform={transform!r:.80}")

    def labels(self, classes: str, labels: Labels, to: int) -> None:
        """Output `to`: the labels of the classes whose values are given."""
        if not self.wants(to):
            return
        if isinstance(labels, np.ndarray):
            names = self.constant(labels, "labels")
        else:
            names = self.add("StringConstant", values=labels, shape=(len(labels),))
        self.add("Gather", names, classes, to=to, axis=0)

    def best(self, scores: str) -> str:
        """The number of the class with the highest score, the first of equals."""
        return self.add("ArgMax", scores, axis=-1, keepdims=0)

    def above(self, scores: str, bound: float) -> str:
        """1 where the only score is above a bound, else 0: (n,)."""
        flat = self.add("Reshape", scores, self.constant(np.array([-1]), "flat"))
        return self.integers(self.add("Greater", flat, self.constant(np.float32(bound), "bound")))

    def _two(self, score: str, complement: bool, to: int | None = None) -> str:
        """The only score s as the scores of two classes: (1 - s, s), or (-s, s)."""
        bias = (self.constant(np.array([1, 0], np.float32), "bias"),) if complement else ()
        return self.add("Gemm", score, self.constant(np.array([[-1, 1]], np.float32), "two"), *bias, to=to)

    def transformed_two(self, score: str, complement: bool, transform: str, to: int) -> None:
        """Output `to`: the only score s as two, transformed. As in onnxruntime, LOGISTIC is taken of (-s, s) and PROBIT of
        (1 - s, s); both kinds of softmax leave (1 - s, s) or (-s, s) as it is.
        """
        if not self.wants(to):
            return
        if transform in ("LOGISTIC", "PROBIT"):
            self.transformed(self._two(score, transform == "PROBIT"), transform, to)
        elif transform in TRANSFORMS:
            self._two(score, complement, to)
        else:
            raise UnsupportedError(f"{self.node.op} with post_transform={transform!r:.80}")


def labels_of(node: Node, integers: str) -> Labels:
    """The labels of a classifier's classes, of which there is one list."""
    numbers, strings = node.attributes.get(integers) or None, node.attributes.get("classlabels_strings") or None
    if (numbers is None) == (strings is None):
        raise FormatError(f"onnx: {node.op}: has {'no' if numbers is None else 'two'} lists of class labels: expected one")
    if strings is None:
        return np.asarray(numbers, np.int64)
    if not all(isinstance(text, str) for text in strings):
        raise FormatError(f"onnx: {node.op}: a class label is not UTF-8")
    return tuple(strings)


def floats_of(node: Node, name: str) -> np.ndarray:
    """An attribute as a float32 vector; empty if it was not given."""
    given: Sequence[float] = node.attributes.get(name, ())
    return np.asarray(given, np.float32)
