"""Stateless functions: arrays in, fresh float32 arrays out; with a symbolic value among the inputs they record (see ``graph``).

Each function checks its arguments, finds the shape of its result and calls a kernel of the current variant:
``functional/_<family>`` -> ``kernels.dispatch`` -> ``kernels/<variant>/<family>``.
"""

from typing import TYPE_CHECKING

from .._lazy import by_name, exports
from ._homes import HOMES

if TYPE_CHECKING:
    from ._activation import *
    from ._activation_gated import *
    from ._activation_softmax import *
    from ._arithmetic import *
    from ._attention import *
    from ._attention_additive import *
    from ._conv import *
    from ._conv_separable import *
    from ._conv_transpose import *
    from ._dropout import *
    from ._embedding import *
    from ._linear import *
    from ._movement import *
    from ._normalization import *
    from ._padding import *
    from ._pooling import *
    from ._pooling_adaptive import *
    from ._pooling_lp import *
    from ._pooling_time import *
    from ._positional import *
    from ._recurrent_gru import *
    from ._recurrent_lstm import *
    from ._recurrent_rnn import *
    from ._regions import *
    from ._resampling import *
    from ._search import *
    from ._shape import *
    from ._similarity import *
    from ._spectral import *
    from ._spectral_mel import *
    from ._spectral_short_time import *
    from ._tree import *
else:
    __all__ = sorted(by_name(HOMES))
    __getattr__, __dir__ = exports(__name__, HOMES)
