"""Schemas of ONNX's own operators: the opset that introduced each, its numbers of inputs and outputs, its attributes.

A line is ``name since inputs outputs attribute:type...``. Counts are those of the newest form (``1-3``: two may be left out,
``*``: any number). A type is i (int), f (float), s (string), t (tensor), g (graph), x (sparse tensor) or y (type); is, fs and ss
are lists. ``!`` marks an attribute that must be there, ``>=11`` and ``<13`` say which opsets have it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..._lazy import Registry
from ..._tuples import NamedTuple

__all__ = ["CONSTANT_DTYPES", "NEWEST", "OLDEST", "UNCHANGED", "Attribute", "Schema", "is_graph", "matches", "parsed", "schemas"]

OLDEST, NEWEST = 6, 28
# Constant's attributes that hold plain values, and the dtypes of the arrays that they become.
CONSTANT_DTYPES = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
# Operators that are the same in every opset before the oldest one.
UNCHANGED = frozenset({
    "And", "ArgMax", "ArgMin", "AveragePool", "Constant", "Conv", "ConvTranspose", "DepthToSpace", "Equal", "Flatten", "Gather",
    "GlobalAveragePool", "GlobalMaxPool", "Greater", "Hardmax", "Identity", "LRN", "Less", "LogSoftmax", "LpNormalization",
    "MatMul", "MaxPool", "MaxRoiPool", "Not", "Or", "Pow", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Shape", "Size", "Slice", "Softmax", "Softplus",
    "Softsign", "SpaceToDepth", "Squeeze", "Transpose", "Unsqueeze", "Xor",
})  # fmt: skip

_TABLE = """
Abs 1 1 1
Acos 7 1 1
Acosh 9 1 1
Add 1 2 1 axis:i<7 broadcast:i<7
AffineGrid 20 2 1 align_corners:i
And 1 2 1 axis:i<7 broadcast:i<7
ArgMax 1 1 1 axis:i keepdims:i select_last_index:i>=12
ArgMin 1 1 1 axis:i keepdims:i select_last_index:i>=12
Asin 7 1 1
Asinh 9 1 1
Atan 7 1 1
Atanh 9 1 1
Attention 23 3-7 4 is_causal:i kv_num_heads:i left_window_size:i>=25 q_num_heads:i qk_matmul_output_mode:i
  right_window_size:i>=25 scale:f softcap:f softmax_precision:i
AveragePool 1 1 1 auto_pad:s ceil_mode:i>=10 count_include_pad:i>=7 dilations:is>=19 kernel_shape:is! pads:is strides:is
BatchNormalization 1 5 3 epsilon:f is_test:i<7 momentum:f spatial:i<9 training_mode:i>=14
Bernoulli 15 1 1 dtype:i seed:f
BitCast 26 1 1 to:i!
BitShift 11 2 1 direction:s!
BitwiseAnd 18 2 1
BitwiseNot 18 1 1
BitwiseOr 18 2 1
BitwiseXor 18 2 1
BlackmanWindow 17 1 1 output_datatype:i periodic:i
Cast 1 1 1 round_mode:s>=24 saturate:i>=19 to:i!
CastLike 15 2 1 round_mode:s>=24 saturate:i>=19
CausalConvWithState 27 2-4 2 activation:s
Ceil 1 1 1
Celu 12 1 1 alpha:f
CenterCropPad 18 2 1 axes:is
Clip 1 1-3 1 max:f<11 min:f<11
Col2Im 18 3 1 dilations:is pads:is strides:is
Compress 9 2 1 axis:i
Concat 1 1-* 1 axis:i!
ConcatFromSequence 11 1 1 axis:i! new_axis:i
Constant 1 0 1 sparse_value:x>=11 value:t value_float:f>=12 value_floats:fs>=12 value_int:i>=12 value_ints:is>=12
  value_string:s>=12 value_strings:ss>=12
