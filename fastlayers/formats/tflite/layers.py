"""Rules of layers: convolutions, pools, products, normalizations, resampling. Layouts stay as in the file, channels last.

=====================  ======================  ==========================
weights                in the file             in the graph
=====================  ======================  ==========================
CONV_2D                (o, kh, kw, i)          (o, i, kh, kw)
DEPTHWISE_CONV_2D      (1, kh, kw, c m)        (c m, 1, kh, kw)
TRANSPOSE_CONV         (o, kh, kw, i)          (i, o, kh, kw)
CONV_3D                (kd, kh, kw, i, o)      (o, i, kd, kh, kw)
FULLY_CONNECTED        (o, i)                  (o, i)
=====================  ======================  ==========================
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from .. import _channels_last as last
from .call import Call

__all__ = ["RULES", "padding", "sizes"]

Rule = Callable[[Call], str | tuple[str, ...]]
_PADDING = {0: "SAME", 1: "VALID"}


def padding(c: Call) -> str:
    found = _PADDING.get(c.options["padding"])
    if found is None:
        c.fail(f"padding is number {c.options['padding']}: expected 0 or 1")
    return found


def sizes(c: Call, names: str, what: str = "") -> tuple[int, ...]:
    """Options such as stride_h and stride_w, at least 1 each."""
    values = tuple(c.options[f"{name}"] for name in names.split())
    if any(v < 1 for v in values):
        c.fail(f"{what or names} are {values}: expected at least 1")
    return values


def _bias(c: Call, i: int) -> str | None:
    name = c.optional(i)
    # Some writers put an empty vector where no bias is meant.
    return None if name is not None and c.e.shape(name) == (0,) else name


def _channels(c: Call, i: int = 0) -> int | None:
    shape = c.e.shape(c.x(i))
    found = None if not shape else shape[-1]
    return found if isinstance(found, int) else None


def conv_2d(c: Call) -> str:
    """A convolution; fewer channels in the weights than x has means groups."""
    weight = c.weight(1, (0, 3, 1, 2))
    shape, channels = c.e.shape(weight), _channels(c)
    each = shape[1] if shape is not None else None
    groups = channels // each if channels and isinstance(each, int) and each else 1
    y = last.conv(
        c.e, c.x(0), weight, _bias(c, 2), sizes(c, "stride_h stride_w"), sizes(c, "dilation_h dilation_w"), padding(c),
        max(groups, 1),
    )  # fmt: skip
    return c.activated(y)


def depthwise_conv_2d(c: Call) -> str:
    """A convolution with as many groups as channels."""
    weight = c.weight(1, (3, 0, 1, 2))
    shape, channels = c.e.shape(weight), _channels(c)
    if channels is None:
        if shape is None or not isinstance(shape[0], int) or c.options["multiplier"] < 1:
            c.refuse("of an unknown number of channels")
        channels = shape[0] // c.options["multiplier"]
    strides, dilations = sizes(c, "stride_h stride_w"), sizes(c, "dilation_h dilation_w")
    return c.activated(last.conv(c.e, c.x(0), weight, _bias(c, 2), strides, dilations, padding(c), max(channels, 1)))


def conv_3d(c: Call) -> str:
    """A convolution over three axes."""
    weight, strides = c.weight(1, (4, 3, 0, 1, 2)), sizes(c, "stride_d stride_h stride_w")
    dilations = sizes(c, "dilation_d dilation_h dilation_w")
    return c.activated(last.conv(c.e, c.x(0), weight, _bias(c, 2), strides, dilations, padding(c)))


def _wanted(c: Call, axes: int) -> tuple[int | None, ...]:
    """The sizes that a transposed convolution is to make: where they are computed, those that the file tells of its result."""
    told = c.outputs[0].shape
    if c.constant(0) is not None:
        values = c.ints(0, "the result's sizes")
        if len(values) not in (axes, axes + 2) or min(values, default=0) < 0:
            c.fail(f"the result's shape is {values[:8]}: expected {axes + 2} sizes")
        return tuple(values[1 : axes + 1] if len(values) == axes + 2 else values)
    return (None,) * axes if len(told) != axes + 2 else told[1:-1]


def _need_axes(c: Call, i: int, count: int) -> None:
    if c.rank(i) != count:
        c.fail(f"x has {c.rank(i)} axes: expected {count}")


def transpose_conv(c: Call) -> str:
    """Inputs: the result's shape, weights, x, bias."""
    _need_axes(c, 2, 4)
    weight, strides = c.weight(1, (3, 0, 1, 2)), sizes(c, "stride_h stride_w")
    same = padding(c) == "SAME"
    return c.activated(last.conv_transpose(c.e, c.x(2), weight, _bias(c, 3), strides, (1, 1), same, _wanted(c, 2)))


