"""Layers: torch's names, arguments, defaults and state dicts. They hold weights, never state between calls.

``layers`` -> the inner parts of ``functional``, with weights that were packed once for the current kernel variant.
CONTRIBUTING.md lists the steps of adding a layer.
"""

from typing import TYPE_CHECKING

from .._lazy import by_name, exports
from .homes import HOMES

if TYPE_CHECKING:
    from ._base import Layer as Layer
    from ._load import Loaded as Loaded
    from .activation import *
    from .attention import *
    from .attention_multihead import *
    from .blocks import *
    from .container import *
    from .conv import *
    from .conv_separable import *
    from .conv_transpose import *
    from .dropout import *
    from .embedding import *
    from .feedforward import *
    from .linear import *
    from .normalization import *
    from .padding import *
    from .pooling import *
    from .positional import *
    from .recurrent import *
    from .regions import *
    from .resampling import *
    from .seq2seq import *
    from .shape import *
    from .similarity import *
    from .spectral import *
    from .transformer import *
    from .transformer_layer import *
    from .tree import *
else:
    __all__ = sorted(by_name(HOMES))
    __getattr__, __dir__ = exports(__name__, HOMES)
