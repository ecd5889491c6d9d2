"""Calls of layers and functions whose names and arguments are torch's: make_front.py runs them on torch, the tests on fastlayers.

Values are not stored: both sides draw them from the seed that a case's label gives.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np


class LayerCase(NamedTuple):
    """`getattr(nn, name)(*args, **kwargs)` on x of `shape`, and on a state of the shape `state` if there is one."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shape: tuple[int, ...]
    state: tuple[int, ...] | None = None

    @property
    def label(self) -> str:
        keywords = ", ".join(f"{k}={v!r}" for k, v in self.kwargs.items())
        return f"{self.name}{self.args} {keywords} {self.shape} {self.state or ''}"


class FunctionCase(NamedTuple):
    """A function of torch, found in torch.nn.functional or torch, on arrays of the given shapes."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    kwargs: dict[str, Any]

    @property
    def label(self) -> str:
        return f"{self.name} {self.shapes} {self.kwargs}"


def arrays(label: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Normal float32 values; the label is the seed."""
    rng = np.random.default_rng(zlib.crc32(label.encode()))
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def L(name: str, *args: Any, shape: tuple[int, ...], state: Any = None, **kwargs: Any) -> LayerCase:  # noqa: N802
    return LayerCase(name, args, kwargs, shape, state)


def F(name: str, *shapes: tuple[int, ...], **kwargs: Any) -> FunctionCase:  # noqa: N802
    return FunctionCase(name, shapes, kwargs)


