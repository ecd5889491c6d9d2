"""Blocks of convolutional networks: residual ones, Inception's and those of networks in networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..functional import concat, global_avg_pool, max_pool2d, select, unsqueeze
from ..functional._conv_rules import channels_last
from ..graph.arrays import as_float32, empty
from ..graph.symbol import Symbol
from ..ir.checks import integer
from ._block import Block

if TYPE_CHECKING:
    from ..functional._types import Padding, Tensor

__all__ = ["BottleneckBlock", "InceptionBlock", "NiNBlock", "ResidualBlock"]


class _Residual(Block):
    """A chain of convolutions whose result is added to the input, which is projected where shapes differ."""

    _chain: tuple[str, ...]

    def _finish(self, inputs: int, outputs: int, stride: int, norm: bool, layout: str, projection: bool | None) -> None:
        """Adds the projection, if there is to be one."""
        self._projected = stride != 1 or inputs != outputs if projection is None else bool(projection)
        if self._projected:
            self._add("downsample.0", "downsample.1" if norm else None, inputs, outputs, 1, stride, layout=layout)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the block to x, with or without a batch; returns float32, laid out as x."""
        run = self._runner(x)
        value: Any = x if isinstance(x, Symbol) else as_float32(x, type(self).__name__, "x")
        kept = run("downsample.0", value) if self._projected else value
        for name in self._chain[:-1]:
            value = run(name, value)
        return run(self._chain[-1], value, kept)


class ResidualBlock(_Residual):
    """Two 3x3 convolutions around which the input passes: ``act(conv2(act(conv1(x))) + x)``, ResNet's basic block.

    Each convolution is followed by a batch normalization, which is folded into it. Where the shapes differ, x is projected by a
    1x1 convolution with the block's stride.

    Args:
        in_channels: channels of x, ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last.
        out_channels: channels of the result; None: as many.
        stride: of the first convolution, and of the projection.
        batch_norm: whether normalizations follow; if not, the convolutions have a bias.
        projection: whether x is projected; None: where shapes differ.
        layout: ``"nchw"`` or ``"nhwc"``.
        activation: what follows the first convolution and the sum; as in `Conv2d`.
        epsilon: of the normalizations.

    Tensors, named as in torchvision's BasicBlock: ``conv1.weight`` (out, in, 3, 3), ``bn1.weight``, ``bn1.bias``,
    ``bn1.running_mean``, ``bn1.running_var`` (out,), the same of ``conv2`` and ``bn2``, and, of the projection,
    ``downsample.0.weight`` (out, in, 1, 1) and ``downsample.1`` with a normalization's four.

    >>> import numpy as np, fastlayers as fl
    >>> block = fl.ResidualBlock(4, 8, stride=2)
    >>> _ = block.load_state_dict({name: np.ones(shape) for name, shape in block.tensor_shapes().items()})
    >>> block(np.ones((1, 4, 6, 6))).shape
    (1, 8, 3, 3)
    """

    _chain = ("conv1", "conv2")

    def __init__(
        self,
        in_channels: int,
        out_channels: int | None = None,
        stride: int = 1,
        *,
        batch_norm: bool = True,
        projection: bool | None = None,
        layout: str = "nchw",
        activation: Any = "relu",
        epsilon: float = 1e-5,
    ) -> None:
        name = type(self).__name__
        inputs = integer(name, "in_channels", in_channels, 1)
        outputs = inputs if out_channels is None else integer(name, "out_channels", out_channels, 1)
        step = integer(name, "stride", stride, 1)
        self._start(epsilon)
        place: dict[str, Any] = {"layout": layout, "activation": activation}
        self._add("conv1", "bn1" if batch_norm else None, inputs, outputs, 3, step, 1, **place)
        self._add("conv2", "bn2" if batch_norm else None, outputs, outputs, 3, 1, 1, **place)
        self._finish(inputs, outputs, step, batch_norm, layout, projection)


