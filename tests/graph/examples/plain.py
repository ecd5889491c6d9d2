"""Activations, arithmetic, shapes, linear and convolutional layers."""

from __future__ import annotations

import numpy as np

from ._base import E, Example


def _shapes(*names: str) -> list[Example]:
    return [E(name, shape) for name in names for shape in ((2, 3, 4), (), (0, 3), (5,))]


EXAMPLES: list[Example] = [
    *_shapes(
        "relu", "relu6", "elu", "selu", "gelu", "silu", "sigmoid", "tanh", "hardsigmoid", "hardswish", "softplus", "softsign"
    ),
    *_shapes("mish", "exp", "log", "erf", "sqrt", "identity", "hardtanh", "leaky_relu", "clip", "softmax", "log_softmax"),
    E("leaky_relu", (2, 3), negative_slope=np.float64(0.3)),
    E("elu", (2, 3), alpha=2),
    E("gelu", (2, 3), approximate="tanh"),
    E("hardsigmoid", (2, 3), alpha=0.2, beta=0.5),
    E("softplus", (2, 3), beta=2.0, threshold=1.0),
    E("clip", (2, 3), min=0.5),
    E("clip", (2, 3), min=0, max=1),
    E("hardtanh", (2, 3), min_val=0.0, max_val=0.5),
    E("softmax", (2, 3, 4), dim=0),
    E("log_softmax", (2, 0, 4), dim=1),
    E("prelu", (2, 3, 4), (3,)),
    E("prelu", (3,), (3,)),
    E("prelu", (0, 3, 4), (1,)),
    E("prelu", (2, 3, 2, 4), (4,), axis=-1),
    E("prelu", (2, 3, 4), (2,), axis=0),
    E("glu", (2, 4, 3), dim=1),
    E("glu", (2, 0)),
    E("swiglu", (2, 3, 4)),
    E("linear", (2, 3, 4), (5, 4), (5,), None),
    E("linear", (4,), (5, 4), None, (5,), activation=("leaky_relu", {"negative_slope": 0.2})),
    E("linear", (0, 4), (5, 4), (5,), None, activation="relu"),
    E("linear", (3, 0), (5, 0), (5,), None),
    E("conv1d", (2, 4, 9), (6, 2, 3), (6,), None, stride=2, padding=1, groups=2, activation="gelu"),
    E("conv1d", (9, 4), (4, 1, 3), None, (9, 4), padding="same", groups=4, layout="nlc"),
    E("conv1d", (2, 4, 9), (6, 2, 3), (6,), None, stride=2, padding="causal", dilation=2, groups=2),
    E("conv2d", (2, 3, 6, 5), (4, 3, 3, 3), (4,), None, stride=[2, 1], padding=[[0, 1], [1, 0]]),
    E("conv2d", (2, 6, 5, 3), (4, 3, 3, 3), (4,), (2, 3, 2, 4), stride=(2, 3), padding="same", layout="nhwc", activation="relu"),
    E("conv2d", (0, 3, 6, 5), (4, 3, 3, 3), None, None, padding=1, padding_mode="circular"),
    E("conv2d", (2, 3, 0, 5), (4, 3, 3, 3), None, None, padding="same"),
    E("conv3d", (2, 3, 4, 5, 3), (4, 3, 1, 2, 3), None, None, padding="valid", dilation=(1, 2, 1)),
    E("conv3d", (4, 5, 3, 2), (2, 2, 3, 3, 3), (2,), None, padding=1, layout="ndhwc"),
    E("to_channels_last", (2, 3, 4, 5)),
    E("to_channels_last", (2, 0, 4)),
    E("to_channels_first", (2, 4, 5, 6, 3)),
    E("permute", (2, 3, 4), dims=[2, 0, -2]),
    E("permute", (), dims=()),
    E("reshape", (2, 3, 4), shape=(4, -1)),
    E("reshape", (2, 0), shape=(0, 5)),
    E("reshape", (1,), shape=()),
    E("reshape", (2, 3), shape=6),
    E("flatten", (2, 3, 4)),
    E("flatten", (2, 3, 4), start_dim=1, end_dim=-1),
    E("flatten", ()),
    E("unsqueeze", (2, 3), dim=-1),
    E("squeeze", (2, 1, 3), dim=-2),
    E("pad", (2, 3, 4), pad=(1, 2), mode="reflect"),
    E("pad", (2, 3, 4, 2, 3), pad=[1, 0, 0, 0, 2, 1, 0, 0, 1, 1], mode="replicate"),
    E("pad", (2, 2, 2, 2, 2), pad=(1, 1, 1, 0, 0, 1, 2, 0, 1, 1), value=3),
    E("pad", (3, 4), pad=(-1, 2), mode="constant"),
    E("pad", (0, 4), pad=(1, 1, 1, 2)),
    E("pad", (2,), pad=()),
    *(
        E(name, a, b)
        for name in ("add", "subtract", "multiply", "divide")
        for a, b in (((2, 3), (3,)), ((2, 1), (1, 3)), ((), (0,)))
    ),
    E("concat", (2, 3), (2, 0), (2, 1), dim=-1),
    E("concat", (2, 3)),
    E("slice", (5, 3), start=1, end=-1, step=2),
    E("slice", (5, 3), dim=1, step=-1),
    E("slice", (5, 3), start=7),
    E("slice", (5, 3), start=-7, step=-1),  # before the first element: nothing, which ONNX has begin at it
    E("slice", (5, 3), start=-3, end=-6, step=-2),
    E("select", (5, 3), dim=0, index=-5),
]
