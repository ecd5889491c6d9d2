"""Writes a network of a family: linear layers, norms, attention and feed-forward parts, by the names of their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import FormatError, LimitError, UnsupportedError
from ...ir.graph import Graph, Node, Value, needed
from ...operators.fused import EXACT
from ...operators.graphs import GraphBuilder
from ...operators.shapes import NUMBERS
from .._arrays import BFLOAT16
from ..source import quote
from .config import Config
from .weights import Weights

__all__ = ["Network"]

BATCH, STEPS, PAST = "batch_size", "sequence_length", "past_sequence_length"
INT64 = np.dtype(np.int64)
FLOAT32 = np.dtype(np.float32)
BOOL = np.dtype(np.bool_)
MOST_NODES = 100_000
# Activations by their names in configurations, as an operator and its attributes.
ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "gelu": ("Gelu", {}),
    "gelu_python": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_fast": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "quick_gelu": ("Swish", {"alpha": 1.702}),
    "silu": ("Swish", {}),
    "swish": ("Swish", {}),
    "relu": ("Relu", {}),
    "tanh": ("Tanh", {}),
    "mish": ("Mish", {}),
}


class Network:
    """The graph that is being written. Its values are names.

    Args:
        config: the words of the configuration.
        weights: the arrays.
        head: the name of the head, as architectures are called after "For"; "" for the network itself.
    """

    def __init__(self, config: Config, weights: Weights, head: str) -> None:
        self.config, self.weights, self.head = config, weights, head
        self.e = GraphBuilder()
        self.inputs: list[Value] = []
        self.outputs: list[tuple[str, str]] = []
        self.scope = ""
        self._constants: dict[str, str] = {}

    # ---- nodes and values ------------------------------------------------------------------------------------------------

    def op(self, op: str, *inputs: str | None, **attributes: Any) -> str:
        """Appends a node; returns its output."""
        return self.many(op, 1, *inputs, **attributes)[0]

    def many(self, op: str, count: int, *inputs: str | None, **attributes: Any) -> tuple[str, ...]:
        """Appends a node of `count` outputs; small results of constants are computed at once."""
        if len(self.e.nodes) >= MOST_NODES:
            raise LimitError(f"{self.config.where}: the network needs more than {MOST_NODES} nodes")
        return self.e.many(op, inputs, [f"{self.scope}{op}"] * count, attributes)

    def input(self, name: str, *shape: Any, dtype: np.dtype[Any] = INT64) -> str:
        """A value that the caller gives."""
        self.inputs.append(Value(self.e.input(name, shape, dtype), shape, dtype))
        return name

    def constant(self, array: Any, name: str = "number") -> str:
        """A constant; numbers without a name of their own are one where they are equal."""
        made = np.asarray(array)
        key = f"{made.dtype.str}{made.shape}{made.tobytes()!r}" if name == "number" else ""
        if key in self._constants:
            return self._constants[key]
        found = self.e.constant(made, name)
        if key:
            self._constants[key] = found
        return found

    def ints(self, *values: int) -> str:
        """A constant vector of integers."""
        return self.constant(np.array(values, np.int64))

    def number(self, value: float) -> str:
        """A constant float."""
        return self.constant(np.float32(value))

    def cast(self, x: str, dtype: np.dtype[Any]) -> str:
        """x of another dtype."""
        return self.op("Cast", x, to=NUMBERS[dtype])

    def width(self, x: str) -> int:
        """The size of the last axis."""
        return int(self.e.shape(x)[-1])  # type: ignore[index]

    def reshape(self, x: str, *sizes: int) -> str:
        """x in another shape; 0 keeps the size of an axis."""
        return self.op("Reshape", x, self.ints(*sizes))

    def slice(self, x: str, axis: int, start: int, stop: int) -> str:
        """Part of an axis."""
        return self.op("Slice", x, self.ints(start), self.ints(stop), self.ints(axis))

    def first(self, x: str) -> str:
        """The first step of (b, t, d)."""
        return self.op("Gather", x, self.constant(np.int64(0)), axis=1)

    # ---- layers ------------------------------------------------------------------------------------------------------------

    def linear(self, name: str, x: str, out: int | None = None, bias: bool | str | None = None, weight: str = "") -> str:
        """x Wᵀ + b: the one place that reads the matrix of a linear layer.

        A matrix that is no array is of few bits: its `linear(network, x, bias)` writes the node.

        Args:
            name: of the layer; its weights are `name`.weight and `name`.bias.
            x: (..., k).
            out: the number of results; None: what the weight says.
            bias: whether there is one, or its whole name; None: if the checkpoint has it.
            weight: the whole name of a matrix that another layer has as well.
        """
        matrix = weight or f"{name}.weight"
        found = self.weights.raw(matrix, out, self.width(x))
        own = bias if isinstance(bias, str) else f"{name}.bias"
        has = own in self.weights if bias is None else bias
        summand = self.vector(own, int(found.shape[0])) if has else None
        if not isinstance(found, np.ndarray):
            return str(found.linear(self, x, summand))
        held, half = self.stored(self.weights.matrix(matrix, *found.shape), matrix, matrix)
        return self.op("Linear", x, held, summand, **half)

    def linears(self, name: str, x: str, *sizes: int, bias: bool | None = None) -> tuple[str, ...]:
        """Several linear layers whose rows a checkpoint has one after the other in one matrix."""
        found, has = self.weights.raw(f"{name}.weight", sum(sizes), self.width(x)), bias
        if not isinstance(found, np.ndarray):
            return self.split(self.linear(name, x, sum(sizes), bias), *sizes)
        has = f"{name}.bias" in self.weights if bias is None else bias
        matrix, summand = self.weights.matrix(f"{name}.weight", *found.shape), None
        if has:
            summand = self.weights.take(f"{name}.bias", sum(sizes))
        made, start = [], 0
        for i, size in enumerate(sizes):
            rows = slice(start, start + size)
            made.append(self.product(x, matrix[rows], f"{name}.{i}", None if summand is None else summand[rows]))
            start += size
        return tuple(made)

    def product(self, x: str, matrix: np.ndarray, name: str, bias: np.ndarray | None = None) -> str:
        """x Wᵀ + b with arrays that are made of a checkpoint's."""
        summand = None if bias is None else self.constant(bias, f"{name}.bias")
        held, half = self.stored(matrix, f"{name}.weight")
        return self.op("Linear", x, held, summand, **half)

    def stored(self, matrix: np.ndarray, name: str, key: str = "") -> tuple[str, dict[str, int]]:
        """A matrix as a constant, once for a key, and the attribute that says of which 16 bits it is."""
        kind = "bfloat16" if matrix.dtype == BFLOAT16 else matrix.dtype.name
        half = {"half": EXACT[kind]} if kind in EXACT else {}
        if key not in self._constants:
            made = self.constant(matrix.view(np.uint16) if matrix.dtype == BFLOAT16 else matrix, name)
            if not key:
                return made, half
            self._constants[key] = made
        return self._constants[key], half

    def embedding(self, name: str, ids: str, rows: int, width: int) -> str:
        """Rows of a table; one of few bits writes the node with `rows(network, ids)`."""
        found = self.weights.raw(name, rows, width)
        if not isinstance(found, np.ndarray):
            return str(found.rows(self, ids))
        table, half = self.stored(self.weights.matrix(name, rows, width), name, name)
        return self.op("Embedding", table, ids, **half)

    def parameter(self, name: str, *shape: int | None) -> str:
        """A weight as a constant, once."""
        array = self.weights.take(name, *shape)
        key = f"{name} as float32"
        if key not in self._constants:
            self._constants[key] = self.constant(array, name)
        return self._constants[key]

    def vector(self, name: str, size: int) -> str:
        """A vector of weights as a constant."""
        return self.parameter(name, size)

    def layer_norm(self, name: str, x: str, eps: float, bias: bool | None = None) -> str:
        """LayerNorm over the last axis; its bias may be missing."""
        size = self.width(x)
        has = f"{name}.bias" in self.weights if bias is None else bias
        shift = self.vector(f"{name}.bias", size) if has else None
        return self.op("LayerNormalization", x, self.vector(f"{name}.weight", size), shift, axis=-1, epsilon=eps)

    def rms_norm(self, name: str, x: str, eps: float, more: float = 0.0) -> str:
        """RMSNorm over the last axis; the factor is the weight and `more`."""
        size = self.width(x)
        if more:
            factor = self.constant(self.weights.take(f"{name}.weight", size) + np.float32(more), f"{name}.factor")
        else:
            factor = self.vector(f"{name}.weight", size)
        return self.op("RMSNormalization", x, factor, axis=-1, epsilon=eps)

    def activation(self, kind: str, x: str) -> str:
        """An activation by its name in configurations."""
        if kind not in ACTIVATIONS:
            raise UnsupportedError(
                f"{self.config.where}: the activation is {quote(kind)}: supported are {', '.join(sorted(ACTIVATIONS))}"
            )
        op, attributes = ACTIVATIONS[kind]
        return self.op(op, x, **attributes)

    def add(self, x: str, y: str) -> str:
        """x + y."""
        return self.op("Add", x, y)

    def mul(self, x: str, y: str | float) -> str:
        """x y."""
        return self.op("Mul", x, y if isinstance(y, str) else self.number(y))

    def gated(self, kind: str, gate: str, up: str) -> str:
        """act(gate) up."""
        return self.mul(self.activation(kind, gate), up)

    def split(self, x: str, *sizes: int) -> tuple[str, ...]:
        """The last axis in parts."""
        if sum(sizes) != self.width(x):
            raise FormatError(f"{self.config.where}: a layer has {self.width(x)} results: expected {' + '.join(map(str, sizes))}")
        return self.many("Split", len(sizes), x, self.ints(*sizes), axis=-1)

    def attention(
        self,
        q: str,
        k: str,
        v: str,
        heads: int,
        kv_heads: int = 0,
        *,
        mask: str | None = None,
        past: Sequence[str] = (),
        **rule: Any,
    ) -> tuple[str, ...]:
        """Attention of (b, t, heads d): the operator with a cache, causal, windows and a soft cap; with `past`, present keys and
        values come next to the result.
        """
        if heads < 1 or self.width(q) % heads:
            raise FormatError(f"{self.config.where}: {heads} heads do not divide {self.width(q)}")
        attributes = {name: value for name, value in rule.items() if value is not None}
        count = 3 if past else 1
        given = (q, k, v, mask, *past)
        return self.many("Attention", count, *given, q_num_heads=heads, kv_num_heads=kv_heads or heads, **attributes)

    def bias_mask(self, mask: str, bias: str) -> str:
        """A mask of keys and what is added to the scores (1, h, q, k), as one that is added."""
        return self.add(self.op("Where", mask, self.number(0), self.number(-np.inf)), bias)

    def key_mask(self, mask: str) -> str:
        """An attention_mask (b, k) of integers as booleans (b, 1, 1, k)."""
        return self.op("Unsqueeze", self.cast(mask, BOOL), self.ints(1, 2))

    # ---- the end -----------------------------------------------------------------------------------------------------------

    def output(self, name: str, x: str) -> None:
        """A value that the caller gets."""
        self.outputs.append((name, x))

    def graph(self) -> Graph:
        """The whole; outputs that other outputs or inputs stand for are copies."""
        renamed: dict[str, str] = {}
        made = {name for node in self.e.nodes for name in node.outputs}
        last: list[Node] = []
        for name, x in self.outputs:
            if x in made and x not in renamed:
                renamed[x] = self.e.name(name)
            else:
                last.append(Node("Identity", (renamed.get(x, x),), (self.e.name(name),), {}))

        def now(names: Sequence[str | None]) -> tuple[Any, ...]:
            return tuple(None if n is None else renamed.get(n, n) for n in names)

        nodes = [*(Node(n.op, now(n.inputs), now(n.outputs), n.attributes) for n in self.e.nodes), *last]
        names = [name for name, _ in self.outputs]
        kept, read = needed(nodes, names)
        constants = {name: array for name, array in self.e.constants.items() if name in read}
        values = []
        for name, x in self.outputs:
            spec = self.e.spec(x)
            values.append(Value(name, *(spec or (None, FLOAT32))))
        return Graph(tuple(self.inputs), tuple(values), kept, constants)
