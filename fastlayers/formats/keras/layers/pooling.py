"""Pools over windows, whole maps and bins."""

from __future__ import annotations

from typing import Any

from ..build import BOOL, Build, Tensor
from ..layer import Layer, layer


@layer("MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "AveragePooling1D", "AveragePooling2D", "AveragePooling3D",
       "MaxPool1D", "MaxPool2D", "MaxPool3D", "AvgPool1D", "AvgPool2D", "AvgPool3D",
       words="pool_size strides padding data_format | pool_length stride border_mode dim_ordering", mask="drop")  # fmt: skip
def pool(this: Layer, b: Build, x: Tensor) -> Tensor:
    """The largest number or the mean of windows; padding counts for neither."""
    axes = int(this.kind[-2])
    kind = this.get("padding", this.get("border_mode", "valid"))
    if kind not in ("valid", "same"):
        this.refuse(f"padding {kind!r:.40}")
    size = this.numbers("pool_size", axes, this.get("pool_length", 2))
    stride = this.numbers("strides", axes, this.get("stride", size))
    attributes: dict[str, Any] = {"kernel_shape": size, "strides": stride}
    attributes.update({"auto_pad": "SAME_UPPER"} if kind == "same" else {"pads": (0,) * (2 * axes)})
    if this.last():
        attributes["x_last"] = True
    return b.op("MaxPool" if "Max" in this.kind else "AveragePool", b.floats(x), **attributes)


_GLOBAL = [f"Global{kind}{word}{n}D" for kind in ("Max", "Average", "Avg") for word in ("Pooling", "Pool") for n in (1, 2, 3)]


@layer(*_GLOBAL, words="data_format keepdims | dim_ordering", mask="drop")
def global_pool(this: Layer, b: Build, x: Tensor, mask: Any = None) -> Tensor:
    """The largest number or the mean of every channel; a mean over time leaves masked steps out."""
    x = b.floats(x).masked(x.mask)
    last, keep, largest = this.last(), bool(this.get("keepdims", False)), "Max" in this.kind
    mask = mask if isinstance(mask, Tensor) else x.mask
    if mask is not None and not largest and x.rank == 3:
        return _masked_mean(b, x, mask, 1 if last else 2, keep)
    if x.rank == 2:
        return x
    attributes: dict[str, Any] = {"x_last": True} if last else {}
    y = b.op("GlobalMaxPool" if largest else "GlobalAveragePool", x, **attributes)
    flat = b.squeeze(y, *range(2, x.rank))
    return flat if not keep else b.unsqueeze(flat, *(range(1, x.rank - 1) if last else range(2, x.rank)))


def _masked_mean(b: Build, x: Tensor, mask: Tensor, axis: int, keep: bool) -> Tensor:
    weights = b.unsqueeze(b.floats(b.cast(mask, BOOL)), 3 - axis)
    total = b.reduce("Sum", b.op("Mul", x, weights), [axis], keep)
    return b.op("Div", total, b.reduce("Sum", weights, [axis], keep))


@layer(*(f"Adaptive{kind}Pooling{n}D" for kind in ("Max", "Average") for n in (1, 2, 3)),
       words="output_size data_format", mask="drop")  # fmt: skip
def adaptive_pool(this: Layer, b: Build, x: Tensor) -> Tensor:
    """As many bins as output_size says."""
    attributes: dict[str, Any] = {"x_last": True} if this.last() else {}
    sizes = this.numbers("output_size", int(this.kind[-2]))
    return b.op("AdaptivePool", b.floats(x), sizes=sizes, reduce="max" if "Max" in this.kind else "mean", **attributes)