class BottleneckBlock(_Residual):
    """A 1x1, a 3x3 and a 1x1 convolution around which the input passes: ``act(conv3(act(conv2(act(conv1(x))))) + x)``.

    ResNet's block from 50 layers on. Each convolution is followed by a batch normalization, which is folded into it. Where the
    shapes differ, x is projected by a 1x1 convolution with the block's stride.

    Args:
        in_channels: channels of x, ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last.
        channels: between the convolutions.
        out_channels: channels of the result; None: four times `channels`.
        stride: of the 3x3 convolution, and of the projection.
        groups: of the 3x3 convolution, as in ResNeXt.
        stride_first: whether the first 1x1 convolution has the stride instead, as in the paper and in Keras.
        batch_norm: whether normalizations follow; if not, the convolutions have a bias.
        projection: whether x is projected; None: where shapes differ.
        layout: ``"nchw"`` or ``"nhwc"``.
        activation: what follows the first two convolutions and the sum; as in `Conv2d`.
        epsilon: of the normalizations.

    Tensors, named as in torchvision's Bottleneck: ``conv1.weight`` (channels, in, 1, 1), ``conv2.weight`` (channels, channels /
    groups, 3, 3), ``conv3.weight`` (out, channels, 1, 1), four of each of ``bn1``, ``bn2``, ``bn3`` (see `ResidualBlock`), and,
    of the projection, ``downsample.0.weight`` (out, in, 1, 1) and ``downsample.1`` with a normalization's four.

    >>> import numpy as np, fastlayers as fl
    >>> block = fl.BottleneckBlock(16, 4)
    >>> _ = block.load_state_dict({name: np.ones(shape) for name, shape in block.tensor_shapes().items()})
    >>> block(np.ones((1, 16, 6, 6))).shape
    (1, 16, 6, 6)
    """

    _chain = ("conv1", "conv2", "conv3")

    def __init__(
        self,
        in_channels: int,
        channels: int,
        out_channels: int | None = None,
        stride: int = 1,
        groups: int = 1,
        *,
        stride_first: bool = False,
        batch_norm: bool = True,
        projection: bool | None = None,
        layout: str = "nchw",
        activation: Any = "relu",
        epsilon: float = 1e-5,
    ) -> None:
        name = type(self).__name__
        inputs, inner = integer(name, "in_channels", in_channels, 1), integer(name, "channels", channels, 1)
        outputs = 4 * inner if out_channels is None else integer(name, "out_channels", out_channels, 1)
        step = integer(name, "stride", stride, 1)
        self._start(epsilon)
        place: dict[str, Any] = {"layout": layout, "activation": activation}
        norms = [f"bn{i}" if batch_norm else None for i in (1, 2, 3)]
        self._add("conv1", norms[0], inputs, inner, 1, step if stride_first else 1, **place)
        self._add("conv2", norms[1], inner, inner, 3, 1 if stride_first else step, 1, groups=groups, **place)
        self._add("conv3", norms[2], inner, outputs, 1, **place)
        self._finish(inputs, outputs, step, batch_norm, layout, projection)


