"""Decoders: their inputs, keys and values of earlier calls, rotary embeddings, and scores of the next token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import FormatError, UnsupportedError
from ..source import quote
from .build import BATCH, FLOAT32, INT64, PAST, STEPS, Network
from .rotary import Rotary

__all__ = ["Decoder"]

_WHOLE = f"{PAST} + {STEPS}"


class Decoder:
    """A decoder that is being written: `begin`, then for each layer `attention`, then `finish`.

    Attributes:
        heads, kv_heads: of queries, and of keys and values.
        head: the width of one.
        rotary: turns queries and keys; None where positions are added.
    """

    def __init__(self, n: Network, *, heads: int, kv_heads: int, head: int, rope: Mapping[str, Any] | None) -> None:
        self.n, self.heads, self.kv_heads, self.head = n, heads, kv_heads, head
        if heads % kv_heads:
            raise FormatError(f"{n.config.where}: {heads} heads of queries, {kv_heads} of keys: expected a multiple")
        self.causal = n.head == "CausalLM"
        steps = _WHOLE if self.causal else STEPS
        self.ids = n.input("input_ids", BATCH, STEPS)
        mask = n.input("attention_mask", BATCH, steps)
        self.positions = n.input("position_ids", BATCH, STEPS)
        self.mask = n.key_mask(mask)
        self.rotary = None if rope is None else Rotary(n, head, rope, self.positions)
        self._present: list[tuple[str, str]] = []

    def attention(self, q: str, k: str, v: str, *, rotary: Any = True, **rule: Any) -> str:
        """Attention of a layer's (b, t, heads d), with what earlier calls left; queries and keys are rotated first."""
        n = self.n
        turn = self.rotary if rotary is True else rotary
        if turn:
            q, k = turn(q, self.heads), turn(k, self.kv_heads)
        past: tuple[str, ...] = ()
        if self.causal:
            i = len(self._present)
            shape = (BATCH, self.kv_heads, PAST, self.head)
            past = tuple(n.input(f"past_key_values.{i}.{kind}", *shape, dtype=FLOAT32) for kind in ("key", "value"))
        y, *present = n.attention(q, k, v, self.heads, self.kv_heads, mask=self.mask, past=past, **{"is_causal": 1, **rule})
        self._present.append(tuple(present))  # type: ignore[arg-type]
        return y

    def _last(self, x: str) -> str:
        """The last token of each row that is not padding."""
        n, pad = self.n, self.n.config.whole("pad_token_id", least=0)
        places = n.op("AxisPositions", self.ids, axis=1)
        if pad is None:
            return n.op("Gather", x, n.constant(np.int64(-1)), axis=1)
        real = n.cast(n.op("Not", n.op("Equal", self.ids, n.constant(np.int64(pad)))), INT64)
        last = n.op("ReduceMax", n.mul(places, real), n.ints(1), keepdims=1)
        chosen = n.cast(n.op("Equal", n.op("Unsqueeze", places, n.ints(0)), last), FLOAT32)
        return n.op("ReduceSum", n.mul(x, n.op("Unsqueeze", chosen, n.ints(2))), n.ints(1), keepdims=0)

    def finish(self, x: str, table: str, tied: bool, softcap: float = 0.0, name: str = "lm_head") -> None:
        """Scores of the next token from the last hidden states, or these themselves.

        Args:
            x: (b, t, d), normalized.
            table: the weight of the embedding.
            tied: whether its rows are the weights of the scores, too, where the configuration does not say it.
            softcap: c, scores are c tanh(score / c); 0: as they are.
            name: the layer that computes the scores.
        """
        n = self.n
        n.scope = ""
        shared = n.config.flag("tie_word_embeddings", tied)
        if not n.head:
            n.output("last_hidden_state", x)
            return
        if n.head == "SequenceClassification":
            n.config.unused("vocab_size")
            n.output("logits", n.linear("score", self._last(x), bias=False))
            return
        if not self.causal:
            raise UnsupportedError(
                f"{n.config.where}: the head is {quote(n.head)}: supported of this family are CausalLM, "
                "SequenceClassification, and none"
            )
        rows = n.config.size("vocab_size")
        if shared and f"{name}.weight" in n.weights:
            n.weights.raw(f"{name}.weight", rows, n.width(x))
        y = n.linear(name, x, rows, weight=table if shared else "")
        if softcap:
            y = n.mul(n.op("Tanh", n.mul(y, 1 / softcap)), softcap)
        n.output("logits", y)
        for i, pair in enumerate(self._present):
            for kind, value in zip(("key", "value"), pair, strict=True):
                n.output(f"present.{i}.{kind}", value)
