"""Rules of quantized networks: integers of 8 bits stay what they are from operator to operator.

An operator on quantized tensors is written in one of three ways:
- what only moves or compares elements (`MOVING`) works on the integers, where all its tensors have one scale and zero point;
- what `RULES` has becomes an operator on quantized values (QLinearConv and its kin), whose sums are exact;
- everything else is computed in float32 between DequantizeLinear and QuantizeLinear.
TensorFlow Lite multiplies sums by an integer and shifts, and rounds halves away from zero; we multiply by a float32 and round
halves to even. A result differs by one step at most from what its kernels give for the same integers.

Weights that are quantized for storage alone, next to float activations, become float32 when the file is read. TensorFlow Lite
also quantizes the activations of such an operator, by their range in every run, and is less exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import Array
from .._channels_last import padded
from ..source import quote
from . import layers
from .call import Call, dequantized
from .proto import Quantization, Tensor
from .schema import dtype_of

__all__ = ["MOVING", "OWN", "RULES", "is_quantized", "through_floats", "uniform"]

Rule = Callable[[Call], str | tuple[str, ...]]

MOVING = frozenset(
    """
    ARG_MAX ARG_MIN BATCH_TO_SPACE_ND BROADCAST_TO CONCATENATION DENSIFY DEPTH_TO_SPACE EMBEDDING_LOOKUP EXPAND_DIMS FILL GATHER
    GATHER_ND IF MAXIMUM MAX_POOL_2D MINIMUM MIRROR_PAD PACK PAD PADV2 RANK REDUCE_MAX REDUCE_MIN RESHAPE RESIZE_NEAREST_NEIGHBOR
    REVERSE_V2 SELECT SELECT_V2 SHAPE SLICE SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQUEEZE STRIDED_SLICE TILE TRANSPOSE
    UNPACK
    """.split()  # noqa: SIM905
)
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
_STORED = (*_BYTES, np.dtype(np.int16))


def is_quantized(tensor: Tensor | None) -> bool:
    """Whether its integers stand for reals."""
    return tensor is not None and tensor.quantization is not None and dtype_of(tensor.type) in _STORED


def uniform(c: Call) -> bool:
    """Whether all tensors that are quantized have one scale and zero point, the same."""
    found = [t.quantization for t in (*c.tensors, *c.outputs) if t is not None and t.quantization is not None and is_quantized(t)]
    first = found[0]
    return all(len(q.scale) == 1 and q.scale[0] == first.scale[0] and q.zero_point[0] == first.zero_point[0] for q in found)


def _parameters(c: Call, tensor: Tensor) -> tuple[Quantization, np.dtype[Any]]:
    dtype = dtype_of(tensor.type)
    if tensor.quantization is None or dtype is None or dtype.kind not in "iu":
        c.fail(f"tensor {quote(tensor.name)} has no scale")
    info, zero = np.iinfo(dtype), tensor.quantization.zero_point
    if (zero < info.min).any() or (zero > info.max).any():
        c.fail(f"tensor {quote(tensor.name)}: its zero point is beyond {dtype}")
    return tensor.quantization, dtype


def _scaled(c: Call, tensor: Tensor) -> tuple[str, str]:
    """Scale and zero point as constants: of one number, or one per slice."""
    quantization, dtype = _parameters(c, tensor)
    shape: tuple[int, ...] = () if len(quantization.scale) == 1 else (-1,)
    zero = quantization.zero_point.astype(dtype)
    return c.e.constant(quantization.scale.reshape(shape)), c.e.constant(zero.reshape(shape))


def _axis(tensor: Tensor) -> dict[str, Any]:
    many = tensor.quantization is not None and len(tensor.quantization.scale) > 1
    return {"axis": tensor.quantization.axis} if many and tensor.quantization is not None else {}


# ---- between integers and floats ---------------------------------------------------------------------------------------


def _constant(c: Call, tensor: Tensor, array: Array, name: str) -> str:
    _parameters(c, tensor)
    return c.e.constant(dequantized(c.converter, tensor, array), f"{name}/float")


def to_float(c: Call, i: int) -> str:
    """Input i as float32: a constant now, once and for all."""
    name, tensor = c.x(i), c.tensor(i)
    array = c.e.value(name)
    if array is not None:
        return _constant(c, tensor, array, name)
    return c.e.node("DequantizeLinear", name, *_scaled(c, tensor), **_axis(tensor))


def from_float(c: Call, name: str, i: int) -> str:
    """A float value as output i is stored."""
    tensor = c.outputs[i]
    return c.e.node("QuantizeLinear", name, *_scaled(c, tensor), **_axis(tensor))


def through_floats(c: Call, rule: Rule) -> tuple[str, ...]:
    """The operator in float32, its quantized inputs and outputs converted; biases (int32 with a scale) are quantized as well."""
    names = []
    for i, (name, tensor) in enumerate(zip(c.inputs, c.tensors, strict=True)):
        stored = is_quantized(tensor) or (tensor is not None and tensor.quantization is not None and c.e.value(name) is not None)
        names.append(to_float(c, i) if stored and name is not None and c.e.dtype(name).kind in "iu" else name)
    inner = Call(c.converter, c.e, c.operator, tuple(names), c.tensors, c.outputs)
    made = rule(inner)
    results = (made,) if isinstance(made, str) else made
    return tuple(
        from_float(c, name, i) if i < len(c.outputs) and is_quantized(c.outputs[i]) and c.e.dtype(name).kind == "f" else name
        for i, name in enumerate(results)
    )


def quantize(c: Call) -> str:
    """Floats, or integers of another scale, as the result is stored."""
    x = to_float(c, 0) if is_quantized(c.tensor(0)) else c.x(0)
    return from_float(c, x, 0)


def dequantize(c: Call) -> str:
    """Stored values as float32; halves are only widened."""
    name, tensor = c.x(0), c.tensor(0)
    array, dtype = c.e.value(name), c.e.dtype(name)
    if dtype == np.float32:
        return name
    if dtype.kind != "f":
        return to_float(c, 0)
    if array is None:
        return c.cast(name, np.dtype(np.float32))
    out = c.converter.budget.empty(array.shape, np.float32, f"{c.converter.where}: tensor {quote(tensor.name)}")
    out[...] = array
    return c.e.constant(out, f"{name}/float")


# ---- operators on quantized values --------------------------------------------------------------------------------------


def _bytes(c: Call, *inputs: int) -> bool:
    """Whether these inputs and the result are quantized to 8 bits, with one scale each but for constants."""
    tensors = [c.tensors[i] if i < len(c.tensors) else None for i in inputs]
    for tensor in (*tensors, c.outputs[0]):
        if tensor is None or not is_quantized(tensor) or dtype_of(tensor.type) not in _BYTES:
            return False
    return all(t.quantization is not None and len(t.quantization.scale) == 1 for t in (tensors[0], c.outputs[0]) if t is not None)


def _triple(c: Call, i: int) -> tuple[str, str, str]:
    return (c.x(i), *_scaled(c, c.tensor(i)))


def _conv(float_rule: Rule, axis: int) -> Rule:
    """A convolution whose weights have one scale, or one per channel of the result along `axis`."""

    def rule(c: Call) -> str | tuple[str, ...]:
        bias = c.constant(2) if c.has(2) else None
        weights = c.tensors[1].quantization if _bytes(c, 0, 1) and c.tensors[1] is not None else None
        whole = not c.has(2) or (bias is not None and bias.dtype == np.int32)
        if weights is None or not whole or c.constant(1) is None or (len(weights.scale) > 1 and weights.axis != axis):
            return through_floats(c, float_rule)
        start = len(c.e.nodes)
        # The float rule knows strides, padding and groups; its convolution is written again, with scales.
        float_rule(_Plain(c))
        plain = c.e.nodes[start]
        del c.e.nodes[start:]
        inputs = (*_triple(c, 0), plain.inputs[1], *_scaled(c, c.tensor(1)), *_scaled(c, c.outputs[0]), _bias(c))
        return c.activated(c.e.node("QLinearConv", *inputs, **plain.attributes))

    return rule


class _Plain(Call):
    """The same operator, without what follows it and its bias."""

    def __init__(self, c: Call) -> None:
        super().__init__(c.converter, c.e, c.operator, (c.inputs[0], c.inputs[1]), c.tensors, c.outputs)

    def activated(self, name: str) -> str:
        return name


def _bias(c: Call) -> str | None:
    name = c.optional(2)
    return None if name is not None and c.e.shape(name) == (0,) else name


def fully_connected(c: Call) -> str | tuple[str, ...]:
    """A product of a matrix with weights (o, i)."""
    shape, bias = c.e.shape(c.x(1)), c.constant(2) if c.has(2) else None
    fits = (
        _bytes(c, 0, 1)
        and shape is not None
        and len(shape) == 2
        and isinstance(shape[1], int)
        and not c.options["weights_format"]
    )
    weights = c.tensor(1).quantization
    if not fits or shape is None or weights is None or (c.has(2) and (bias is None or bias.dtype != np.int32)):
        return through_floats(c, layers.RULES["FULLY_CONNECTED"])
    if len(weights.scale) > 1 and weights.axis != 0:
        return through_floats(c, layers.RULES["FULLY_CONNECTED"])
    x, rank = c.x(0), c.e.rank(c.x(0))
    if rank != 2:
        x = c.e.node("Reshape", x, c.e.ints([-1, shape[1]]))
    inputs = (x, *_scaled(c, c.tensor(0)), *_triple(c, 1), _bias(c), *_scaled(c, c.outputs[0]))
    y = c.e.node("QGemm", *inputs, transB=1)
    given = c.e.shape(c.x(0))
    if c.options["keep_num_dims"] and rank != 2 and given is not None:
        open_ = [d for d in given[:-1] if not isinstance(d, int)]
        if len(open_) > 1:
            c.refuse("of several unknown sizes that are to be retained")
        y = c.e.node("Reshape", y, c.e.ints([d if isinstance(d, int) else -1 for d in given[:-1]] + [shape[0]]))
    return c.activated(y)


def _binary(op: str) -> Rule:
    def rule(c: Call) -> str | tuple[str, ...]:
        if not _bytes(c, 0, 1) or c.e.dtype(c.x(0)) != c.e.dtype(c.x(1)) or not _bytes(c, 1):
            return through_floats(c, _float_rule(c))
        return c.activated(c.e.node(op, *_triple(c, 0), *_triple(c, 1), *_scaled(c, c.outputs[0])))

    return rule


def _unary(op: str, attributes: Callable[[Call], dict[str, Any] | None] = lambda c: {}) -> Rule:
    def rule(c: Call) -> str | tuple[str, ...]:
        given = attributes(c) if _bytes(c, 0) else None
        if given is None:
            return through_floats(c, _float_rule(c))
        return c.activated(c.e.node(op, *_triple(c, 0), *_scaled(c, c.outputs[0]), **given))

    return rule


def _pooled(c: Call) -> dict[str, Any]:
    kernel, strides = layers.sizes(c, "filter_h filter_w"), layers.sizes(c, "stride_h stride_w")
    return {"kernel_shape": kernel, "strides": strides, "channels_last": 1, **padded(layers.padding(c))}


def _averaged(c: Call) -> dict[str, Any] | None:
    rank = c.e.rank(c.x(0))
    if c.constant(1) is None or rank is None:
        return None
    axes = sorted({c.axis(a, rank) for a in c.ints(1, "axes")})
    return {"axes": tuple(axes), "keepdims": int(bool(c.options["keep_dims"]))} if axes else None


def _float_rule(c: Call) -> Rule:
    return c.converter.float_rule(c.op)


RULES: dict[str, Rule] = {
    "ADD": _binary("QLinearAdd"),
    "AVERAGE_POOL_2D": _unary("QLinearAveragePool", _pooled),
    "CONV_2D": _conv(layers.conv_2d, 0),
    "DEPTHWISE_CONV_2D": _conv(layers.depthwise_conv_2d, 3),
    "FULLY_CONNECTED": fully_connected,
    "LEAKY_RELU": _unary("QLinearLeakyRelu", lambda c: {"alpha": c.options["alpha"]}),
    "LOGISTIC": _unary("QLinearSigmoid"),
    "MEAN": _unary("QLinearReduceMean", _averaged),
    "MUL": _binary("QLinearMul"),
    "SOFTMAX": _unary("QLinearSoftmax", lambda c: {"axis": -1} if c.options["beta"] == 1 else None),
}
# Operators that have their own rule for integers.
OWN: dict[str, Rule] = {"DEQUANTIZE": dequantize, "QUANTIZE": quantize}
