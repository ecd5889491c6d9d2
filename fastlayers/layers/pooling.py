"""Pooling layers, with torch's names, arguments and defaults, and pools over whole maps and over time. They have no weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import functional as f
from ..functional._conv_rules import channels_last
from ..functional._pooling import divisor
from ..functional._pooling_adaptive import bins
from ..functional._pooling_lp import exponent
from ..functional._pooling_rules import no_indices, pool
from ..ir.checks import flag
from ._base import Frozen, Layer

if TYPE_CHECKING:
    from ..functional._types import Padding, Tensor

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "GlobalAvgPool", "GlobalMaxPool", "LPPool1d",
    "LPPool2d", "LPPool3d", "MaxOverTime", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MeanOverTime",
]  # fmt: skip


class _Pool(Layer):
    """A function of `functional` with its arguments fixed and checked."""

    _axes = 0
    _function = ""
    _fixed: dict[str, Any]

    def __call__(self, x: Tensor) -> np.ndarray:
        """Pools x, with or without a batch; returns float32."""
        result: np.ndarray = getattr(f, self._function)(x, **self._fixed)
        return result

    def _keep(self, **fixed: Any) -> None:
        self._fixed = fixed

    def _arguments(self) -> str:
        shown = ("kernel_size", "output_size", "norm_type", "stride", "padding", "ceil_mode", "layout", "keepdims")
        plain = {"stride": None, "padding": 0, "ceil_mode": False, "layout": "nchw", "keepdims": False}
        return ", ".join(
            f"{name}={self._fixed[name]!r}" for name in shown if name in self._fixed and self._fixed[name] != plain.get(name, ())
        )


class _MaxPool(_Pool):
    """`functional.max_pool{n}d`: the largest number of every window.

    Args:
        kernel_size: size of the window: an int, or one per axis.
        stride: from one window to the next; None: the kernel's size.
        padding: as of the function: an int, one per axis, pairs, ``"valid"`` or ``"same"`` by TensorFlow's rule.
        dilation: the distance between the elements of a window.
        return_indices: must be False.
        ceil_mode: whether a last window may overhang.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: Padding = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        *,
        layout: str = "nchw",
    ) -> None:
        name = type(self).__name__
        no_indices(name, return_indices)
        pool(name, self._axes, kernel_size, stride, padding, dilation, ceil_mode, layout)
        self._keep(kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode, layout=layout)


class _AvgPool1d(_Pool):
    """`functional.avg_pool{n}d`: the average of every window.

    Args:
        kernel_size: size of the window: an int, or one per axis.
        stride: from one window to the next; None: the kernel's size.
        padding: as of the function: an int, one per axis, pairs, ``"valid"`` or ``"same"`` by TensorFlow's rule.
        ceil_mode: whether a last window may overhang.
        count_include_pad: whether positions in the padding count; never with ``"same"``, as in Keras.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        *,
        layout: str = "nchw",
    ) -> None:
        name = type(self).__name__
        divisor(name, count_include_pad, None)
        pool(name, self._axes, kernel_size, stride, padding, 1, ceil_mode, layout)
        self._keep(
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            layout=layout,
        )


class _AvgPool(_AvgPool1d):
    """`functional.avg_pool{n}d`: the average of every window.

    Args:
        kernel_size: size of the window: an int, or one per axis.
        stride: from one window to the next; None: the kernel's size.
        padding: as of the function: an int, one per axis, pairs, ``"valid"`` or ``"same"`` by TensorFlow's rule.
        ceil_mode: whether a last window may overhang.
        count_include_pad: whether positions in the padding count; never with ``"same"``, as in Keras.
        divisor_override: what sums are divided by instead, or None.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: Padding = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        layout: str = "nchw",
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad, layout=layout)
        divisor(type(self).__name__, count_include_pad, divisor_override)
        self._keep(**self._fixed, divisor_override=divisor_override)


class _LPPool(_Pool):
    """`functional.lp_pool{n}d`: the root of the sum of powers of every window.

    Args:
        norm_type: p, at least 1.
        kernel_size: size of the window: an int, or one per axis.
        stride: from one window to the next; None: the kernel's size.
        ceil_mode: whether a last window may overhang.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
    """

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
        *,
        layout: str = "nchw",
    ) -> None:
        name = type(self).__name__
        exponent(name, norm_type)
        pool(name, self._axes, kernel_size, stride, 0, 1, ceil_mode, layout)
        self._keep(norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode, layout=layout)


class _AdaptiveAvgPool(_Pool):
    """`functional.adaptive_avg_pool{n}d`: averages of a given number of bins.

    Args:
        output_size: sizes of the result along space: an int, or one per axis; None keeps a size.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
    """

    def __init__(self, output_size: int | Sequence[int | None] | None, *, layout: str = "nchw") -> None:
        name = type(self).__name__
        bins(name, self._axes, output_size)
        channels_last(name, layout, self._axes)
        self._keep(output_size=output_size, layout=layout)


