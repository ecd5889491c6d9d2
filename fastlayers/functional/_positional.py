"""Positions: rotary ones, the tables that they need, and sinusoidal ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import checked
from ..calls.attention import rotary
from ..calls.machine import ARRAYS
from ..errors import ArgumentError
from ..graph.arrays import as_float32, empty, optional_int64
from ..graph.ops import op
from ..graph.record import record
from ..ir.checks import integer
from ..ir.graph import Shape
from ..operators.positional_tables import cosines_and_sines, encoding
from ..rules.positions import rotary_rule as _rotary_rule

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["rotary_embedding", "rotary_tables", "sinusoidal_encoding"]

_NAME = "rotary_embedding"


def rotary_rule(
    x: Shape,
    cos: Shape,
    sin: Shape,
    position_ids: Shape | None,
    interleaved: Any = False,
    num_heads: Any = None,
    rotary_dim: Any = None,
) -> Shape:
    """Checks the arguments of `rotary_embedding` and returns the shape of its result."""
    heads = None if num_heads is None else integer(_NAME, "num_heads", num_heads, 1)
    turned = None if rotary_dim is None else integer(_NAME, "rotary_dim", rotary_dim, 0)
    _rotary_rule(_NAME, x, cos, sin, position_ids, heads, turned)
    return x


def _normal(attributes: dict[str, Any]) -> None:
    attributes["interleaved"] = bool(attributes["interleaved"])
    for name in ("num_heads", "rotary_dim"):
        attributes[name] = None if attributes[name] is None else int(attributes[name])


def _record(x: Any, cos: Any, sin: Any, ids: Any, interleaved: bool, num_heads: int | None, rotary_dim: int | None) -> Any:
    # Files say 0, or nothing, where the tables tell how many values are rotated.
    turned = {"whole": True} if rotary_dim is None else {"rotary_embedding_dim": rotary_dim}
    return record("RotaryEmbedding", x, cos, sin, ids, interleaved=int(interleaved), num_heads=num_heads or 0, **turned)


@op(_NAME, "x cos sin position_ids:int", rotary_rule, _record, _normal)
def rotary_embedding(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    position_ids: Tensor | None = None,
    *,
    interleaved: bool = False,
    num_heads: int | None = None,
    rotary_dim: int | None = None,
) -> np.ndarray:
    """Pairs of values rotated by angles that grow with the position: ``(a cos - b sin, a sin + b cos)`` for each pair (a, b).

    Args:
        x: ``(n, h, t, d)``, or ``(n, t, h d)`` with `num_heads`; any real dtype.
        cos: cosines of the angles ``(positions, r / 2)``, row by row in the order of t, or as `position_ids` say; or ``(n, t, r /
            2)``.
        sin: sines, likewise.
        position_ids: ``(n, t)``: the row of `cos` and `sin` for each position; None where they have one row for each.
        interleaved: whether pairs are values (0, 1), (2, 3), ... of a head instead of (0, r / 2), (1, r / 2 + 1), ...
        num_heads: heads that are next to each other, or None.
        rotary_dim: r, how many values of a head are rotated; the rest stays. None is all.

    Returns:
        float32, the shape of x.

    Raises:
        ArgumentError: shapes do not fit, or a position has no row.
        DTypeError: an argument is complex or not numeric.

    >>> import numpy as np, fastlayers as fl
    >>> cos, sin = np.array([[0.0]]), np.array([[1.0]])
    >>> fl.functional.rotary_embedding(np.array([[[[1.0, 2.0]]]]), cos, sin)
    array([[[[-2.,  1.]]]], dtype=float32)
    """
    values = as_float32(x, _NAME, "x")
    tables = as_float32(cos, _NAME, "cos"), as_float32(sin, _NAME, "sin")
    ids = optional_int64(position_ids, _NAME, "position_ids")
    shapes: Any = [None if a is None else a.shape for a in (values, *tables, ids)]
    rotary_rule(*shapes, interleaved, num_heads, rotary_dim)  # type: ignore[call-arg]
    if ids is not None:
        if ids.size and not (ids.min() >= 0 and ids.max() < tables[0].shape[0]):
            raise ArgumentError(f"{_NAME}: position_ids has {ids.min()} .. {ids.max()}: expected 0 .. {tables[0].shape[0] - 1}")
        tables = np.take(tables[0], ids, 0), np.take(tables[1], ids, 0)
    out = empty(values.shape)
    rotary(ARRAYS, values, *tables, out, bool(interleaved), num_heads)
    return out


@checked
def rotary_tables(length: int, dim: int, base: float = 10000.0) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines for `rotary_embedding`: of the angles ``position * base ** (-2 i / dim)``.

    Args:
        length: how many positions.
        dim: r, how many values of a head are rotated.
        base: how slowly the angles of the last pairs grow.

    Returns:
        ``(cos, sin)``, float32 ``(length, dim / 2)`` each.

    Raises:
        ArgumentError: a size is negative, or `dim` is odd.
        DTypeError: a size is no int.

    >>> import fastlayers as fl
    >>> fl.functional.rotary_tables(2, 2)[0].shape
    (2, 1)
    """
    return cosines_and_sines("rotary_tables", length, dim, base)


@checked
def sinusoidal_encoding(length: int, dim: int, base: float = 10000.0) -> np.ndarray:
    """Positions as sines and cosines: ``sin(p base ** (-2 i / dim))`` in columns 2 i, cosines of the same in columns 2 i + 1.

    Args:
        length: how many positions.
        dim: how many values per position.
        base: how slowly the last ones change.

    Returns:
        float32 ``(length, dim)``.

    Raises:
        ArgumentError: a size is negative, or `dim` is odd.
        DTypeError: a size is no int.

    >>> import fastlayers as fl
    >>> fl.functional.sinusoidal_encoding(1, 4)
    array([[0., 1., 0., 1.]], dtype=float32)
    """
    return encoding("sinusoidal_encoding", length, dim, base)
