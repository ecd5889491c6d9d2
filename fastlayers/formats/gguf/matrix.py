"""A matrix of a GGUF file as networks take it: its blocks in products and in tables of words, an array wherever else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array
from ..budget import Budget
from .parse import Tensor
from .tensors import raw_rows, read

if TYPE_CHECKING:
    from ..transformers.build import Network

__all__ = ["Matrix", "part"]


def part(tensor: Tensor, first: int, *shape: int) -> Tensor:
    """The tensor of a shape that begins with row `first`, of as many values as the shape's last axis has (one for a vector)."""
    before, size = (tensor.kind.bytes_of(axes, tensor.where) for axes in ((first, *shape[1:]), shape))
    return tensor._replace(name=f"{tensor.name}[{first}]", shape=shape, start=tensor.start + before, size=size)


class Matrix:
    """A quantized matrix (n, k) of one network, whose blocks stay in the file.

    Args:
        tensor: one of two axes.
        budget: pays where it becomes an array.
        order: which row of the file is each row; None: the same.
    """

    dtype = np.dtype(np.float32)  # of the array

    def __init__(self, tensor: Tensor, budget: Budget, order: Array | None = None) -> None:
        self.tensor, self.budget, self.order = tensor, budget, order
        self.shape = tensor.shape
        self._name = ""  # of the constant: a table of words may be the matrix of the scores, too

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        found = read(self.tensor, self.budget)
        return found if self.order is None else found[self.order]

    def linear(self, n: Network, x: str, bias: str | None) -> str:
        """Writes x Wᵀ + b."""
        order = None if self.order is None else n.constant(self.order, f"{self.tensor.name}.order")
        return n.op("BlockLinear", x, self._blocks(n), bias, order, kind=self.tensor.kind.name)

    def rows(self, n: Network, ids: str) -> str:
        """Writes the rows of the ids."""
        return n.op("BlockEmbedding", self._blocks(n), ids, kind=self.tensor.kind.name)

    def _blocks(self, n: Network) -> str:
        if not self._name:
            self._name = n.constant(raw_rows(self.tensor), self.tensor.name)
        return self._name
