"""Which module of this package has which public functions: it is imported when one of them is first asked for."""

from __future__ import annotations

__all__ = ["HOMES"]

HOMES: dict[str, str] = {
    "activation": "elu gelu hardsigmoid hardswish leaky_relu mish relu relu6 selu sigmoid silu softplus softsign swish tanh",
    "adaptive": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d global_avg_pool global_max_pool"
    ),
    "arithmetic": "add divide multiply subtract",
    "attention": "scaled_dot_product_attention",
    "attention_additive": "additive_attention hard_attention",
    "channelwise": "batch_norm group_norm instance_norm local_response_norm",
    "conv": "conv1d conv2d conv3d",
    "conv_transpose": "conv_transpose1d conv_transpose2d conv_transpose3d",
    "dropout": "dropout",
    "elementwise": "clip erf exp hardtanh identity log sqrt",
    "embedding": "embedding",
    "further": "celu hardshrink logsigmoid quick_gelu softmin softshrink tanhshrink threshold",
    "gated": "glu prelu swiglu",
    "hierarchical": "hierarchical_argmax hierarchical_log_prob hierarchical_log_softmax",
    "joining": "concat select slice",
    "layout": "flatten permute reshape squeeze to_channels_first to_channels_last unsqueeze",
    "linear": "linear",
    "lp_pooling": "lp_pool1d lp_pool2d lp_pool3d",
    "mel": "blackman_window hamming_window hann_window melscale_fbanks",
    "normalization": "layer_norm rms_norm",
    "padding": "pad",
    "pooling": "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d",
    "positional": "rotary_embedding rotary_tables sinusoidal_encoding",
    "recurrent_gru": "gru gru_cell",
    "recurrent_lstm": "lstm lstm_cell",
    "recurrent_rnn": "rnn rnn_cell",
    "regions": "roi_align roi_pool",
    "resampling": "interpolate pixel_shuffle pixel_unshuffle",
    "search": "beam_search greedy_search",
    "separable": "separable_conv1d separable_conv2d",
    "short_time": "istft spectrogram stft",
    "similarity": "cosine_similarity",
    "softmax": "log_softmax softmax",
    "spectral": "fft ifft irfft rfft",
    "time_pooling": "max_over_time mean_over_time",
}
