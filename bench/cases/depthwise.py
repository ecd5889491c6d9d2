"""Depthwise convolutions of mobile networks, and of speech networks in one dimension, in both layouts."""

from __future__ import annotations

from typing import Any

from . import Case
from .conv import case


def _depthwise(c: int, size: int, k: int, stride: int = 1, multiplier: int = 1, **rest: Any) -> Case:
    return case("depthwise", "", (c, 1, size, size), (c * multiplier, 1, (1, k, k)), (1, stride, stride), groups=c, **rest)


def _depthwise1d(c: int, size: int, k: int, dilation: int = 1, **rest: Any) -> Case:
    return case("depthwise", "", (c, 1, 1, size), (c, 1, (1, 1, k)), (1, 1, 1), (1, 1, dilation), groups=c, **rest)


CASES: tuple[Case, ...] = tuple(
    entry
    for last in (False, True)
    for entry in (
        _depthwise(32, 112, 3, last=last),
        _depthwise(576, 14, 3, last=last),
        _depthwise(144, 56, 3, 2, last=last),
        _depthwise(120, 28, 5, last=last),
        _depthwise(240, 28, 5, 2, activation="hardswish", last=last),
        _depthwise(960, 7, 3, activation="clip", last=last),
        _depthwise(96, 56, 7, last=last),
        _depthwise(960, 7, 5, activation="hardswish", last=last),
        _depthwise(672, 14, 5, 2, last=last),
        _depthwise(576, 14, 3, 2, last=last),
        _depthwise(384, 14, 7, residual=True, last=last),
        _depthwise(32, 28, 7, multiplier=2, residual=True, activation="relu", last=last),
        _depthwise1d(256, 500, 31, last=last),
        _depthwise1d(128, 1000, 3, dilation=4, last=last),
    )
)
