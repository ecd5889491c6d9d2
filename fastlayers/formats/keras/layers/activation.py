"""Activation layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..activations import FUNCTIONS, activated, known
from ..build import BOOL, Build, Tensor
from ..layer import Layer, layer

LARGE_NEGATIVE = -1e9  # what Keras adds to masked scores


def _known(this: Layer) -> tuple[()]:
    known(this, "activation")
    return ()


@layer("Activation", words="activation", weights=_known)
def activation(this: Layer, b: Build, x: Tensor) -> Tensor:
    """A function by name."""
    return activated(this, b, b.floats(x), this.config.get("activation"))


@layer("ReLU", words="max_value negative_slope threshold")
def relu(this: Layer, b: Build, x: Tensor) -> Tensor:
    """ReLU with a slope below a threshold and a largest value."""
    most = this.config.get("max_value")
    return FUNCTIONS["relu"](b, b.floats(x), float(this.get("negative_slope", 0.0)), most, float(this.get("threshold", 0.0)))


@layer("LeakyReLU", words="negative_slope alpha")
def leaky_relu(this: Layer, b: Build, x: Tensor) -> Tensor:
    """LeakyReLU, whose slope Keras 1 and 2 call alpha."""
    slope = this.get("negative_slope", this.get("alpha", 0.3))
    slope = slope["value"] if isinstance(slope, dict) else slope  # an array, in some releases
    return FUNCTIONS["leaky_relu"](b, b.floats(x), float(slope))


@layer("ELU", words="alpha")
def elu(this: Layer, b: Build, x: Tensor) -> Tensor:
    """ELU."""
    return FUNCTIONS["elu"](b, b.floats(x), float(this.get("alpha", 1.0)))


@layer("ThresholdedReLU", words="theta")
def thresholded_relu(this: Layer, b: Build, x: Tensor) -> Tensor:
    """x above theta, else 0."""
    return FUNCTIONS["threshold"](b, b.floats(x), float(this.get("theta", 1.0)), 0.0)


@layer("PReLU", weights=lambda this: ["alpha"])
def prelu(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Separate slopes for every position of the axes that are not shared."""
    return b.op("PRelu", b.floats(x), b.constant(this.weight("alpha"), "alpha"))


def score_mask(b: Build, mask: Tensor) -> Tensor:
    """0 where a mask is true, a large negative number elsewhere, as Keras adds it."""
    return b.op("Where", b.cast(mask, BOOL), np.float32(0).reshape(()), np.float32(LARGE_NEGATIVE).reshape(()))


@layer("Softmax", words="axis")
def softmax(this: Layer, b: Build, x: Tensor, mask: Any = None) -> Tensor:
    """Softmax over an axis or several, masked scores made very small."""
    x = b.floats(x)
    if isinstance(mask, Tensor):
        x = b.op("Add", x, score_mask(b, mask))
    return FUNCTIONS["softmax"](b, x, this.get("axis", -1))
