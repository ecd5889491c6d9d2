"""Whole networks: `load` a file or `compile` a function of layers, then call the `Model`."""

from typing import TYPE_CHECKING

from .._lazy import exports

if TYPE_CHECKING:
    from ..stream import Stream
    from ._compile import compile
    from ._load import load
    from .custom import operator
    from .model import Model
    from .session import InferenceSession
    from .specs import TensorSpec
else:
    _HOMES = {
        "_compile": "compile", "_load": "load", "custom": "operator", "model": "Model", "specs": "TensorSpec",
        "session": "InferenceSession",
    }  # fmt: skip
    __getattr__, __dir__ = exports(__name__, _HOMES)

__all__ = ["InferenceSession", "Model", "Stream", "TensorSpec", "compile", "load", "operator"]
