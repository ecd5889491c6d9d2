"""The module of each public layer: it is imported when one of them is first asked for."""

from __future__ import annotations

__all__ = ["HOMES"]

HOMES: dict[str, str] = {
    "_base": "Layer",
    "_load": "Loaded",
    "activation": (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid LogSoftmax Mish "
        "PReLU QuickGELU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmin Softplus Softshrink Softsign SwiGLU Tanh "
        "Tanhshrink Threshold"
    ),
    "attention": "AdditiveAttention Attention BahdanauAttention",
    "attention_multihead": "MultiheadAttention",
    "blocks": "BottleneckBlock InceptionBlock NiNBlock ResidualBlock",
    "container": "Sequential",
    "conv": "Conv1d Conv2d Conv3d DepthwiseConv1d DepthwiseConv2d",
    "conv_separable": "SeparableConv1d SeparableConv2d",
    "conv_transpose": "ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "dropout": "Dropout Dropout1d Dropout2d Dropout3d MonteCarlo",
    "embedding": "Embedding",
    "feedforward": "FeedForward",
    "linear": "Linear",
    "normalization": (
        "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm "
        "LocalResponseNorm RMSNorm"
    ),
    "padding": (
        "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d "
        "ZeroPad3d"
    ),
    "pooling": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d "
        "AvgPool1d AvgPool2d AvgPool3d GlobalAvgPool GlobalMaxPool LPPool1d LPPool2d LPPool3d MaxOverTime MaxPool1d "
        "MaxPool2d MaxPool3d MeanOverTime"
    ),
    "positional": "LearnedPositionalEncoding PositionalEncoding RotaryEmbedding",
    "recurrent": "GRU LSTM RNN GRUCell LSTMCell RNNCell",
    "regions": "RoIAlign RoIPool",
    "resampling": "PixelShuffle PixelUnshuffle Upsample",
    "seq2seq": "Seq2Seq",
    "shape": "Flatten Permute Reshape",
    "similarity": "CosineSimilarity",
    "spectral": "FFT IFFT IRFFT ISTFT RFFT STFT MelScale MelSpectrogram Spectrogram",
    "transformer": "Transformer TransformerDecoder TransformerEncoder",
    "transformer_layer": "TransformerDecoderLayer TransformerEncoderLayer",
    "tree": "ClassTree HierarchicalSoftmax",
}