def transpose_conv_bias(c: Call) -> str:
    """mediapipe's own. Inputs: x, weights, bias; its options are integers: padding (1: SAME, 2: VALID), stride_w, stride_h."""
    if len(c.operator.custom or b"") < 12:
        c.fail("its options are too short: expected three integers")
    kind, stride_w, stride_h = struct.unpack_from("<iii", c.operator.custom or b"")
    if any((c.operator.custom or b"")[12:]):  # an activation, say
        c.refuse(f"with options of {len(c.operator.custom or b'')} bytes, of which the first 12 are known")
    if kind not in (1, 2) or not 1 <= stride_w < 1 << 16 or not 1 <= stride_h < 1 << 16:
        c.fail(f"padding is number {kind}, strides are {(stride_h, stride_w)}: expected 1 or 2, and at least 1")
    _need_axes(c, 0, 4)
    return last.conv_transpose(c.e, c.x(0), c.weight(1, (3, 0, 1, 2)), _bias(c, 2), (stride_h, stride_w), (1, 1), kind == 1)


def conv_3d_transpose(c: Call) -> str:
    """Inputs: the result's shape, weights (kd, kh, kw, o, i), x, bias."""
    _need_axes(c, 2, 5)
    weight, strides = c.weight(1, (4, 3, 0, 1, 2)), sizes(c, "stride_d stride_h stride_w")
    dilations, same = sizes(c, "dilation_d dilation_h dilation_w"), padding(c) == "SAME"
    return c.activated(last.conv_transpose(c.e, c.x(2), weight, _bias(c, 3), strides, dilations, same, _wanted(c, 3)))


def _pool(op: str) -> Rule:
    def rule(c: Call) -> str:
        kernel, strides = sizes(c, "filter_h filter_w"), sizes(c, "stride_h stride_w")
        x = c.x(0)
        if c.op == "L2_POOL_2D":  # the root of the mean of squares
            x = c.e.node("Mul", x, x)
        y = last.pool(c.e, op, x, kernel, strides, padding(c))
        return c.activated(c.e.node("Sqrt", y) if c.op == "L2_POOL_2D" else y)

    return rule


def fully_connected(c: Call) -> str:
    """act(x Wᵀ + b); x becomes a matrix first, unless keep_num_dims is set."""
    if c.options["weights_format"]:
        c.refuse(f"with weights of format {c.options['weights_format']}")
    weight = c.weight(1, (0, 1))
    shape = c.e.shape(weight)
    if shape is None or len(shape) != 2 or not isinstance(shape[1], int):
        c.refuse("with weights of an unknown shape")
    x, keep = c.x(0), c.options["keep_num_dims"]
    if c.e.rank(x) != 2 and not (keep and c.e.rank(x)):
        x = c.e.node("Reshape", x, c.e.ints([-1, shape[1]]))
    bias = _bias(c, 2)
    if c.e.value(weight) is not None and (bias is None or c.e.value(bias) is not None):
        return c.activated(c.e.node("Linear", x, weight, bias))
    y = c.e.node("MatMul", x, c.e.node("Transpose", weight, perm=(1, 0)))
    return c.activated(y if bias is None else c.e.node("Add", y, bias))


def batch_matmul(c: Call) -> str:
    """x @ y, either with its last two axes exchanged."""
    names = []
    for i, key in ((0, "adj_x"), (1, "adj_y")):
        name = c.x(i)
        if c.options[key]:
            rank = c.rank(i)
            if rank < 2:
                c.fail(f"input {i} has {rank} axes: expected two at least")
            order = (*range(rank - 2), rank - 1, rank - 2)
            array = c.e.value(name)
            name = (
                c.e.node("Transpose", name, perm=order)
                if array is None
                else c.e.constant(array.transpose(order), f"{name}/turned")
            )
        names.append(name)
    return c.e.node("MatMul", *names)


