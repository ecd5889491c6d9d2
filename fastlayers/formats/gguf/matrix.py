"""A matrix of a GGUF file as networks take it: of few bits in products and in tables of words, an array wherever else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array
from ..budget import Budget
from .blocks import packed, read
from .parse import File, Tensor

if TYPE_CHECKING:
    from ..transformers.build import Network

__all__ = ["Matrix", "part"]


def part(tensor: Tensor, first: int, count: int, width: int) -> Tensor:
    """`count` rows of `width` from row `first` on, as a matrix."""
    size = tensor.kind.bytes_of((count, width), tensor.where)
    return tensor._replace(
        name=f"{tensor.name}[{first}]", shape=(count, width), start=tensor.start + first * (size // count), size=size
    )


class Matrix:
    """A quantized matrix (n, k), made of the file when a network asks for it, once.

    Args:
        file: the file.
        tensor: one of two axes.
        budget: pays for what is made.
        order: which row of the file is each row; None: the same.
        exchanged: it is called (k, n).
    """

    dtype = np.dtype(np.float32)  # of the array

    def __init__(self, file: File, tensor: Tensor, budget: Budget, order: Array | None = None, exchanged: bool = False) -> None:
        self.file, self.tensor, self.budget, self.order, self.exchanged = file, tensor, budget, order, exchanged
        self.shape = tensor.shape[::-1] if exchanged else tensor.shape
        self._made: tuple[list[str | None], dict[str, int]] | None = None

    def transposed(self) -> Matrix:
        """The same, called (k, n)."""
        return Matrix(self.file, self.tensor, self.budget, self.order, not self.exchanged)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        found = read(self.file, self.tensor, self.budget)
        found = found if self.order is None else found[self.order]
        return found.T if self.exchanged else found

    def linear(self, n: Network, x: str, bias: str | None) -> str:
        """Writes x Wᵀ + b."""
        (numbers, scales, zeros), bits = self._constants(n)
        rows, terms = self.tensor.shape
        return n.op("MatMulNBits", x, numbers, scales, zeros, None, bias, N=rows, K=terms, **bits)

    def rows(self, n: Network, ids: str) -> str:
        """Writes the rows of the ids."""
        (numbers, scales, zeros), bits = self._constants(n)
        return n.op("GatherBlockQuantized", numbers, ids, scales, zeros, gather_axis=0, quantize_axis=1, **bits)

    def _constants(self, n: Network) -> tuple[list[str | None], dict[str, int]]:
        if self._made is None:
            few = packed(self.file, self.tensor, self.budget)
            names: list[str | None] = []
            for kind in ("numbers", "scales", "zeros"):
                array = getattr(few, kind)
                if array is not None and self.order is not None:
                    array = array[self.order]
                names.append(None if array is None else n.constant(array, f"{self.tensor.name}.{kind}"))
            self._made = names, {"bits": few.bits, "block_size": few.block}
        return self._made