_X = (2, 6, 4)
LAYERS = (
    L("Linear", 7, 5, shape=(3, 7)),
    L("Linear", 7, 5, bias=False, shape=(2, 3, 4, 7)),
    L("Linear", 1, 17, shape=(1,)),
    L("Conv1d", 4, 6, 3, shape=(2, 4, 11)),
    L("Conv1d", 4, 6, 3, stride=2, padding=2, dilation=2, groups=2, bias=False, shape=(4, 12)),
    L("Conv1d", 3, 5, 4, padding="same", shape=(2, 3, 9)),
    L("Conv2d", 3, 5, (3, 2), stride=(2, 1), padding=(1, 2), shape=(2, 3, 8, 7)),
    L("Conv2d", 3, 4, 1, shape=(2, 3, 5, 4)),
    L("Conv2d", 6, 6, 3, groups=6, padding=1, shape=(2, 6, 5, 5)),
    L("Conv2d", 3, 6, 3, groups=3, padding="valid", shape=(1, 3, 5, 5)),
    L("Conv2d", 2, 3, 3, padding=2, padding_mode="reflect", shape=(1, 2, 5, 6)),
    L("Conv2d", 2, 3, 3, padding=2, padding_mode="replicate", shape=(1, 2, 5, 6)),
    L("Conv2d", 2, 3, 3, padding=2, padding_mode="circular", shape=(1, 2, 5, 6)),
    L("Conv3d", 2, 3, (2, 3, 1), stride=(1, 2, 1), padding=(1, 0, 1), shape=(1, 2, 4, 5, 3)),
    L("LSTM", 5, 4, shape=(6, 2, 5)),
    L("LSTM", 5, 4, shape=(6, 5), state=(1, 4)),
    L("LSTM", 5, 4, num_layers=2, bidirectional=True, batch_first=True, shape=(3, 6, 5), state=(4, 3, 4)),
    L("LSTM", 3, 17, num_layers=3, bias=False, shape=(4, 1, 3), state=(3, 1, 17)),
    L("LSTMCell", 5, 4, shape=(3, 5), state=(3, 4)),
    L("LSTMCell", 5, 4, bias=False, shape=(5,)),
    L("PReLU", shape=_X),
    L("PReLU", 6, shape=_X),
    *(
        L(name, shape=_X)
        for name in ("ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "GELU", "SiLU", "Sigmoid", "Tanh", "Hardsigmoid")
    ),
    *(L(name, shape=_X) for name in ("Hardswish", "Softplus", "Softsign", "Mish", "Hardtanh", "GLU", "Identity", "Flatten")),
    L("LeakyReLU", 0.2, inplace=True, shape=_X),
    L("ELU", 0.5, shape=_X),
    L("GELU", approximate="tanh", shape=_X),
    L("Softplus", beta=2.0, threshold=1.0, shape=_X),
    L("Hardtanh", -0.3, 0.4, shape=_X),
    L("GLU", 1, shape=_X),
    L("Softmax", -1, shape=_X),
    L("Softmax", 1, shape=_X),
    L("LogSoftmax", 0, shape=_X),
    L("Flatten", 0, 1, shape=_X),
    L("ReflectionPad1d", 3, shape=_X),
    L("ReflectionPad2d", (1, 2, 3, 0), shape=(2, 3, 4, 5)),
    L("ReflectionPad3d", 1, shape=(1, 2, 3, 4, 2)),
    L("ReplicationPad1d", (0, 7), shape=_X),
    L("ReplicationPad2d", 2, shape=(3, 4, 5)),
    L("ReplicationPad3d", (1, 0, 2, 1, 0, 3), shape=(1, 2, 3, 4, 2)),
    L("ZeroPad1d", (2, -1), shape=_X),
    L("ZeroPad2d", (-1, 3, 0, 2), shape=(2, 3, 4, 5)),
    L("ZeroPad3d", 1, shape=(1, 2, 3, 1, 2)),
    L("ConstantPad1d", 2, 0.5, shape=_X),
    L("ConstantPad2d", (1, 2, 0, 1), -1.5, shape=(2, 3, 4, 5)),
    L("ConstantPad3d", 1, 2.0, shape=(2, 1, 2, 1)),
    L("CircularPad1d", (4, 2), shape=_X),
    L("CircularPad2d", 2, shape=(2, 3, 4, 5)),
    L("CircularPad3d", (1, 2, 0, 1, 2, 0), shape=(1, 2, 3, 4, 2)),
)

FUNCTIONS = (
    *(
        F(name, (3, 5))
        for name in ("relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "sigmoid", "tanh", "hardsigmoid")
    ),
    *(F(name, (3, 5)) for name in ("hardswish", "softplus", "softsign", "mish", "hardtanh", "exp", "erf", "log", "sqrt")),
    F("leaky_relu", (3, 5), negative_slope=0.3),
    F("elu", (3, 5), alpha=1.5),
    F("gelu", (3, 5), approximate="tanh"),
    F("clip", (3, 5), min=-0.5, max=0.25),
    F("clip", (3, 5), max=0.25),
    F("glu", (3, 4, 5), dim=-2),
    F("prelu", (2, 3, 4), (3,)),
    F("softmax", (2, 3, 4), dim=1),
    F("log_softmax", (2, 3, 4), dim=-1),
    F("linear", (2, 3, 4), (5, 4), (5,)),
    F("conv1d", (2, 4, 9), (6, 2, 3), (6,), stride=2, padding=1, groups=2),
    F("conv2d", (2, 4, 9, 7), (6, 4, 3, 2), (6,), stride=2, padding=(1, 0), dilation=(1, 2)),
    F("conv3d", (4, 5, 4, 3), (2, 4, 3, 2, 1), padding="same"),
    F("pad", (2, 3, 4), pad=(1, 2), mode="reflect"),
    F("pad", (2, 3, 4, 5), pad=(1, 2, 0, 3, 2, 1, 1, 1), value=0.5),
    F("pad", (2, 3, 2, 2, 4), pad=(1, 2, 0, 0, 3, 0, 0, 0, 1, 2)),
    F("pad", (4, 5), pad=(-1, -2, 3, -2)),
    F("permute", (2, 3, 4), dims=(2, 0, 1)),
    F("flatten", (2, 3, 4), start_dim=1),
    F("reshape", (2, 3, 4), shape=(4, -1)),
    F("select", (2, 3, 4), dim=1, index=-1),
    F("unsqueeze", (2, 3), dim=-1),
    F("squeeze", (2, 1, 3), dim=1),
    *(F(name, (2, 3, 4), (3, 1)) for name in ("add", "subtract", "multiply", "divide")),
)