ConstantOfShape 9 1 1 value:t
Conv 1 2-3 1 auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is
ConvInteger 10 2-4 1 auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is
ConvTranspose 1 2-3 1 auto_pad:s dilations:is group:i kernel_shape:is output_padding:is output_shape:is pads:is strides:is
Cos 7 1 1
Cosh 9 1 1
CumProd 26 2 1 exclusive:i reverse:i
CumSum 11 2 1 exclusive:i reverse:i
DFT 17 1-3 1 axis:i<20 inverse:i onesided:i
DeformConv 19 3-5 1 dilations:is group:i kernel_shape:is offset_group:i pads:is strides:is
DepthToSpace 1 1 1 blocksize:i! mode:s>=11
DequantizeLinear 10 2-3 1 axis:i>=13 block_size:i>=21 output_dtype:i>=23
Det 11 1 1
Div 1 2 1 axis:i<7 broadcast:i<7
Dropout 1 1-3 2 is_test:i<7 ratio:f<12 seed:i>=12
DynamicQuantizeLinear 11 1 3
Einsum 12 1-* 1 equation:s!
Elu 1 1 1 alpha:f
Equal 1 2 1 axis:i<7 broadcast:i<7
Erf 9 1 1
Exp 1 1 1
Expand 8 2 1
EyeLike 9 1 1 dtype:i k:i
Flatten 1 1 1 axis:i
Floor 1 1 1
GRU 1 3-6 2 activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i layout:i>=14
  linear_before_reset:i output_sequence:i<7
Gather 1 2 1 axis:i
GatherElements 11 2 1 axis:i
GatherND 11 2 1 batch_dims:i>=12
Gelu 20 1 1 approximate:s
Gemm 1 2-3 1 alpha:f beta:f broadcast:i<7 transA:i transB:i
GlobalAveragePool 1 1 1
GlobalLpPool 1 1 1 p:i
GlobalMaxPool 1 1 1
Greater 1 2 1 axis:i<7 broadcast:i<7
GreaterOrEqual 12 2 1
GridSample 16 2 1 align_corners:i mode:s padding_mode:s
GroupNormalization 18 3 1 epsilon:f num_groups:i! stash_type:i>=21
HammingWindow 17 1 1 output_datatype:i periodic:i
HannWindow 17 1 1 output_datatype:i periodic:i
HardSigmoid 1 1 1 alpha:f beta:f
HardSwish 14 1 1
Hardmax 1 1 1 axis:i
Identity 1 1 1
If 1 1 * else_branch:g! then_branch:g!
ImageDecoder 20 1 1 pixel_format:s
InstanceNormalization 1 3 1 epsilon:f
IsInf 10 1 1 detect_negative:i detect_positive:i
IsNaN 9 1 1
LRN 1 1 1 alpha:f beta:f bias:f size:i!
LSTM 1 3-8 3 activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i input_forget:i
  layout:i>=14 output_sequence:i<7
LayerNormalization 17 2-3 3 axis:i epsilon:f stash_type:i
LeakyRelu 1 1 1 alpha:f
Less 1 2 1 axis:i<7 broadcast:i<7
LessOrEqual 12 2 1
LinearAttention 27 3-6 2 chunk_size:i kv_num_heads:i! q_num_heads:i! scale:f update_rule:s
Log 1 1 1
LogSoftmax 1 1 1 axis:i
Loop 1 2-* * body:g!
LpNormalization 1 1 1 axis:i p:i
LpNormalization 1 1 1 axis:i p:i
LpPool 1 1 1 auto_pad:s ceil_mode:i>=18 dilations:is>=18 kernel_shape:is! p:i pads:is strides:is
MatMul 1 2 1
MatMulInteger 10 2-4 1
Max 1 1-* 1
MaxPool 1 1 2 auto_pad:s ceil_mode:i>=10 dilations:is>=10 kernel_shape:is! pads:is storage_order:i>=8 strides:is
MaxRoiPool 1 2 1 pooled_shape:is! spatial_scale:f
MaxUnpool 9 2-3 1 kernel_shape:is! pads:is strides:is
Mean 1 1-* 1
MeanVarianceNormalization 9 1 1 axes:is
MeanVarianceNormalization 9 1 1 axes:is
MelWeightMatrix 17 5 1 output_datatype:i
Min 1 1-* 1
Mish 18 1 1
Mod 10 2 1 fmod:i
Mul 1 2 1 axis:i<7 broadcast:i<7
Multinomial 7 1 1 dtype:i sample_size:i seed:f
Neg 1 1 1
NegativeLogLikelihoodLoss 12 2-3 1 ignore_index:i reduction:s
NonMaxSuppression 10 2-5 1 center_point_box:i
NonZero 9 1 1
Not 1 1 1
OneHot 9 3 1 axis:i
Optional 15 0-1 1 type:y
OptionalGetElement 15 1 1
OptionalHasElement 15 0-1 1
Or 1 2 1 axis:i<7 broadcast:i<7
PRelu 1 2 1
Pad 1 2-4 1 mode:s pads:is!<11 value:f<11
Pow 1 2 1 axis:i<7 broadcast:i<7
QLinearConv 10 8-9 1 auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is
QLinearMatMul 10 8 1
QuantizeLinear 10 2-3 1 axis:i>=13 block_size:i>=21 output_dtype:i>=21 precision:i>=23 saturate:i>=19
RMSNormalization 23 2 1 axis:i epsilon:f stash_type:i
RNN 1 3-6 2 activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i layout:i>=14
  output_sequence:i<7
