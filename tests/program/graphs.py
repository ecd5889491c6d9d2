"""Small graphs written by hand, and a check that every way to run one gives the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastlayers.ir.graph import Graph, Node, Value

FLOAT = np.dtype(np.float32)


def node(text: str, **attributes: Any) -> Node:
    """A node from ``"y, z = Op(a, b, -)"``; "-" is an input that is left out."""
    outputs, call = text.split("=")
    op, inputs = call.strip()[:-1].split("(")
    names = [n.strip() for n in inputs.split(",")] if inputs.strip() else []
    return Node(op, tuple(None if n == "-" else n for n in names), tuple(o.strip() for o in outputs.split(",")), attributes)


def graph(
    inputs: Mapping[str, Any], nodes: Sequence[Node], outputs: Sequence[str], constants: Mapping[str, Any] | None = None
) -> Graph:
    """A graph; inputs are shapes (float32) or pairs (shape, dtype)."""

    def value(name: str, spec: Any) -> Value:
        shape, dtype = spec if len(spec) == 2 and isinstance(spec[0], tuple) else (spec, FLOAT)
        return Value(name, tuple(shape), np.dtype(dtype))

    arrays = {}
    for name, array in (constants or {}).items():
        arrays[name] = np.array(array)
        arrays[name].flags.writeable = False
    return Graph(
        tuple(value(name, spec) for name, spec in inputs.items()),
        tuple(Value(name, None, FLOAT) for name in outputs),
        tuple(nodes),
        arrays,
    )


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal float32 numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)
