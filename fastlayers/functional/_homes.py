"""The module of each public function: it is imported when one of them is first asked for."""

from __future__ import annotations

__all__ = ["HOMES"]

HOMES: dict[str, str] = {
    "_activation": (
        "celu elu gelu hardshrink hardsigmoid hardswish hardtanh identity leaky_relu logsigmoid mish quick_gelu relu "
        "relu6 selu sigmoid silu softplus softshrink softsign swish tanh tanhshrink threshold"
    ),
    "_activation_gated": "glu prelu swiglu",
    "_activation_softmax": "log_softmax softmax softmin",
    "_arithmetic": "add clip divide erf exp log multiply sqrt subtract",
    "_attention": "scaled_dot_product_attention",
    "_attention_additive": "additive_attention hard_attention",
    "_conv": "conv1d conv2d conv3d",
    "_conv_separable": "separable_conv1d separable_conv2d",
    "_conv_transpose": "conv_transpose1d conv_transpose2d conv_transpose3d",
    "_dropout": "dropout",
    "_embedding": "embedding",
    "_linear": "linear",
    "_movement": "concat select slice",
    "_normalization": "batch_norm group_norm instance_norm layer_norm local_response_norm rms_norm",
    "_padding": "pad",
    "_pooling": "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d",
    "_pooling_adaptive": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d global_avg_pool global_max_pool"
    ),
    "_pooling_lp": "lp_pool1d lp_pool2d lp_pool3d",
    "_pooling_time": "max_over_time mean_over_time",
    "_positional": "rotary_embedding rotary_tables sinusoidal_encoding",
    "_recurrent_gru": "gru gru_cell",
    "_recurrent_lstm": "lstm lstm_cell",
    "_recurrent_rnn": "rnn rnn_cell",
    "_regions": "roi_align roi_pool",
    "_resampling": "interpolate pixel_shuffle pixel_unshuffle",
    "_search": "beam_search greedy_search",
    "_shape": "flatten permute reshape squeeze to_channels_first to_channels_last unsqueeze",
    "_similarity": "cosine_similarity",
    "_spectral": "fft ifft irfft rfft",
    "_spectral_mel": "blackman_window hamming_window hann_window melscale_fbanks",
    "_spectral_short_time": "istft spectrogram stft",
    "_tree": "hierarchical_argmax hierarchical_log_prob hierarchical_log_softmax",
}