RandomNormal 1 0 1 dtype:i mean:f scale:f seed:f shape:is!
RandomNormalLike 1 1 1 dtype:i mean:f scale:f seed:f
RandomUniform 1 0 1 dtype:i high:f low:f seed:f shape:is!
RandomUniformLike 1 1 1 dtype:i high:f low:f seed:f
Range 11 3 1 stash_type:i>=27
Reciprocal 1 1 1
ReduceL1 1 1-2 1 axes:is<18 keepdims:i noop_with_empty_axes:i>=18
ReduceL2 1 1-2 1 axes:is<18 keepdims:i noop_with_empty_axes:i>=18
ReduceLogSum 1 1-2 1 axes:is<18 keepdims:i noop_with_empty_axes:i>=18
ReduceLogSumExp 1 1-2 1 axes:is<18 keepdims:i noop_with_empty_axes:i>=18
ReduceMax 1 1-2 1 axes:is<18 keepdims:i noop_with_empty_axes:i>=18
ReduceMean 1 1-2 1 axes:is<18 keepdims:i noop_with_empty_axes:i>=18
ReduceMin 1 1-2 1 axes:is<18 keepdims:i noop_with_empty_axes:i>=18
ReduceProd 1 1-2 1 axes:is<18 keepdims:i noop_with_empty_axes:i>=18
ReduceSum 1 1-2 1 axes:is<13 keepdims:i noop_with_empty_axes:i>=13
ReduceSumSquare 1 1-2 1 axes:is<18 keepdims:i noop_with_empty_axes:i>=18
RegexFullMatch 20 1 1 pattern:s
Relu 1 1 1
Reshape 1 2 1 allowzero:i>=14
Resize 10 1-4 1 antialias:i>=18 axes:is>=18 coordinate_transformation_mode:s>=11 cubic_coeff_a:f>=11 exclude_outside:i>=11
  extrapolation_value:f>=11 keep_aspect_ratio_policy:s>=18 mode:s nearest_mode:s>=11
ReverseSequence 10 2 1 batch_axis:i time_axis:i
RoiAlign 10 3 1 coordinate_transformation_mode:s>=16 mode:s output_height:i output_width:i sampling_ratio:i spatial_scale:f
RotaryEmbedding 23 3-4 1 interleaved:i num_heads:i rotary_embedding_dim:i
Round 11 1 1
STFT 17 2-4 1 onesided:i
Scan 8 1-* * body:g! directions:is<9 num_scan_inputs:i! scan_input_axes:is>=9 scan_input_directions:is>=9
  scan_output_axes:is>=9 scan_output_directions:is>=9
