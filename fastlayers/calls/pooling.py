"""Pools over windows, over bins, over whole maps and over time: which kernel each of them calls, and how."""

from __future__ import annotations

import math
from typing import Any

from ..kernels.table import REDUCE
from .geometry import Window, five
from .machine import Machine

__all__ = ["adaptive", "average", "largest", "over_time", "powers", "whole"]


def _windows(m: Machine, kernel: str, x: Any, out: Any, window: Window, last: bool, *options: Any) -> None:
    """One of the kernels of pools; `options` are the arguments that it alone has."""
    axes = len(window.kernel)
    given = m.view(x, five(x.shape, last, axes)), m.view(out, five(out.shape, last, axes))
    m.call(kernel, *given, *window.in_three(), *options, last)


def largest(m: Machine, x: Any, out: Any, window: Window, last: bool) -> None:
    """The maximum of every window. Here and below x and out may be without a batch."""
    _windows(m, "max_pool", x, out, window, last)


def powers(m: Machine, x: Any, out: Any, window: Window, last: bool, p: float, norm: bool) -> None:
    """The root of the sum of powers of every window; `norm`: ONNX's formula, else torch's."""
    _windows(m, "lp_pool", x, out, window, last, p, norm)


def average(m: Machine, x: Any, out: Any, window: Window, last: bool, count_pads: bool, divisor: int | None) -> None:
    """Sums over a divisor, or over how many positions are inside, or inside the padding too if `count_pads`."""
    if divisor:
        _windows(m, "sum_pool", x, out, window, last, 1 / divisor)
    else:
        _windows(m, "avg_pool", x, out, window, last, count_pads)


def adaptive(m: Machine, x: Any, out: Any, reduce: str, last: bool, axes: int = 0) -> None:
    """The mean or the maximum of bins; `axes`: as of `five`."""
    m.call("adaptive_pool", m.view(x, five(x.shape, last, axes)), m.view(out, five(out.shape, last, axes)), REDUCE[reduce], last)


def whole(m: Machine, x: Any, out: Any, reduce: str, last: bool) -> None:
    """All of space reduced to one value per channel."""
    pixels = math.prod(x.shape[1:-1] if last else x.shape[2:])
    outer, inner = (x.shape[0], x.shape[-1]) if last else (x.shape[0] * x.shape[1], 1)
    m.call("reduce", m.view(x, (outer, pixels, inner)), m.view(out, (outer, inner)), REDUCE[reduce])


def over_time(m: Machine, x: Any, lengths: Any, mask: Any, out: Any, reduce: str, batch_first: bool) -> None:
    """The mean or the maximum over the valid steps of every sequence."""
    m.call("time_pool", x, lengths, mask, out, REDUCE[reduce], batch_first)
