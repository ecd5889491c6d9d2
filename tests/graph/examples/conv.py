"""Transposed and separable convolutions."""

from __future__ import annotations

from ._base import E, Example

EXAMPLES: list[Example] = [
    E("conv_transpose1d", (2, 4, 5), (4, 3, 4), (6,), stride=2, padding=1, groups=2, activation="gelu"),
    E("conv_transpose1d", (5, 4), (4, 2, 3), None, padding="same", stride=4, layout="nlc"),
    E("conv_transpose1d", (2, 3, 5), (3, 2, 3), (2,), stride=3, output_size=(17,)),
    E("conv_transpose1d", (2, 3, 0), (3, 2, 3), (2,), stride=3, output_padding=1),
    E("conv_transpose2d", (2, 3, 4, 5), (3, 4, 3, 2), (4,), stride=[2, 1], padding=[[0, 1], [1, 0]], output_padding=[1, 0]),
    E("conv_transpose2d", (2, 4, 5, 3), (3, 4, 4, 4), (4,), stride=(2, 3), padding="same", layout="nhwc", activation="relu"),
    E("conv_transpose2d", (4, 5, 6), (4, 1, 3, 3), None, stride=2, padding="valid", groups=4),
    E("conv_transpose2d", (2, 3, 4, 5), (3, 4, 3, 3), (4,), stride=2, padding=1, output_size=[2, 4, 8, 9]),
    E("conv_transpose2d", (0, 3, 4, 5), (3, 4, 3, 3), (4,), stride=2, padding=1),
    E("conv_transpose3d", (2, 3, 2, 3, 4), (3, 2, 1, 2, 3), (2,), stride=(1, 2, 1), dilation=(1, 2, 1)),
    E("conv_transpose3d", (3, 2, 2, 4), (4, 2, 2, 2, 2), None, stride=2, padding="valid", output_padding=1, layout="ndhwc"),
    E("separable_conv1d", (2, 3, 9), (6, 1, 4), (5, 6, 1), (5,), stride=2, depth_multiplier=2, padding="same", activation="relu"),
    E("separable_conv1d", (9, 3), (3, 1, 3), (2, 3, 1), padding=[(0, 1)], dilation=2, layout="nlc"),
    E("separable_conv1d", (2, 3, 9), (3, 1, 3), (2, 3, 1), (2,), padding="causal", dilation=2),
    E("separable_conv2d", (2, 3, 6, 5), (3, 1, 3, 2), (4, 3, 1, 1), (4,), padding=1, padding_mode="reflect"),
    E(
        "separable_conv2d",
        (6, 5, 2),
        (4, 1, 3, 3),
        (3, 4, 1, 1),
        depth_multiplier=2,
        stride=(2, 1),
        padding="same",
        layout="nhwc",
    ),
]
