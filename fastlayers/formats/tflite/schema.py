"""TensorFlow Lite's schema: operators by number, the fields of their options, element types. Reads nothing."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..._tuples import NamedTuple
from .._arrays import Codec, codec, widen_bfloat16, widen_float8

__all__ = ["ACTIVATIONS", "IGNORED", "OPERATOR_FIELDS", "TYPES", "Field", "ignored", "operator_name", "options_of"]

# In the order of their codes.
_NAMES = """
ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED
HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU
RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM
EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV
SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE
BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN
TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD
REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL
FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N
GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL
PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND
HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS
RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD
UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT
"""


class Field(NamedTuple):
    """A field of an operator's options: its number and type, as `flat.Table` takes them; `list` for a vector of integers."""

    name: str
    number: int
    code: str
    default: Any


# The operators that have options: the number of the options' type in the union, and fields as name:type and number=default.
_OPTIONS = """
ADD 11 act:b0 pot_scale_int16:b1=1
SUB 28 act:b0 pot_scale_int16:b1=1
MUL 21 act:b0
DIV 29 act:b0
CONV_2D 1 padding:b0 stride_w:i1 stride_h:i2 act:b3 dilation_w:i4=1 dilation_h:i5=1 quantized_bias_type:b6
DEPTHWISE_CONV_2D 2 padding:b0 stride_w:i1 stride_h:i2 multiplier:i3 act:b4 dilation_w:i5=1 dilation_h:i6=1
CONV_3D 106 padding:b0 stride_d:i1 stride_w:i2 stride_h:i3 act:b4 dilation_d:i5=1 dilation_w:i6=1 dilation_h:i7=1
CONV_3D_TRANSPOSE 106 padding:b0 stride_d:i1 stride_w:i2 stride_h:i3 act:b4 dilation_d:i5=1 dilation_w:i6=1 dilation_h:i7=1
TRANSPOSE_CONV 49 padding:b0 stride_w:i1 stride_h:i2 act:b3 quantized_bias_type:b4
AVERAGE_POOL_2D 5 padding:b0 stride_w:i1 stride_h:i2 filter_w:i3 filter_h:i4 act:b5
MAX_POOL_2D 5 padding:b0 stride_w:i1 stride_h:i2 filter_w:i3 filter_h:i4 act:b5
L2_POOL_2D 5 padding:b0 stride_w:i1 stride_h:i2 filter_w:i3 filter_h:i4 act:b5
FULLY_CONNECTED 8 act:b0 weights_format:b1 keep_num_dims:b2 asymmetric_quantize_inputs:b3 quantized_bias_type:b4
CONCATENATION 10 axis:i0 act:b1
SOFTMAX 9 beta:f0
L2_NORMALIZATION 12 act:b0
LOCAL_RESPONSE_NORMALIZATION 13 radius:i0 bias:f1 alpha:f2 beta:f3
RESHAPE 17 new_shape:l0
SQUEEZE 30 squeeze_dims:l0
RESIZE_BILINEAR 15 align_corners:b2 half_pixel_centers:b3 new_height:i0 new_width:i1
RESIZE_NEAREST_NEIGHBOR 74 align_corners:b0 half_pixel_centers:b1
SPACE_TO_DEPTH 19 block_size:i0
DEPTH_TO_SPACE 94 block_size:i0
GATHER 23 axis:i0 batch_dims:i1
MEAN 27 keep_dims:b0
SUM 27 keep_dims:b0
REDUCE_MAX 27 keep_dims:b0
REDUCE_MIN 27 keep_dims:b0
REDUCE_PROD 27 keep_dims:b0
REDUCE_ANY 27 keep_dims:b0
REDUCE_ALL 27 keep_dims:b0
SPLIT 35 num_splits:i0
SPLIT_V 79 num_splits:i0
STRIDED_SLICE 32 begin_mask:i0 end_mask:i1 ellipsis_mask:i2 new_axis_mask:i3 shrink_axis_mask:i4 offset:b5
ARG_MAX 40 output_type:b0=2
ARG_MIN 57 output_type:b0=2
SHAPE 55 out_type:b0=2
PACK 59 values_count:i0 axis:i1
UNPACK 64 num:i0 axis:i1
ONE_HOT 61 axis:i0
LEAKY_RELU 75 alpha:f0
MIRROR_PAD 77 mode:b0
GELU 116 approximate:b0
CUMSUM 102 exclusive:b0 reverse:b1
BATCH_MATMUL 101 adj_x:b0 adj_y:b1 asymmetric_quantize_inputs:b2
REVERSE_SEQUENCE 87 seq_dim:i0 batch_dim:i1
UNIQUE 80 idx_out_type:b0=2
FAKE_QUANT 58 min:f0 max:f1 num_bits:i2 narrow_range:b3
IF 92 then_subgraph_index:i0 else_subgraph_index:i1
WHILE 93 cond_subgraph_index:i0 body_subgraph_index:i1
LSTM 14 act:b0 cell_clip:f1 proj_clip:f2 kernel_type:b3 asymmetric_quantize_inputs:b4
RNN 7 act:b0 asymmetric_quantize_inputs:b1
UNIDIRECTIONAL_SEQUENCE_RNN 31 time_major:b0 act:b1 asymmetric_quantize_inputs:b2
BIDIRECTIONAL_SEQUENCE_RNN 70 time_major:b0 act:b1 merge_outputs:b2 asymmetric_quantize_inputs:b3
UNIDIRECTIONAL_SEQUENCE_LSTM 71 act:b0 cell_clip:f1 proj_clip:f2 time_major:b3 diagonal:b5 asymmetric_quantize_inputs:b4
BIDIRECTIONAL_SEQUENCE_LSTM 69 act:b0 cell_clip:f1 proj_clip:f2 merge_outputs:b3 time_major:b4=1 asymmetric_quantize_inputs:b5
SVDF 6 rank:i0 act:b1 asymmetric_quantize_inputs:b2
CAST 37 in_data_type:b0 out_data_type:b1
"""

