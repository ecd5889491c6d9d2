"""Layers that put the same numbers into another shape or order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError
from ..functional import flatten, permute, reshape
from ..functional._checks import integer
from ._base import Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["Flatten", "Permute", "Reshape"]


def _sizes(name: str, argument: str, value: Any, least: int | None = None) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)):
        raise DTypeError(f"{name}: {argument} is {value!r} of type {type(value).__name__}: expected a sequence of ints")
    return tuple(integer(name, argument, v, least) for v in value)


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
        self.dims = _sizes("Permute", "dims", dims)

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
        self.shape = _sizes("Reshape", "shape", shape, -1)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Reshapes x; returns a float32 copy."""
        return reshape(x, self.shape)

    def _arguments(self) -> str:
        return f"{self.shape}"
