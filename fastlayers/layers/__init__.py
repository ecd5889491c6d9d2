"""Layers: torch's names, arguments, defaults and state dicts. They hold weights, never state between calls.

``layers`` -> the inner parts of ``functional``, with weights that were packed once for the current kernel variant. To add a
layer: (1) the function in ``functional/``; (2) a class in the file of its family here; (3) a golden in
``tests/goldens/make_front.py``.
"""

from ._base import Layer
from ._load import Loaded
from .activation import (
    ELU,
    GELU,
    GLU,
    SELU,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    Identity,
    LeakyReLU,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Softsign,
    SwiGLU,
    Tanh,
)
from .attention import AdditiveAttention, Attention, BahdanauAttention
from .blocks import BottleneckBlock, InceptionBlock, NiNBlock, ResidualBlock
from .channelwise import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LocalResponseNorm,
)
from .container import Sequential
from .conv import Conv1d, Conv2d, Conv3d, DepthwiseConv1d, DepthwiseConv2d
from .conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .dropout import Dropout, Dropout1d, Dropout2d, Dropout3d, MonteCarlo
from .embedding import Embedding
from .feedforward import FeedForward
from .further import CELU, Hardshrink, LogSigmoid, QuickGELU, Softmin, Softshrink, Tanhshrink, Threshold
from .hierarchical import ClassTree, HierarchicalSoftmax
from .layout import Flatten, Permute, Reshape
from .linear import Linear
from .multihead import MultiheadAttention
from .normalisation import LayerNorm, RMSNorm
from .padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from .pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    GlobalAvgPool,
    GlobalMaxPool,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxOverTime,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    MeanOverTime,
)
from .positional import LearnedPositionalEncoding, PositionalEncoding, RotaryEmbedding
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from .regions import RoIAlign, RoIPool
from .resampling import PixelShuffle, PixelUnshuffle, Upsample
from .separable import SeparableConv1d, SeparableConv2d
from .seq2seq import Seq2Seq
from .transformer import Transformer, TransformerDecoder, TransformerEncoder
from .transformer_layer import TransformerDecoderLayer, TransformerEncoderLayer

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "GRU", "LSTM", "RNN", "SELU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AdditiveAttention", "Attention", "AvgPool1d", "AvgPool2d",
    "AvgPool3d", "BahdanauAttention", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "BottleneckBlock", "CircularPad1d",
    "CircularPad2d", "CircularPad3d", "ClassTree", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv2d",
    "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "DepthwiseConv1d", "DepthwiseConv2d", "Dropout",
    "Dropout1d", "Dropout2d", "Dropout3d", "Embedding", "FeedForward", "Flatten", "GRUCell", "GlobalAvgPool", "GlobalMaxPool",
    "GroupNorm", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "HierarchicalSoftmax", "Identity", "InceptionBlock",
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LPPool1d", "LPPool2d", "LPPool3d", "LSTMCell", "Layer", "LayerNorm",
    "LeakyReLU", "LearnedPositionalEncoding", "Linear", "Loaded", "LocalResponseNorm", "LogSigmoid", "LogSoftmax",
    "MaxOverTime", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MeanOverTime", "Mish", "MonteCarlo", "MultiheadAttention",
    "NiNBlock", "PReLU", "Permute", "PixelShuffle", "PixelUnshuffle", "PositionalEncoding", "QuickGELU", "RMSNorm", "RNNCell",
    "ReLU", "ReLU6", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "Reshape", "ResidualBlock", "RoIAlign", "RoIPool", "RotaryEmbedding", "SeparableConv1d",
    "SeparableConv2d", "Seq2Seq", "Sequential", "SiLU", "Sigmoid", "Softmax", "Softmin", "Softplus", "Softshrink", "Softsign",
    "SwiGLU", "Tanh", "Tanhshrink", "Threshold", "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
    "TransformerEncoder", "TransformerEncoderLayer", "Upsample", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip
