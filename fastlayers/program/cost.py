"""What a node of a bound program costs: multiply-adds, and bytes that must be read and written at least."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir.graph import Node
from ..operators import Spec, View, traits_of

__all__ = ["moved", "multiply_adds", "parameters"]


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
