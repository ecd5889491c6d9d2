"""Normalization and dropout."""

from __future__ import annotations

from ._base import E, Example

EXAMPLES: list[Example] = [
    E("cosine_similarity", (2, 3, 4), (2, 3, 4)),
    E("cosine_similarity", (5, 4), (5, 4), dim=-1, eps=0.5),
    E("cosine_similarity", (2, 1, 4), (3, 4), dim=2),
    E("cosine_similarity", (4,), (2, 4), dim=0),
    E("layer_norm", (2, 3, 8), (8,), (8,), normalized_shape=8),
    E("layer_norm", (2, 3, 4), (3, 4), (3, 4), normalized_shape=[3, 4], eps=1e-3),
    E("layer_norm", (5,), None, (5,), normalized_shape=(5,)),
    E("layer_norm", (0, 5), (5,), None, normalized_shape=5),
    E("layer_norm", (2, 0), None, None, normalized_shape=0),
    E("rms_norm", (2, 3, 8), (8,), normalized_shape=8),
    E("rms_norm", (2, 3, 4), (3, 4), normalized_shape=(3, 4), eps=1e-6),
    E("rms_norm", (2, 5), None, normalized_shape=5),
    E("batch_norm", (2, 3, 4, 5), (3,), (3,), (3,), (3,)),
    E("batch_norm", (2, 4, 5, 3), (3,), (3,), None, (3,), eps=1e-3, axis=-1),
    E("batch_norm", (2, 3), (3,), (3,), None, None),
    E("batch_norm", (2, 3, 4), None, None, (3,), (3,), training=True),
    E("batch_norm", (2, 4, 3), (3,), (3,), (3,), None, training=True, axis=2, momentum=None),
    E("batch_norm", (1, 3, 4), None, None, None, None, training=True),
    E("batch_norm", (0, 3, 4), (3,), (3,), (3,), (3,)),
    E("group_norm", (2, 6, 4, 5), (6,), (6,), num_groups=3),
    E("group_norm", (2, 4, 5, 6), (6,), None, num_groups=2, eps=1e-3, axis=-1),
    E("group_norm", (2, 4, 3), None, (4,), num_groups=None),
    E("group_norm", (3, 6), None, (6,), num_groups=1),
    E("group_norm", (2, 6, 0), (6,), (6,), num_groups=2),
    E("instance_norm", (2, 3, 4, 5), None, None, (3,), (3,)),
    E("instance_norm", (2, 4, 3), None, None, None, None, axis=-1),
    E("instance_norm", (2, 3, 4), (3,), (3,), (3,), (3,), use_input_stats=False),
    E("local_response_norm", (2, 7, 3, 4), size=5),
    E("local_response_norm", (2, 7, 4), size=4, alpha=0.5, beta=0.6, k=2),
    E("local_response_norm", (2, 3, 7), size=3, axis=-1),
    E("local_response_norm", (2, 7), size=2),
    E("dropout", (2, 3)),
    E("dropout", (0, 3), p=1.0),
]