class InceptionBlock(Block):
    """Four branches next to each other, concatenated on the channels: 1x1, 3x3 and 5x5 after a 1x1, and a pool before one.

    ``concat(b1(x), b2(r2(x)), b3(r3(x)), b4(max_pool(x)))``, GoogLeNet's block; the pool is 3x3 with stride 1. Each convolution
    is followed by a batch normalization, which is folded into it, and by the activation. Branches write to their part of the
    result where that is contiguous, as it is for one image with channels first, and in compiled models.

    Args:
        in_channels: channels of x, ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last.
        ch1x1: channels of the first branch.
        ch3x3red: channels before the 3x3 convolution,
        ch3x3: and after it.
        ch5x5red: channels before the 5x5 convolution,
        ch5x5: and after it.
        pool_proj: channels after the pool.
        large: size of the kernel called 5x5; torchvision's has 3.
        batch_norm: whether normalizations follow; if not, the convolutions have a bias.
        layout: ``"nchw"`` or ``"nhwc"``.
        activation: what follows each convolution; as in `Conv2d`.
        epsilon: of the normalizations.

    Tensors, named as in torchvision's GoogLeNet: ``weight`` of ``branch1.conv``, ``branch2.0.conv``, ``branch2.1.conv``,
    ``branch3.0.conv``, ``branch3.1.conv`` and ``branch4.1.conv``, and of the same with ``bn`` a normalization's ``weight``,
    ``bias``, ``running_mean`` and ``running_var``.

    >>> import numpy as np, fastlayers as fl
    >>> block = fl.InceptionBlock(192, 64, 96, 128, 16, 32, 32)
    >>> _ = block.load_state_dict({name: np.ones(shape) for name, shape in block.tensor_shapes().items()})
    >>> block(np.ones((1, 192, 7, 7))).shape
    (1, 256, 7, 7)
    """

    def __init__(
        self,
        in_channels: int,
        ch1x1: int,
        ch3x3red: int,
        ch3x3: int,
        ch5x5red: int,
        ch5x5: int,
        pool_proj: int,
        *,
        large: int = 5,
        batch_norm: bool = True,
        layout: str = "nchw",
        activation: Any = "relu",
        epsilon: float = 1e-3,
    ) -> None:
        name = type(self).__name__
        inputs, kernel = integer(name, "in_channels", in_channels, 1), integer(name, "large", large, 1)
        if kernel % 2 == 0:
            raise ArgumentError(f"{name}: large is {kernel}: expected an odd number")
        given = {
            "ch1x1": ch1x1,
            "ch3x3red": ch3x3red,
            "ch3x3": ch3x3,
            "ch5x5red": ch5x5red,
            "ch5x5": ch5x5,
            "pool_proj": pool_proj,
        }
        one, red3, three, red5, five, pooled = (integer(name, key, value, 1) for key, value in given.items())
        self._start(epsilon)
        self._last = channels_last(name, layout, 2)
        units = (
            ("branch1", inputs, one, 1), ("branch2.0", inputs, red3, 1), ("branch2.1", red3, three, 3),
            ("branch3.0", inputs, red5, 1), ("branch3.1", red5, five, kernel), ("branch4.1", inputs, pooled, 1),
        )  # fmt: skip
        for unit, c, o, k in units:
            norm = f"{unit}.bn" if batch_norm else None
            self._add(f"{unit}.conv", norm, c, o, k, 1, k // 2, layout=layout, activation=activation)
        self._widths = (one, three, five, pooled)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the block to x, with or without a batch; returns float32, laid out as x."""
        run = self._runner(x)
        value: Any = x if isinstance(x, Symbol) else as_float32(x, type(self).__name__, "x")
        if len(value.shape) not in (3, 4):
            raise ShapeError(f"InceptionBlock: x has shape {value.shape}: expected 4 axes, or 3 without a batch")
        parts = self._parts(value)
        found = [
            run("branch1.conv", value, **parts[0]),
            run("branch2.1.conv", run("branch2.0.conv", value), **parts[1]),
            run("branch3.1.conv", run("branch3.0.conv", value), **parts[2]),
            run("branch4.1.conv", max_pool2d(value, 3, 1, 1, layout="nhwc" if self._last else "nchw"), **parts[3]),
        ]
        return parts[4]["out"] if len(parts) > 4 else concat(found, -1 if self._last else -3)

    def _parts(self, x: Any) -> list[dict[str, Any]]:
        """The places that branches write to, and the whole after them; nothing where it is concatenated afterwards."""
        if isinstance(x, Symbol) or self._last or (x.ndim == 4 and x.shape[0] != 1):
            return [{}] * 4
        out = empty((*x.shape[:-3], sum(self._widths), *x.shape[-2:]))
        start, parts = 0, []
        for width in self._widths:
            parts.append({"out": out[..., start : start + width, :, :]})
            start += width
        return [*parts, {"out": out}]


class NiNBlock(Block):
    """A convolution and 1x1 convolutions after it, each with its activation: a small network at every pixel (network in network).

    Args:
        in_channels: channels of x, ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last.
        channels: of the results of the convolutions, a number for each; an int means three with as many.
        kernel_size: of the first convolution; an int, or one per axis.
        stride: of the first convolution; an int, or one per axis.
        padding: of the first convolution; as in `Conv2d`.
        head: whether the average over all of space follows, as in the network's last block, whose channels are the classes.
        layout: ``"nchw"`` or ``"nhwc"``.
        activation: what follows each convolution; as in `Conv2d`.

    Tensors, named as in a torch Sequential of convolutions with an activation after each: ``0.weight`` (channels, in, kh, kw),
    ``0.bias``, ``2.weight`` (channels, channels, 1, 1), ``2.bias``, and so on.

    >>> import numpy as np, fastlayers as fl
    >>> block = fl.NiNBlock(3, (16, 12, 10), 5, padding=2, head=True)
    >>> _ = block.load_state_dict({name: np.ones(shape) for name, shape in block.tensor_shapes().items()})
    >>> block(np.ones((2, 3, 8, 8))).shape
    (2, 10)
    """

    def __init__(
        self,
        in_channels: int,
        channels: int | Sequence[int],
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: Padding = 0,
        *,
        head: bool = False,
        layout: str = "nchw",
        activation: Any = "relu",
    ) -> None:
        name = type(self).__name__
        inputs = integer(name, "in_channels", in_channels, 1)
        if not isinstance(channels, (tuple, list)):
            channels = (integer(name, "channels", channels, 1),) * 3
        if not channels:
            raise ArgumentError(f"{name}: channels is {channels!r}: expected at least one number")
        self._start(0.0)
        self._last, self.head = channels_last(name, layout, 2), bool(head)
        for at, o in enumerate(channels):
            place: tuple[Any, ...] = (1,) if at else (kernel_size, stride, padding)
            self._add(f"{2 * at}", None, inputs, integer(name, "channels", o, 1), *place, layout=layout, activation=activation)
            inputs = o

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the block to x, with or without a batch; returns float32, laid out as x, or ``(n, channels)`` with a head."""
        run = self._runner(x)
        value: Any = x
        for name in self._units:
            value = run(name, value)
        if not self.head:
            return value  # type: ignore[no-any-return]
        layout = "nhwc" if self._last else "nchw"
        if len(value.shape) == 3:
            return select(global_avg_pool(unsqueeze(value, 0), layout=layout), 0, 0)
        return global_avg_pool(value, layout=layout)
