"""Costs of a node of a bound program: multiply-adds, bytes that must be read and written at least, and why it runs as it does."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir.graph import Node
from ..operators import Spec, View, traits_of

__all__ = ["moved", "multiply_adds", "parameters", "why"]


def multiply_adds(node: Node, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> int:
    """Multiplications with an addition, as the operator's traits have them: of products, convolutions and recurrences; 0 for what
    only moves or transforms values.
    """
    cost = traits_of(node.op).multiply_adds
    return 0 if cost is None or not outputs else cost(View(node, inputs, []), outputs[0])


def moved(inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> int:
    """Bytes of all operands."""
    return sum(math.prod(s.shape) * s.dtype.itemsize for s in (*inputs, *outputs) if s is not None and s.shape is not None)  # type: ignore[arg-type, misc]


def parameters(node: Node, constants: Sequence[int | None]) -> int:
    """The number of weights among a node's inputs: `constants` has the size of each that is one."""
    return sum(size for size in constants if size is not None and size > 1)


def why(node: Node, inputs: Sequence[Spec | None]) -> str:
    """The reason for the algorithm that a node's kernels run, as its traits have it; "" where there is but one."""
    said = traits_of(node.op).why
    return "" if said is None else said(View(node, inputs, []))
