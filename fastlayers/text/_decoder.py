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
_PRODUCTS = frozenset({"BlockLinear", "Linear", "MatMul", "MatMulNBits"})
PIECE = 512  # tokens of a prompt that run at once: more are no faster, and take more memory


class Decoder:
    """A model with the inputs and outputs of exported decoders, and what is known of it. Never changes.

    Attributes:
        pasts: names of the inputs that are caches; `shapes`: heads, and values of a head, of each.
        alone: whether results for a row depend on others of its batch, or on how a prompt is cut.

    Args:
        model: ``input_ids``, ``past_key_values.N.key`` and ``.value``, perhaps ``attention_mask`` and ``position_ids``, to
            ``logits``, ``present.N.key`` and ``.value``.
        what: the beginning of errors.
        config: where the sizes of caches are, if the model leaves them open.
    """

    def __init__(self, model: Model, what: str, config: Settings) -> None:
        inputs, outputs = model.inputs.names, model.outputs.names
        self.pasts = [name for name in inputs if name.startswith(f"{_PAST}.")]
        self._present = [_PRESENT + name[len(_PAST) :] for name in self.pasts]
        odd = [name for name in inputs if name not in (*self.pasts, *_OTHERS)]
        lacks = [name for name in ("logits", *self._present) if name not in outputs]
        if odd or lacks or not self.pasts or "input_ids" not in inputs:
            raise UnsupportedError(
                f"{what}: the network has inputs {', '.join(inputs)} and outputs {', '.join(outputs)}: expected "
                f"{', '.join(_OTHERS)}, {_PAST}.N.key and .value, to logits, {_PRESENT}.N.key and .value"
            )
        self.alone = reads_whole_arrays(model)
        self.model = last_only(model)
        self._names = frozenset(inputs)
        self.shapes = [self._cache(what, name, config) for name in self.pasts]
        self._dtypes = [model.inputs[name].dtype for name in self.pasts]

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
            raise UnsupportedError(f"{what}: {name} has shape {tuple(shape)}: the folder's configuration does not tell it either")
        return heads, d

    def empty(self) -> list[np.ndarray]:
        """The cache of a sequence before its first token."""
        return [np.zeros((1, heads, 0, d), dtype) for (heads, d), dtype in zip(self.shapes, self._dtypes, strict=True)]

    def __call__(
        self, ids: np.ndarray, past: Sequence[np.ndarray], at: int, out: Sequence[np.ndarray] = ()
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """The logits ``(n, vocabulary)`` after the last of ids ``(n, t)``, of which the first has position `at`, and the cache.

        Arrays of a cache must be given back as they came: then they grow where they are. `out`: memory for a new one.
        """
        given = self.feeds(ids, np.full(len(ids), at, np.int64))
        into = dict(zip(self._present, out, strict=True)) if out else None
        found = self.model.run({**given, **dict(zip(self.pasts, past, strict=True))}, out=into)
        return found["logits"][:, -1], [found[name] for name in self._present]

    def feeds(self, ids: np.ndarray, starts: np.ndarray) -> dict[str, np.ndarray]:
        """Inputs that are no caches, for ids (n, t) after `starts` (n,) tokens of each row; masks are padded on the right."""
        t = ids.shape[1]
        found = {"input_ids": ids}
        if "attention_mask" in self._names:
            ends = starts[:, None] + t
            found["attention_mask"] = (np.arange(ends.max()) < ends).astype(np.int64)
        if "position_ids" in self._names:
            found["position_ids"] = starts[:, None] + np.arange(t)
        return found


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
    stacked = table is not None and table.ndim > 2 and node.op != "MatMulNBits"  # whose blocks have an axis
    if not three or stacked or {short, index} & {*makes, *graph.constants}:
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
