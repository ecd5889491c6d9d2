"""What a node of a bound program costs: multiply-adds, and bytes that must be read and written at least."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..graph.ir import Node
from ..operators import Spec

__all__ = ["moved", "multiply_adds", "parameters"]


def multiply_adds(node: Node, inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> int:
    """Multiplications with an addition: of products, convolutions and recurrences; 0 for what only moves or transforms
    numbers.
    """

    def sizes(i: int) -> tuple[int, ...]:
        spec = inputs[i]
        return spec.shape if spec is not None and spec.shape is not None else ()  # type: ignore[return-value]

    made = math.prod(outputs[0].shape or ()) if outputs and outputs[0].shape is not None else 0  # type: ignore[arg-type]
    if node.op == "Conv":
        return made * math.prod(sizes(1)[1:])
    if node.op == "ConvTranspose":
        return math.prod(sizes(0)) * math.prod(sizes(1)[1:])
    if node.op == "Linear":
        return made * sizes(1)[-1]
    if node.op in ("QLinearConv", "ConvInteger"):
        return made * math.prod(sizes(3 if node.op == "QLinearConv" else 1)[1:])
    if node.op in ("Gemm", "MatMul", "QGemm", "QLinearMatMul", "MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul"):
        inner = sizes(0)[-2 if node.attributes.get("transA", 0) else -1] if sizes(0) else 0
        return made * inner
    if node.op in ("LSTM", "GRU", "RNN"):
        x, w, r = sizes(0), sizes(1), sizes(2)
        return math.prod(x[:2]) * (math.prod(w) + math.prod(r))
    if node.op == "ScaledAttention":
        q, k, v = sizes(0), sizes(1), sizes(2)
        keys = k[-1] if node.attributes.get("transposed") else k[-2]
        return math.prod(q[:-1]) * keys * (q[-1] + v[-1])
    if node.op == "Attention":  # each query with each key, earlier ones too
        past = sizes(4)[2] if len(inputs) > 4 and sizes(4) else 0
        return (math.prod(sizes(0)) + made) * ((sizes(1)[1] if len(sizes(1)) == 3 else sizes(1)[2]) + past)
    if node.op == "AttentionScores":
        return made * sizes(0)[-1]
    if node.op == "AttentionValues":
        return math.prod(sizes(0)) * sizes(1)[-1]
    if node.op == "DotAttention":  # whether heads lie beside each other or have an axis of their own
        return (math.prod(sizes(0)) + made) * sizes(1)[-2]
    return 0


def moved(inputs: Sequence[Spec | None], outputs: Sequence[Spec]) -> int:
    """Bytes of all operands."""
    return sum(math.prod(s.shape) * s.dtype.itemsize for s in (*inputs, *outputs) if s is not None and s.shape is not None)  # type: ignore[arg-type, misc]


def parameters(node: Node, constants: Sequence[int | None]) -> int:
    """The number of weights among a node's inputs: `constants` has the size of each that is one."""
    return sum(size for size in constants if size is not None and size > 1)
