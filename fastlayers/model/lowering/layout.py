"""Shapes, orders and parts of arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...graph.ir import Node
from ._base import LOWER, Lowering, rule


def _transpose(s: Lowering, node: Node, x: str, perm: Sequence[int]) -> None:
    rank = s.rank(node)
    s.add("Transpose", (x,), node.outputs, perm=tuple(p % rank for p in perm))


LOWER["permute"] = lambda s, node, x: _transpose(s, node, x, node.attributes["dims"])
LOWER["to_channels_last"] = lambda s, node, x: _transpose(s, node, x, (0, *range(2, s.rank(node)), 1))
LOWER["to_channels_first"] = lambda s, node, x: _transpose(s, node, x, (0, -1, *range(1, s.rank(node) - 1)))


@rule
def _reshape(s: Lowering, node: Node, x: str) -> None:
    s.add("Reshape", (x, s.ints(*node.attributes["shape"])), node.outputs, allowzero=1)


@rule
def _flatten(s: Lowering, node: Node, x: str) -> None:
    rank = s.rank(node)
    first, last = (node.attributes[name] % max(rank, 1) for name in ("start_dim", "end_dim"))
    # 0 keeps a size; -1 is what is left, which zero sizes before it do not allow: the general form names every size.
    shape = s.add("Shape", (x,), s.name("shape"))
    head = s.add("Slice", (shape, s.ints(0), s.ints(first)), s.name("head"))
    middle = s.add("Slice", (shape, s.ints(first), s.ints(last + 1)), s.name("middle"))
    size = s.add("ReduceProd", (middle, s.ints(0)), s.name("size"), keepdims=1)
    tail = s.add("Slice", (shape, s.ints(last + 1), s.ints(rank)), s.name("tail"))
    whole = s.add("Concat", (head, size, tail), s.name("shape"), axis=0)
    s.add("Reshape", (x, whole), node.outputs, allowzero=1)


LOWER["unsqueeze"] = lambda s, node, x: s.add("Unsqueeze", (x, s.ints(node.attributes["dim"])), node.outputs)
LOWER["squeeze"] = lambda s, node, x: s.add("Squeeze", (x, s.ints(node.attributes["dim"])), node.outputs)
LOWER["concat"] = lambda s, node, *parts: s.add("Concat", parts, node.outputs, axis=node.attributes["dim"])


@rule
def _slice(s: Lowering, node: Node, x: str) -> None:
    get = node.attributes
    step, far = get["step"], np.iinfo(np.int64).max
    start = get["start"] if get["start"] is not None else (0 if step > 0 else far)
    end = get["end"] if get["end"] is not None else (far if step > 0 else -far)
    s.add("Slice", (x, s.ints(start), s.ints(end), s.ints(get["dim"]), s.ints(step)), node.outputs)


@rule
def _select(s: Lowering, node: Node, x: str) -> None:
    index = s.name("index")
    s.constants[index] = np.array(node.attributes["index"], np.int64)
    s.add("Gather", (x, index), node.outputs, axis=node.attributes["dim"])


@rule
def _pad(s: Lowering, node: Node, x: str) -> None:
    rank, pad = s.rank(node), tuple(node.attributes["pad"])
    pairs = [(0, 0)] * (rank - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    mode = {"constant": "constant", "zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[
        node.attributes["mode"]
    ]
    flat = (*(before for before, _ in pairs), *(after for _, after in pairs))
    s.add("Pad", (x, s.ints(*flat), s.scalar(node.attributes["value"])), node.outputs, mode=mode)