def softmax(c: Call) -> str:
    """softmax(beta x) along the last axis."""
    x, beta = c.x(0), c.options["beta"]
    if beta != 1:
        x = c.e.node("Mul", x, c.scalar(beta, x))
    return c.e.node("Softmax", x, axis=-1)


def l2_normalization(c: Call) -> str:
    """x / max(norm of the last axis, 1e-6)."""
    x = c.x(0)
    norm = c.e.node("ReduceL2", x, c.e.ints([-1]), keepdims=1)
    return c.activated(c.e.node("Div", x, c.e.node("Max", norm, c.scalar(1e-6, x))))


def local_response_normalization(c: Call) -> str:
    """x / (bias + alpha * sum of squares) ** beta over 2 radius + 1 channels; ONNX divides alpha by their number."""
    o = c.options
    size = 2 * o["radius"] + 1
    if size < 1 or c.rank() != 4:
        c.fail(f"radius is {o['radius']}, x has {c.rank()} axes: expected at least 0 and 4")
    return c.e.node("LRN", c.x(0), size=size, alpha=o["alpha"] * size, beta=o["beta"], bias=o["bias"], x_last=True)


def _resize(method: str) -> Rule:
    def rule(c: Call) -> str:
        wanted = c.x(1) if c.constant(1) is None else c.e.ints(c.ints(1, "sizes"))
        return last.resize(c.e, c.x(0), wanted, method, bool(c.options["align_corners"]), bool(c.options["half_pixel_centers"]))

    return rule


def _blocks(move: Callable[..., str]) -> Rule:
    def rule(c: Call) -> str:
        (block,) = sizes(c, "block_size")
        return move(c.e, c.x(0), block)

    return rule


def embedding_lookup(c: Call) -> str:
    """Rows of a table by number."""
    return c.e.node("Gather", c.x(1), c.x(0), axis=0)


def fake_quant(c: Call) -> str:
    """Rounds x as if it were stored in num_bits: to steps between min and max, of which 0 is one."""
    o, x = c.options, c.x(0)
    low, high = float(bool(o["narrow_range"])), float((1 << min(max(o["num_bits"], 2), 16)) - 1)
    scale = (o["max"] - o["min"]) / (high - low)
    if not scale > 0:
        c.fail(f"min is {o['min']}, max {o['max']}: expected less and more")
    zero = min(max(float(np.floor(low - o["min"] / scale + 0.5)), low), high)
    least, most = (low - zero) * scale, (high - zero) * scale
    inside = c.e.node("Clip", x, c.scalar(least, x), c.scalar(most, x))
    steps = c.e.node(
        "Floor",
        c.e.node("Add", c.e.node("Mul", c.e.node("Sub", inside, c.scalar(least, x)), c.scalar(1 / scale, x)), c.scalar(0.5, x)),
    )
    return c.e.node("Add", c.e.node("Mul", steps, c.scalar(scale, x)), c.scalar(least, x))


RULES: dict[str, Rule] = {
    "AVERAGE_POOL_2D": _pool("AveragePool"),
    "BATCH_MATMUL": batch_matmul,
    "CONV_2D": conv_2d,
    "CONV_3D": conv_3d,
    "CONV_3D_TRANSPOSE": conv_3d_transpose,
    "CUSTOM 'Convolution2DTransposeBias'": transpose_conv_bias,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "DEPTH_TO_SPACE": _blocks(last.depth_to_space),
    "EMBEDDING_LOOKUP": embedding_lookup,
    "FAKE_QUANT": fake_quant,
    "FULLY_CONNECTED": fully_connected,
    "L2_NORMALIZATION": l2_normalization,
    "L2_POOL_2D": _pool("AveragePool"),
    "LOCAL_RESPONSE_NORMALIZATION": local_response_normalization,
    "LOG_SOFTMAX": lambda c: c.e.node("LogSoftmax", c.x(0), axis=-1),
    "MAX_POOL_2D": _pool("MaxPool"),
    "RESIZE_BILINEAR": _resize("bilinear"),
    "RESIZE_NEAREST_NEIGHBOR": _resize("nearest"),
    "SOFTMAX": softmax,
    "SPACE_TO_DEPTH": _blocks(last.space_to_depth),
    "TRANSPOSE_CONV": transpose_conv,
}
