"""Layer and root-mean-square normalization: over the last axes of each array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError
from ..graph.ir import Shape
from ..graph.ops import op
from ..graph.record import record
from ..kernels import _dispatch
from ._arrays import as_float32, empty, optional_float32
from ._checks import differ, integers, number, same_shape

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["layer_norm", "rms_norm"]

_FLOAT32_EPSILON = float(np.finfo(np.float32).eps)


def last_sizes(name: str, value: Any) -> tuple[int, ...]:
    """`normalized_shape` as plain ints."""
    sizes = integers(name, "normalized_shape", value, len(value) if isinstance(value, (tuple, list)) else 1, 0)
    if not sizes:
        raise ShapeError(f"{name}: normalized_shape is {value!r}: expected at least one size")
    return sizes


def positive(name: str, argument: str, value: Any) -> float:
    """A number that is not below zero and no NaN: what is added below a root."""
    found = number(name, argument, value)
    if not found >= 0:
        raise ShapeError(f"{name}: {argument} is {found}: expected at least 0")
    return found


def _rule(name: str, x: Shape, weight: Shape | None, bias: Shape | None, normalized_shape: Any) -> Shape:
    sizes = last_sizes(name, normalized_shape)
    if len(x) < len(sizes) or any(map(differ, x[len(x) - len(sizes) :], sizes)):
        raise ShapeError(f"{name}: x has shape {x}: expected (..., {', '.join(map(str, sizes))}), ending in normalized_shape")
    for argument, shape in (("weight", weight), ("bias", bias)):
        if shape is not None:
            same_shape(name, argument, shape, sizes, "normalized_shape")
    return x


def layer_norm_rule(x: Shape, weight: Shape | None, bias: Shape | None, normalized_shape: Any, eps: Any) -> Shape:
    """Checks the arguments of `layer_norm` and returns the shape of its result."""
    positive("layer_norm", "eps", eps)
    return _rule("layer_norm", x, weight, bias, normalized_shape)


def rms_norm_rule(x: Shape, weight: Shape | None, normalized_shape: Any, eps: Any) -> Shape:
    """Checks the arguments of `rms_norm` and returns the shape of its result."""
    if eps is not None:
        positive("rms_norm", "eps", eps)
    return _rule("rms_norm", x, weight, None, normalized_shape)


def _normal(attributes: dict[str, Any]) -> None:
    attributes["normalized_shape"] = last_sizes("trace", attributes["normalized_shape"])
    attributes["eps"] = _FLOAT32_EPSILON if attributes["eps"] is None else float(attributes["eps"])


def _record(op: str, x: Any, weight: Any, bias: Any = None, *, normalized_shape: tuple[int, ...], eps: float) -> Any:
    weight = np.ones(normalized_shape, np.float32) if weight is None else weight
    inputs = (x, weight, bias) if op == "LayerNormalization" else (x, weight)
    return record(op, *inputs, axis=-len(normalized_shape), epsilon=eps)


@op("layer_norm", "x weight bias", layer_norm_rule, partial(_record, "LayerNormalization"), _normal)
def layer_norm(
    x: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> np.ndarray:
    """Mean 0 and variance 1 over the last axes: ``(x - mean) / sqrt(variance + eps) * weight + bias``.

    Mean and variance (that of a population, divided by the count) are those of the last axes of x, as many as `normalized_shape`
    has sizes.

    Args:
        x: ``(..., *normalized_shape)``, any real dtype.
        normalized_shape: the sizes of the axes that are normalized together, an int for the last alone.
        weight: a factor for each number, of the shape `normalized_shape`, or None.
        bias: a summand for each number, of the same shape, or None.
        eps: added to the variance. (Keras uses 1e-3 by default.)

    Returns:
        float32, the shape of x.

    Raises:
        ShapeError: the shapes do not fit, or `eps` is below 0.
        DTypeError: an argument is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.layer_norm([[1.0, 3.0]], 2, eps=0.0)
    array([[-1.,  1.]], dtype=float32)
    """
    x = as_float32(x, "layer_norm", "x")
    weight, bias = optional_float32(weight, "layer_norm", "weight"), optional_float32(bias, "layer_norm", "bias")
    layer_norm_rule(
        x.shape, None if weight is None else weight.shape, None if bias is None else bias.shape, normalized_shape, eps
    )
    return _run(x, weight, bias, len(last_sizes("layer_norm", normalized_shape)), float(eps), False)


@op("rms_norm", "x weight", rms_norm_rule, partial(_record, "RMSNormalization"), _normal)
def rms_norm(
    x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> np.ndarray:
    """Root of the mean of squares 1 over the last axes: ``x / sqrt(mean(x * x) + eps) * weight``.

    Args:
        x: ``(..., *normalized_shape)``, any real dtype.
        normalized_shape: the sizes of the axes that are normalized together, an int for the last alone.
        weight: a factor for each number, of the shape `normalized_shape`, or None.
        eps: added to the mean of squares; None is the distance of float32 from 1 to the next number, 2 ** -23, as in torch.

    Returns:
        float32, the shape of x.

    Raises:
        ShapeError: the shapes do not fit, or `eps` is below 0.
        DTypeError: an argument is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.rms_norm([[3.0, -3.0]], 2, eps=0.0)
    array([[ 1., -1.]], dtype=float32)
    """
    x = as_float32(x, "rms_norm", "x")
    weight = optional_float32(weight, "rms_norm", "weight")
    rms_norm_rule(x.shape, None if weight is None else weight.shape, normalized_shape, eps)
    eps = _FLOAT32_EPSILON if eps is None else float(eps)
    return _run(x, weight, None, len(last_sizes("rms_norm", normalized_shape)), eps, True)


def _run(x: np.ndarray, weight: np.ndarray | None, bias: np.ndarray | None, axes: int, eps: float, rms: bool) -> np.ndarray:
    """Layer or root-mean-square normalization of checked arrays over the last `axes` axes."""
    cut = x.ndim - axes
    rows, n = math.prod(x.shape[:cut]), math.prod(x.shape[cut:])
    out = empty(x.shape)
    flat = [None if a is None else a.reshape(n) for a in (weight, bias)]
    _dispatch.kernel("layer_norm")(x.reshape(rows, n), *flat, out.reshape(rows, n), eps, rms)
    return out
