"""Attention layers as Keras has them, and Bahdanau's. Their masks say True where something is valid."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, DTypeError, ShapeError
from ..functional import additive_attention, multiply, scaled_dot_product_attention, subtract, unsqueeze
from ..graph.arrays import as_float32
from ..graph.record import shape_of
from ..graph.symbol import symbolic
from ..ir.checks import integer, number
from ._affine import affine
from ._base import Layer
from .linear import Linear

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["AdditiveAttention", "Attention", "BahdanauAttention"]

_LOW = 1e9  # what Keras takes off the scores of keys that are masked: a row of nothing else is uniform


class _KerasAttention(Layer):
    """Inputs and masks, which both layers of Keras share."""

    _scored: Callable[..., Any]  # of query, key, value, what is added to the scores, and whether weights and scores are wanted

    def forward(
        self,
        inputs: Any,
        mask: Any = None,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
        *,
        return_scores: bool = False,
    ) -> Any:
        """Attends.

        Args:
            inputs: ``[query, value]`` or ``[query, value, key]``: ``(n, l, d)``, ``(n, s, e)`` and ``(n, s, d)``; key is value
                if it is left out.
            mask: None or ``[query_mask, value_mask]``, each None or booleans ``(n, l)`` and ``(n, s)``, True where valid.
                Results of queries that are not valid are zeros. A query none of whose keys is valid weighs all alike.
            return_attention_scores: whether the weights ``(n, l, s)`` are returned too, which Keras calls scores.
            use_causal_mask: whether query i sees the keys j <= i alone.
            return_scores: whether the scores before the softmax ``(n, l, s)`` are returned too.

        Returns:
            float32 ``(n, l, e)``; if more is asked for, a tuple: the result, the weights, the scores.
        """
        name = type(self).__name__
        if not isinstance(inputs, (tuple, list)) or len(inputs) not in (2, 3):
            raise DTypeError(f"{name}: inputs of type {type(inputs).__name__}: expected [query, value] or [query, value, key]")
        query, value, key = (
            x if symbolic(x) else as_float32(x, name, part)
            for x, part in zip((*inputs, inputs[1])[:3], ("query", "value", "key"), strict=True)
        )
        if mask is not None and (not isinstance(mask, (tuple, list)) or len(mask) not in (2, 3)):
            raise DTypeError(f"{name}: mask of type {type(mask).__name__}: expected None or [query_mask, value_mask]")
        of_query, of_value = (None, None) if mask is None else mask[:2]
        for part, x, given in (("query", query, of_query), ("value", value, of_value)):
            shape = None if given is None else shape_of(given, name, f"mask of {part}")
            if x.ndim != 3 or (shape is not None and len(shape) != 2):
                raise ShapeError(f"{name}: {part} has shape {x.shape}, its mask {shape}: expected (n, t, features) and (n, t)")
        low = self._low(of_value, use_causal_mask, query.shape[1], value.shape[1])
        found = self._scored(query, key, value, low, bool(return_attention_scores), bool(return_scores))
        if of_query is None:
            return found
        valid = unsqueeze(of_query, 2)
        return (multiply(found[0], valid), *found[1:]) if isinstance(found, tuple) else multiply(found, valid)

    def _low(self, of_value: Any, causal: bool, rows: Any, keys: Any) -> Any:
        """Summands of the scores (n, l, s): 0 where a key is valid, -1e9 where not."""
        if of_value is None and not causal:
            return None
        valid: Any = 1.0
        if causal:
            if not isinstance(rows, int) or not isinstance(keys, int):
                raise ShapeError(f"{type(self).__name__}: {rows} queries and {keys} keys: a causal mask needs known lengths")
            valid = np.tril(np.ones((1, rows, keys), np.float32))
        if of_value is not None:
            valid = multiply(unsqueeze(of_value, 1), valid)
        return multiply(subtract(valid, 1.0), _LOW)

    def _keras(self) -> dict[str, tuple[int, ...]]:
        return dict(self._shapes)

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return given


class Attention(_KerasAttention):
    """Keras' dot-product attention: ``softmax(scale query keyᵀ) value``, without 1 / sqrt(d).

    With ``score_mode="concat"`` the scores are ``concat_score_weight * sum(tanh(scale * (query + key)))``.

    Args:
        use_scale: whether there is a learned factor, `scale`.
        score_mode: "dot" or "concat".
        dropout: accepted for compatibility with Keras; ignored at inference.
        seed: accepted for compatibility with Keras.

    Tensors: ``scale`` () with `use_scale`, ``concat_score_weight`` () with "concat", as in Keras.

    >>> import numpy as np, fastlayers as fl
    >>> out, weights = fl.Attention()([np.ones((1, 2, 4)), np.ones((1, 3, 4))], return_attention_scores=True)
    >>> out.shape, weights.shape
    ((1, 2, 4), (1, 2, 3))
    """

    def __init__(self, use_scale: bool = False, score_mode: str = "dot", dropout: float = 0.0, seed: int | None = None) -> None:
        if seed is not None:
            integer("Attention", "seed", seed)
        if score_mode not in ("dot", "concat"):
            raise ArgumentError(f"Attention: score_mode is {score_mode!r}: expected 'dot' or 'concat'")
        number("Attention", "dropout", dropout)
        self.score_mode, self.use_scale = score_mode, bool(use_scale)
        shapes: dict[str, tuple[int, ...]] = {"scale": ()} if use_scale else {}
        self._shapes = {**shapes, "concat_score_weight": ()} if score_mode == "concat" else shapes

    def _scored(self, query: Any, key: Any, value: Any, low: Any, weights: bool, scores: bool) -> Any:
        tensors = self._tensors()
        scale = float(tensors["scale"]) if self.use_scale else 1.0
        if self.score_mode == "dot":
            return scaled_dot_product_attention(query, key, value, low, scale=scale, need_weights=weights, need_scores=scores)
        if self.use_scale:
            query, key = multiply(query, scale), multiply(key, scale)
        width = key.shape[-1]
        if not isinstance(width, int):
            raise ShapeError(f"Attention: key has shape {key.shape}: expected a known number of features")
        factors = np.full(width, tensors["concat_score_weight"], np.float32)
        return additive_attention(query, key, value, None, None, factors, low, need_weights=weights, need_scores=scores)

    def _arguments(self) -> str:
        return f"use_scale={self.use_scale}, score_mode={self.score_mode!r}"


class AdditiveAttention(_KerasAttention):
    """Keras' additive attention: ``softmax(sum(scale * tanh(query + key))) value``.

    Args:
        units: size of the last axis of query and key.
        use_scale: whether there is a learned factor a unit, `scale`.
        dropout: accepted for compatibility with Keras; ignored at inference.

    Tensors: ``scale`` (units,) with `use_scale`, as in Keras.

    >>> import numpy as np, fastlayers as fl
    >>> fl.AdditiveAttention(4, use_scale=False)([np.ones((1, 2, 4)), np.ones((1, 3, 4))]).shape
    (1, 2, 4)
    """

    def __init__(self, units: int, use_scale: bool = True, dropout: float = 0.0) -> None:
        self.units = integer("AdditiveAttention", "units", units, 0)
        number("AdditiveAttention", "dropout", dropout)
        self._shapes = {"scale": (self.units,)} if use_scale else {}

    def _scored(self, query: Any, key: Any, value: Any, low: Any, weights: bool, scores: bool) -> Any:
        scale = self._tensors().get("scale")
        return additive_attention(query, key, value, None, None, scale, low, need_weights=weights, need_scores=scores)

    def _arguments(self) -> str:
        return f"{self.units}, use_scale={'scale' in self._shapes}"


class BahdanauAttention(Layer):
    """Additive attention with projections: ``softmax(v · tanh(W query + U value)) value``, the context of a decoder's step.

    Args:
        query_dim: size of the last axis of query, such as a decoder's state.
        value_dim: size of the last axis of value, such as an encoder's outputs.
        units: size of the projections.
        bias: whether the projections have biases.

    Tensors: ``query_layer.weight`` (units, query_dim), ``value_layer.weight`` (units, value_dim), their biases, ``v`` (units,).

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.BahdanauAttention(4, 6, 5)
    >>> _ = layer.load_state_dict({name: np.ones(shape) for name, shape in layer.tensor_shapes().items()})
    >>> context, weights = layer(np.ones((2, 1, 4)), np.ones((2, 7, 6)))
    >>> context.shape, weights.shape
    ((2, 1, 6), (2, 1, 7))
    """

    def __init__(self, query_dim: int, value_dim: int, units: int, bias: bool = False) -> None:
        name = "BahdanauAttention"
        self.units = integer(name, "units", units, 1)
        self.query_layer = Linear(integer(name, "query_dim", query_dim, 1), self.units, bias)
        self.value_layer = Linear(integer(name, "value_dim", value_dim, 1), self.units, bias)
        self._shapes = {"v": (self.units,)}

    def forward(
        self,
        query: Tensor,
        value: Tensor,
        lengths: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        keys: Tensor | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Attends.

        Args:
            query: ``(n, l, query_dim)``; l is 1 for a step of a decoder.
            value: ``(n, s, value_dim)``.
            lengths: ``(n,)``: how many values each entry of the batch has, or None.
            mask: None, or as `attn_mask` of `functional.additive_attention`: True where a query may attend.
            keys: what `keys` made of value: it need not be projected again at every step.

        Returns:
            ``(context, weights)``: ``(n, l, value_dim)`` and ``(n, l, s)``.
        """
        projected = self.keys(value) if keys is None else keys
        found: tuple[np.ndarray, np.ndarray] = additive_attention(
            self.query_layer(query), projected, value, None, None, self._tensors()["v"], mask, lengths=lengths, need_weights=True
        )
        return found

    def keys(self, value: Tensor) -> np.ndarray:
        """Values projected: ``(n, s, units)``."""
        found: np.ndarray = affine(self._settled().value_layer, value)
        return found
