"""Stateless functions: arrays in, fresh float32 arrays out; with a symbolic value among the inputs they record (see ``graph``).

Each function checks its arguments, finds the shape of its result and calls a kernel of the current variant:
``functional`` -> ``kernels._dispatch`` -> ``kernels/<variant>/<same file>``.
"""

from typing import TYPE_CHECKING

from .._lazy import by_name, exports, functions_first
from ._exports import HOMES

if TYPE_CHECKING:
    from .activation import *
    from .adaptive import *
    from .arithmetic import *
    from .attention import *
    from .attention_additive import *
    from .channelwise import *
    from .conv import *
    from .conv_transpose import *
    from .dropout import *
    from .elementwise import *
    from .embedding import *
    from .further import *
    from .gated import *
    from .hierarchical import *
    from .joining import *
    from .layout import *
    from .linear import *
    from .lp_pooling import *
    from .mel import *
    from .normalization import *
    from .padding import *
    from .pooling import *
    from .positional import *
    from .recurrent_gru import *
    from .recurrent_lstm import *
    from .recurrent_rnn import *
    from .regions import *
    from .resampling import *
    from .search import *
    from .separable import *
    from .short_time import *
    from .similarity import *
    from .softmax import *
    from .spectral import *
    from .time_pooling import *
else:
    __all__ = sorted(by_name(HOMES))
    __getattr__, __dir__ = exports(__name__, HOMES)
    functions_first(__name__, {"dropout", "embedding", "linear", "softmax"})
