"""Running a network on texts of many lengths: sorted, and in batches of equal lengths, so that nothing is padded.

A text therefore has the same bits alone and in any batch, whatever the network does with padding, and padding costs no time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .._arguments import as_flag, shown
from ..errors import ArgumentError, DTypeError, UnsupportedError
from ..ir.graph import Graph, Node, Value
from ..ir.names import Names
from ..model.model import Model
from ._tokens import Tokens

__all__ = ["Network", "batches", "ids_of", "listed", "reads_whole_arrays", "reporter", "tokenized"]

KNOWN = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
# Rows of a run: beyond that batches are no faster, and intermediate results only take more memory.
MOST_TOKENS = 1024


def reads_whole_arrays(model: Model) -> bool:
    """Whether results for one text depend on the others of its batch, or on how it is cut: by scales of whole arrays."""
    return any(node.op == "DynamicQuantizeLinear" for node in model._graph.nodes)


class Network:
    """A model that takes ids of tokens, called with batches of texts of equal length.

    Args:
        model: has the input ``input_ids``, and any of ``attention_mask``, ``token_type_ids`` and ``position_ids``.
        what: the beginning of errors.
        outputs: names of outputs, of which the first that the model has is returned; else its first output.
    """

    def __init__(self, model: Model, what: str, outputs: Sequence[str]) -> None:
        names = model.inputs.names
        if "input_ids" not in names or not {*names} <= {*KNOWN}:
            told = f"inputs {', '.join(names)}"
            raise UnsupportedError(f"{what}: the network has {told}: expected input_ids, and some of {', '.join(KNOWN[1:])}")
        self.model, self.what, self._names = model, what, names
        has = model.outputs.names
        self.output = next((name for name in outputs if name in has), has[0])
        self._single = reads_whole_arrays(model)
        self._runs = model

    def select(self, step: int) -> None:
        """From now on computes the state of one token of each text alone, ``(n, d)``: of the first (0), or of the last (-1)."""
        model = self.model
        shape = model.outputs[self.output].shape
        if shape is None or len(shape) != 3 or not model._options.optimize:
            return
        graph = model._graph
        names = Names((*graph.constants, *(v.name for v in graph.inputs), *(name for n in graph.nodes for name in n.outputs)))
        index, name = names("step"), names(self.output)
        nodes = (*graph.nodes, Node("Gather", (self.output, index), (name,), {"axis": 1}))
        outputs = (Value(name, (shape[0], shape[2]), model.outputs[self.output].dtype),)
        constants = {**graph.constants, index: np.array(step)}
        made = Graph(graph.inputs, outputs, nodes, constants, graph.values)
        self._runs = Model(made, model._options, model.metadata, variant=model._variant)
        self.output = name

    @property
    def shape(self) -> tuple[Any, ...] | None:
        """The shape of the output, as far as it is known."""
        return self._runs.outputs[self.output].shape

    def run(self, texts: Sequence[Tokens], at: Sequence[int]) -> np.ndarray:
        """The output for texts of equal length."""
        ids = np.array([texts[i].ids for i in at], np.int64)
        made = {"input_ids": ids}
        for name in self._names:
            if name == "attention_mask":
                made[name] = np.ones_like(ids)
            elif name == "token_type_ids":
                made[name] = np.array([texts[i].types for i in at], np.int64)
            elif name == "position_ids":
                made[name] = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
        if self._runs.num_threads != self.model.num_threads:  # which its owner may set at any time
            self._runs.num_threads = self.model.num_threads
        return self._runs.run(made)[self.output]

    def each(
        self, texts: Sequence[Tokens], batch_size: int, use: Callable[[int, np.ndarray], None], progress: Any = None
    ) -> None:
        """Calls `use` with the number and the output of each text, in an order of its own.

        `progress` is None, or is called with how many texts are done, and how many there are.
        """
        done = 0
        for at in batches([len(text.ids) for text in texts], 1 if self._single else batch_size):
            for i, row in zip(at, self.run(texts, at), strict=True):
                use(i, row)
            done += len(at)
            if progress is not None:
                progress(done, len(texts))


def listed(texts: Any, what: str) -> tuple[list[Any], bool]:
    """Texts as a list, and whether there was one alone: a text, or the ids of one."""
    if isinstance(texts, str) or ids_of(texts, what) is not None:
        return [texts], True
    if isinstance(texts, (Mapping, bytes)) or not isinstance(texts, Iterable):
        raise DTypeError(f"{what}: texts is of type {type(texts).__name__}: expected a text, or a sequence of them")
    return list(texts), False


def reporter(progress: Any, what: str) -> Callable[[int, int], None] | None:
    """The function that is told how many texts are done, and how many there are; one line on stderr for True."""
    if callable(progress):
        return progress  # type: ignore[no-any-return]
    if not as_flag(what, "progress", progress):
        return None

    def report(done: int, all_: int) -> None:
        sys.stderr.write(f"\r{what}: {done} of {all_}" + "\n" * (done == all_))
        sys.stderr.flush()

    return report


def batches(lengths: Sequence[int], batch_size: int, most: int = MOST_TOKENS) -> Iterator[list[int]]:
    """Numbers of texts of equal length, the longest first: at most `batch_size` at once, and at most `most` tokens."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    at = 0
    while at < len(order):
        length, end = lengths[order[at]], at
        rows = max(1, min(batch_size, most // max(length, 1)))
        while end < len(order) and end - at < rows and lengths[order[end]] == length:
            end += 1
        yield order[at:end]
        at = end


def ids_of(value: Any, what: str) -> list[int] | None:
    """A sequence of ids as a list; None if it is something else."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        value = value.tolist()
    elif not (isinstance(value, (list, tuple)) and value and all(isinstance(i, (int, np.integer)) for i in value)):
        return None
    found = [int(i) for i in value]
    if not found or min(found) < 0 or max(found) >= 2**31:
        raise ArgumentError(f"{what}: ids {shown(value)}: expected at least one, each of 0 to 2**31 - 1")
    return found


def tokenized(texts: Sequence[Any], tokenizer: Any, what: str, pairs: bool = False, places: bool = False) -> list[Tokens]:
    """Tokens of texts, or of pairs of texts, with their places if wanted; ids of tokens are taken as they are."""
    expected = "pairs of texts, or ids of tokens" if pairs else "texts, or ids of tokens"
    found: list[Tokens | None] = []
    left: list[Any] = []
    for text in texts:
        ids = None if isinstance(text, str) else ids_of(text, what)
        if ids is not None:
            more = ([(0, 0)] * len(ids), [0] * len(ids)) if places else ()
            found.append(Tokens(np.array(ids, np.int32), np.zeros(len(ids), np.int32), *more))
            continue
        parts = tuple(text) if pairs and isinstance(text, (list, tuple)) else (text,)
        if len(parts) != 1 + pairs or not all(isinstance(part, str) for part in parts):
            raise DTypeError(f"{what}: got {shown(text)} of type {type(text).__name__}: expected {expected}")
        found.append(None)
        left.append(parts if pairs else text)
    made = iter(tokenizer.encode(left, places=places) if left else ())
    tokens = [next(made) if one is None else one for one in found]
    for one, text in zip(tokens, texts, strict=True):
        if not len(one.ids):
            raise ArgumentError(f"{what}: {shown(text)} has no token: the tokenizer adds none, so there is nothing to compute")
    return tokens
