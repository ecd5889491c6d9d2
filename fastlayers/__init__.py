"""Fast CPU inference for trained networks."""

from typing import TYPE_CHECKING

from . import _forks as _forks  # from here on forks wait for what is imported
from ._lazy import by_name, exports
from ._version import __version__
from .errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    Error,
    FormatError,
    LimitError,
    MissingExtraError,
    ShapeError,
    TimeoutError,
    UnsupportedError,
    WeightsError,
)
from .layers.homes import HOMES as _LAYERS
from .threads import get_num_threads, set_num_threads

# What a process does not use it does not wait for: layers, whole networks, and the kernels of both come when they are asked for.
_HOMES = {
    "_example": "example",
    "_held": "Memory memory trim_memory",
    "formats": "load_weights",
    "layers": " ".join(_LAYERS.values()),
    "model._compile": "compile",
    "model.loading": "load",
    "model.custom": "operator",
    "model.model": "Model",
    "model.quantization": "quantize",
    "model.specs": "TensorSpec",
    "model.stream": "Stream",
}
_MODULES = ("functional", "graph", "kernels", "layers")

if TYPE_CHECKING:
    from . import cuda as cuda
    from . import functional, graph, kernels, layers
    from . import ort as ort
    from . import text as text
    from ._example import example
    from ._held import Memory, memory, trim_memory
    from .formats import load_weights
    from .layers import *
    from .model import Model, Stream, TensorSpec, compile, load, operator, quantize

__all__ = [
    "ArgumentError", "DTypeError", "DeviceError", "Error", "FormatError", "LimitError", "Memory",
    "MissingExtraError", "Model", "ShapeError", "Stream", "TensorSpec", "TimeoutError", "UnsupportedError",
    "WeightsError", "__version__", "compile", "example", "functional", "get_num_threads", "graph", "kernels", "layers", "load",
    "load_weights", "memory", "operator", "quantize", "set_num_threads", "trim_memory",
]  # fmt: skip

if not TYPE_CHECKING:
    __all__ += sorted(by_name({"layers": _HOMES["layers"]}))

    def _advice(name: str) -> str:
        from ._habits import in_package
        from .functional import _homes

        return in_package(name, by_name(_LAYERS), by_name(_homes.HOMES))

    __getattr__, __dir__ = exports(__name__, _HOMES, (*_MODULES, "cuda", "ort", "text"), _advice)