Scatter 9 3 1 axis:i
ScatterElements 11 3 1 axis:i reduction:s>=16
ScatterND 11 3 1 reduction:s>=16
Selu 1 1 1 alpha:f gamma:f
SequenceAt 11 2 1
SequenceConstruct 11 1-* 1
SequenceEmpty 11 0 1 dtype:i
SequenceErase 11 1-2 1
SequenceInsert 11 2-3 1
SequenceLength 11 1 1
SequenceMap 17 1-* * body:g!
Shape 1 1 1 end:i>=15 start:i>=15
Shrink 9 1 1 bias:f lambd:f
Sigmoid 1 1 1
Sign 9 1 1
Sin 7 1 1
Sinh 9 1 1
Size 1 1 1
Slice 1 3-5 1 axes:is<10 ends:is!<10 starts:is!<10
Softmax 1 1 1 axis:i
SoftmaxCrossEntropyLoss 12 2-3 2 ignore_index:i reduction:s
Softplus 1 1 1
Softsign 1 1 1
SpaceToDepth 1 1 1 blocksize:i! mode:s>=28
Split 1 1-2 * axis:i num_outputs:i>=18 split:is<13
SplitToSequence 11 1-2 1 axis:i keepdims:i
Sqrt 1 1 1
Squeeze 1 1-2 1 axes:is<13
StringConcat 20 2 1
StringNormalizer 10 1 1 case_change_action:s is_case_sensitive:i locale:s stopwords:ss
StringSplit 20 1 2 delimiter:s maxsplit:i
Sub 1 2 1 axis:i<7 broadcast:i<7
Sum 1 1-* 1
SwiGLU 28 2 1 alpha:f
Swish 24 1 1 alpha:f
Tan 7 1 1
Tanh 1 1 1
TensorScatter 24 2-3 1 axis:i mode:s
TfIdfVectorizer 9 1 1 max_gram_length:i! max_skip_count:i! min_gram_length:i! mode:s! ngram_counts:is! ngram_indexes:is!
  pool_int64s:is pool_strings:ss weights:fs
ThresholdedRelu 10 1 1 alpha:f
Tile 1 2 1
TopK 1 2 2 axis:i k:i!<10 largest:i>=11 sorted:i>=11
Transpose 1 1 1 perm:is
Trilu 14 1-2 1 upper:i
Unique 11 1 4 axis:i sorted:i
Unsqueeze 1 2 1 axes:is!<13
Upsample 1 2 1 height_scale:f!<7 mode:s scales:fs!>=7<9 width_scale:f!<7
Where 9 3 1
Xor 1 2 1 axis:i<7 broadcast:i<7
"""


class Attribute(NamedTuple):
    """An attribute, and the opsets that have it: `first` and later, but not `gone` and later."""

    type: str
    required: bool
    first: int
    gone: int


class Schema(NamedTuple):
    """One operator. `most` inputs and `outputs` may be any number: then they are None."""

    since: int
    least: int
    most: int | None
    outputs: int | None
    attributes: dict[str, Attribute]


@cache
def schemas() -> Registry[Schema]:
    """The operators by name."""
    return parsed(_TABLE)


def parsed(table: str) -> Registry[Schema]:
    """The operators of a table as this module's docstring describes it; each line is read when it is first asked for."""
    lines = dict([line.split(" ", 1) for line in table.replace("\n  ", " ").strip().splitlines()])
    return Registry(lines, lambda name: _schema(lines[name]))


def _schema(line: str) -> Schema:
    since, inputs, outputs, *attributes = line.split()
    least, _, most = inputs.rpartition("-")
    return Schema(
        int(since), int(least or most.replace("*", "0")), _count(most), _count(outputs), dict(map(_attribute, attributes))
    )


def _count(text: str) -> int | None:
    return None if text == "*" else int(text)


def _attribute(text: str) -> tuple[str, Attribute]:
    """``name:kind``, then maybe ``!``, ``>=first`` and ``<gone``. Read by hand: a regular expression takes longer to compile."""
    rest, _, gone = text.partition("<")
    rest, _, first = rest.partition(">=")
    name, _, kind = rest.partition(":")
    return name, Attribute(kind.removesuffix("!"), kind.endswith("!"), int(first or 0), int(gone or NEWEST + 1))


_TYPES: dict[str, Any] = {"i": int, "f": (float, int), "s": str, "t": np.ndarray, "x": np.ndarray}


def is_graph(value: Any) -> bool:
    """Whether an attribute is a graph, as the reader gives it."""
    return hasattr(value, "nodes") and hasattr(value, "initializers")


def matches(value: Any, kind: str) -> bool:
    """Whether a value is of a type of the table."""
    if kind in ("is", "fs", "ss"):
        if not isinstance(value, (list, tuple)):
            return False
        allowed = _TYPES[kind[0]]  # each type once: lists of tree ensembles have a hundred thousand items
        return all(issubclass(found, allowed) and not issubclass(found, bool) for found in set(map(type, value)))
    if kind == "g":
        return is_graph(value)
    return kind == "y" or (isinstance(value, _TYPES[kind]) and not isinstance(value, bool))
