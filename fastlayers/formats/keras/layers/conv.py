"""Convolutions. Pixels are with their channels last, as in Keras: the operators read and write them so."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._windows import cropped_to
from ..activations import activated, known
from ..build import Build, Tensor
from ..layer import Layer, layer
from .core import kernel_and_bias

# Words of all convolutions, and those of Keras 1.
_NEW = "kernel_size strides dilation_rate padding data_format activation use_bias"
_OLD_WORDS = (
    "| nb_filter filter_length nb_row nb_col kernel_dim1 kernel_dim2 kernel_dim3 subsample subsample_length atrous_rate "
    "border_mode dim_ordering bias"
)
_OLD = {"Convolution1D": 1, "Convolution2D": 2, "Convolution3D": 3, "Deconvolution2D": 2, "SeparableConvolution2D": 2}


def _axes(this: Layer) -> int:
    return _OLD.get(this.kind) or int(next(c for c in this.kind if c.isdigit()))


def _upright(this: Layer) -> None:
    """Kernels that Theano wrote are flipped; Keras 1 may not tell who wrote them."""
    if this.context.backend == "theano" or (this.context.version < (2, 0) and this.context.backend != "tensorflow"):
        this.context.refuse(
            "kernels of convolutions that Theano wrote, or may have written: they are flipped", "/".join(this.path)
        )


def _conv_weights(this: Layer) -> list[str]:
    _upright(this)
    return kernel_and_bias(this)


def _kernel_size(this: Layer, axes: int) -> tuple[int, ...]:
    return this.numbers("kernel_size", axes)


def padded(
    this: Layer, b: Build, x: Tensor, kernel: tuple[int, ...], dilation: tuple[int, ...], last: bool
) -> tuple[Tensor, dict[str, Any]]:
    """The padding, as an attribute or as a Pad before."""
    kind = this.get("padding", this.get("border_mode", "valid"))
    if kind == "same":
        return x, {"auto_pad": "SAME_UPPER"}
    if kind == "causal" and len(kernel) == 1:
        return x, {"pads": (dilation[0] * (kernel[0] - 1), 0)}
    if kind != "valid":
        this.refuse(f"padding {kind!r:.40}")
    return x, {"pads": (0,) * (2 * len(kernel))}


def convolve(
    this: Layer, b: Build, x: Tensor, kernel: np.ndarray, bias: np.ndarray | None, groups: int, **attributes: Any
) -> Tensor:
    """A convolution with a kernel (out, in / groups, *space), channels where the layer has them."""
    last = this.last()
    if last:
        attributes.update(x_last=True, out_last=True)
    weights = [b.constant(kernel, "kernel")] + ([] if bias is None else [b.constant(bias, "bias")])
    return b.op("Conv", b.floats(x), *weights, group=groups, **attributes)


def _channels(this: Layer, x: Tensor) -> int:
    return x.size(-1 if this.last() else 1)


@layer(
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "Convolution1D",
    "Convolution2D",
    "Convolution3D",
    "AtrousConvolution2D",
    words=f"{_NEW} filters groups {_OLD_WORDS}",
    weights=_conv_weights,
    mask="drop",
)
def conv(this: Layer, b: Build, x: Tensor) -> Tensor:
    """A convolution of any kind of padding, in groups."""
    axes = _axes(this)
    kernel_size, stride, dilation = _sizes(this, axes)
    groups, channels = int(this.get("groups", 1)), _channels(this, x)
    filters = this.config.get("filters", this.config.get("nb_filter"))
    kernel = _kernel(this, "kernel", (*kernel_size, channels // groups, filters))
    bias = this.weight("bias", filters) if "bias" in this.own else None
    x, pads = padded(this, b, x, kernel_size, dilation, this.last())
    y = convolve(this, b, x, np.moveaxis(kernel, (-1, -2), (0, 1)), bias, groups, strides=stride, dilations=dilation, **pads)
    return activated(this, b, y, this.config.get("activation"))


def _sizes(this: Layer, axes: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Kernel, strides, dilation; Keras 1 spelled them one by one."""
    if "kernel_size" not in this.config:
        kernel: tuple[int, ...]
        stride: tuple[int, ...]
        if axes == 1:
            kernel, stride = (int(this.config["filter_length"]),), (int(this.get("subsample_length", 1)),)
        else:
            words = ("nb_row", "nb_col") if axes == 2 else ("kernel_dim1", "kernel_dim2", "kernel_dim3")
            kernel, stride = tuple(int(this.config[w]) for w in words), this.numbers("subsample", axes)
        if this.get("dim_ordering", "tf") == "th":
            this.refuse("dim_ordering 'th' of Keras 1, whose kernels may be flipped")
        return kernel, stride, this.numbers("atrous_rate", axes)
    return _kernel_size(this, axes), this.numbers("strides", axes), this.numbers("dilation_rate", axes)


