"""Fast CPU inference for trained networks."""

from typing import TYPE_CHECKING

from . import _forks as _forks  # from here on forks wait for what is imported
from ._lazy import by_name, exports
from ._version import __version__ as __version__
from .errors import *
from .layers.homes import HOMES as _LAYERS
from .threads import *

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

if TYPE_CHECKING:  # and no __all__: what is imported by a star or under its own name is public
    from . import cuda as cuda
    from . import functional as functional
    from . import graph as graph
    from . import kernels as kernels
    from . import layers as layers
    from . import ort as ort
    from . import text as text
    from ._example import example as example
    from ._held import Memory as Memory
    from ._held import memory as memory
    from ._held import trim_memory as trim_memory
    from .formats import load_weights as load_weights
    from .layers import *
    from .model import *
else:
    from . import errors, threads

    __all__ = sorted(["__version__", *errors.__all__, *threads.__all__, *_MODULES, *by_name(_HOMES)])

    def _advice(name: str) -> str:
        from ._habits import in_package
        from .functional import _homes

        return in_package(name, by_name(_LAYERS), by_name(_homes.HOMES))

    __getattr__, __dir__ = exports(__name__, _HOMES, (*_MODULES, "cuda", "ort", "text"), _advice)
