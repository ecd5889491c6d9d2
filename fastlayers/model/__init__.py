"""Whole networks: `load` a file or `compile` a function of layers, then call the `Model`."""

from ..stream import Stream
from ._compile import compile
from ._load import load
from .custom import operator
from .model import Model, TensorSpec
from .session import InferenceSession

__all__ = ["InferenceSession", "Model", "Stream", "TensorSpec", "compile", "load", "operator"]
