"""Further activations as layers, with torch's names and arguments; they hold no weights."""

from __future__ import annotations

from ..functional import softmin
from ..functional._checks import number
from ..functional.further import celu_rule
from .activation import _AlongAxis, _Elementwise

__all__ = ["CELU", "Hardshrink", "LogSigmoid", "QuickGELU", "Softmin", "Softshrink", "Tanhshrink", "Threshold"]


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
