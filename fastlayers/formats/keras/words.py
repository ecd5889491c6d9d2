"""Words of a configuration that no rule reads, with the reason; and mappings that give only what they are declared to hold.

Every layer and operation declares the words that its rule reads. A file that says anything else of it is refused, unless the word
is here, or its value is null, which Keras writes for what was left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import UnsupportedError

__all__ = ["IGNORED", "Words", "unread"]

_TRAINING = "used in training alone"
_MADE = "what weights are before training"
_HOW = "how it is computed, not what"
_SHAPES = "the shapes of the weights say it"
_LABELS = "about labels, which a network does not get"
_FIRST = "the input's shape or dtype, where a model begins with the layer: read there"
_REFUSED = "used by other words alone, which are refused"
_BY_CONTENT = "follows from the layer's class, or from what it holds"

# Words (as patterns that match a whole word) of all layers: why they need not be read.
COMMON: dict[str, str] = {
    r"name": "read for every layer",
    r"trainable": "read where weights are in order of training; changes no result",
    r"dtype": "read for every layer",
    r"\w+_(initializer|regularizer|constraint)": _TRAINING,
    r"[WUb]_(regularizer|constraint)": _TRAINING,
    r"init|inner_init|forget_bias_init|unit_forget_bias": _MADE,
    r"batch_input_shape|batch_shape|input_shape|input_dim|input_length|input_dtype": _FIRST,
    r"lora_rank|quantization_config": "read for every layer",
    r"lora_alpha|quantization_mode|gptq_unpacked_column_size": _REFUSED,
    r"autocast": "every layer casts what it gets",
}
_DROPOUT = {"dropout": _TRAINING, "seed": _TRAINING}
_RECURRENT = {
    **_DROPOUT, "recurrent_dropout": _TRAINING, "dropout_W": _TRAINING, "dropout_U": _TRAINING, "implementation": _HOW,
    "consume_less": _HOW, "unroll": _HOW,
}  # fmt: skip
_MOMENTS = {
    "momentum": _TRAINING, "renorm": _TRAINING, "renorm_clipping": _TRAINING, "renorm_momentum": _TRAINING,
    "synchronized": _TRAINING, "virtual_batch_size": _TRAINING, "fused": _HOW,
}  # fmt: skip
_HEADS = {
    **_DROPOUT,
    **dict.fromkeys(
        ("num_heads", "key_dim", "value_dim", "output_shape", "query_shape", "key_shape", "value_shape", "head_dim",
         "num_query_heads", "num_key_value_heads"),
        _SHAPES,
    ),
}  # fmt: skip
_AUGMENTATION = dict.fromkeys(
    ("factor", "height_factor", "width_factor", "fill_mode", "fill_value", "interpolation", "value_range", "mode", "data_format",
     "seed", "bounding_box_format"),
    _TRAINING,
)  # fmt: skip
_NOISE = dict.fromkeys(("rate", "p", "seed", "noise_shape", "stddev", "sigma", "l1", "l2", "data_format"), _TRAINING)
_CONVOLUTION = {"rank": _BY_CONTENT}
_EACH_CHANNEL = {**_CONVOLUTION, "groups": "every channel is a group"}
# Words of single classes of layers.
IGNORED: dict[str, Mapping[str, str]] = {
    **dict.fromkeys(
        ("SimpleRNN", "GRU", "LSTM", "SimpleRNNCell", "GRUCell", "LSTMCell", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D",
         "ConvLSTMCell", "RNN", "CuDNNGRU", "CuDNNLSTM"),
        _RECURRENT,
    ),
    **dict.fromkeys(("Attention", "AdditiveAttention"), _DROPOUT),
    **dict.fromkeys(("MultiHeadAttention", "GroupedQueryAttention", "GroupQueryAttention"), _HEADS),
    **dict.fromkeys(
        ("BatchNormalization", "BatchNormalizationV1", "BatchNormalizationV2", "SyncBatchNormalization"), _MOMENTS
    ),
    **dict.fromkeys(
        ("RandomFlip", "RandomRotation", "RandomZoom", "RandomTranslation", "RandomContrast", "RandomBrightness", "RandomHeight",
         "RandomWidth"),
        _AUGMENTATION,
    ),
    **dict.fromkeys(
        ("Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "GaussianDropout", "GaussianNoise",
         "AlphaDropout", "ActivityRegularization"),
        _NOISE,
    ),
    "GradientReversal": {"gradient_coeff": _TRAINING},
    "StochasticDepth": {"drop_path_rate": _TRAINING},
    "Identity": {"gain": _MADE},
    "SpectralNormalization": {"power_iterations": _TRAINING},
    "LayerScale": {"init_values": _MADE, "projection_dim": _SHAPES},
    "PReLU": {"shared_axes": _SHAPES},
    "NoisyDense": {"sigma_init": _TRAINING},
    "EinsumDense": {"output_shape": "the equation and the weights say it"},
    "Discretization": {"num_bins": _TRAINING, "epsilon": _TRAINING},
    "CenterCrop": {"bounding_box_format": _LABELS},
    "Resizing": {"bounding_box_format": _LABELS, "fill_mode": _REFUSED, "fill_value": _REFUSED},
    "ReversibleEmbedding": {"reverse_dtype": _HOW},
    "Merge": dict.fromkeys(
        ("mode_type", "dot_axes", "arguments", "output_shape", "output_shape_type", "output_mask", "output_mask_type"), _REFUSED
    ),
    "InputLayer": {"optional": "the caller gives every input"},
    **dict.fromkeys(
        ("Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"), _CONVOLUTION
    ),
    **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D"), _EACH_CHANNEL),
}  # fmt: skip
# What an object in a file says next to its configuration.
OBJECT: dict[str, str] = {
    "class_name": "read", "config": "read", "name": "read", "module": "read", "inbound_nodes": "read", "shared_object_id": "read",
    "registered_name": "read", "build_config": "shapes, which follow", "compile_config": _TRAINING, "keras_version": "read",
    "backend": "read",
}  # fmt: skip
_PATTERN = re.compile("|".join(f"(?:{pattern})" for pattern in COMMON))


def unread(kind: str, given: Mapping[str, Any], known: Iterable[str], also: Mapping[str, str] = {}) -> dict[str, Any]:
    """The words of a configuration that a class does not read, except null."""
    mine = {*known, *IGNORED.get(kind, ()), *also}
    return {w: v for w, v in given.items() if v is not None and w not in mine and not _PATTERN.fullmatch(str(w))}


class Words(dict[str, Any]):
    """A configuration of which a rule may ask only for words that its class is declared to read."""

    def __init__(self, given: Mapping[str, Any], known: Iterable[str]) -> None:
        super().__init__(given)
        self.known = frozenset(known)

    def _check(self, word: object) -> None:
        if word not in self.known and not _PATTERN.fullmatch(str(word)):
            # What a layer reads is declared at its rule: a test reads all that the goldens have.
            raise UnsupportedError(f"{word!r}, which its class is not declared to read")

    def __getitem__(self, word: str) -> Any:
        self._check(word)
        return super().__getitem__(word)

    def __contains__(self, word: object) -> bool:
        self._check(word)
        return super().__contains__(word)

    def get(self, word: str, default: Any = None) -> Any:
        """The value, or a default."""
        self._check(word)
        return super().get(word, default)
