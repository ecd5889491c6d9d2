"""Dropout as a layer, and the mean and variance of a network whose dropout draws."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, UnsupportedError
from ..functional._conv_rules import channels_last
from ..functional._dropout import drop, dropout, probability
from ..graph.arrays import as_float32
from ..graph.symbol import Symbol
from ..ir.checks import integer
from ._base import Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "MonteCarlo"]


# The error of a mean falls with the root of the number of samples; a call for more samples would not end.
_MOST_SAMPLES = 1 << 20


class _Draw:
    """One draw of a network: its seed, its number, and how many dropout layers have drawn so far."""

    def __init__(self, seed: int, number: int) -> None:
        self.seed, self.number, self.calls = seed, number, 0

    def stream(self) -> int:
        """A stream that no other layer of this draw has, nor any of another draw."""
        self.calls += 1
        return self.number * 2**32 + self.calls


# Set while a MonteCarlo calls its network, in the calling thread alone: layers hold no state.
_drawing: ContextVar[_Draw | None] = ContextVar("fastlayers_drawing", default=None)


@contextmanager
def _draw(seed: int, number: int) -> Iterator[None]:
    token = _drawing.set(_Draw(seed, number))
    try:
        yield
    finally:
        _drawing.reset(token)


class Dropout(Layer):
    """The identity; within `MonteCarlo`, or called with a seed, `functional.dropout`: ``x * keep / (1 - p)``.

    Args:
        p: the share that is dropped. (Keras' ``rate``.)

    >>> import numpy as np, fastlayers as fl
    >>> fl.Dropout(0.5)(np.ones(3))
    array([1., 1., 1.], dtype=float32)
    """

    _kept_axes = 0  # axes at the end that share their fate

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        self.p = probability(type(self).__name__, p)

    def __call__(self, x: Tensor, seed: int | None = None) -> np.ndarray:
        """Returns x as float32, x itself where it is that already; with a seed, x with dropout."""
        if isinstance(x, Symbol):
            return dropout(x, self.p, seed is not None, seed=seed)
        x = as_float32(x, type(self).__name__, "x")
        drawing = _drawing.get()
        if seed is not None:
            return drop(x, self.p, integer(type(self).__name__, "seed", seed), 0, self._noise(x.shape))
        if drawing is None or not self.p:
            return x
        # One thinned network a draw, the same for all examples: parts of a batch give what the whole gives.
        return drop(x, self.p, drawing.seed, drawing.stream(), (1, *self._noise(x.shape)[1:]) if x.ndim else ())

    def _noise(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        split = len(shape) - self._kept_axes
        return shape if split <= 0 else (*shape[:split], *(1,) * self._kept_axes)

    def _arguments(self) -> str:
        return f"p={self.p}"


class _Channels(Dropout):
    """The base of classes for whole channels."""

    def __init__(self, p: float = 0.5, inplace: bool = False, *, layout: str = "nchw") -> None:
        super().__init__(p, inplace)
        self._last = channels_last(type(self).__name__, layout, self._kept_axes)

    def _noise(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if not self._last or len(shape) <= self._kept_axes:
            return super()._noise(shape)
        return (*super()._noise(shape[:-1]), shape[-1])

    def _arguments(self) -> str:
        return super()._arguments() + (", layout='nhwc'" if self._last else "")


class Dropout1d(_Channels):
    """`Dropout` of whole channels of x ``(n, c, l)``, or ``(n, l, c)`` with ``layout="nhwc"``."""

    _kept_axes = 1


class Dropout2d(_Channels):
    """`Dropout` of whole channels of x ``(n, c, h, w)``, or ``(n, h, w, c)`` with ``layout="nhwc"``."""

    _kept_axes = 2


class Dropout3d(_Channels):
    """`Dropout` of whole channels of x ``(n, c, d, h, w)``, or ``(n, d, h, w, c)`` with ``layout="nhwc"``."""

    _kept_axes = 3


class MonteCarlo(Layer):
    """Mean and variance of a network over many draws of its dropout layers: how uncertain it is.

    A draw is one thinned network, the same for all examples of a batch. Draw i of a seed is the same in every call, whatever the
    number of threads and however a batch is cut. The network itself is not changed; without this it is deterministic. It cannot
    be compiled: compile the network alone.

    Args:
        net: a layer, or a network of layers; called with what this is called with, returns one array.
        samples: how many draws, at most 2**20.
        seed: an int.

    >>> import numpy as np, fastlayers as fl
    >>> mean, variance = fl.MonteCarlo(fl.Dropout(0.5), samples=1000, seed=1)(np.ones((1, 4)))
    >>> bool(np.all(abs(mean - 1) < 0.2)), bool(np.all(abs(variance - 1) < 0.2))
    (True, True)
    """

    def __init__(self, net: Layer, samples: int = 100, seed: int = 0) -> None:
        if not isinstance(net, Layer):
            raise DTypeError(f"MonteCarlo: net is of type {type(net).__name__}: expected a layer of fastlayers")
        self.net = net
        self.samples = integer("MonteCarlo", "samples", samples, 1, _MOST_SAMPLES)
        self.seed = integer("MonteCarlo", "seed", seed)

    def forward(self, *inputs: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and (the population's) variance of the network's result over the draws, float32, each of the result's shape."""
        if any(isinstance(x, Symbol) for x in inputs):
            raise UnsupportedError("MonteCarlo: cannot be recorded: compile the network alone")
        mean = spread = np.float64(0)
        for number in range(self.samples):
            with _draw(self.seed, number):
                y = np.asarray(self.net(*inputs), np.float64)
            off = y - mean
            mean = mean + off / (number + 1)
            spread = spread + off * (y - mean)
        return np.asarray(mean, np.float32), np.asarray(spread / self.samples, np.float32)

    def draw(self, number: int, *inputs: Any) -> np.ndarray:
        """The network's result in one draw."""
        with _draw(self.seed, integer("MonteCarlo.draw", "number", number, 0)):
            result: np.ndarray = self.net(*inputs)
        return result

    def _arguments(self) -> str:
        return f"samples={self.samples}, seed={self.seed}"
