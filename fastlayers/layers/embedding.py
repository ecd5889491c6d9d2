"""Tables whose rows are picked by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, UnsupportedError
from ..functional._embedding import embedding, look_up, padding_row
from ..graph.arrays import as_int64
from ..graph.symbol import Symbol
from ..ir.checks import integer
from ._base import Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["Embedding"]


class Embedding(Layer):
    """Rows of a learned table by number: ``weight[ids]``.

    Args:
        num_embeddings: how many rows the table has.
        embedding_dim: the size of a row.
        padding_idx: the id that stands for nothing. Its row is what is loaded: zeros if torch made it, and trained like any
            other in Keras.
        max_norm: must be None: torch would change the table while it is read.

    Tensors: ``weight`` (num_embeddings, embedding_dim). Keras' Embedding: embeddings, of the same shape; its ``mask_zero`` is
    ``padding_idx=0`` and `mask`.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.Embedding(3, 2, padding_idx=0)
    >>> _ = layer.load_state_dict({"weight": np.arange(6).reshape(3, 2)})
    >>> layer([[2, 1, 0]]).shape, layer.mask([[2, 1, 0]])
    ((1, 3, 2), array([[ True,  True, False]]))
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None
    ) -> None:
        self.num_embeddings = integer("Embedding", "num_embeddings", num_embeddings, 0)
        self.embedding_dim = integer("Embedding", "embedding_dim", embedding_dim, 0)
        self.padding_idx = padding_row("Embedding", padding_idx, self.num_embeddings)
        if max_norm is not None:
            raise UnsupportedError(f"Embedding: max_norm is {max_norm!r}: expected None, reading must not change the table")
        self._shapes = {"weight": (self.num_embeddings, self.embedding_dim)}

    @property
    def weight(self) -> np.ndarray | None:
        """The tensor, read-only float32; None before it is loaded."""
        return self._weights.tensors.get("weight")

    def __call__(self, ids: Tensor) -> np.ndarray:
        """Looks integers of any shape up; returns float32 ``(*ids.shape, embedding_dim)``."""
        weight = self._tensors()["weight"]
        return embedding(ids, weight, self.padding_idx) if isinstance(ids, Symbol) else look_up(ids, weight)

    def mask(self, ids: Tensor) -> np.ndarray:
        """Flags of ids that are not `padding_idx`: booleans of the shape of ids: the mask that Keras' ``mask_zero`` gives."""
        if isinstance(ids, Symbol):
            if ids.dtype.kind not in "iu":
                raise DTypeError(f"Embedding.mask: ids has dtype {ids.dtype}: expected integers")
            found: Any = ids
        else:
            found = as_int64(ids, "Embedding.mask", "ids")
        if self.padding_idx is None:
            raise UnsupportedError("Embedding.mask: the layer has no padding_idx: there is nothing to mask")
        return found != self.padding_idx  # type: ignore[no-any-return]

    def _keras(self) -> dict[str, tuple[int, ...]]:
        return {"embeddings": self._shapes["weight"]}

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"weight": given["embeddings"]}

    def _arguments(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