# Fields of an operator's own table that are read, or that change no result: its number, inputs, outputs, the kind of its options,
# the options, those of a custom operator and their format (there is one), which inputs are variables (they begin at zero in every
# call), the tensors that a quantized LSTM keeps in between, the kind of options of a second kind (see `parse`), notes for tools.
OPERATOR_FIELDS = frozenset({0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 13})

_ON_THE_FLY = "how the interpreter quantizes floats next to quantized weights; here they stay floats"
_BIAS = "the bias's own type says it"
# Options that need not be read, as (operator or "*", word): why.
IGNORED: dict[tuple[str, str], str] = {
    ("*", "asymmetric_quantize_inputs"): _ON_THE_FLY,
    ("*", "quantized_bias_type"): _BIAS,
    ("*", "pot_scale_int16"): "how 16-bit sums were scaled once; the scales of the tensors say it",
    ("ARG_MAX", "output_type"): "the result's own type says it",
    ("ARG_MIN", "output_type"): "the result's own type says it",
    ("CAST", "in_data_type"): "the tensor's own type says it",
    ("CAST", "out_data_type"): "the tensor's own type says it",
    ("DEPTHWISE_CONV_2D", "multiplier"): "the shapes of the weights and of x say it",
    ("PACK", "values_count"): "the inputs are as many",
    ("RESHAPE", "new_shape"): "the second input, where there is one, counts",
    ("RESIZE_BILINEAR", "new_height"): "the second input counts",
    ("RESIZE_BILINEAR", "new_width"): "the second input counts",
    ("SHAPE", "out_type"): "the result's own type says it",
    ("UNIQUE", "idx_out_type"): "the result's own type says it",
}


def ignored(operator: str, word: str) -> bool:
    """Whether an option changes no result, whatever it says."""
    return ("*", word) in IGNORED or (operator, word) in IGNORED


# What a fused activation does: the operator, with the bounds of a Clip.
ACTIVATIONS: dict[int, tuple[str, tuple[float, ...]]] = {
    1: ("Relu", ()),
    2: ("Clip", (-1.0, 1.0)),
    3: ("Clip", (0.0, 6.0)),
    4: ("Tanh", ()),
}

# Element types by number: name, and how they are stored. Text, resources and variants have no elements that could be read.
TYPES: dict[int, tuple[str, Codec | None]] = {
    0: ("float32", codec("<f4")),
    1: ("float16", codec("<f2")),
    2: ("int32", codec("<i4")),
    3: ("uint8", codec("u1")),
    4: ("int64", codec("<i8")),
    5: ("text", None),
    6: ("bool", codec("?")),
    7: ("int16", codec("<i2")),
    8: ("complex64", codec("<c8")),
    9: ("int8", codec("i1")),
    10: ("float64", codec("<f8")),
    11: ("complex128", codec("<c16")),
    12: ("uint64", codec("<u8")),
    13: ("resource", None),
    14: ("variant", None),
    15: ("uint32", codec("<u4")),
    16: ("uint16", codec("<u2")),
    17: ("int4", None),  # two a byte: see `tensors`
    18: ("bfloat16", codec("<u2", widen_bfloat16)),
    19: ("int2", None),
    20: ("uint4", None),
    21: ("float8_e4m3fn", codec("u1", widen_float8(4, 7, "fn"))),
    22: ("float8_e5m2", codec("u1", widen_float8(5, 15, "ieee"))),
}


def dtype_of(number: int) -> np.dtype[Any] | None:
    """The dtype of a tensor's elements once they are read; None where they have none."""
    if number in (17, 20):
        return np.dtype(np.int8 if number == 17 else np.uint8)
    kind = TYPES[number][1] if number in TYPES else None
    return None if kind is None else kind.result if kind.widen else kind.stored.newbyteorder("=")


@functools.cache
def _names() -> tuple[str, ...]:
    return tuple(_NAMES.split())


def operator_name(number: int) -> str:
    """The operator's name, or its number where it has none here."""
    names = _names()
    return names[number] if 0 <= number < len(names) else f"number {number}"


@functools.cache
def _all_options() -> dict[str, tuple[int, tuple[Field, ...]]]:
    found = {}
    for line in _OPTIONS.strip().splitlines():
        name, union, *fields = line.split()
        made = []
        for field in fields:
            key, _, rest = field.partition(":")
            place, _, default = rest[1:].partition("=")
            code = "list" if rest[0] == "l" else rest[0]
            made.append(
                Field(
                    key, int(place), code, None if code == "list" else float(default or 0) if code == "f" else int(default or 0)
                )
            )
        found[name] = int(union), tuple(made)
    return found


def options_of(name: str) -> tuple[int, tuple[Field, ...]] | None:
    """The number of the type of an operator's options and their fields, or None if it has none that matter."""
    return _all_options().get(name)
