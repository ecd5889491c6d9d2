"""Sequence to sequence: an encoder that reads, a decoder that writes, with or without attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import as_flag
from ..errors import ArgumentError, DTypeError, ShapeError
from ..functional import beam_search, concat, greedy_search, log_softmax, unsqueeze
from ..functional._search import SearchResult
from ..functional._search_states import opened
from ..graph.arrays import as_array, as_int64
from ..graph.loop import loop
from ..graph.record import record
from ..graph.symbol import Symbol, symbolic
from ._base import Layer
from ._recurrent import Sequences

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["Seq2Seq"]


class Seq2Seq(Layer):
    """Writes tokens after it has read a sequence: ``p(token | tokens so far, x)`` of a recurrent decoder that begins in the state
    in which the encoder ends.

    Args:
        encoder: `RNN`, `GRU` or `LSTM` in one direction, with ``batch_first=True``.
        decoder: the same kind of layer, with as many layers and units and ``batch_first=True``. It reads what `target` makes of a
            token, and after it, with `attention`, the context.
        output: from the decoder's h to one number a token, for example ``Linear(hidden, vocabulary)``.
        target: from tokens to what the decoder reads, for example ``Embedding(vocabulary, size)``.
        source: from x to what the encoder reads, for example an `Embedding`; None: the encoder reads x.
        attention: None, or a layer that is called with a query, h of the decoder's last layer before the step ``(n, h)``, all
            outputs of the encoder ``(n, t, h)``, and which of its steps each sequence has, booleans ``(n, t)``, and returns a
            context ``(n, any size)``. Bahdanau's, in a layer with two `Linear`: ``forward(self, h, memory, mask)`` returns
            ``additive_attention(self.query(h)[:, None], self.keys(memory), memory, attn_mask=mask[:, None])[:, 0]``.
        output_context: whether `output` reads the context of the step after the decoder's h, for example with ``Linear(hidden +
            context, vocabulary)``; needs `attention`.

    Tensors: those of the layers, under these arguments' names: ``encoder.weight_ih_l0`` and so on.

    >>> import numpy as np, fastlayers as fl
    >>> model = fl.Seq2Seq(
    ...     encoder=fl.GRU(3, 4, batch_first=True), decoder=fl.GRU(2, 4, batch_first=True),
    ...     output=fl.Linear(4, 7), target=fl.Embedding(7, 2),
    ... )
    >>> _ = model.load_state_dict({name: np.ones(shape) for name, shape in model.tensor_shapes().items()})
    >>> x = np.ones((2, 5, 3))
    >>> model(x, [[0, 1, 2], [0, 3, 4]], lengths=[5, 3]).shape
    (2, 3, 7)
    >>> model.greedy(x, start=0, end=6, max_length=9).tokens.shape
    (2, 9)
    >>> model.beam(x, start=0, end=6, max_length=9, beams=3).scores.shape
    (2, 3)
    """

    def __init__(
        self,
        encoder: Any,
        decoder: Any,
        output: Any,
        target: Any,
        source: Any = None,
        attention: Any = None,
        output_context: bool = False,
    ) -> None:
        for name, layer in (("encoder", encoder), ("decoder", decoder)):
            if not isinstance(layer, Sequences):
                raise DTypeError(f"Seq2Seq: {name} is of type {type(layer).__name__}: expected RNN, GRU or LSTM")
            if layer.bidirectional or not layer.batch_first:
                raise ArgumentError(f"Seq2Seq: {name} is {layer!r}: expected one direction and batch_first=True")
        for name, layer in (("output", output), ("target", target), ("source", source), ("attention", attention)):
            if not callable(layer) and not (layer is None and name in ("source", "attention")):
                raise DTypeError(f"Seq2Seq: {name} is of type {type(layer).__name__}: expected a layer")
        if type(encoder) is not type(decoder) or _states(encoder) != _states(decoder):
            raise ArgumentError(f"Seq2Seq: encoder is {encoder!r}, decoder {decoder!r}: expected the same kind, layers and units")
        self.encoder, self.decoder, self.output, self.target = encoder, decoder, output, target
        self.source, self.attention = source, attention
        self._output_context = as_flag("Seq2Seq", "output_context", output_context)
        if self._output_context and attention is None:
            raise ArgumentError("Seq2Seq: output_context is True without attention: expected False, there is no context")

    def encode(self, x: Tensor, lengths: Tensor | None = None, mask: Tensor | None = None) -> dict[str, Any]:
        """The decoder's first state, as `step` takes it.

        Args:
            x: ``(n, t, ...)``, what `source`, or without one the encoder takes.
            lengths: how many of its steps each sequence has, or None.
            mask: instead of lengths, booleans ``(n, t)``: which steps each sequence has.

        Returns:
            A dict of arrays, and tuples of them, whose first axis is the batch.
        """
        seen = x if self.source is None else self.source(x)
        memory, state = self.encoder(seen, lengths=lengths, mask=mask)
        begin = {"state": _turned(state)}
        if self.attention is None:
            return begin
        return {**begin, "memory": memory, "mask": _valid(memory, lengths, mask)}

    def step(self, tokens: Tensor, state: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
        """One step of the decoder, as `functional.greedy_search` and `functional.beam_search` take it.

        Args:
            tokens: ``(n,)``.
            state: what `encode`, or the step before, gave.

        Returns:
            The log-probabilities ``(n, vocabulary)`` of the next token, and the state after the step.
        """
        if not isinstance(state, Mapping) or "state" not in state or (self.attention is not None and "memory" not in state):
            raise DTypeError(f"Seq2Seq.step: state is of type {type(state).__name__}: expected what `encode` returns")
        seen = self.target(tokens)
        before = _turned(state["state"])
        context: Any = None
        if self.attention is not None:
            h = before[0] if isinstance(before, tuple) else before
            context = self.attention(h[-1], state["memory"], state["mask"])
            seen = concat([seen, context], dim=-1)
        out, after = self.decoder(seen[:, None], before)
        read = concat([out[:, 0], context], dim=-1) if self._output_context else out[:, 0]
        return log_softmax(self.output(read)), {**state, "state": _turned(after)}

    def forward(self, x: Tensor, tokens: Tensor, lengths: Tensor | None = None, mask: Tensor | None = None) -> np.ndarray:
        """The log-probabilities of what follows each of the tokens that are given.

        Args:
            x: ``(n, t, ...)``, what `source`, or without one the encoder takes.
            tokens: ``(n, u)``, the start token first.
            lengths: how many of its steps each sequence of x has, or None.
            mask: instead of lengths, booleans ``(n, t)``: which steps each sequence of x has.

        Returns:
            float32 ``(n, u, vocabulary)``.
        """
        state = self.encode(x, lengths, mask)
        if self.attention is None:
            out, _ = self.decoder(self.target(tokens), _turned(state["state"]))
            return log_softmax(self.output(out))
        columns: Any = tokens if isinstance(tokens, Symbol) else as_array(tokens, "Seq2Seq", "tokens")
        if columns.ndim != 2:
            raise ShapeError(f"Seq2Seq: tokens has shape {columns.shape}: expected (n, u)")
        if not isinstance(columns.shape[1], int):
            return self._over_time(columns, state)
        found = []
        for i in range(columns.shape[1]):
            logs, state = self.step(columns[:, i], state)
            found.append(logs)
        if symbolic(*found):
            return concat([unsqueeze(logs, 1) for logs in found], dim=1)
        return np.stack(found, axis=1)

    def _over_time(self, tokens: Symbol, state: dict[str, Any]) -> np.ndarray:
        """The log-probabilities after each token that the program is given."""
        leaves, again = opened(state["state"])

        def body(i: Symbol, *carried: Any) -> tuple[None, list[Any], list[Any]]:
            logs, after = self.step(record("Gather", tokens, i, axis=1), {**state, "state": again(carried)})
            return None, opened(after["state"])[0], [logs]

        steps = record("Gather", record("Shape", tokens), np.array(1))
        _, (logs,) = loop(body, leaves, steps, steps=tokens.shape[1])
        return logs.swapaxes(0, 1)  # type: ignore[no-any-return]

    def greedy(
        self, x: Tensor, start: Any, end: int, max_length: int, lengths: Tensor | None = None, mask: Tensor | None = None
    ) -> SearchResult:
        """`functional.greedy_search` over the decoder.

        Args:
            x: ``(n, t, ...)``, what `source`, or without one the encoder takes.
            start: the token to begin with, one or ``(n,)``.
            end: the token that ends a sequence.
            max_length: the most tokens, the end token included.
            lengths: how many of its steps each sequence of x has, or None.
            mask: instead of lengths, booleans ``(n, t)``.

        Returns:
            Tokens ``(n, length)``, lengths and scores ``(n,)``.
        """
        model = self._settled()
        return greedy_search(model.step, model.encode(x, lengths, mask), start, end, max_length)

    def beam(
        self,
        x: Tensor,
        start: Any,
        end: int,
        max_length: int,
        beams: int,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        length_penalty: float = 0.0,
    ) -> SearchResult:
        """`functional.beam_search` over the decoder.

        Args:
            x: ``(n, t, ...)``, what `source`, or without one the encoder takes.
            start: the token to begin with, one or ``(n,)``.
            end: the token that ends a sequence.
            max_length: the most tokens, the end token included.
            beams: how many sequences are followed and returned.
            lengths: how many of its steps each sequence of x has, or None.
            mask: instead of lengths, booleans ``(n, t)``.
            length_penalty: scores are divided by the number of tokens to this power.

        Returns:
            Tokens ``(n, beams, length)``, lengths and scores ``(n, beams)``, the best first.
        """
        model = self._settled()
        begin = model.encode(x, lengths, mask)
        return beam_search(model.step, begin, start, end, max_length, beams, length_penalty=length_penalty)


def _states(layer: Sequences[Any]) -> tuple[int, tuple[int, ...]]:
    return layer.num_layers, layer._sizes


def _valid(memory: Any, lengths: Any, mask: Any) -> Any:
    """Flags of the steps of the encoder's outputs that each sequence has: booleans (n, t)."""
    if not symbolic(memory, lengths, mask):
        n, t = memory.shape[:2]
        if lengths is not None:
            return np.arange(t) < as_int64(lengths, "Seq2Seq", "lengths").reshape(-1, 1)
        return np.ones((n, t), bool) if mask is None else as_array(mask, "Seq2Seq", "mask")
    if lengths is None and mask is not None:
        return mask if isinstance(mask, Symbol) else as_array(mask, "Seq2Seq", "mask")
    rows, steps = (record("AxisPositions", memory, axis=axis) for axis in (0, 1))
    if lengths is None:
        return (rows[:, None] >= 0) & (steps >= 0)
    ends = lengths if isinstance(lengths, Symbol) else as_int64(lengths, "Seq2Seq", "lengths")
    return steps < ends.reshape(-1, 1)


def _turned(state: Any) -> Any:
    """A recurrent state with its first two axes exchanged: the batch comes first, for searches, or the layers do."""
    return tuple(map(_turned, state)) if isinstance(state, tuple) else state.swapaxes(0, 1)
