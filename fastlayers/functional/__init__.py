"""Stateless functions: arrays in, fresh float32 arrays out; with a symbolic value among the inputs they record (see ``graph``).

Each function checks its arguments, finds the shape of its result and calls a kernel of the current variant:
``functional`` -> ``kernels._dispatch`` -> ``kernels/<variant>/<same file>``.
"""

from .activation import (
    elu,
    gelu,
    hardsigmoid,
    hardswish,
    leaky_relu,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softsign,
    swish,
    tanh,
)
from .adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    global_avg_pool,
    global_max_pool,
)
from .arithmetic import add, divide, multiply, subtract
from .attention import scaled_dot_product_attention
from .attention_additive import additive_attention, hard_attention
from .channelwise import batch_norm, group_norm, instance_norm, local_response_norm
from .conv import conv1d, conv2d, conv3d
from .conv_transpose import conv_transpose1d, conv_transpose2d, conv_transpose3d
from .dropout import dropout
from .elementwise import clip, erf, exp, hardtanh, identity, log, sqrt
from .embedding import embedding
from .further import celu, hardshrink, logsigmoid, quick_gelu, softmin, softshrink, tanhshrink, threshold
from .gated import glu, prelu, swiglu
from .hierarchical import hierarchical_argmax, hierarchical_log_prob, hierarchical_log_softmax
from .joining import concat, select, slice
from .layout import flatten, permute, reshape, squeeze, to_channels_first, to_channels_last, unsqueeze
from .linear import linear
from .lp_pooling import lp_pool1d, lp_pool2d, lp_pool3d
from .normalisation import layer_norm, rms_norm
from .padding import pad
from .pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from .positional import rotary_embedding, rotary_tables, sinusoidal_encoding
from .recurrent_gru import gru, gru_cell
from .recurrent_lstm import lstm, lstm_cell
from .recurrent_rnn import rnn, rnn_cell
from .regions import roi_align, roi_pool
from .resampling import interpolate, pixel_shuffle, pixel_unshuffle
from .search import beam_search, greedy_search
from .separable import separable_conv1d, separable_conv2d
from .softmax import log_softmax, softmax
from .time_pooling import max_over_time, mean_over_time

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "add", "additive_attention", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "beam_search",
    "celu", "clip", "concat", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "divide", "dropout", "elu", "embedding", "erf", "exp", "flatten", "gelu", "global_avg_pool", "global_max_pool", "glu",
    "greedy_search", "group_norm", "gru", "gru_cell", "hard_attention", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "hierarchical_argmax", "hierarchical_log_prob", "hierarchical_log_softmax", "identity", "instance_norm", "interpolate",
    "layer_norm", "leaky_relu", "linear", "local_response_norm", "log", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d",
    "lp_pool3d", "lstm", "lstm_cell", "max_over_time", "max_pool1d", "max_pool2d", "max_pool3d", "mean_over_time", "mish",
    "multiply", "pad", "permute", "pixel_shuffle", "pixel_unshuffle", "prelu", "quick_gelu", "relu", "relu6", "reshape",
    "rms_norm", "rnn", "rnn_cell", "roi_align", "roi_pool", "rotary_embedding", "rotary_tables", "scaled_dot_product_attention",
    "select", "selu", "separable_conv1d", "separable_conv2d", "sigmoid", "silu", "sinusoidal_encoding", "slice", "softmax",
    "softmin", "softplus", "softshrink", "softsign", "sqrt", "squeeze", "subtract", "swiglu", "swish", "tanh", "tanhshrink",
    "threshold", "to_channels_first", "to_channels_last", "unsqueeze",
]  # fmt: skip
