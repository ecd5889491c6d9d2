"""Layer and root-mean-square normalization as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..functional import layer_norm, rms_norm
from ..functional.normalization import last_sizes, positive
from ._base import WithWeight

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["LayerNorm", "RMSNorm"]


class Normalization(WithWeight):
    """What the normalizations share: `weight` and `bias`, which files also call gamma (or scale) and beta, and statistics."""

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
