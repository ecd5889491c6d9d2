"""Fast CPU inference for trained networks."""

from . import functional, graph, kernels, layers
from .errors import (
    DeviceError,
    DTypeError,
    Error,
    FormatError,
    LimitError,
    MissingExtraError,
    ShapeError,
    UnsupportedError,
    WeightsError,
)
from .formats import load_weights
from .model import InferenceSession, Model, TensorSpec, compile, load
from .layers import *  # noqa: F403 - layers.__all__ is explicit, and test_public.py holds this list to it
from .threads import get_num_threads, set_num_threads

__version__ = "0.1.0"
__all__ = [
    "DTypeError", "DeviceError", "Error", "FormatError", "InferenceSession", "LimitError", "MissingExtraError", "Model",
    "ShapeError", "TensorSpec", "UnsupportedError", "WeightsError", "__version__", "compile", "functional", "get_num_threads",
    "graph", "kernels", "layers", "load", "load_weights", "set_num_threads",
]  # fmt: skip
__all__ += layers.__all__