class _AdaptiveMaxPool(_AdaptiveAvgPool):
    """`functional.adaptive_max_pool{n}d`: the largest values of a given number of bins.

    Args:
        output_size: sizes of the result along space: an int, or one per axis; None keeps a size.
        return_indices: must be False.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
    """

    def __init__(
        self, output_size: int | Sequence[int | None] | None, return_indices: bool = False, *, layout: str = "nchw"
    ) -> None:
        super().__init__(output_size, layout=layout)
        no_indices(type(self).__name__, return_indices)


class GlobalAvgPool(_Pool):
    """`functional.global_avg_pool`: the average of all of space, one number a channel; Keras calls it GlobalAveragePooling.

    Args:
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
        keepdims: whether the spatial axes stay, with size 1.

    >>> import fastlayers as fl
    >>> fl.GlobalAvgPool()([[[[1.0, 2.0], [3.0, 4.0]]]])
    array([[2.5]], dtype=float32)
    """

    _function = "global_avg_pool"

    def __init__(self, *, layout: str = "nchw", keepdims: bool = False) -> None:
        name = type(self).__name__
        if not isinstance(layout, str) or layout.lower() not in ("ncl", "nlc", "ncdhw", "ndhwc"):
            channels_last(name, layout, 2)
        flag(name, "keepdims", keepdims)
        self._keep(layout=layout, keepdims=keepdims)


class GlobalMaxPool(GlobalAvgPool):
    """`functional.global_max_pool`: the largest number of all of space, one per channel; Keras calls it GlobalMaxPooling.

    Args:
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``.
        keepdims: whether the spatial axes stay, with size 1.

    >>> import fastlayers as fl
    >>> fl.GlobalMaxPool()([[[[1.0, 2.0], [3.0, 4.0]]]])
    array([[4.]], dtype=float32)
    """

    _function = "global_max_pool"


class MeanOverTime(Layer):
    """`functional.mean_over_time`: one vector of a sequence, whatever its length; Keras: GlobalAveragePooling1D with a mask.

    Args:
        batch_first: whether x is ``(n, t, c)``, else ``(t, n, c)``.

    >>> import fastlayers as fl
    >>> fl.MeanOverTime()([[[1.0], [3.0], [100.0]]], lengths=[2])
    array([[2.]], dtype=float32)
    """

    _function = "mean_over_time"

    def __init__(self, batch_first: bool = True) -> None:
        self.batch_first = flag(type(self).__name__, "batch_first", batch_first)

    def __call__(self, x: Tensor, lengths: Tensor | None = None, mask: Tensor | None = None) -> np.ndarray:
        """Pools x over its steps before `lengths` and where `mask` is True; returns float32 ``(n, c)``."""
        result: np.ndarray = getattr(f, self._function)(x, lengths, mask, batch_first=self.batch_first)
        return result

    def _arguments(self) -> str:
        return "" if self.batch_first else "batch_first=False"


class MaxOverTime(MeanOverTime):
    """`functional.max_over_time`: the largest number of every channel over a sequence, whatever its length.

    Args:
        batch_first: whether x is ``(n, t, c)``, else ``(t, n, c)``.

    >>> import fastlayers as fl
    >>> fl.MaxOverTime()([[[1.0], [3.0], [100.0]]], lengths=[2])
    array([[3.]], dtype=float32)
    """

    _function = "max_over_time"


def _layer(base: Any, name: str, function: str, axes: int) -> Any:
    # Line by line: whether a docstring keeps its indentation depends on Python's version.
    first, _, rest = (base.__doc__ or "").replace("{n}", str(axes)).partition("Args:")
    listed = "".join(f"    {line.strip()}\n" for line in rest.splitlines() if line.strip())
    doc = f"{first.strip()}\n\nArgs:\n{listed}"
    return Frozen(name, (base,), {"_axes": axes, "_function": function, "__doc__": doc, "__module__": __name__})


MaxPool1d, MaxPool2d, MaxPool3d = (_layer(_MaxPool, f"MaxPool{n}d", f"max_pool{n}d", n) for n in (1, 2, 3))
LPPool1d, LPPool2d, LPPool3d = (_layer(_LPPool, f"LPPool{n}d", f"lp_pool{n}d", n) for n in (1, 2, 3))
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = (
    _layer(_AdaptiveAvgPool, f"AdaptiveAvgPool{n}d", f"adaptive_avg_pool{n}d", n) for n in (1, 2, 3)
)
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = (
    _layer(_AdaptiveMaxPool, f"AdaptiveMaxPool{n}d", f"adaptive_max_pool{n}d", n) for n in (1, 2, 3)
)
AvgPool1d = _layer(_AvgPool1d, "AvgPool1d", "avg_pool1d", 1)
AvgPool2d, AvgPool3d = (_layer(_AvgPool, f"AvgPool{n}d", f"avg_pool{n}d", n) for n in (2, 3))
