"""Normalizations as layers, with torch's names and arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..functional import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm, squeeze, unsqueeze
from ..functional._normalization import affine_of, channels_of, last_sizes, positive, response_rule, run_affine
from ..graph.arrays import as_float32
from ..graph.symbol import Symbol
from ..ir.checks import integer, number
from ._base import Layer, WithWeight
from ._channels import channel_axis

if TYPE_CHECKING:
    from ..functional._types import Tensor


__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]


class Normalization(WithWeight):
    """The base of normalizations: `weight` and `bias`, which files also call gamma (or scale) and beta, and statistics."""

    _theirs: ClassVar[dict[str, str]] = {
        "weight": "gamma",
        "bias": "beta",
        "running_mean": "moving_mean",
        "running_var": "moving_variance",
    }

    def _tensor(self, name: str) -> np.ndarray | None:
        """The tensor of that name; None if the layer has none."""
        return self._tensors().get(name)

    def _convert(self, given: dict[str, Any], prefix: str) -> None:
        for ours in self._shapes:
            theirs = prefix + self._theirs[ours]
            if theirs in given and prefix + ours not in given:
                given[prefix + ours] = given.pop(theirs)

    def _keras(self) -> dict[str, tuple[int, ...]]:
        return {self._theirs[name]: shape for name, shape in self._shapes.items()}

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: given[self._theirs[name]] for name in self._shapes}


class LayerNorm(Normalization):
    """`functional.layer_norm` as a layer: ``(x - mean) / sqrt(variance + eps) * weight + bias`` over the last axes.

    Args:
        normalized_shape: the sizes of the axes that are normalized together, an int for the last alone.
        eps: added to the variance; Keras' layer has 1e-3 by default.
        elementwise_affine: whether there are `weight` and `bias`.
        bias: False leaves `bias` out (Keras' ``center=False``).
        scale: False leaves `weight` out (Keras' ``scale=False``).

    Tensors: ``weight`` and ``bias``, of the shape normalized_shape; also under the names ``gamma`` and ``beta``. Keras'
    LayerNormalization: gamma, beta, those that it has.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.LayerNorm(2, eps=0.0)
    >>> _ = layer.load_state_dict({"weight": np.ones(2), "bias": np.ones(2)})
    >>> layer(np.array([[1.0, 3.0]]))
    array([[0., 2.]], dtype=float32)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        scale: bool = True,
    ) -> None:
        self.normalized_shape = last_sizes("LayerNorm", normalized_shape)
        self.eps = positive("LayerNorm", "eps", eps)
        wanted = {"weight": elementwise_affine and scale, "bias": elementwise_affine and bias}
        self._shapes = {name: self.normalized_shape for name, there in wanted.items() if there}

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the layer to x ``(..., *normalized_shape)``; returns float32 of the same shape."""
        return layer_norm(x, self.normalized_shape, self._tensor("weight"), self._tensor("bias"), self.eps)

    def _arguments(self) -> str:
        given = "".join(f", {name}" for name in ("weight", "bias") if name in self._shapes)
        return f"{self.normalized_shape}, eps={self.eps}{given}"


class RMSNorm(Normalization):
    """`functional.rms_norm` as a layer: ``x / sqrt(mean(x * x) + eps) * weight`` over the last axes.

    Args:
        normalized_shape: the sizes of the axes that are normalized together, an int for the last alone.
        eps: added to the mean of squares; None is 2 ** -23, as in torch. Keras' layer has 1e-6, language models 1e-5 or 1e-6.
        elementwise_affine: whether there is `weight`.

    Tensors: ``weight``, of the shape normalized_shape. Keras' RMSNormalization: scale.

    >>> import numpy as np, fastlayers as fl
    >>> fl.RMSNorm(2, eps=0.0, elementwise_affine=False)(np.array([[3.0, -3.0]]))
    array([[ 1., -1.]], dtype=float32)
    """

    _theirs: ClassVar[dict[str, str]] = {"weight": "scale"}

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True) -> None:
        self.normalized_shape = last_sizes("RMSNorm", normalized_shape)
        self.eps = None if eps is None else positive("RMSNorm", "eps", eps)
        self._shapes = {"weight": self.normalized_shape} if elementwise_affine else {}

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the layer to x ``(..., *normalized_shape)``; returns float32 of the same shape."""
        return rms_norm(x, self.normalized_shape, self._tensor("weight"), self.eps)

    def _arguments(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}" + (", weight" if self._shapes else "")


class _Statistics(Normalization):
    """The base of batch and instance normalization: a number per channel, running statistics, and the ranks of x they take."""

    _ranks: tuple[int, ...] = ()

    def _begin(
        self, num_features: int, eps: float, scale: bool, center: bool, track_running_stats: bool, axis: int, layout: str | None
    ) -> None:
        name = type(self).__name__
        self.num_features = integer(name, "num_features", num_features, 0)
        self.eps = positive(name, "eps", eps)
        self.axis = channel_axis(name, axis, layout, self._ranks[-1] - 2)
        self.track_running_stats = bool(track_running_stats)
        wanted = {
            "weight": scale,
            "bias": center,
            "running_mean": self.track_running_stats,
            "running_var": self.track_running_stats,
        }
        self._shapes = {tensor: (self.num_features,) for tensor, there in wanted.items() if there}

    def _check(self, shape: tuple[Any, ...]) -> None:
        name = type(self).__name__
        if len(shape) not in self._ranks:
            raise ShapeError(f"{name}: x has shape {shape}: expected {' or '.join(map(str, self._ranks))} axes")
        _, count = channels_of(name, shape, self.axis)
        if isinstance(count, int) and count != self.num_features:
            raise ShapeError(f"{name}: x has shape {shape}: expected {self.num_features} channels along axis {self.axis}")

    def _arguments(self) -> str:
        text = f"{self.num_features}, eps={self.eps}" + "".join(
            f", {name}" for name in ("weight", "bias") if name in self._shapes
        )
        return text + ("" if self.axis == 1 else f", axis={self.axis}")


class _BatchNorm(_Statistics):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        scale: bool = True,
        center: bool = True,
        axis: int = 1,
        layout: str | None = None,
    ) -> None:
        if momentum is not None:
            number(type(self).__name__, "momentum", momentum)
        self._begin(num_features, eps, affine and scale, affine and center, track_running_stats, axis, layout)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the layer to x; returns float32 of the same shape."""
        if isinstance(x, Symbol) or not self.track_running_stats:
            x = x if isinstance(x, Symbol) else as_float32(x, type(self).__name__, "x")
            self._check(x.shape)
            get = self._tensor
            return batch_norm(
                x, get("running_mean"), get("running_var"), get("weight"), get("bias"), not self.track_running_stats,
                eps=self.eps, axis=self.axis,
            )  # fmt: skip
        scale, shift = self._packed()
        x = as_float32(x, type(self).__name__, "x")
        self._check(x.shape)
        return run_affine(x, scale, shift, self.axis % x.ndim)

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        return affine_of(tensors, self.eps), None


class BatchNorm1d(_BatchNorm):
    """Batch normalization of x ``(n, c)`` or ``(n, c, l)``; see `BatchNorm2d` for the arguments.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.BatchNorm1d(2, eps=0.0, affine=False)
    >>> _ = layer.load_state_dict({"running_mean": np.zeros(2), "running_var": np.array([1.0, 4.0])})
    >>> layer(np.array([[1.0, 3.0]]))
    array([[1. , 1.5]], dtype=float32)
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Every channel by its own mean and variance: ``(x - mean) / sqrt(variance + eps) * weight + bias``.

    By default these are the running statistics of the training. In a compiled network the layer goes into the weights of a
    convolution or linear layer before or after it; `Sequential.fuse` folds it into the one before.

    Args:
        num_features: the number of channels of x, ``(n, c, h, w)``.
        eps: added to the variance; Keras' layer has 1e-3 by default.
        momentum: accepted for compatibility; without effect.
        affine: whether there are `weight` and `bias`.
        track_running_stats: False takes the statistics of each batch that the layer is called with.
        scale: False leaves `weight` out (Keras' ``scale=False``).
        center: False leaves `bias` out (Keras' ``center=False``).
        axis: the axis of the channels: -1 after layers whose layout is channels-last, and by default in Keras.
        layout: instead of the axis, as in `Conv2d`.

    Tensors: ``weight``, ``bias``, ``running_mean``, ``running_var``, each (num_features,); ``num_batches_tracked`` may be there.
    Keras' BatchNormalization: gamma, beta, moving_mean, moving_variance, without those that it does not have; a state dict may
    use these names too.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.BatchNorm2d(3)
    >>> _ = layer.load_state_dict({name: np.ones(3) for name in ("weight", "bias", "running_mean", "running_var")})
    >>> layer(np.ones((1, 3, 2, 2))).shape
    (1, 3, 2, 2)
    """

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalization of x ``(n, c, d, h, w)``; see `BatchNorm2d` for the arguments."""

    _ranks = (5,)


class GroupNorm(Normalization):
    """`functional.group_norm` as a layer: ``(x - mean) / sqrt(variance + eps) * weight + bias``, by groups of channels.

    Args:
        num_groups: into how many groups of neighbours the channels are cut.
        num_channels: the number of channels of x, ``(n, c, ...)``.
        eps: added to the variance; Keras' layer has 1e-3 by default.
        affine: whether there are `weight` and `bias`.
        scale: False leaves `weight` out (Keras' ``scale=False``).
        center: False leaves `bias` out (Keras' ``center=False``).
        axis: the axis of the channels; -1 by default in Keras.
        layout: instead of the axis, ``"nchw"`` or ``"nhwc"``, for any number of axes.

    Tensors: ``weight`` and ``bias``, (num_channels,). Keras' GroupNormalization: gamma, beta, those that it has.

    >>> import numpy as np, fastlayers as fl
    >>> fl.GroupNorm(2, 4, eps=0.0, affine=False)(np.array([[1.0, 3.0, 5.0, 9.0]]))
    array([[-1.,  1., -1.,  1.]], dtype=float32)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        scale: bool = True,
        center: bool = True,
        axis: int = 1,
        layout: str | None = None,
    ) -> None:
        self.num_groups = integer("GroupNorm", "num_groups", num_groups, 1)
        self.num_channels = integer("GroupNorm", "num_channels", num_channels, 0)
        if self.num_channels % self.num_groups:
            raise ArgumentError(f"GroupNorm: num_groups is {num_groups}, num_channels {num_channels}: expected a divisor of it")
        self.eps, self.axis = positive("GroupNorm", "eps", eps), channel_axis("GroupNorm", axis, layout)
        wanted = {"weight": affine and scale, "bias": affine and center}
        self._shapes = {name: (self.num_channels,) for name, there in wanted.items() if there}

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the layer to x ``(n, c, ...)``; returns float32 of the same shape."""
        x = x if isinstance(x, Symbol) else as_float32(x, "GroupNorm", "x")
        _, count = channels_of("GroupNorm", x.shape, self.axis)
        if isinstance(count, int) and count != self.num_channels:
            raise ShapeError(f"GroupNorm: x has shape {x.shape}: expected {self.num_channels} channels along axis {self.axis}")
        return group_norm(x, self.num_groups, self._tensor("weight"), self._tensor("bias"), self.eps, axis=self.axis)

    def _arguments(self) -> str:
        text = f"{self.num_groups}, {self.num_channels}, eps={self.eps}" + "".join(f", {name}" for name in self._shapes)
        return text + ("" if self.axis == 1 else f", axis={self.axis}")


class _InstanceNorm(_Statistics):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        axis: int = 1,
        layout: str | None = None,
    ) -> None:
        number(type(self).__name__, "momentum", momentum)
        self._begin(num_features, eps, affine, affine, track_running_stats, axis, layout)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the layer to x, with or without a batch; returns float32 of the same shape."""
        x = x if isinstance(x, Symbol) else as_float32(x, type(self).__name__, "x")
        if len(x.shape) == self._ranks[0] - 1:
            y: np.ndarray = squeeze(self(unsqueeze(x, 0)), 0)
            return y
        self._check(x.shape)
        get = self._tensor
        return instance_norm(
            x, get("running_mean"), get("running_var"), get("weight"), get("bias"), not self.track_running_stats,
            eps=self.eps, axis=self.axis,
        )  # fmt: skip


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of x ``(n, c, l)`` or ``(c, l)``; see `InstanceNorm2d` for the arguments."""

    _ranks = (3,)


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each example to mean 0 and variance 1: ``(x - mean) / sqrt(variance + eps) * weight + bias``.

    Args:
        num_features: the number of channels of x, ``(n, c, h, w)`` or ``(c, h, w)``.
        eps: added to the variance.
        momentum: accepted for compatibility; without effect.
        affine: whether there are `weight` and `bias`.
        track_running_stats: True takes the running statistics of the training instead of x's own, as torch's layer does in
            inference.
        axis: the axis of the channels of x with a batch; -1 in channels-last layouts.
        layout: instead of the axis, as in `Conv2d`.

    Tensors: ``weight``, ``bias``, ``running_mean``, ``running_var``, each (num_features,), those that there are;
    ``num_batches_tracked`` is passed over.

    >>> import numpy as np, fastlayers as fl
    >>> fl.InstanceNorm2d(1, eps=0.0)(np.array([[[[1.0, 3.0]]]]))
    array([[[[-1.,  1.]]]], dtype=float32)
    """

    _ranks = (4,)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of x ``(n, c, d, h, w)`` or ``(c, d, h, w)``; see `InstanceNorm2d` for the arguments."""

    _ranks = (5,)


class LocalResponseNorm(Layer):
    """`functional.local_response_norm` as a layer: ``x / (k + alpha / size * sum of x * x) ** beta``.

    Args:
        size: how many neighbouring channels are summed.
        alpha: the factor of the sum.
        beta: the exponent.
        k: the summand.
        axis: the axis of the channels.
        layout: instead of the axis, ``"nchw"`` or ``"nhwc"``, for any number of axes.

    >>> import numpy as np, fastlayers as fl
    >>> fl.LocalResponseNorm(3, alpha=0.0, k=16.0)(np.array([[8.0, 16.0]]))
    array([[1., 2.]], dtype=float32)
    """

    def __init__(
        self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, *, axis: int = 1, layout: str | None = None
    ) -> None:
        response_rule((1, 1), size, alpha, beta, k, 1)
        self.size, self.alpha, self.beta, self.k = integer("LocalResponseNorm", "size", size), float(alpha), float(beta), float(k)
        self.axis = channel_axis("LocalResponseNorm", axis, layout)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the layer to x ``(n, c, ...)``; returns float32 of the same shape."""
        return local_response_norm(x, self.size, self.alpha, self.beta, self.k, axis=self.axis)

    def _arguments(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}" + (
            "" if self.axis == 1 else f", axis={self.axis}"
        )
