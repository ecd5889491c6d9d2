"""Calls of pools whose names and arguments are torch's: make_pooling_layers.py runs them on torch, the tests on fastlayers."""

from __future__ import annotations

from .front_cases import F, FunctionCase, L, LayerCase

_SIZES = {1: (11,), 2: (9, 7), 3: (5, 6, 7)}


def _layers(n: int) -> list[LayerCase]:
    shape, single = (2, 3, *_SIZES[n]), (3, *_SIZES[n])
    return [
        L(f"MaxPool{n}d", 2, shape=shape),
        L(f"MaxPool{n}d", 3, 2, 1, ceil_mode=True, shape=shape),
        L(f"MaxPool{n}d", 2, 1, 0, 2, shape=single),
        L(f"AvgPool{n}d", 3, 2, 1, shape=shape),
        L(f"AvgPool{n}d", 3, 2, 1, True, shape=shape),
        L(f"AvgPool{n}d", 4, 3, 2, True, False, shape=single),
        L(f"LPPool{n}d", 2, 3, 2, shape=shape),
        L(f"LPPool{n}d", 1, 2, ceil_mode=True, shape=shape),
        L(f"AdaptiveAvgPool{n}d", 4, shape=shape),
        L(f"AdaptiveAvgPool{n}d", 1, shape=single),
        L(f"AdaptiveMaxPool{n}d", 5, shape=shape),
    ]


LAYERS = tuple(case for n in (1, 2, 3) for case in _layers(n))
FUNCTIONS: tuple[FunctionCase, ...] = (
    F("max_pool2d", (2, 3, 8, 7), kernel_size=(3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
    F("avg_pool2d", (2, 3, 8, 7), kernel_size=(3, 2), stride=(2, 1), padding=(1, 0), divisor_override=4),
    F("avg_pool3d", (2, 3, 4, 5, 4), kernel_size=2, ceil_mode=True, divisor_override=3),
    F("lp_pool2d", (2, 3, 8, 7), norm_type=4.0, kernel_size=(3, 2), stride=2, ceil_mode=True),
    F("adaptive_avg_pool2d", (2, 3, 10, 10), output_size=(7, 3)),
    F("adaptive_max_pool2d", (2, 3, 3, 4), output_size=(7, 5)),
    F("adaptive_avg_pool3d", (2, 3, 7, 5, 6), output_size=(3, None, 4)),
)
