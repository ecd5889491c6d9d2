"""Normalisation."""

from __future__ import annotations

from ._base import E, Example

EXAMPLES: list[Example] = [
    E("layer_norm", (2, 3, 8), (8,), (8,), normalized_shape=8),
    E("layer_norm", (2, 3, 4), (3, 4), (3, 4), normalized_shape=[3, 4], eps=1e-3),
    E("layer_norm", (5,), None, (5,), normalized_shape=(5,)),
    E("layer_norm", (0, 5), (5,), None, normalized_shape=5),
    E("layer_norm", (2, 0), None, None, normalized_shape=0),
    E("rms_norm", (2, 3, 8), (8,), normalized_shape=8),
    E("rms_norm", (2, 3, 4), (3, 4), normalized_shape=(3, 4), eps=1e-6),
    E("rms_norm", (2, 5), None, normalized_shape=5),
]
