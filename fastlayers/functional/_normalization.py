"""Normalizations: over the last axes, by statistics of channels, over groups of channels, over neighbouring channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import checked
from ..calls import normalization as calls
from ..calls.machine import ARRAYS
from ..errors import ArgumentError, ShapeError
from ..graph.arrays import as_float32, contiguous, empty, optional_float32
from ..graph.ops import op
from ..graph.record import ints, record
from ..graph.symbol import Symbol
from ..ir.checks import axis as checked_axis
from ..ir.checks import integer, integers, number
from ..ir.graph import Dim, Shape
from ..rules.weights import groups_rule, normalized_rule, vector_rule
from ._activation_names import IDENTITY

if TYPE_CHECKING:
    from ._types import Tensor


__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


_FLOAT32_EPSILON = float(np.finfo(np.float32).eps)


def last_sizes(name: str, value: Any) -> tuple[int, ...]:
    """`normalized_shape` as plain ints."""
    sizes = integers(name, "normalized_shape", value, len(value) if isinstance(value, (tuple, list)) else 1, 0)
    if not sizes:
        raise ArgumentError(f"{name}: normalized_shape is {value!r}: expected at least one size")
    return sizes


def positive(name: str, argument: str, value: Any) -> float:
    """A number that is not below zero and no NaN: what is added below a root."""
    found = number(name, argument, value)
    if not found >= 0:
        raise ArgumentError(f"{name}: {argument} is {found}: expected at least 0")
    return found


def _rule(name: str, x: Shape, weight: Shape | None, bias: Shape | None, normalized_shape: Any) -> Shape:
    normalized_rule(name, x, last_sizes(name, normalized_shape), weight, bias)
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
    x: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
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
        ArgumentError: the shapes do not fit, or `eps` is below 0.
        DTypeError: an argument is complex or not numeric.

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
        ArgumentError: the shapes do not fit, or `eps` is below 0.
        DTypeError: an argument is complex or not numeric.

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
    out = empty(x.shape)
    calls.rows(ARRAYS, x, weight, bias, out, axes, eps, rms)
    return out


def channels_of(name: str, x: Shape, axis: Any) -> tuple[int, Dim]:
    """The axis of the channels, counted from the front, and their number."""
    if len(x) < 2:
        raise ShapeError(f"{name}: x has shape {x}: expected (n, c, ...), at least two axes")
    at = checked_axis(name, axis, len(x), "axis")
    if at == 0:
        raise ArgumentError(f"{name}: axis is {axis}: expected another than 0, the batch")
    return at, x[at]


def _vectors(name: str, count: Dim, **shapes: Shape | None) -> None:
    for argument, shape in shapes.items():
        vector_rule(name, argument, shape, count)


def batch_norm_rule(
    x: Shape,
    running_mean: Shape | None,
    running_var: Shape | None,
    weight: Shape | None,
    bias: Shape | None,
    training: Any,
    momentum: Any,
    eps: Any,
    axis: Any,
) -> Shape:
    """Checks the arguments of `batch_norm` and returns the shape of its result."""
    positive("batch_norm", "eps", eps)
    if momentum is not None:
        number("batch_norm", "momentum", momentum)
    _, count = channels_of("batch_norm", x, axis)
    if not training and (running_mean is None or running_var is None):
        raise ArgumentError("batch_norm: running_mean or running_var is None: expected both, or training=True")
    _vectors("batch_norm", count, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    return x


def _plain_batch_norm(attributes: dict[str, Any]) -> None:
    attributes["training"], attributes["eps"] = bool(attributes["training"]), float(attributes["eps"])
    attributes["momentum"] = None  # not used


def _record_batch_norm(
    x: Any, mean: Any, variance: Any, weight: Any, bias: Any, training: bool, momentum: None, eps: float, axis: int
) -> Any:
    known = next((v.shape for v in (mean, variance) if isinstance(v, np.ndarray)), None)
    if known is not None:  # passes fold what is known whole
        weight = np.ones(known, np.float32) if weight is None else weight
        bias = np.zeros(known, np.float32) if bias is None else bias
    attributes: dict[str, Any] = {"epsilon": eps, "axis": axis % x.ndim}
    if training:
        attributes["training_mode"], mean, variance = 1, None, None
    return record("BatchNormalization", x, weight, bias, mean, variance, **attributes)


def _with_channels_at_1(x: Any, axis: int, make: Callable[[Any], Any]) -> Any:
    """The results of `make` for an x whose channels are axis 1, between transpositions where they are elsewhere."""
    at = axis % x.ndim
    if at == 1:
        return make(x)
    order = [0, at, *(i for i in range(1, x.ndim) if i != at)]
    back = tuple(order.index(i) for i in range(x.ndim))
    return record("Transpose", make(record("Transpose", x, perm=tuple(order))), perm=back)


def _record_group_norm(x: Any, weight: Any, bias: Any, num_groups: int | None, eps: float, axis: int) -> Any:
    op, more = ("InstanceNormalization", {}) if num_groups is None else ("GroupNormalization", {"num_groups": num_groups})
    return _with_channels_at_1(x, axis, lambda x: record(op, x, weight, bias, epsilon=eps, **more))


def _record_response(x: Any, size: int, alpha: float, beta: float, k: float, axis: int) -> Any:
    def make(x: Any) -> Any:
        attributes: dict[str, Any] = {"size": size, "alpha": alpha, "beta": beta, "bias": k}
        if size % 2:
            return record("LRN", x, **attributes)
        # The operator looks further ahead where sizes are even, the function further back.
        far = np.iinfo(np.int64).max
        ends = (ints(far), ints(-far), ints(1), ints(-1))
        return record("Slice", record("LRN", record("Slice", x, *ends), **attributes), *ends)

    return _with_channels_at_1(x, axis, make)


@op("batch_norm", "x running_mean running_var weight bias", batch_norm_rule, _record_batch_norm, _plain_batch_norm, plans=False)
def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | None = 0.1,
    eps: float = 1e-5,
    *,
    axis: int = 1,
) -> np.ndarray:
    """Every channel by its own mean and variance: ``(x - mean) / sqrt(variance + eps) * weight + bias``.

    Args:
        x: ``(n, c, ...)``, or with the channels along another axis; any real dtype.
        running_mean: ``(c,)``; may be None if `training`.
        running_var: ``(c,)``; may be None if `training`.
        weight: one factor per channel, ``(c,)``, or None.
        bias: one summand per channel, ``(c,)``, or None.
        training: True takes the mean and the (population's) variance of x itself over all axes but that of the channels. The
            running ones are never changed.
        momentum: accepted for compatibility; without effect.
        eps: added to the variance. (Keras uses 1e-3 by default.)
        axis: the axis of the channels; -1 in channels-last layouts and by default in Keras.

    Returns:
        float32, the shape of x.

    Raises:
        ArgumentError: shapes do not fit, statistics are missing, or `eps` is below 0.
        DTypeError: an argument is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.batch_norm([[1.0, 3.0]], [0.0, 1.0], [1.0, 4.0], eps=0.0)
    array([[1., 1.]], dtype=float32)
    """
    x = as_float32(x, "batch_norm", "x")
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    vectors = {name: optional_float32(value, "batch_norm", name) for name, value in given.items()}
    shapes = {name: None if v is None else v.shape for name, v in vectors.items()}
    batch_norm_rule(x.shape, **shapes, training=training, momentum=momentum, eps=eps, axis=axis)
    at = axis % x.ndim
    if training:
        out = empty(x.shape)
        calls.batch(ARRAYS, x, vectors["weight"], vectors["bias"], out, at, float(eps))
        return out
    scale, shift = affine_of(vectors, eps)
    return run_affine(x, scale, shift, at)


def affine_of(vectors: Mapping[str, np.ndarray | None], eps: float) -> tuple[np.ndarray, np.ndarray]:
    """A batch normalization, its vectors by name, as ``x scale + shift``: computed in float64, rounded once."""
    mean, variance = vectors["running_mean"], vectors["running_var"]
    weight, bias = vectors.get("weight"), vectors.get("bias")
    assert mean is not None
    assert variance is not None
    with np.errstate(all="ignore"):
        root = np.sqrt(np.add(variance, eps, dtype=np.float64))
        scale = (1.0 if weight is None else weight) / root
        shift = (0.0 if bias is None else bias) - mean * scale
        return scale.astype(np.float32), shift.astype(np.float32)


def run_affine(x: np.ndarray, scale: np.ndarray, shift: np.ndarray, at: int) -> np.ndarray:
    """``x scale + shift`` a channel, on checked arrays; the channels are axis `at`."""
    out = empty(x.shape)
    calls.affine(ARRAYS, x, scale, shift, out, at, IDENTITY)
    return out


def group_norm_rule(x: Shape, weight: Shape | None, bias: Shape | None, num_groups: Any, eps: Any, axis: Any) -> Shape:
    """Checks the arguments of `group_norm` and returns the shape of its result."""
    positive("group_norm", "eps", eps)
    groups = 1 if num_groups is None else integer("group_norm", "num_groups", num_groups, 1)
    _, count = channels_of("group_norm", x, axis)
    groups_rule("group_norm", x, count, groups)
    _vectors("group_norm", count, weight=weight, bias=bias)
    return x


def _plain_group_norm(attributes: dict[str, Any]) -> None:
    attributes["eps"] = float(attributes["eps"])


@op("group_norm", "x weight bias", group_norm_rule, _record_group_norm, _plain_group_norm)
def group_norm(
    x: Tensor,
    num_groups: int | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    axis: int = 1,
) -> np.ndarray:
    """Each group of channels of each example to mean 0 and variance 1: ``(x - mean) / sqrt(variance + eps) * weight + bias``.

    Args:
        x: ``(n, c, ...)``, or with the channels along another axis; any real dtype.
        num_groups: into how many groups of neighbours the channels are cut; 1 makes one of all, None makes one of each.
        weight: one factor per channel, ``(c,)``, or None.
        bias: one summand per channel, ``(c,)``, or None.
        eps: added to the variance. (Keras uses 1e-3 by default.)
        axis: the axis of the channels; -1 in channels-last layouts and by default in Keras.

    Returns:
        float32, the shape of x.

    Raises:
        ArgumentError: shapes do not fit, `num_groups` does not divide the channels, or `eps` is below 0.
        DTypeError: an argument is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.group_norm([[1.0, 3.0, 5.0, 9.0]], 2, eps=0.0)
    array([[-1.,  1., -1.,  1.]], dtype=float32)
    """
    x = as_float32(x, "group_norm", "x")
    weight, bias = optional_float32(weight, "group_norm", "weight"), optional_float32(bias, "group_norm", "bias")
    group_norm_rule(
        x.shape, None if weight is None else weight.shape, None if bias is None else bias.shape, num_groups, eps, axis
    )
    at = axis % x.ndim
    first = x if at == 1 else contiguous(np.moveaxis(x, at, 1), "group_norm")
    y = empty(first.shape)
    calls.groups(ARRAYS, first, weight, bias, y, num_groups or max(first.shape[1], 1), float(eps))
    return y if at == 1 else contiguous(np.moveaxis(y, 1, at), "group_norm", "the result")


@checked
def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    axis: int = 1,
) -> np.ndarray:
    """Each channel of each example to mean 0 and variance 1: ``(x - mean) / sqrt(variance + eps) * weight + bias``.

    Args:
        x: ``(n, c, ...)``, or with the channels along another axis; any real dtype.
        running_mean: ``(c,)``; not used with `use_input_stats`.
        running_var: ``(c,)``; not used with `use_input_stats`.
        weight: one factor per channel, ``(c,)``, or None.
        bias: one summand per channel, ``(c,)``, or None.
        use_input_stats: False takes the running mean and variance, which makes this `batch_norm`.
        momentum: accepted for compatibility; without effect.
        eps: added to the variance.
        axis: the axis of the channels; -1 in channels-last layouts.

    Returns:
        float32, the shape of x.

    Raises:
        ArgumentError: shapes do not fit, or statistics are missing.
        DTypeError: an argument is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.instance_norm([[[1.0, 3.0]]], eps=0.0)
    array([[[-1.,  1.]]], dtype=float32)
    """
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    x = x if isinstance(x, Symbol) else as_float32(x, "instance_norm", "x")
    tensors = {name: v if isinstance(v, Symbol) else optional_float32(v, "instance_norm", name) for name, v in given.items()}
    _, count = channels_of("instance_norm", x.shape, axis)
    _vectors("instance_norm", count, **{name: None if v is None else v.shape for name, v in tensors.items()})
    positive("instance_norm", "eps", eps)
    number("instance_norm", "momentum", momentum)
    if use_input_stats:
        return group_norm(x, None, tensors["weight"], tensors["bias"], eps, axis=axis)
    if running_mean is None or running_var is None:
        raise ArgumentError("instance_norm: running_mean or running_var is None: expected both, or use_input_stats=True")
    mean, variance, weight, bias = (tensors[name] for name in ("running_mean", "running_var", "weight", "bias"))
    return batch_norm(x, mean, variance, weight, bias, eps=eps, axis=axis)


def response_rule(x: Shape, size: Any, alpha: Any, beta: Any, k: Any, axis: Any) -> Shape:
    """Checks the arguments of `local_response_norm` and returns the shape of its result."""
    integer("local_response_norm", "size", size, 1)
    for name, value in (("alpha", alpha), ("beta", beta), ("k", k)):
        if number("local_response_norm", name, value) < 0 and name != "beta":
            raise ArgumentError(f"local_response_norm: {name} is {value}: expected at least 0, a base that has powers")
    channels_of("local_response_norm", x, axis)
    return x


def _plain_response(attributes: dict[str, Any]) -> None:
    attributes.update({name: float(attributes[name]) for name in ("alpha", "beta", "k")})


@op("local_response_norm", "x", response_rule, _record_response, _plain_response)
def local_response_norm(
    x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, *, axis: int = 1
) -> np.ndarray:
    """Each number by the squares around it in neighbouring channels: ``x / (k + alpha / size * sum of x * x) ** beta``.

    The sum goes over `size` channels, ``size // 2`` of them before this one and the rest from it on, as torch counts them (ONNX
    counts ``(size - 1) // 2`` before: the same for odd sizes). TensorFlow's ``local_response_normalization`` with depth_radius r
    is this with size ``2 r + 1``, alpha times that size, ``k`` its bias, and axis -1.

    Args:
        x: ``(n, c, ...)``, or with the channels along another axis; any real dtype.
        size: how many channels are summed.
        alpha: the factor of the sum.
        beta: the exponent.
        k: the summand.
        axis: the axis of the channels.

    Returns:
        float32, the shape of x.

    Raises:
        ArgumentError: there is no such axis, or `size` is below 1.
        DTypeError: x is complex or not numeric, or a parameter is not a number.

    >>> import fastlayers as fl
    >>> fl.functional.local_response_norm([[8.0, 16.0]], 3, alpha=0.0, k=16.0)
    array([[1., 2.]], dtype=float32)
    """
    x = as_float32(x, "local_response_norm", "x")
    response_rule(x.shape, size, alpha, beta, k, axis)
    at = axis % x.ndim
    out, cut = empty(x.shape), calls.cut_at(x.shape, at)
    if size % 2:
        calls.response(ARRAYS, x, out, cut, size, alpha, beta, k)
        return out
    # The kernel looks further ahead where sizes are even, torch further back: reversed, they are the same.
    turned = contiguous(x.reshape(cut)[:, ::-1], "local_response_norm")
    calls.response(ARRAYS, turned, out, cut, size, alpha, beta, k)
    return contiguous(out.reshape(cut)[:, ::-1], "local_response_norm", "the result").reshape(x.shape)
