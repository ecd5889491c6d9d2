"""Attributes that nodes of our own file may have: those that each operation reads, by its name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

__all__ = ["unread"]

# Attributes of operators next to those of ONNX's schemas.
_OWN = """
Activate activation
AdaptivePool reduce scales sizes x_last
Add activation
AdditiveAttention is_causal need_scores need_weights
Affine activation axis
AlignAxes axis
AttentionScores scale softmax_precision
AveragePool channels_last divisor x_last
AxisPositions axis start
BatchNormalization axis
BlockEmbedding kind
BlockLinear kind
Conv activation axis block_size codes direct half out_last pad_mode x_last
ConvInteger out_last x_last
ConvTranspose activation out_last output_size x_last
DFT bins norm parts
DepthToSpace x_last
DequantizeCodes axis block_size codes
Div activation
DotAttention dropout_p enable_gqa is_causal need_scores need_weights num_heads num_kv_heads offset scale
DynamicQuantizeLSTM joined options
Elementwise body
Embedding half rounded wraps
GRU half joined options rounded
GatherBlockQuantized apart codes from_front rounded
GlobalAveragePool channels_last x_last
GlobalLpPool x_last
GlobalMaxPool x_last
GroupNormalization per_group
HardAttention mode scale seed
Hardmax flatten
HeadBias part
Interpolate align_corners factors mode scales sizes x_last
LRN x_last
LSTM half joined options rounded
Linear activation half rounded
LinearAttention inverse
LogSoftmax flatten
StringConstant shape values
SvmProbabilities classes prob_a prob_b
LpPool scaled x_last
MatMulNBits activation codes rounded
MaxPool x_last
MaxRoiPool x_last
Mul activation
OneOf name values
OverlapAdd length offset step
Pad bounded
PaddingMask filter
QLinearAveragePool x_last
QLinearConv out_last x_last
QLinearGlobalAveragePool x_last
RNN half joined options rounded
ReduceL1 x_last
ReduceL2 x_last
ReduceLogSum x_last
ReduceLogSumExp x_last
ReduceMax x_last
ReduceMean x_last
ReduceMin x_last
ReduceProd x_last
ReduceSum x_last
ReduceSumSquare x_last
Resize steps
RoiAlign x_last
RotaryEmbedding by_width whole
RotaryTables axis base dim start
RotaryTablesAt base dim
ScaledAttention scale transposed empty
Scan batched
SinusoidalEncoding axis base dim start
Softmax flatten
SpaceToDepth x_last
StreamCut axis
StreamFill axis
StreamStart shape
StreamWindow axis before fill reach step
Sub activation
TimePool batch_first reduce
Trees aggregate_function n_targets same_dtype
"""


# Operators that files spell by attributes of another one.
_SPELLED = dict.fromkeys(("GroupQueryQuantized", "GroupQueryWindow"), "GroupQueryAttention")


@cache
def _own() -> dict[str, list[str]]:
    """Attributes of `_OWN`, by operator."""
    return {op: names for op, *names in map(str.split, _OWN.strip().splitlines())}


@cache
def _near(op: str) -> frozenset[str]:
    """The attributes of an operator: our own, and those of ONNX's schema."""
    from .onnx.schema import schemas

    schema = schemas().get(op)
    return frozenset(_own().get(op, ())).union(() if schema is None else schema.attributes)


@cache
def _known(op: str) -> frozenset[str]:
    """The attributes of an operator, those of the other domains too: most files need neither these nor the modules with them."""
    from .onnx.canonical import DOMAINS

    found = {name for table in DOMAINS.values() if op in table for name in table[op][0].attributes}
    if op in _SPELLED:
        found |= {"bits", *_known(_SPELLED[op])}
    return _near(op) | found


def unread(op: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that the operation does not read; none of an unknown one, which is refused by its name."""
    from ..operators import OPERATORS
    from ..operators.families import CONTROL, SEQUENCES

    operator = OPERATORS.get(op)
    if operator is None and op not in CONTROL and op not in SEQUENCES:
        return {}
    own = None if operator is None else operator.attributes
    known = frozenset[str]() if not attributes else _near(op) if own is None else own
    left = {name: value for name, value in attributes.items() if name not in known}
    if left and own is None:
        left = {name: value for name, value in left.items() if name not in _known(op)}
    return left
