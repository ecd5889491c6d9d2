"""Affine layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..functional._activation_names import resolve
from ..functional._linear import linear as linear_function
from ..functional._linear import pack_linear, run_linear
from ..graph.arrays import as_float32
from ..graph.symbol import Symbol
from ..ir.checks import integer
from ..rules.weights import linear_rule
from ._base import WithWeight
from ._text import arguments

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["Linear"]


class Linear(WithWeight):
    """Affine layer: ``act(x weightᵀ + bias)`` over the last axis.

    Args:
        in_features: size of the last axis of x.
        out_features: size of the last axis of the result.
        bias: whether there is a bias.
        activation: None, a name such as ``"relu"``, ``("leaky_relu", {"negative_slope": 0.2})``, or a layer such as ``ReLU()``.

    Tensors: ``weight`` (out_features, in_features) and ``bias`` (out_features,). Keras' Dense: kernel (in_features,
    out_features), bias.

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.Linear(3, 2)
    >>> _ = layer.load_state_dict({"weight": np.ones((2, 3)), "bias": np.array([0.0, 1.0])})
    >>> layer(np.ones((4, 3))).shape
    (4, 2)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, activation: Any = None) -> None:
        self.in_features = integer("Linear", "in_features", in_features, 0)
        self.out_features = integer("Linear", "out_features", out_features, 0)
        self._activation_code = resolve("Linear", activation)
        shapes: dict[str, tuple[int, ...]] = {"weight": (self.out_features, self.in_features)}
        self._shapes = {**shapes, "bias": (self.out_features,)} if bias else shapes

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the layer to x ``(..., in_features)``; returns float32 ``(..., out_features)``."""
        fast = self._fast
        if fast is not None:
            y: np.ndarray | None = fast(x)
            if y is not None:
                return y
        if isinstance(x, Symbol):
            tensors = self._tensors()
            return linear_function(x, tensors["weight"], tensors.get("bias"), activation=self._activation_code)
        packed = self._packed()
        x = as_float32(x, "linear", "x")
        if x.ndim == 0 or x.shape[-1] != self.in_features:
            linear_rule("linear", x.shape, (self.out_features, self.in_features), None)  # raises
        return run_linear(packed, x, self.out_features, None, self._activation_code)

    def _pack(self, tensors: dict[str, np.ndarray]) -> tuple[Any, Any]:
        packed = pack_linear(tensors["weight"], tensors.get("bias"))
        bind = getattr(packed[1], "bind", None)
        return packed, None if bind is None else bind(self._activation_code).call

    def _keras(self) -> dict[str, tuple[int, ...]]:
        kernel: dict[str, tuple[int, ...]] = {"kernel": (self.in_features, self.out_features)}
        return {**kernel, "bias": (self.out_features,)} if "bias" in self._shapes else kernel

    def _from_keras(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        given["weight"] = given.pop("kernel").T
        return given

    def _arguments(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={'bias' in self._shapes}" + arguments(
            self._activation_code
        )
