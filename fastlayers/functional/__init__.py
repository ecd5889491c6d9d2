"""Stateless functions: arrays in, fresh float32 arrays out; with a symbolic value among the inputs they record (see ``graph``).

Each function checks its arguments, finds the shape of its result and calls a kernel of the current variant:
``functional`` -> ``kernels.dispatch`` -> ``kernels/<variant>/<same file>``.
"""

from typing import TYPE_CHECKING

from .._lazy import by_name, exports, functions_first
from .homes import HOMES

if TYPE_CHECKING:
    from .activation import *
    from .activation_gated import *
    from .activation_softmax import *
    from .arithmetic import *
    from .attention import *
    from .attention_additive import *
    from .conv import *
    from .conv_separable import *
    from .conv_transpose import *
    from .dropout import *
    from .embedding import *
    from .linear import *
    from .movement import *
    from .normalization import *
    from .padding import *
    from .pooling import *
    from .pooling_adaptive import *
    from .pooling_lp import *
    from .pooling_time import *
    from .positional import *
    from .recurrent_gru import *
    from .recurrent_lstm import *
    from .recurrent_rnn import *
    from .regions import *
    from .resampling import *
    from .search import *
    from .shape import *
    from .similarity import *
    from .spectral import *
    from .spectral_mel import *
    from .spectral_short_time import *
    from .tree import *
else:
    __all__ = sorted(by_name(HOMES))
    __getattr__, __dir__ = exports(__name__, HOMES)
    functions_first(__name__, {"dropout", "embedding", "linear"})
