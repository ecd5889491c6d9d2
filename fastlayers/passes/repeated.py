"""Computes once what a graph asks for twice, as files do that were traced line by line.

before                                            after
i = NonZero(m); j = NonZero(m); y = f(i, j)       i = NonZero(m); y = f(i, i)

After the passes whose patterns ask for values that one node alone reads. What the graph gives, and what bodies of loops and
branches read, keeps its name and its node; so do random values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.graph import Node
from ..operators import UNDECIDED
from ._net import Net

__all__ = ["apply"]

SMALL = 256  # bytes of constants, and of arrays among attributes, that are compared by what they hold


def apply(net: Net) -> None:
    """See the module."""
    names: dict[str, str] = {}  # values that are other values
    constants = _alike(net)
    first: dict[Any, list[Node]] = {}
    for at, node in list(net.each()):
        if not names.keys().isdisjoint(node.inputs):
            node = Node(node.op, tuple(names.get(n, n) if n else n for n in node.inputs), node.outputs, node.attributes)
            net.replace(at, node)
        key = (node.op, *(constants.get(n, n) if n else n for n in node.inputs))
        others = first.setdefault(key, [])
        for other in others:
            if _same(net, node, other):
                names.update((old, new) for old, new in zip(node.outputs, other.outputs, strict=True) if old)
                net.take_out(at)
                break
        else:
            others.append(node)


def _alike(net: Net) -> dict[str, str]:
    """Maps the name of each small constant to that of the first one with the same content."""
    first: dict[Any, str] = {}
    found = {}
    for name, array in net.constants.items():
        if array.nbytes <= SMALL and array.dtype.kind != "O":
            found[name] = first.setdefault((array.dtype, array.shape, array.tobytes()), name)
    return found


def _same(net: Net, node: Node, other: Node) -> bool:
    """Whether a node computes what another one of equal inputs has computed, and its results are the graph's business alone."""
    traits = net.traits(node)
    if traits is UNDECIDED or traits.volatile or len(node.outputs) != len(other.outputs):
        return False
    if any(name in net.kept or (name and not given) for name, given in zip(node.outputs, other.outputs, strict=True)):
        return False
    a, b = node.attributes, other.attributes
    return a.keys() == b.keys() and all(_equal(a[name], b[name]) for name in a)


def _equal(a: Any, b: Any) -> bool:
    """Whether two attributes are the same; of what is not known to be, such as graphs and functions, only the very same."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, np.ndarray):
        return (
            a.nbytes <= SMALL and a.dtype == b.dtype and a.shape == b.shape and a.dtype.kind != "O" and a.tobytes() == b.tobytes()
        )
    if isinstance(a, float):
        return bool(a.hex() == b.hex())  # 0 and -0 are different
    return isinstance(a, (int, str, bytes, bool)) and bool(a == b)
