"""The arguments of a layer's calls in a Functional model: Keras 3's args and kwargs, and the lists of Keras 1 and 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._tuples import NamedTuple

if TYPE_CHECKING:
    from .build import Tensor
    from .layer import Layer

__all__ = ["Call", "Ref", "calls", "resolved"]

DEEPEST = 32  # lists in lists
LARGEST = 1 << 16  # elements of an array in the configuration


class Ref(NamedTuple):
    """A reference to an output: layer, number of its call, number of the output."""

    layer: str
    call: int
    output: int


class Call(NamedTuple):
    """One call: arguments with references in place of tensors, and all references."""

    args: list[Any]
    kwargs: dict[str, Any]
    reads: list[Ref]


def calls(layer: Layer, nodes: Any) -> list[Call]:
    """The calls of a layer."""
    if not isinstance(nodes, list):
        layer.fail(f"inbound_nodes is {nodes!s:.80}: expected a list")
    return [_Parser(layer).new(node) if isinstance(node, dict) else _Parser(layer).old(node) for node in nodes]


def resolved(call: Call, value: Callable[[Ref], Tensor]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with tensors in place of references."""

    def put(item: Any) -> Any:
        if isinstance(item, Ref):
            return value(item)
        if isinstance(item, dict):
            return {key: put(inner) for key, inner in item.items()}
        if isinstance(item, (list, tuple)):
            return type(item)(put(inner) for inner in item)
        return item

    return put(call.args), put(call.kwargs)


class _Parser:
    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.reads: list[Ref] = []

    def ref(self, value: Any) -> Ref:
        name, call, output = value[:3]
        if not isinstance(name, str) or type(call) is not int or type(output) is not int or call < 0 or output < 0:
            self.layer.fail(f"a reference is {value!s:.80}: expected a name and two values")
        self.reads.append(Ref(name, call, output))
        return self.reads[-1]

    # ---- Keras 3 --------------------------------------------------------------------------------------------------------

    def new(self, node: dict[str, Any]) -> Call:
        args = self.plain(node.get("args", []), 0)
        kwargs = self.plain(node.get("kwargs", {}), 0)
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            self.layer.fail("a call has args that are no list, or kwargs that are no dict")
        return Call(args, kwargs, self.reads)

    def plain(self, value: Any, depth: int) -> Any:
        """A serialized value as a plain one; tensors become references."""
        if depth > DEEPEST:
            self.layer.fail("an argument is nested too deep")
        if isinstance(value, list):
            return [self.plain(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        kind, config = value.get("class_name"), value.get("config") or {}
        if kind is None:
            return {str(key): self.plain(item, depth + 1) for key, item in value.items()}
        if kind == "__keras_tensor__":
            return self.ref(config["keras_history"])
        if kind == "__tuple__":
            return tuple(self.plain(item, depth + 1) for item in config["value"])
        if kind == "__slice__":
            return slice(*(self.plain(config.get(key), depth + 1) for key in ("start", "stop", "step")))
        if kind == "__ellipsis__":
            return ...
        if kind in ("__numpy__", "__tensor__"):
            return self.array(config["value"], config.get("dtype"))
        return self.layer.refuse(f"an argument of class {str(kind)[:80]}")

    def array(self, value: Any, dtype: Any) -> np.ndarray:
        found = np.array(value)
        if found.dtype.kind not in "fiub" or found.size > LARGEST:
            self.layer.fail(f"an argument is an array of {found.dtype} with {found.size} elements")
        wide = {"bfloat16": "float32", "float16": "float32", "float64": "float32"}
        return found.astype(wide.get(str(dtype), dtype) if dtype else np.float32)

    # ---- Keras 1 and 2 --------------------------------------------------------------------------------------------------

    def old(self, node: Any) -> Call:
        """[[name, call, output, kwargs], ...], one such alone (Keras 2's functions of TensorFlow), or lists of them."""
        if not isinstance(node, list) or not node:
            self.layer.fail(f"a call is {node!s:.80}: expected references")
        if isinstance(node[0], str):
            first, kwargs = self.old_one(node)
            return Call([first], kwargs, self.reads)
        found = [self.old_nested(item, 0) for item in node]
        kwargs = next((kw for _, kw in found if kw), {})
        args = [value for value, _ in found]
        return Call([args[0] if len(args) == 1 else args], kwargs, self.reads)

    def old_nested(self, item: Any, depth: int) -> tuple[Any, dict[str, Any]]:
        if depth > DEEPEST or not isinstance(item, list) or not item:
            self.layer.fail(f"a call reads {item!s:.80}: expected references")
        if isinstance(item[0], str):
            return self.old_one(item)
        inner = [self.old_nested(part, depth + 1) for part in item]
        return [value for value, _ in inner], next((kw for _, kw in inner if kw), {})

    def old_one(self, item: list[Any]) -> tuple[Any, dict[str, Any]]:
        kwargs = item[3] if len(item) > 3 and isinstance(item[3], dict) else {}
        first = self.old_value(item[2], 0) if item[0] == "_CONSTANT_VALUE" else self.ref(item)
        return first, {str(key): self.old_value(value, 0) for key, value in kwargs.items()}

    def old_value(self, value: Any, depth: int) -> Any:
        """An argument: a reference is [name, call, output], or begins with _CONSTANT_VALUE."""
        if depth > DEEPEST:
            self.layer.fail("an argument is nested too deep")
        if isinstance(value, dict):
            if set(value) == {"start", "stop", "step"}:
                return slice(*(self.old_value(value[key], depth + 1) for key in ("start", "stop", "step")))
            if value.get("class_name") == "__ellipsis__" or value.get("type") == "ellipsis":
                return ...
            return {str(key): self.old_value(item, depth + 1) for key, item in value.items()}
        if not isinstance(value, list):
            return value
        if len(value) >= 3 and value[0] == "_CONSTANT_VALUE":
            return self.old_value(value[2], depth + 1)
        if 3 <= len(value) <= 4 and isinstance(value[0], str) and all(type(v) is int for v in value[1:3]):
            return self.ref(value)
        return [self.old_value(item, depth + 1) for item in value]
