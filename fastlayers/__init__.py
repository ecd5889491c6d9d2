"""Fast CPU inference for trained networks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
from .layers import *  # noqa: F403 - layers.__all__ is explicit, and test_public.py holds this list to it
from .threads import get_num_threads, set_num_threads

if TYPE_CHECKING:
    from .model import InferenceSession, Model, Stream, TensorSpec, compile, load, operator

__version__ = "0.1.0"
__all__ = [
    "DTypeError", "DeviceError", "Error", "FormatError", "InferenceSession", "LimitError", "MissingExtraError", "Model",
    "ShapeError",
    "Stream", "TensorSpec", "UnsupportedError", "WeightsError", "__version__", "compile", "functional", "get_num_threads",
    "graph", "kernels", "layers", "load", "load_weights", "operator", "set_num_threads",
]  # fmt: skip
__all__ += layers.__all__

# Whole networks bring in every operator and pass: whoever uses layers alone does not wait for them.
_LAZY = frozenset({"InferenceSession", "Model", "Stream", "TensorSpec", "compile", "load", "operator"})


def __getattr__(name: str) -> Any:
    if name == "cuda":
        return import_module(".cuda", __name__)
    if name not in _LAZY:
        raise AttributeError(f"module 'fastlayers' has no attribute {name!r}")
    from . import model

    for lazy in _LAZY:
        globals()[lazy] = getattr(model, lazy)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
