"""Interpolation, and pixels made of channels and back."""

from __future__ import annotations

from ._base import E, Example

EXAMPLES: list[Example] = [
    E("interpolate", (2, 3, 5), scale_factor=2),
    E("interpolate", (2, 3, 5), size=7, mode="linear"),
    E("interpolate", (2, 3, 5, 4), size=(7, 4)),
    E("interpolate", (2, 3, 5, 4), scale_factor=1.5, mode="nearest-exact"),
    E("interpolate", (2, 3, 5, 4), scale_factor=[2, 1.5], mode="bilinear"),
    E("interpolate", (2, 3, 5, 4), scale_factor=1.3, mode="bilinear", recompute_scale_factor=True),
    E("interpolate", (2, 3, 5, 4), size=[3, 9], mode="bicubic", align_corners=True),
    E("interpolate", (2, 5, 4, 3), scale_factor=2, mode="bicubic", layout="nhwc"),
    E("interpolate", (2, 5, 4, 3), scale_factor=2, layout="nhwc"),
    E("interpolate", (2, 5, 4, 17), size=(4, 6), mode="bilinear", layout="nhwc"),
    E("interpolate", (2, 3, 5, 4), size=(3, 3), mode="area"),
    E("interpolate", (2, 5, 4, 3), scale_factor=0.6, mode="area", layout="nhwc"),
    E("interpolate", (2, 3, 3, 4, 5), scale_factor=2, mode="trilinear"),
    E("interpolate", (2, 3, 4, 5, 2), size=(5, 4, 3), mode="trilinear", align_corners=True, layout="ndhwc"),
    E("interpolate", (0, 3, 5), scale_factor=2),
    E("pixel_shuffle", (2, 8, 3, 4), upscale_factor=2),
    E("pixel_shuffle", (9, 3, 4), upscale_factor=3),
    E("pixel_shuffle", (2, 3, 4, 8), upscale_factor=2, layout="nhwc"),
    E("pixel_shuffle", (0, 8, 3, 4), upscale_factor=2),
    E("pixel_unshuffle", (2, 3, 4, 6), downscale_factor=2),
    E("pixel_unshuffle", (4, 6, 3), downscale_factor=2, layout="nhwc"),
]
