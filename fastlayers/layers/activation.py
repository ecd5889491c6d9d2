"""Activations as layers, with torch's names and arguments. They hold no weights, except `PReLU`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import imported
from ..errors import ArgumentError
from ..functional import glu, log_softmax, prelu, softmin, swiglu
from ..functional._activation import celu_rule, gelu_rule, softplus_rule
from ..functional._activation_names import resolve
from ..functional._activation_softmax import softmax
from ..functional._activation_unary import run_unary
from ..graph.symbol import Symbol
from ..ir.checks import integer, number
from ._base import Layer, WithWeight
from ._channels import channel_axis

if TYPE_CHECKING:
    from ..functional._types import Tensor


__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "Identity",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "QuickGELU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "SwiGLU",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Elementwise(Layer):
    """An activation that works element by element; it may also be given as `activation=` to another layer."""

    _operation = "identity"

    def __init__(self) -> None:
        self._set({})

    def _set(self, parameters: dict[str, Any], spec: Any = None) -> None:
        """Takes the parameters by the names of the function, and the same as `activation=` takes it."""
        self._parameters = parameters
        self._activation = resolve(type(self).__name__, spec or (self._operation, parameters))

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the function to x, of any shape; returns float32 of that shape."""
        if isinstance(x, Symbol):
            result: np.ndarray = getattr(imported("fastlayers.functional"), self._operation)(x, **self._parameters)
            return result
        return run_unary(self._operation, x, self._activation)

    def _arguments(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self._parameters.items())


class _InPlace(_Elementwise):
    """One that has torch's argument `inplace`, which changes nothing here: results are always fresh."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class Identity(_Elementwise):
    """`functional.identity` as a layer; takes any arguments, as torch's does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()


class ReLU(_InPlace):
    """`functional.relu` as a layer."""

    _operation = "relu"


class ReLU6(_InPlace):
    """`functional.relu6` as a layer."""

    _operation = "relu6"


class SELU(_InPlace):
    """`functional.selu` as a layer."""

    _operation = "selu"


class SiLU(_InPlace):
    """`functional.silu` as a layer."""

    _operation = "silu"


class Sigmoid(_Elementwise):
    """`functional.sigmoid` as a layer."""

    _operation = "sigmoid"


class Tanh(_Elementwise):
    """`functional.tanh` as a layer."""

    _operation = "tanh"


class Hardsigmoid(_InPlace):
    """`functional.hardsigmoid` as a layer."""

    _operation = "hardsigmoid"


class Hardswish(_InPlace):
    """`functional.hardswish` as a layer."""

    _operation = "hardswish"


class Softsign(_Elementwise):
    """`functional.softsign` as a layer."""

    _operation = "softsign"


class Mish(_InPlace):
    """`functional.mish` as a layer."""

    _operation = "mish"


class LeakyReLU(_Elementwise):
    """`functional.leaky_relu` as a layer; `inplace` changes nothing."""

    _operation = "leaky_relu"

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self._set({"negative_slope": negative_slope})


class ELU(_Elementwise):
    """`functional.elu` as a layer; `inplace` changes nothing."""

    _operation = "elu"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self._set({"alpha": alpha})


class GELU(_Elementwise):
    """`functional.gelu` as a layer."""

    _operation = "gelu"

    def __init__(self, approximate: str = "none") -> None:
        gelu_rule((), approximate)
        self._set({"approximate": approximate})


class Softplus(_Elementwise):
    """`functional.softplus` as a layer."""

    _operation = "softplus"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        softplus_rule((), beta, threshold)
        self._set({"beta": beta, "threshold": threshold})


class Hardtanh(_Elementwise):
    """`functional.hardtanh` as a layer; `inplace` changes nothing."""

    _operation = "hardtanh"

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self._set({"min_val": min_val, "max_val": max_val}, ("clip", {"min": min_val, "max": max_val}))
        if not min_val < max_val:
            raise ArgumentError(f"Hardtanh: min_val is {min_val}, max_val is {max_val}: expected min_val below max_val")


