"""Whole networks: `load` a file or `compile` a function of layers, then call the `Model`."""

from typing import TYPE_CHECKING

from .._lazy import exports

if TYPE_CHECKING:
    from ._compile import compile
    from .custom import operator
    from .loading import load
    from .model import Model
    from .quantization import quantize
    from .specs import TensorSpec
    from .stream import Stream
else:
    _HOMES = {
        "_compile": "compile", "loading": "load", "custom": "operator", "model": "Model", "specs": "TensorSpec",
        "quantization": "quantize", "stream": "Stream",
    }  # fmt: skip
    __getattr__, __dir__ = exports(__name__, _HOMES)

__all__ = ["Model", "Stream", "TensorSpec", "compile", "load", "operator", "quantize"]
