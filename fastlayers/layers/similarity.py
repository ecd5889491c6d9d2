"""Similarities of vectors, as layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..functional import cosine_similarity
from ..functional._similarity import least_norm
from ..ir.checks import integer
from ._base import Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["CosineSimilarity"]


class CosineSimilarity(Layer):
    """`functional.cosine_similarity` as a layer; it has no weights.

    Args:
        dim: the axis along which vectors are.
        eps: the least norm that is divided by, above 0.

    >>> import numpy as np, fastlayers as fl
    >>> fl.CosineSimilarity()(np.array([[3.0, 4.0]]), np.array([[4.0, 3.0]]))
    array([0.96], dtype=float32)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim, self.eps = integer("CosineSimilarity", "dim", dim), least_norm(eps)

    def __call__(self, x1: Tensor, x2: Tensor) -> np.ndarray:
        """Cosines between x1 and x2, which broadcast; returns float32, the common shape without `dim`."""
        return cosine_similarity(x1, x2, self.dim, self.eps)

    def _arguments(self) -> str:
        return f"dim={self.dim}, eps={self.eps}"
