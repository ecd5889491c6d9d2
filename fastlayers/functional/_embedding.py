"""Rows of a table by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..graph.arrays import as_float32, as_int64, empty
from ..graph.ops import op
from ..graph.record import record
from ..ir.checks import integer
from ..ir.graph import Dim, Shape
from ..kernels import dispatch
from ..rules.weights import table_rule

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["embedding"]


def padding_row(name: str, value: Any, count: Dim) -> int | None:
    """`padding_idx` counted from the front; one below 0 counts from the end."""
    if value is None:
        return None
    found = integer(name, "padding_idx", value)
    if not isinstance(count, int):
        return found
    if not -count <= found < count:
        raise ArgumentError(f"{name}: padding_idx is {found}: expected {-count} to {count - 1}, the table has {count} rows")
    return found % count


def embedding_rule(ids: Shape, weight: Shape, padding_idx: Any) -> Shape:
    """Checks the arguments of `embedding` and returns the shape of its result."""
    table_rule("embedding", weight)
    padding_row("embedding", padding_idx, weight[0])
    return (*ids, weight[1])


@op("embedding", "ids:int weight", embedding_rule, lambda ids, weight, padding_idx: record("Embedding", weight, ids), plans=False)
def embedding(ids: Tensor, weight: Tensor, padding_idx: int | None = None) -> np.ndarray:
    """Rows of a table by number: ``weight[ids]``.

    Args:
        ids: integers from 0 to num_embeddings - 1, of any shape.
        weight: the table, ``(num_embeddings, embedding_dim)``.
        padding_idx: the id that stands for nothing; checked, and otherwise without effect, as in torch: its row is what the
            table holds.

    Returns:
        float32, the shape of ids and embedding_dim.

    Raises:
        ArgumentError: an id is below 0 or not below num_embeddings, the message says which; or the table is none.
        DTypeError: ids are not integers, or weight is not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.embedding([2, 0], [[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])
    array([[2. , 2.5],
           [0. , 0.5]], dtype=float32)
    """
    weight = as_float32(weight, "embedding", "weight")
    embedding_rule((), weight.shape, padding_idx)
    return look_up(ids, weight)


def look_up(ids: Any, weight: np.ndarray) -> np.ndarray:
    """`embedding` with a checked table."""
    ids = as_int64(ids, "embedding", "ids")
    count, width = ids.size, weight.shape[1]
    out = empty((*ids.shape, width))
    dispatch.kernel("embedding")(weight, ids.reshape(count), out.reshape(count, width))
    return out
