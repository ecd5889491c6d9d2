"""Layers that put the same values into another shape or order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, DTypeError
from ..functional import flatten, permute, reshape, to_channels_last
from ..graph.arrays import as_float32
from ..graph.symbol import Symbol
from ..ir.checks import integer
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

    With `layout` the values of channels-first x ``(n, c, ...)`` come out in the order of channels-last ones, as a Keras
    network flattens them: its Dense layer after takes its weights as they are. (The same without a copy at each call: give
    ``kernel.reshape(h, w, c, out).transpose(2, 0, 1, 3).reshape(-1, out)`` to `Linear.load_keras`.)

    Args:
        start_dim: the first axis that goes in.
        end_dim: the last axis that goes in.
        layout: ``"nchw"`` keeps the order of x; ``"nhwc"`` moves axis 1 after all others first, for any number of axes.

    >>> import numpy as np, fastlayers as fl
    >>> fl.Flatten()(np.zeros((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1, *, layout: str = "nchw") -> None:
        self.start_dim = integer("Flatten", "start_dim", start_dim)
        self.end_dim = integer("Flatten", "end_dim", end_dim)
        if layout not in ("nchw", "nhwc"):
            raise ArgumentError(f"Flatten: layout is {layout!r}: expected 'nchw' or 'nhwc'")
        if layout == "nhwc" and (self.start_dim, self.end_dim) != (1, -1):
            raise ArgumentError(
                f"Flatten: layout is 'nhwc' with axes {start_dim} to {end_dim}: expected all but the first, 1 to -1"
            )
        self.layout = layout

    def __call__(self, x: Tensor) -> np.ndarray:
        """Flattens x; returns a float32 copy."""
        if self.layout == "nhwc":
            x = x if isinstance(x, Symbol) else as_float32(x, "Flatten", "x")
            if len(x.shape) > 2:
                x = to_channels_last(x)
        return flatten(x, self.start_dim, self.end_dim)

    def _arguments(self) -> str:
        layout = "" if self.layout == "nchw" else f", layout={self.layout!r}"
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}{layout}"


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
    """The same values, in C order, in another shape, the batch included; one size may be -1.

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
