"""Blocks of convolutional networks: residual ones, Inception's and those of networks in networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..functional._arrays import as_float32
from ..functional._checks import integer
from ..graph.symbol import Symbol
from ._block import Block

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["BottleneckBlock", "ResidualBlock"]


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

    Each convolution is followed by a batch normalisation, which is folded into it. Where the shapes differ, x is projected by a
    1x1 convolution with the block's stride.

    Args:
        in_channels: channels of x, ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last.
        out_channels: channels of the result; None: as many.
        stride: of the first convolution, and of the projection.
        batch_norm: whether normalisations follow; if not, the convolutions have a bias.
        projection: whether x is projected; None: where shapes differ.
        layout: ``"nchw"`` or ``"nhwc"``.
        activation: what follows the first convolution and the sum; as in `Conv2d`.
        epsilon: of the normalisations.

    Tensors, named as in torchvision's BasicBlock: ``conv1.weight`` (out, in, 3, 3), ``bn1.weight``, ``bn1.bias``,
    ``bn1.running_mean``, ``bn1.running_var`` (out,), the same of ``conv2`` and ``bn2``, and, of the projection,
    ``downsample.0.weight`` (out, in, 1, 1) and ``downsample.1`` with a normalisation's four.

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

    ResNet's block from 50 layers on. Each convolution is followed by a batch normalisation, which is folded into it. Where the
    shapes differ, x is projected by a 1x1 convolution with the block's stride.

    Args:
        in_channels: channels of x, ``(n, c, h, w)``, or ``(n, h, w, c)`` if `layout` is channels-last.
        channels: between the convolutions.
        out_channels: channels of the result; None: four times `channels`.
        stride: of the 3x3 convolution, and of the projection.
        groups: of the 3x3 convolution, as in ResNeXt.
        stride_first: whether the first 1x1 convolution has the stride instead, as in the paper and in Keras.
        batch_norm: whether normalisations follow; if not, the convolutions have a bias.
        projection: whether x is projected; None: where shapes differ.
        layout: ``"nchw"`` or ``"nhwc"``.
        activation: what follows the first two convolutions and the sum; as in `Conv2d`.
        epsilon: of the normalisations.

    Tensors, named as in torchvision's Bottleneck: ``conv1.weight`` (channels, in, 1, 1), ``conv2.weight`` (channels, channels /
    groups, 3, 3), ``conv3.weight`` (out, channels, 1, 1), four of each of ``bn1``, ``bn2``, ``bn3`` (see `ResidualBlock`), and,
    of the projection, ``downsample.0.weight`` (out, in, 1, 1) and ``downsample.1`` with a normalisation's four.

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
