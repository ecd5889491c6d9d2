"""Pools over boxes."""

from __future__ import annotations

import numpy as np

from ._base import E, Example

_BOXES = np.array([[0, 0, 0, 6, 5], [1, 1.3, 2.2, 4.7, 3.1], [1, -3, -2, 2, 20]], np.float32)

EXAMPLES: list[Example] = [
    E("roi_pool", (2, 3, 6, 7), _BOXES, output_size=2),
    E("roi_pool", (2, 6, 7, 3), _BOXES, output_size=(3, 4), spatial_scale=0.5, layout="nhwc"),
    E("roi_align", (2, 3, 6, 7), _BOXES, output_size=2),
    E("roi_align", (2, 6, 7, 3), _BOXES, output_size=(3, 4), spatial_scale=0.5, sampling_ratio=2, aligned=True, layout="nhwc"),
    E("roi_align", (2, 3, 6, 7), _BOXES, output_size=2, sampling_ratio=2, mode="max"),
    E("roi_align", (2, 0, 6, 7), _BOXES[:0], output_size=2),
]
