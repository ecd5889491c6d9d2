"""Which module of this package has which public functions: it is imported when one of them is first asked for."""

from __future__ import annotations

__all__ = ["HOMES"]

HOMES: dict[str, str] = {
    "activation": (
        "celu elu gelu hardshrink hardsigmoid hardswish hardtanh identity leaky_relu logsigmoid mish quick_gelu relu "
        "relu6 selu sigmoid silu softplus softshrink softsign swish tanh tanhshrink threshold"
    ),
    "activation_gated": "glu prelu swiglu",
    "activation_softmax": "log_softmax softmax softmin",
    "arithmetic": "add clip divide erf exp log multiply sqrt subtract",
    "attention": "scaled_dot_product_attention",
    "attention_additive": "additive_attention hard_attention",
    "conv": "conv1d conv2d conv3d",
    "conv_separable": "separable_conv1d separable_conv2d",
    "conv_transpose": "conv_transpose1d conv_transpose2d conv_transpose3d",
    "dropout": "dropout",
    "embedding": "embedding",
    "linear": "linear",
    "movement": "concat select slice",
    "normalization": "batch_norm group_norm instance_norm layer_norm local_response_norm rms_norm",
    "padding": "pad",
    "pooling": "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d",
    "pooling_adaptive": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d global_avg_pool global_max_pool"
    ),
    "pooling_lp": "lp_pool1d lp_pool2d lp_pool3d",
    "pooling_time": "max_over_time mean_over_time",
    "positional": "rotary_embedding rotary_tables sinusoidal_encoding",
    "recurrent_gru": "gru gru_cell",
    "recurrent_lstm": "lstm lstm_cell",
    "recurrent_rnn": "rnn rnn_cell",
    "regions": "roi_align roi_pool",
    "resampling": "interpolate pixel_shuffle pixel_unshuffle",
    "search": "beam_search greedy_search",
    "shape": "flatten permute reshape squeeze to_channels_first to_channels_last unsqueeze",
    "similarity": "cosine_similarity",
    "spectral": "fft ifft irfft rfft",
    "spectral_mel": "blackman_window hamming_window hann_window melscale_fbanks",
    "spectral_short_time": "istft spectrogram stft",
    "tree": "hierarchical_argmax hierarchical_log_prob hierarchical_log_softmax",
}
