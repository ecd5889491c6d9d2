"""Normalizations and softmax: which kernel each of them calls, and how. x and the result have one shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..kernels.table import Activation
from .machine import Machine

__all__ = ["affine", "along", "batch", "cut_at", "groups", "response", "rows"]


def cut_at(shape: Sequence[int], at: int) -> tuple[int, int, int]:
    """A shape as what is before an axis, the axis, and what is behind it."""
    return math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :])


def along(m: Machine, kernel: str, x: Any, out: Any, cut: tuple[int, int, int]) -> None:
    """Softmax or its logarithm over the middle of three axes."""
    m.call(kernel, m.view(x, cut), m.view(out, cut))


def rows(m: Machine, x: Any, weight: Any, bias: Any, out: Any, axes: int, epsilon: float, rms: bool) -> None:
    """Over the last axes, of which weight and bias have a number for each place; `rms`: by the root of the mean of squares."""
    at = len(x.shape) - axes
    cut = math.prod(x.shape[:at]), math.prod(x.shape[at:])
    if weight is not None:
        weight = m.view(weight, cut[1:])
    if bias is not None:
        bias = m.view(bias, cut[1:])
    m.call("layer_norm", m.view(x, cut), weight, bias, m.view(out, cut), epsilon, rms)


def affine(m: Machine, x: Any, scale: Any, shift: Any, out: Any, at: int, act: Activation) -> None:
    """``act(x scale + shift)``, a number of each for a channel; channels are axis `at`."""
    cut = cut_at(x.shape, at)
    m.call("affine", m.view(x, cut), scale, shift, m.view(out, cut), act)


def groups(m: Machine, x: Any, weight: Any, bias: Any, out: Any, count: int, epsilon: float) -> None:
    """Groups of channels, which are axis 1, of each example."""
    cut = *x.shape[:2], math.prod(x.shape[2:])
    m.call("group_norm", m.view(x, cut), weight, bias, m.view(out, cut), count, epsilon)


def batch(m: Machine, x: Any, weight: Any, bias: Any, out: Any, at: int, epsilon: float) -> None:
    """Channels, axis `at`, by their own statistics: all values of one are brought together, and are a group then."""
    o, c, i = cut_at(x.shape, at)
    if o <= 1 or not c * i:
        groups(m, m.view(x, (o, c, i)), weight, bias, m.view(out, (o, c, i)), max(c, 1), epsilon)
        return
    apart, together = (i, c * i, 1), (o * i, i, 1)
    before, after = m.temp((1, c, o * i)), m.temp((1, c, o * i))
    m.call("copy", x, before, (c, o, i), 0, apart, 0, together, 4)
    groups(m, before, weight, bias, after, c, epsilon)
    m.call("copy", after, out, (c, o, i), 0, together, 0, apart, 4)


def response(m: Machine, x: Any, out: Any, cut: tuple[int, int, int], size: int, alpha: float, beta: float, k: float) -> None:
    """Local response over the middle of three axes; of an even number of channels, more are looked at ahead."""
    m.call("lrn", m.view(x, cut), m.view(out, cut), size, alpha, beta, k)
