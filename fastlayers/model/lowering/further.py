"""Further activations: functions that the engine has and ONNX has not, or has under other names."""

from __future__ import annotations

from typing import Any

from ...functional._activation import resolve
from ...graph.ir import Node
from ._base import LOWER, Lowering


def _spec(op: str, get: Any) -> Any:
    if op in ("hardshrink", "softshrink"):
        return ("shrink", {"lambd": get["lambd"], "bias": get["lambd"] if op == "softshrink" else 0.0})
    return (op, dict(get))


def _activate(s: Lowering, node: Node, x: str) -> None:
    s.add("Activate", (x,), node.outputs, activation=tuple(resolve(node.op, _spec(node.op, node.attributes))))


for _name in ("celu", "hardshrink", "softshrink", "tanhshrink", "threshold", "logsigmoid", "quick_gelu"):
    LOWER[_name] = _activate
