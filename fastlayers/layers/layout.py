"""Layers that put the same numbers into another shape or order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..functional import flatten, permute, reshape
from ..functional._checks import integer
from ._base import Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["Flatten", "Permute", "Reshape"]


class Flatten(Layer):
    """Makes one axis of several, in C order: all but the first, the batch, by default.

    >>> import numpy as np, fastlayers as fl
    >>> fl.Flatten()(np.zeros((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim = integer("Flatten", "start_dim", start_dim)
        self.end_dim = integer("Flatten", "end_dim", end_dim)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Flattens x; returns a float32 copy."""
        return flatten(x, self.start_dim, self.end_dim)

    def _arguments(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Permute(Layer):
    """The axes in another order, the batch among them: axis i of the result is axis ``dims[i]`` of x.

    >>> import numpy as np, fastlayers as fl
    >>> fl.Permute((0, 2, 3, 1))(np.zeros((1, 3, 8, 9))).shape
    (1, 8, 9, 3)
    """

    def __init__(self, dims: Sequence[int]) -> None:
        self.dims = tuple(integer("Permute", "dims", d) for d in dims)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Permutes x; returns a float32 copy."""
        return permute(x, self.dims)

    def _arguments(self) -> str:
        return f"{self.dims}"


class Reshape(Layer):
    """The same numbers, in C order, in another shape, the batch included; one size may be -1.

    >>> import numpy as np, fastlayers as fl
    >>> fl.Reshape((-1, 4, 3))(np.zeros((2, 12))).shape
    (2, 4, 3)
    """

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = tuple(integer("Reshape", "shape", d, -1) for d in shape)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Reshapes x; returns a float32 copy."""
        return reshape(x, self.shape)

    def _arguments(self) -> str:
        return f"{self.shape}"