class PReLU(WithWeight):
    """`functional.prelu` with learned slopes.

    Args:
        num_parameters: 1, or the number of channels.
        init: accepted for compatibility; the slopes must be loaded.
        layout: channels first, ``"nchw"``, or last, ``"nhwc"``, for any number of axes.

    Tensors: ``weight`` (num_parameters,).

    >>> import numpy as np, fastlayers as fl
    >>> layer = fl.PReLU()
    >>> _ = layer.load_state_dict({"weight": np.array([0.5])})
    >>> layer(np.array([[-2.0, 2.0]]))
    array([[-1.,  2.]], dtype=float32)
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, layout: str = "nchw") -> None:
        self.num_parameters = integer("PReLU", "num_parameters", num_parameters, 1)
        number("PReLU", "init", init)
        self._axis = channel_axis("PReLU", 1, layout)
        self._shapes = {"weight": (self.num_parameters,)}

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the layer to x, ``(n, c, ...)`` or ``(n, ..., c)``; returns float32 of the same shape."""
        return prelu(x, self._tensors()["weight"], self._axis)

    def _arguments(self) -> str:
        return f"num_parameters={self.num_parameters}" + ("" if self._axis == 1 else ", layout='nhwc'")


class _AlongAxis(Layer):
    """A function with the one argument `dim`."""

    _function: Any = None

    def __init__(self, dim: int = -1) -> None:
        self.dim = integer(type(self).__name__, "dim", dim)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Applies the function to x along `dim`."""
        result: np.ndarray = type(self)._function(x, self.dim)
        return result

    def _arguments(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongAxis):
    """`functional._activation_softmax` as a layer; torch has no default for `dim`, here it is the last axis."""

    _function = staticmethod(softmax)


class LogSoftmax(_AlongAxis):
    """`functional.log_softmax` as a layer; torch has no default for `dim`, here it is the last axis."""

    _function = staticmethod(log_softmax)


class GLU(_AlongAxis):
    """`functional.glu` as a layer."""

    _function = staticmethod(glu)


class SwiGLU(_AlongAxis):
    """`functional.swiglu` as a layer."""

    _function = staticmethod(swiglu)


class CELU(_Elementwise):
    """`functional.celu` as a layer; `inplace` changes nothing."""

    _operation = "celu"

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        celu_rule((), alpha)
        self._set({"alpha": alpha})


class Hardshrink(_Elementwise):
    """`functional.hardshrink` as a layer."""

    _operation = "hardshrink"

    def __init__(self, lambd: float = 0.5) -> None:
        self._set({"lambd": lambd}, ("shrink", {"lambd": lambd}))


class Softshrink(_Elementwise):
    """`functional.softshrink` as a layer."""

    _operation = "softshrink"

    def __init__(self, lambd: float = 0.5) -> None:
        number("Softshrink", "lambd", lambd)
        self._set({"lambd": lambd}, ("shrink", {"lambd": lambd, "bias": lambd}))


class Tanhshrink(_Elementwise):
    """`functional.tanhshrink` as a layer."""

    _operation = "tanhshrink"


class Threshold(_Elementwise):
    """`functional.threshold` as a layer; `inplace` changes nothing."""

    _operation = "threshold"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self._set({"threshold": threshold, "value": value})


class LogSigmoid(_Elementwise):
    """`functional.logsigmoid` as a layer."""

    _operation = "logsigmoid"


class QuickGELU(_Elementwise):
    """`functional.quick_gelu` as a layer."""

    _operation = "quick_gelu"

    def __init__(self, alpha: float = 1.702) -> None:
        self._set({"alpha": alpha})


class Softmin(_AlongAxis):
    """`functional.softmin` as a layer; torch has no default for `dim`, here it is the last axis."""

    _function = staticmethod(softmin)