def _kernel(this: Layer, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    found = this.values.get(name)
    if this.kind == "Convolution1D" and found is not None and found.ndim == 4:  # Keras 1: an axis of size 1
        this.values[name] = found.reshape(found.shape[0], *found.shape[2:])
    return this.weight(name, *shape)


def _depthwise_weights(this: Layer) -> list[str]:
    _upright(this)
    known(this, "activation")
    return ["depthwise_kernel", "bias"] if this.config.get("use_bias", True) else ["depthwise_kernel"]


def _depthwise(this: Layer, b: Build, x: Tensor, axes: int, bias: np.ndarray | None) -> Tensor:
    """Each channel by itself; output channel c * multiplier + m."""
    channels, multiplier = _channels(this, x), int(this.get("depth_multiplier", 1))
    size, stride, dilation = _sizes(this, axes)
    kernel = this.weight("depthwise_kernel", *size, channels, multiplier)
    weight = np.moveaxis(kernel.reshape(*size, 1, channels * multiplier), (-1, -2), (0, 1))
    x, pads = padded(this, b, x, size, dilation, this.last())
    return convolve(this, b, x, weight, bias, channels, strides=stride, dilations=dilation, **pads)


@layer(
    "DepthwiseConv1D", "DepthwiseConv2D", words=f"{_NEW} depth_multiplier {_OLD_WORDS}", weights=_depthwise_weights, mask="drop"
)
def depthwise_conv(this: Layer, b: Build, x: Tensor) -> Tensor:
    """A convolution of each channel by itself."""
    bias = this.weight("bias") if "bias" in this.own else None
    return activated(this, b, _depthwise(this, b, x, _axes(this), bias), this.config.get("activation"))


def _separable_weights(this: Layer) -> list[str]:
    _upright(this)
    known(this, "activation")
    found = ["depthwise_kernel", "pointwise_kernel"]
    return [*found, "bias"] if this.config.get("use_bias", this.config.get("bias", True)) else found


@layer(
    "SeparableConv1D",
    "SeparableConv2D",
    "SeparableConvolution1D",
    "SeparableConvolution2D",
    words=f"{_NEW} filters depth_multiplier {_OLD_WORDS}",
    weights=_separable_weights,
    mask="drop",
)
def separable_conv(this: Layer, b: Build, x: Tensor) -> Tensor:
    """Each channel by itself, then all of a pixel."""
    axes = _axes(this)
    filters = this.config.get("filters", this.config.get("nb_filter"))
    y = _depthwise(this, b, x, axes, None)
    pointwise = this.weight("pointwise_kernel", *(1,) * axes, _channels(this, y), filters)
    bias = this.weight("bias", filters) if "bias" in this.own else None
    y = convolve(this, b, y, np.moveaxis(pointwise, (-1, -2), (0, 1)), bias, 1)
    return activated(this, b, y, this.config.get("activation"))


@layer(
    "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose", "Deconvolution2D",
    words=f"{_NEW} filters groups output_padding {_OLD_WORDS} output_shape", weights=_conv_weights, mask="drop",
)  # fmt: skip
def conv_transpose(this: Layer, b: Build, x: Tensor) -> Tensor:
    """A transposed convolution, cropped as the layer's padding says."""
    axes = _axes(this)
    size, stride, dilation = _sizes(this, axes)
    filters, channels = this.config.get("filters", this.config.get("nb_filter")), _channels(this, x)
    kernel = np.moveaxis(this.weight("kernel", *size, filters, channels), (-1, -2), (0, 1))
    same = this.get("padding", this.get("border_mode", "valid")) == "same"
    wanted = this.get("output_padding")
    extra = None if wanted is None else this.numbers("output_padding", axes)
    pads, out = _crops(size, stride, dilation, extra, same)
    attributes: dict[str, Any] = {"strides": stride, "dilations": dilation, "output_padding": out, "pads": pads}
    if this.last():
        attributes.update(x_last=True, out_last=True)
    weights = [b.constant(kernel, "kernel")] + ([b.constant(this.weight("bias", filters), "bias")] if "bias" in this.own else [])
    y = b.op("ConvTranspose", b.floats(x), *weights, group=int(this.get("groups", 1)), **attributes)
    told = this.get("output_shape")  # of Keras 1, which made whatever size it was told
    if told is not None and any(isinstance(s, int) and s != t for s, t in list(zip(y.sizes, told, strict=True))[1:]):
        this.refuse(f"output_shape {told!s:.80} where strides and padding make {y.sizes}")
    return activated(this, b, y, this.config.get("activation"))


def _crops(
    size: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...], extra: tuple[int, ...] | None, same: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Elements to crop (befores, then afters) and to add after, so that sizes are those of Keras' documentation."""
    crops = [
        cropped_to(d * (k - 1) + 1, s, same, None if extra is None else extra[i])
        for i, (k, s, d) in enumerate(zip(size, stride, dilation, strict=True))
    ]
    before, after, more = zip(*crops, strict=True)
    return (*before, *after), more
