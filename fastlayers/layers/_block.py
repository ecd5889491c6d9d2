"""The base of blocks of convolutional networks: convolutions, each perhaps with a batch normalization that is folded into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph.symbol import Symbol
from ..ir.checks import number
from ._base import Layer
from .conv import Conv2d

__all__ = ["Block", "fold"]

Run = Callable[..., np.ndarray]


def fold(
    weight: np.ndarray,
    bias: np.ndarray | None,
    scale: np.ndarray,
    shift: np.ndarray,
    mean: np.ndarray,
    var: np.ndarray,
    eps: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Weight and bias of a convolution that gives what a batch normalization after it gives: formed in float64, rounded once."""
    with np.errstate(all="ignore"):
        factor = scale.astype(np.float64) / np.sqrt(var.astype(np.float64) + eps)
        start = -mean.astype(np.float64) if bias is None else bias.astype(np.float64) - mean
        made = weight * factor.reshape(-1, *(1,) * (weight.ndim - 1))
        return made.astype(np.float32), (shift + start * factor).astype(np.float32)


class Block(Layer):
    """Convolutions with the names that a network's file has for their tensors; packed once, normalizations folded in.

    A subclass calls `_add` for each in its constructor, and in `__call__` what `_runner` gives.
    """

    _epsilon: float

    def _start(self, epsilon: float) -> None:
        self._epsilon = number(type(self).__name__, "epsilon", epsilon)
        self._units: dict[str, tuple[Conv2d, str | None]] = {}  # no children: their tensors are the block's own
        self._shapes = {}

    def _add(self, name: str, norm: str | None, *args: Any, **kwargs: Any) -> None:
        """Adds ``Conv2d(*args, **kwargs)``, whose tensors' names begin with `name`, those of its normalization with `norm`."""
        kwargs["bias"] = norm is None
        conv = Conv2d(*args, **kwargs)
        self._units[name] = (conv, norm)
        own = {f"{name}.{tensor}": shape for tensor, shape in conv._shapes.items()}
        after = {f"{norm}.{tensor}": (conv.out_channels,) for tensor in ("weight", "bias", "running_mean", "running_var")}
        self._shapes = {**self._shapes, **own, **(after if norm is not None else {})}

    def _folded(self, tensors: dict[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
        """Weight and bias of one convolution."""
        weight, norm = tensors[f"{name}.weight"], self._units[name][1]
        if norm is None:
            return weight, tensors[f"{name}.bias"]
        scale, shift, mean, var = (tensors[f"{norm}.{part}"] for part in ("weight", "bias", "running_mean", "running_var"))
        return fold(weight, None, scale, shift, mean, var, self._epsilon)

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        made = {}
        for name, (conv, _) in self._units.items():
            weight, bias = self._folded(tensors, name)
            made[name] = conv._pack({"weight": weight, "bias": bias})[0]
        return made, None

    def _runner(self, x: Any) -> Run:
        """``run(name, x, residual=None, out=None)``: convolutions with the tensors of one load, recorded if x is symbolic."""
        if isinstance(x, Symbol):
            tensors = self._tensors()
            return lambda name, x, residual=None: self._units[name][0]._record(x, *self._folded(tensors, name), residual=residual)
        made = self._packed()
        return lambda name, x, residual=None, out=None: self._units[name][0]._apply(made[name], x, residual, out)
