"""Decoders: ids of tokens and a cache in, logits of the token that follows and the cache out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..ir.graph import Graph, Node
from ..model.model import Model
from ..operators import traits_of
from ._network import reads_whole_arrays
from ._settings import Settings

__all__ = ["Decoder", "last_only"]

_PAST, _PRESENT = "past_key_values", "present"
_OTHERS = ("input_ids", "attention_mask", "position_ids")
_PRODUCTS = frozenset({"Linear", "MatMul", "MatMulNBits"})
PIECE = 512  # tokens of a prompt that run at once: more are no faster, and take more memory


class Decoder:
    """A model with the inputs and outputs of exported decoders, and what is known of it. Never changes.

    Args:
        model: ``input_ids``, ``past_key_values.N.key`` and ``.value``, perhaps ``attention_mask`` and ``position_ids``, to
            ``logits``, ``present.N.key`` and ``.value``.
        what: the beginning of errors.
        config: where the sizes of caches are, if the model leaves them open.
    """

    def __init__(self, model: Model, what: str, config: Settings) -> None:
        inputs, outputs = model.inputs.names, model.outputs.names
        self._past = [name for name in inputs if name.startswith(f"{_PAST}.")]
        self._present = [_PRESENT + name[len(_PAST) :] for name in self._past]
        odd = [name for name in inputs if name not in (*self._past, *_OTHERS)]
        lacks = [name for name in ("logits", *self._present) if name not in outputs]
        if odd or lacks or not self._past or "input_ids" not in inputs:
            raise UnsupportedError(
                f"{what}: the network has inputs {', '.join(inputs)} and outputs {', '.join(outputs)}: expected "
                f"{', '.join(_OTHERS)}, {_PAST}.N.key and .value, to logits, {_PRESENT}.N.key and .value"
            )
        self.alone = reads_whole_arrays(model)
        self.model = last_only(model)
        self._names = frozenset(inputs)
        self._shapes = [(self._cache(what, name, config), model.inputs[name].dtype) for name in self._past]

    def _cache(self, what: str, name: str, config: Settings) -> tuple[int, int]:
        """Heads of a cache, and values of a head."""
        shape: Sequence[Any] = self.model.inputs[name].shape or ()
        if len(shape) != 4:
            raise UnsupportedError(f"{what}: {name} has shape {tuple(shape)}: expected (n, heads, length, d)")
        heads, d = shape[1], shape[3]
        if not isinstance(heads, int):
            heads = config.size("num_key_value_heads") or config.size("num_attention_heads") or config.size("n_head")
        if not isinstance(d, int):
            width = config.size("hidden_size") or config.size("n_embd")
            count = config.size("num_attention_heads") or config.size("n_head")
            d = config.size("head_dim") or (width // count if width and count else None)
        if not heads or not d:
            raise UnsupportedError(f"{what}: {name} has shape {tuple(shape)}: config.json does not tell it either")
        return heads, d

    def empty(self) -> list[np.ndarray]:
        """The cache of a sequence before its first token."""
        return [np.zeros((1, heads, 0, d), dtype) for (heads, d), dtype in self._shapes]

    def __call__(self, ids: np.ndarray, past: Sequence[np.ndarray], at: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """The logits ``(n, vocabulary)`` after the last of ids ``(n, t)``, of which the first has position `at`, and the cache.

        Arrays of a cache must be given back as they came: then they grow where they are.
        """
        n, t = ids.shape
        feeds: dict[str, Any] = {"input_ids": ids, **dict(zip(self._past, past, strict=True))}
        if "attention_mask" in self._names:
            feeds["attention_mask"] = np.ones((n, at + t), np.int64)
        if "position_ids" in self._names:
            feeds["position_ids"] = np.broadcast_to(np.arange(at, at + t), (n, t))
        found = self.model.run(feeds)
        return found["logits"][:, -1], [found[name] for name in self._present]

    def prefill(self, ids: Sequence[int], past: list[np.ndarray], at: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """The same for the ids of one sequence from position `at` on, in pieces."""
        logits = np.zeros((1, 0), np.float32)
        size = len(ids) if self.alone else PIECE
        while at < len(ids):
            piece = np.array([ids[at : at + size]], np.int64)
            logits, past = self(piece, past, at)
            at += piece.shape[1]
        return logits, past


def last_only(model: Model) -> Model:
    """The model whose logits are those of the last position alone: the product with the vocabulary's table, a third of a small
    network's work and most of its memory, is made for one position of a prompt. The model itself where its end is another.
    """
    graph = model._graph
    weights = getattr(model._main.known.weights, "_stored", None)
    if weights or model._variant.name == "cuda":  # packed weights of a file belong to the graph as it is
        return model
    makes = {name: node for node in graph.nodes for name in node.outputs}
    node: Node | None
    fixed = {*graph.constants}
    for node in graph.nodes:
        if node.inputs and all(name is None or name in fixed for name in node.inputs):
            fixed.update(node.outputs)
    at: str | None = "logits"
    while True:
        node = makes.get(at or "")
        if node is None:
            return model
        free = [i for i, name in enumerate(node.inputs) if name is not None and name not in fixed]
        if node.op in _PRODUCTS and free == [0]:
            break
        small = all(graph.constants[name].ndim < 2 for name in node.inputs if name is not None and name in graph.constants)
        if len(free) != 1 or not (traits_of(node.op).elementwise and small):
            return model
        at = node.inputs[free[0]]
    read, short, index = str(node.inputs[0]), "last_position", "last_position_index"
    table = graph.constants.get(str(node.inputs[1]))
    three = any(value.name == "logits" and value.shape is not None and len(value.shape) == 3 for value in graph.outputs)
    if not three or (table is not None and table.ndim > 2) or {short, index} & {*makes, *graph.constants}:
        return model
    gather = Node("Gather", (read, index), (short,), {"axis": 1})
    product = Node(node.op, (short, *node.inputs[1:]), node.outputs, node.attributes)
    nodes: list[Node] = []
    for one in graph.nodes:
        nodes += [gather, product] if one is node else [one]
    outputs = tuple(
        v._replace(shape=(v.shape[0], 1, *v.shape[2:])) if v.name == "logits" and v.shape else v for v in graph.outputs
    )
    values = {name: value for name, value in graph.values.items() if name not in _after(node, graph)}
    constants = {**graph.constants, index: np.array([-1], np.int64)}
    made = Model(Graph(graph.inputs, outputs, tuple(nodes), constants, values), model._options, model.metadata)
    made.num_threads = model.num_threads
    return made


def _after(node: Node, graph: Graph) -> set[str]:
    """Values that depend on a node, and its own."""
    found = {*node.outputs}
    for one in graph.nodes:
        if any(name in found for name in one.inputs):
            found.update(one.outputs)
    return found
