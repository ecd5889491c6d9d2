"""Resampling and pixels made of channels, on maps of decoders and of super-resolution."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Row
from .layout import both

f = fl.functional


def interpolated(shape: tuple[int, ...], scale: float, mode: str, names: str = "interpolate") -> Row:
    def theirs(torch: Any, x: Any) -> Any:
        return torch.nn.functional.interpolate(x, scale_factor=scale, mode=mode)

    ours = (
        fl.Upsample(scale_factor=scale, mode=mode)
        if names == "Upsample"
        else partial(f.interpolate, scale_factor=scale, mode=mode)
    )
    return Row((names,), f"{mode} {scale} @{shape}", partial(both, shape, ours, theirs))


def blocks(name: str, shape: tuple[int, ...]) -> list[Row]:
    snake = "pixel_shuffle" if name == "PixelShuffle" else "pixel_unshuffle"

    def theirs(torch: Any, x: Any) -> Any:
        return getattr(torch.nn.functional, snake)(x, 2)

    rows = ((name, getattr(fl, name)(2)), (snake, lambda x: getattr(f, snake)(x, 2)))
    return [Row((n,), f"2 @{shape}", partial(both, shape, call, theirs)) for n, call in rows]


MAP = (1, 64, 56, 56)
ROWS = [
    *(interpolated(MAP, 2, mode) for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")),
    interpolated(MAP, 1.5, "bilinear"),
    interpolated(MAP, 0.5, "bilinear"),
    interpolated(MAP, 0.5, "area"),
    interpolated((8, 64, 500), 2, "linear"),
    interpolated((1, 16, 8, 28, 28), 2, "trilinear"),
    interpolated((1, 3, 224, 224), 2, "nearest", "Upsample"),
    interpolated((1, 256, 32, 32), 2, "bilinear", "Upsample"),
    *blocks("PixelShuffle", (1, 64, 56, 56)),
    *blocks("PixelUnshuffle", (1, 16, 112, 112)),
]
