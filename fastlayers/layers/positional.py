"""Positions as layers: sinusoidal, learned, rotary. Tables that layers make for themselves are bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import shown
from ..errors import DTypeError, ShapeError
from ..functional import add, rotary_embedding
from ..functional._embedding import embedding
from ..functional._positional import rotary_tables, sinusoidal_encoding
from ..graph.arrays import as_float32, as_int64
from ..graph.record import record
from ..graph.symbol import Symbol, symbolic
from ..ir.checks import differ, integer, number
from ..operators.positional_tables import rotary_rows, sinusoidal_rows, whole_rotary
from ._base import Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["LearnedPositionalEncoding", "PositionalEncoding", "RotaryEmbedding"]


def _placed(name: str, x: Any, dim: int, offset: Any, batch_first: bool) -> tuple[Any, int, int]:
    """x, checked, the first of its positions, and the axis that they are along."""
    x = x if symbolic(x) else as_float32(x, name, "x")
    start = offset if offset.__class__ is int and offset >= 0 else integer(name, "offset", offset, 0)
    if x.ndim not in (2, 3) or differ(x.shape[-1], dim):
        order = "n, t" if batch_first else "t, n"
        raise ShapeError(f"{name}: x has shape {x.shape}: expected ({order}, {dim}), or (t, {dim}) without a batch")
    return x, start, 1 if batch_first and x.ndim == 3 else 0


def _added(x: Any, rows: Any, axis: int) -> np.ndarray:
    """x and a row for each position along an axis."""
    return add(x, rows if axis or x.ndim == 2 else rows[:, None])


class PositionalEncoding(Layer):
    """Sinusoidal positions added to x: ``x + functional.sinusoidal_encoding``, for any length.

    Args:
        d_model: size of the last axis.
        dropout: accepted for compatibility; there is none at inference.
        batch_first: whether x is ``(n, t, d_model)`` instead of ``(t, n, d_model)``.
        base: how slowly the last features change.

    >>> import numpy as np, fastlayers as fl
    >>> fl.PositionalEncoding(4, batch_first=True)(np.zeros((2, 7, 4))).shape
    (2, 7, 4)
    """

    def __init__(self, d_model: int, dropout: float = 0.0, batch_first: bool = False, base: float = 10000.0) -> None:
        self.d_model, self.base = integer("PositionalEncoding", "d_model", d_model, 0), number("PositionalEncoding", "base", base)
        number("PositionalEncoding", "dropout", dropout)
        self.batch_first = bool(batch_first)
        sinusoidal_encoding(0, self.d_model, self.base)  # checks

    def __call__(self, x: Tensor, offset: int = 0) -> np.ndarray:
        """Adds the positions offset, offset + 1, ... to x; returns float32 of the same shape."""
        x, start, axis = _placed("PositionalEncoding", x, self.d_model, offset, self.batch_first)
        steps: Any = x.shape[axis]  # type: ignore[union-attr]
        if isinstance(steps, int):
            return _added(x, sinusoidal_rows(start, steps, self.d_model, self.base), axis)
        return _added(x, record("SinusoidalEncoding", x, axis=axis, start=start, dim=self.d_model, base=self.base), axis)

    def __repr__(self) -> str:
        return f"PositionalEncoding({self.d_model}, batch_first={self.batch_first})"


class LearnedPositionalEncoding(Layer):
    """Learned positions added to x: ``x + weight[offset : offset + t]``.

    Args:
        max_length: how many positions there are.
        d_model: size of the last axis.
        batch_first: whether x is ``(n, t, d_model)`` instead of ``(t, n, d_model)``.

    Tensors: ``weight`` (max_length, d_model). Keras' position embedding: embeddings, of the same shape.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.LearnedPositionalEncoding(9, 4, batch_first=True)
    >>> _ = layer.load_state_dict({"weight": np.ones((9, 4))})
    >>> layer(np.zeros((2, 7, 4))).shape
    (2, 7, 4)
    """

    def __init__(self, max_length: int, d_model: int, batch_first: bool = False) -> None:
        name = "LearnedPositionalEncoding"
        self.max_length, self.d_model = integer(name, "max_length", max_length, 0), integer(name, "d_model", d_model, 0)
        self.batch_first = bool(batch_first)
        self._shapes = {"weight": (self.max_length, self.d_model)}

    def __call__(self, x: Tensor, offset: int = 0) -> np.ndarray:
        """Adds the positions offset, offset + 1, ... to x; returns float32 of the same shape."""
        x, start, axis = _placed("LearnedPositionalEncoding", x, self.d_model, offset, self.batch_first)
        steps: Any = x.shape[axis]  # type: ignore[union-attr]
        if not isinstance(steps, int):
            return _added(x, embedding(record("AxisPositions", x, axis=axis, start=start), self._tensors()["weight"]), axis)
        if start + steps > self.max_length:
            raise ShapeError(
                f"LearnedPositionalEncoding: {steps} positions from {shown(start)} on: expected them below {self.max_length}"
            )
        return _added(x, self._tensors()["weight"][start : start + steps], axis)

    def _keras(self) -> dict[str, tuple[int, ...]]:
        return {"embeddings": self._shapes["weight"]}

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"weight": given["embeddings"]}

    def __repr__(self) -> str:
        return f"LearnedPositionalEncoding({self.max_length}, {self.d_model}, batch_first={self.batch_first})"


class RotaryEmbedding(Layer):
    """`functional.rotary_embedding` with its own tables, for any length.

    Args:
        dim: how many values of a head are rotated: all, or the first of them.
        base: how slowly the angles of the last pairs grow.
        interleaved: whether pairs are (0, 1), (2, 3), ... instead of (0, dim / 2), (1, dim / 2 + 1), ...

    >>> import numpy as np, fastlayers as fl
    >>> fl.RotaryEmbedding(8)(np.zeros((1, 2, 5, 8))).shape
    (1, 2, 5, 8)
    """

    def __init__(self, dim: int, base: float = 10000.0, interleaved: bool = False) -> None:
        self.dim, self.base = integer("RotaryEmbedding", "dim", dim, 0), number("RotaryEmbedding", "base", base)
        self.interleaved = bool(interleaved)
        rotary_tables(0, self.dim, self.base)  # checks

    def forward(
        self, x: Tensor, offset: int = 0, *, num_heads: int | None = None, position_ids: Tensor | None = None
    ) -> np.ndarray:
        """Turns x.

        Args:
            x: ``(n, h, t, d)``, or ``(n, t, h d)`` with `num_heads`.
            offset: the first position.
            num_heads: heads that are next to each other, or None.
            position_ids: ``(n, t)``: positions, instead of offset, offset + 1, ...

        Returns:
            float32, the shape of x.
        """
        x = x if symbolic(x) else as_float32(x, "RotaryEmbedding", "x")
        start = integer("RotaryEmbedding", "offset", offset, 0)
        settings: dict[str, Any] = {"interleaved": self.interleaved, "num_heads": num_heads, "rotary_dim": self.dim}
        if isinstance(position_ids, Symbol):
            if position_ids.dtype.kind not in "iu":
                raise DTypeError(f"RotaryEmbedding: position_ids has dtype {position_ids.dtype}: expected integers")
            cos, sin = record("RotaryTablesAt", position_ids, outputs=2, dim=self.dim, base=self.base)
            return rotary_embedding(x, cos, sin, **settings)
        if position_ids is not None:
            ids = as_int64(position_ids, "RotaryEmbedding", "position_ids")
            cos, sin = whole_rotary(int(ids.max(initial=0)) + 1, self.dim, self.base)
            return rotary_embedding(x, cos, sin, ids, **settings)
        axis = 1 if num_heads is not None else -2
        steps: Any = x.shape[axis] if x.ndim > 2 else 0  # type: ignore[union-attr]
        if isinstance(steps, int):
            cos, sin = rotary_rows(start, steps, self.dim, self.base)
        else:
            cos, sin = record("RotaryTables", x, outputs=2, axis=axis, start=start, dim=self.dim, base=self.base)
        return rotary_embedding(x, cos, sin, **settings)

    def __repr__(self) -> str:
        return f"RotaryEmbedding({self.dim}, base={self.base}, interleaved={self.interleaved})"
