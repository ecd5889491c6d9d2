"""Resampling with torch's names and arguments: make_resampling_layers.py runs the calls on torch, the tests on fastlayers."""

from __future__ import annotations

from .front_cases import F, FunctionCase, L, LayerCase

_MAP = (2, 3, 7, 5)
LAYERS: tuple[LayerCase, ...] = (
    L("Upsample", scale_factor=2, shape=(2, 3, 5)),
    L("Upsample", (9, 11), None, "bilinear", shape=_MAP),
    L("Upsample", None, 2, "bicubic", True, shape=_MAP),
    L("Upsample", scale_factor=2, mode="trilinear", shape=(1, 2, 3, 4, 5)),
    L("PixelShuffle", 2, shape=(2, 8, 3, 4)),
    L("PixelShuffle", 3, shape=(9, 3, 4)),
    L("PixelUnshuffle", 2, shape=(2, 3, 4, 6)),
)
FUNCTIONS: tuple[FunctionCase, ...] = (
    *(
        F("interpolate", _MAP, mode=mode, **target)
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
        for target in ({"size": (14, 3)}, {"scale_factor": 2}, {"scale_factor": (0.6, 1.7)})
    ),
    *(
        F("interpolate", _MAP, mode=mode, align_corners=True, size=size)
        for mode in ("bilinear", "bicubic")
        for size in ((1, 1), (7, 9), (20, 4))
    ),
    F("interpolate", _MAP, mode="bilinear", scale_factor=1.3, recompute_scale_factor=True),
    F("interpolate", (2, 3, 11), mode="linear", size=30),
    F("interpolate", (2, 3, 11), mode="nearest", scale_factor=0.3),
    F("interpolate", (1, 2, 4, 5, 3), mode="trilinear", size=(3, 9, 6), align_corners=True),
    F("interpolate", (1, 2, 4, 5, 3), mode="nearest", scale_factor=(2, 1.5, 3)),
    F("pixel_shuffle", (1, 4, 2, 3), upscale_factor=2),
    F("pixel_unshuffle", (3, 9, 6), downscale_factor=3),
)
