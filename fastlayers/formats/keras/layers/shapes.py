"""Layers that move elements: other shapes, padding, cropping, enlarging."""

from __future__ import annotations

import math

import numpy as np

from ..._arrays import MAX_RANK
from ..._channels_last import MODES, resampling
from ..build import Build, Tensor
from ..layer import Layer, layer


@layer("Flatten", words="data_format", mask="drop")
def flatten(this: Layer, b: Build, x: Tensor) -> Tensor:
    """All but the batch as one axis, channels last."""
    if x.rank == 1:
        return b.unsqueeze(x, 1)
    if not this.last():
        x = b.transpose(x, 0, *range(2, x.rank), 1)
    return b.op("Flatten", x, axis=1)


@layer("Reshape", words="target_shape", mask="drop")
def reshape(this: Layer, b: Build, x: Tensor) -> Tensor:
    """The batch, then target_shape."""
    target = [int(s) for s in this.config["target_shape"]]
    if len(target) >= MAX_RANK or target.count(-1) > 1 or min(target, default=0) < -1:
        this.fail(f"target_shape is {target!s:.80}: expected sizes, one of them -1 at most")
    if all(isinstance(s, int) for s in x.sizes[1:]):
        whole, known = math.prod(x.size(a) for a in range(1, x.rank)), math.prod(s for s in target if s != -1)
        target = [whole // known if s == -1 and known else s for s in target]
        if -1 not in target and math.prod(target) != whole:
            this.fail(f"target_shape is {target!s:.80}: the input has {whole} values")
    if -1 in target:
        return b.reshape(x, b.shape_of(x, 0), *target)
    return b.reshape(x, -1, *target) if 0 not in target else b.reshape(x, b.shape_of(x, 0), *target)


@layer("Permute", words="dims", mask="drop")
def permute(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Axes in another order, counted from 1."""
    return b.transpose(x, 0, *(int(d) for d in this.config["dims"]))


@layer("RepeatVector", words="n", mask="drop")
def repeat_vector(this: Layer, b: Build, x: Tensor) -> Tensor:
    """(n, f) as (n, count, f)."""
    return b.op("Tile", b.unsqueeze(x, 1), b.ints(1, int(this.config["n"]), 1))


def _pairs(this: Layer, name: str, axes: int) -> list[tuple[int, int]]:
    value = this.get(name, 1)
    if isinstance(value, int):
        return [(value, value)] * axes
    if axes == 1 and len(value) == 2 and all(isinstance(v, int) for v in value):
        return [(value[0], value[1])]
    return [(v, v) if isinstance(v, int) else (int(v[0]), int(v[1])) for v in value]


def _space(this: Layer, axes: int) -> list[int]:
    """The spatial axes."""
    return list(range(1, axes + 1)) if this.last() else list(range(2, axes + 2))


@layer("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D", words="padding data_format | dim_ordering", mask="drop")
def zero_padding(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Zeros around space."""
    axes = int(this.kind[-2])
    pairs = _pairs(this, "padding", axes)
    pads = b.ints(*(p for p, _ in pairs), *(q for _, q in pairs))
    return b.op("Pad", x, pads, None, b.ints(*_space(this, axes)))


@layer("Cropping1D", "Cropping2D", "Cropping3D", words="cropping data_format | dim_ordering", mask="drop")
def cropping(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Less of space."""
    axes = int(this.kind[-2])
    pairs = _pairs(this, "cropping", axes)
    ends = b.ints(*(-q if q else 1 << 62 for _, q in pairs))
    return b.op("Slice", x, b.ints(*(p for p, _ in pairs)), ends, b.ints(*_space(this, axes)))


@layer("UpSampling1D", "UpSampling2D", "UpSampling3D", words="size interpolation data_format | length dim_ordering", mask="drop")
def up_sampling(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Every place repeated, or interpolated in two dimensions."""
    axes = int(this.kind[-2])
    mode = this.get("interpolation", "nearest")
    scales = np.ones(x.rank, np.float32)
    scales[_space(this, axes)] = this.numbers("size", axes, this.get("length", 2))
    return resize(this, b, x, mode, scales=scales)


def resize(
    this: Layer,
    b: Build,
    x: Tensor,
    mode: str,
    scales: np.ndarray | None = None,
    sizes: tuple[int, ...] = (),
    antialias: bool = False,
) -> Tensor:
    """Space resampled as Keras does: half-pixel centres."""
    if mode not in MODES:
        this.refuse(f"interpolation by {mode!s:.40}")
    attributes = resampling(mode, antialias=antialias)
    x = b.floats(x)
    if scales is not None:
        return b.op("Resize", x, None, b.constant(scales), None, **attributes)
    space = (1, 2) if this.last() else (2, 3)
    return b.op("Resize", x, None, None, b.ints(*sizes), axes=space, **attributes)
