"""Attributes of ONNX's operators that no rule and no operator reads, with the reason, and values that attributes may have.

Whatever the schemas do not have is refused by `canonical.complaints`. What they have is read by the rule or the operator of
`operators`, or is one of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["IGNORED", "VALUES", "wrong"]

_SHAPES = "the shapes of the inputs say it"
_HOW = "how it is computed, not what"
_ACCURACY = "the least accuracy in between; here it is float32's at least"
_TRAINING = "used in training alone"
_GIVEN = "outputs without a name are not made"
_TYPES = "the type of a value that is left out, which no result has"
_REFUSED = "used by other attributes or inputs alone, which are refused"
_HITS = "how often a branch was taken, for engines that order them"
_BROADCAST = "without it shapes are equal, and broadcasting changes nothing"

# Attributes that need not be read, by domain and operator: why.
IGNORED: dict[tuple[str, str], dict[str, str]] = {
    **{("", op): {"broadcast": _BROADCAST} for op in ("Add", "And", "Div", "Equal", "Gemm", "Greater", "Less", "Mul", "Or", "Pow",
                                                      "Sub", "Xor")},
    **{("", op): {"hidden_size": _SHAPES, "output_sequence": _GIVEN} for op in ("GRU", "LSTM", "RNN")},
    **{("", op): {"stash_type": _ACCURACY} for op in ("GroupNormalization", "LayerNormalization", "RMSNormalization", "Range",
                                                      "SimplifiedLayerNormalization")},
    **{("com.microsoft", op): {"stash_type": _ACCURACY} for op in ("LayerNormalization", "SimplifiedLayerNormalization")},
    ("", "Dropout"): {"ratio": _TRAINING},
    ("", "LinearAttention"): {"chunk_size": _HOW},
    ("com.microsoft", "LinearAttention"): {"chunk_size": _HOW},
    ("", "Optional"): {"type": _TYPES},
    ("", "RotaryEmbedding"): {"rotary_embedding_dim": "the width of the tables says it"},
    ("", "SequenceEmpty"): {"dtype": _TYPES},
    ("", "TopK"): {"sorted": "any order will do, and ours is sorted"},
    ("ai.onnx.ml", "LinearClassifier"): {"multi_class": "how many rows of coefficients there are says it"},
    ("ai.onnx.ml", "TreeEnsemble"): {"nodes_hitrates": _HITS},
    **{("ai.onnx.ml", f"TreeEnsemble{name}"): {"nodes_hitrates": _HITS, "nodes_hitrates_as_tensor": _HITS}
       for name in ("Classifier", "Regressor")},
    ("com.microsoft", "Attention"): {"rotary_embedding_dim": _REFUSED},
    ("com.microsoft", "DynamicQuantizeLSTM"): {"hidden_size": _SHAPES},
    ("com.microsoft", "EmbedLayerNormalization"): {"mask_index_type": "for the inference of shapes"},
    ("com.microsoft", "FusedGemm"): {"activation_gamma": "none of the activations has a third parameter"},
    ("com.microsoft", "GroupQueryAttention"): dict.fromkeys(("k_norm_epsilon", "q_norm_epsilon", "qk_norm_epsilon"), _REFUSED),
    ("com.microsoft", "MatMulBnb4"): {"training_mode": _TRAINING},
    ("com.microsoft", "QMoE"): {"weights_prepacked": "both of the values that it may have are the schema's order"},
    ("com.microsoft", "RotaryEmbedding"): {"rotary_embedding_dim": "the width of the tables says it"},
}  # fmt: skip

_PADDING = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", "")
_STASH = (0, 1, 10, 16)
_DIRECTION = ("forward", "reverse", "bidirectional")
_REDUCTION = ("none", "mean", "sum")
_SCATTER = ("none", "add", "mul", "max", "min")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_PAD = ("constant", "reflect", "edge", "wrap")
_GRID = ("linear", "bilinear", "nearest", "cubic", "bicubic")
_EXPERTS = {"swiglu_limit_after_activation": (0,), "use_sparse_mixer": (0,)}
# The values that attributes may have, by operator; those of other domains have the same under the same names.
VALUES: dict[str, dict[str, tuple[Any, ...]]] = {
    **{op: {"auto_pad": _PADDING} for op in ("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "FusedConv", "LpPool",
                                             "MaxPool", "QLinearAveragePool", "QLinearConv")},
    **{op: {"direction": _DIRECTION} for op in ("DynamicQuantizeLSTM", "GRU", "LSTM", "RNN")},
    **{op: {"stash_type": _STASH} for op in ("GroupNormalization", "LayerNormalization", "RMSNormalization", "Range",
                                             "SimplifiedLayerNormalization")},
    **{op: {"reduction": _REDUCTION} for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
    **{op: {"reduction": _SCATTER} for op in ("ScatterElements", "ScatterND")},
    "BitShift": {"direction": ("LEFT", "RIGHT")},
    "Cast": {"round_mode": ("up", "down", "nearest")},
    "CastLike": {"round_mode": ("up", "down", "nearest")},
    "CausalConvWithState": {
        "channels_last": (0,), "dilation": (1,), "input_channel_offset": (0,), "input_channels": (0,), "ndim": (1,),
        "state_channels_last": (-1,), "state_length": (0,), "state_update_capacity": (0,), "state_window": (0,),
    },
    "DepthToSpace": {"mode": ("DCR", "CRD")},
    "GatedRMSNorm": {"activation": ("silu", "swish", "sigmoid")},
    "Gelu": {"approximate": ("none", "tanh")},
    "GridSample": {"mode": _GRID, "padding_mode": ("zeros", "border", "reflection")},
    "LinearAttention": {"state_window": (0,)},
    "MatMulNBits": {"weight_prepacked": (0,)},
    "MoE": _EXPERTS,
    "Pad": {"mode": _PAD},
    "QMoE": {**_EXPERTS, "quant_type": ("int",), "weights_prepacked": (-1, 0)},
    "Resize": {
        "mode": ("nearest", "linear", "cubic"),
        "coordinate_transformation_mode": (
            "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
            "tf_half_pixel_for_nn",
        ),
        "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    },
    "RoiAlign": {"mode": ("avg", "max"), "coordinate_transformation_mode": ("half_pixel", "output_half_pixel")},
    "TensorScatter": {"mode": ("linear", "circular")},
    **{op: {"post_transform": _TRANSFORMS} for op in ("LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor",
                                                      "TreeEnsembleClassifier", "TreeEnsembleRegressor")},
    **{op: {"kernel_type": ("LINEAR", "POLY", "RBF", "SIGMOID")} for op in ("SVMClassifier", "SVMRegressor")},
    "CastMap": {"cast_to": ("TO_FLOAT", "TO_STRING", "TO_INT64"), "map_form": ("DENSE", "SPARSE")},
    "Normalizer": {"norm": ("MAX", "L1", "L2")},
    "StringNormalizer": {"case_change_action": ("LOWER", "UPPER", "NONE")},
    "Upsample": {"mode": ("nearest", "linear", "bilinear")},
}  # fmt: skip


def wrong(op: str, attributes: Mapping[str, Any]) -> list[str]:
    """The attributes of a node that have none of the values that they may have, with these."""
    known = VALUES.get(op)
    if known is None:
        return []
    return [
        f"attribute {name}={value!r:.80}, expected {' or '.join(map(repr, known[name]))}"
        for name, value in attributes.items()
        if name in known and value not in known[name]
    ]
