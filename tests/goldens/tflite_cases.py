"""The files of tflite.npz: one operator each in the ways that it can be used, and a few networks. Name: (file, inputs)."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from ..formats.tflite_build import Field, Net, single

RNG = np.random.default_rng(7)
Case = tuple[bytes, list[np.ndarray]]
CASES: dict[str, Case] = {}


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def case(name: str, op: str, given: list[Any], fixed: dict[int, Any] | None = None, **more: Any) -> None:
    content = single(op, given, fixed, **more)
    CASES[name] = content, [np.asarray(a) for i, a in enumerate(given) if a is not None and i not in (fixed or {})]


# ---- layers ------------------------------------------------------------------------------------------------------------

for padding in (0, 1):
    for stride in (1, 2):
        for size in ((7, 6), (8, 5)):
            name = f"p{padding} s{stride} {size[0]}x{size[1]}"
            window = {"padding": padding, "stride_w": stride, "stride_h": stride}
            weights = {1: normal(4, 3, 3, 2), 2: normal(4)}
            case(f"conv {name}", "CONV_2D", [normal(2, *size, 2)], weights, **window, act=padding + 1)
            weights = {1: normal(1, 3, 2, 6), 2: normal(6)}
            case(f"depthwise {name}", "DEPTHWISE_CONV_2D", [normal(1, *size, 3)], weights, **window, multiplier=2, act=3)
            filters = {"filter_w": 3, "filter_h": 2}
            for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
                case(f"{op} {name}", op, [normal(1, *size, 3)], **window, **filters, act=(stride - 1) * 2)
case("conv dilated", "CONV_2D", [normal(1, 9, 8, 2)], {1: normal(3, 3, 3, 2), 2: normal(3)}, padding=0, stride_w=1, stride_h=1,
     dilation_w=2, dilation_h=3)  # fmt: skip
case("conv grouped", "CONV_2D", [normal(1, 5, 5, 4)], {1: normal(6, 3, 3, 2), 2: normal(6)}, padding=1, stride_w=1, stride_h=1)
case("conv rows", "CONV_2D", [normal(1, 1, 12, 3)], {1: normal(2, 1, 5, 3), 2: normal(2)}, padding=1, stride_w=3, stride_h=1)
case(
    "conv computed weights",
    "CONV_2D",
    [normal(1, 5, 5, 2), normal(3, 3, 3, 2)],
    {2: normal(3)},
    padding=1,
    stride_w=1,
    stride_h=1,
)
case("depthwise one channel", "DEPTHWISE_CONV_2D", [normal(1, 5, 6, 1)], {1: normal(1, 3, 3, 4), 2: normal(4)}, padding=0,
     stride_w=2, stride_h=2, multiplier=4)  # fmt: skip
case("depthwise dilated", "DEPTHWISE_CONV_2D", [normal(1, 9, 9, 3)], {1: normal(1, 3, 3, 3), 2: normal(3)}, padding=0, stride_w=1,
     stride_h=1, multiplier=1, dilation_w=2, dilation_h=2)  # fmt: skip
for k in (2, 3, 4):
    for padding in (0, 1):
        made = 10 if padding == 0 else 4 * 2 + max(k, 2)
        less = made - 1 if padding == 0 else made
        for size in {made, less}:
            case(f"transposed k{k} p{padding} {size}", "TRANSPOSE_CONV", [None, None, normal(1, 5, 5, 3)],
                 {0: ints(1, size, size, 2), 1: normal(2, k, k, 3), 3: normal(2)}, padding=padding, stride_w=2, stride_h=2,
                 act=padding)  # fmt: skip
case("conv 3d", "CONV_3D", [normal(1, 4, 5, 6, 2)], {1: normal(2, 3, 3, 2, 3), 2: normal(3)}, padding=0, stride_d=1, stride_w=2,
     stride_h=1)  # fmt: skip
case("conv 3d transposed", "CONV_3D_TRANSPOSE", [None, None, normal(1, 2, 3, 3, 2)],
     {0: ints(1, 4, 6, 6, 3), 1: normal(2, 3, 3, 3, 2), 3: normal(3)}, padding=0, stride_d=2, stride_w=2, stride_h=2)  # fmt: skip
for keep in (0, 1):
    case(
        f"fully connected keep={keep}",
        "FULLY_CONNECTED",
        [normal(2, 3, 4)],
        {1: normal(5, 4), 2: normal(5)},
        keep_num_dims=keep,
        act=1,
    )
case("fully connected flat", "FULLY_CONNECTED", [normal(2, 3, 4)], {1: normal(5, 12)})
case("fully connected computed", "FULLY_CONNECTED", [normal(2, 4), normal(3, 4), normal(3)])
for x, y in ((0, 0), (1, 0), (0, 1), (1, 1)):
    case(
        f"batch matmul {x}{y}",
        "BATCH_MATMUL",
        [normal(2, *((4, 3) if x else (3, 4))), normal(2, *((5, 4) if y else (4, 5)))],
        adj_x=x,
        adj_y=y,
    )
case("batch matmul fixed", "BATCH_MATMUL", [normal(2, 3, 4)], {1: normal(1, 5, 4)}, adj_y=1)
case("softmax", "SOFTMAX", [normal(2, 5)], beta=1.0)
case("softmax beta", "SOFTMAX", [normal(2, 2, 5)], beta=0.5)
case("log softmax", "LOG_SOFTMAX", [normal(3, 4)])
case("l2 normalization", "L2_NORMALIZATION", [np.concatenate([normal(2, 4), np.zeros((1, 4), np.float32)])])
case("local response", "LOCAL_RESPONSE_NORMALIZATION", [normal(1, 3, 3, 7)], radius=2, bias=1.5, alpha=0.3, beta=0.75)
for op in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
    for corners, half in ((0, 0), (1, 0), (0, 1)):
        for size in ((7, 9), (2, 3), (1, 6)):
            if half and op == "RESIZE_NEAREST_NEIGHBOR" and size == (1, 6):
                continue
            case(f"{op} {corners}{half} {size[0]}x{size[1]}", op, [normal(1, 3, 4, 2)], {1: ints(*size)}, align_corners=corners,
                 half_pixel_centers=half)  # fmt: skip
case("depth to space", "DEPTH_TO_SPACE", [normal(1, 2, 3, 12)], block_size=2)
case("space to depth", "SPACE_TO_DEPTH", [normal(1, 4, 6, 3)], block_size=2)
case("embedding lookup", "EMBEDDING_LOOKUP", [ints(2, 0, 3)], {1: normal(4, 3)})

# ---- mathematics ---------------------------------------------------------------------------------------------------------

for op in ("ADD", "SUB", "MUL", "DIV"):
    for act in (0, 1, 2, 3):
        case(f"{op} act{act}", op, [normal(2, 3, 4) * 4, normal(4)], act=act)
for op in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD"):
    case(op, op, [normal(2, 3) * 5, normal(2, 3) * 3])
for op in ("FLOOR_DIV", "FLOOR_MOD", "DIV", "MINIMUM"):
    case(f"{op} ints", op, [ints(7, -7, 8, -9), ints(2, 2, -3, -4)], dtypes=["int32"])
case("POW", "POW", [np.abs(normal(2, 3)) + 0.1, normal(2, 3)])
for op in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
    case(op, op, [ints(1, 2, 3), ints(1, 3, 2)], dtypes=["bool"])
    case(f"{op} floats", op, [normal(3), normal(3)], dtypes=["bool"])
TRUTH = np.array([True, False, True, False]), np.array([True, True, False, False])
case("LOGICAL_AND", "LOGICAL_AND", list(TRUTH), dtypes=["bool"])
case("LOGICAL_OR", "LOGICAL_OR", list(TRUTH), dtypes=["bool"])
case("LOGICAL_NOT", "LOGICAL_NOT", [TRUTH[0]], dtypes=["bool"])
UNARY = "ABS CEIL COS EXP FLOOR NEG ROUND SIGN SIN SQUARE RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LOGISTIC TANH ELU HARD_SWISH"
for op in UNARY.split():
    case(op, op, [np.concatenate([normal(3, 4) * 4, [[0.5, 1.5, 2.5, -0.5]]]).astype(np.float32)])
for op in ("LOG", "SQRT", "RSQRT"):
    case(op, op, [np.abs(normal(3, 4)) + 0.01])
case("GELU", "GELU", [normal(3, 4) * 2])
case("GELU tanh", "GELU", [normal(3, 4) * 2], approximate=1)
case("LEAKY_RELU", "LEAKY_RELU", [normal(3, 4)], alpha=0.3)
case("PRELU", "PRELU", [normal(1, 3, 2, 4)], {1: normal(1, 1, 4)})
case("ADD_N", "ADD_N", [normal(2, 3), normal(2, 3), normal(2, 3)])
case("SELECT", "SELECT", [np.array([[True, False], [False, True]]), normal(2, 2), normal(2, 2)])
case("SELECT rows", "SELECT", [np.array([True, False]), normal(2, 3), normal(2, 3)])
case("SELECT_V2", "SELECT_V2", [np.array([[True], [False]]), normal(2, 3), normal(1, 3)])
for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
    for keep, axes in ((0, [1, 2]), (1, [-1]), (0, [0, 0, 2])):
        case(f"{op} {keep} {axes}", op, [normal(2, 3, 4)], {1: ints(*axes)}, keep_dims=keep)
for op in ("REDUCE_ANY", "REDUCE_ALL"):
    case(op, op, [np.array([[True, False], [True, True], [False, False]])], {1: ints(1)}, dtypes=["bool"])
for op in ("ARG_MAX", "ARG_MIN"):
    case(op, op, [normal(2, 5)], {1: ints(1)}, dtypes=["int32"], output_type=2)
    case(f"{op} int64", op, [normal(2, 5)], {1: np.int32(-2)}, dtypes=["int64"], output_type=4)
for dtype in ("int32", "float32", "bool", "uint8", "int64"):
    case(f"CAST {dtype}", "CAST", [np.array([0.0, 1.7, 3.2], np.float32)], dtypes=[dtype])
case("CUMSUM", "CUMSUM", [normal(2, 4)], {1: np.int32(1)})
case("CUMSUM exclusive reverse", "CUMSUM", [normal(2, 4)], {1: np.int32(-1)}, exclusive=1, reverse=1)
case("TOPK_V2", "TOPK_V2", [normal(2, 6)], {1: np.int32(3)}, results=2, dtypes=["float32", "int32"])
case("FAKE_QUANT", "FAKE_QUANT", [normal(3, 5) * 3], min=-2.3, max=1.9, num_bits=8)

# ---- movement ------------------------------------------------------------------------------------------------------------

X = normal(2, 3, 4, 5)
case("RESHAPE", "RESHAPE", [X], {1: ints(2, -1, 5)})
case("RESHAPE option", "RESHAPE", [X], new_shape=[6, 20])
case("RESHAPE computed", "RESHAPE", [X, ints(4, 30)], shapes=[(1, 1)])
case("RESHAPE scalar", "RESHAPE", [normal(1, 1)], {1: ints(1)})
case("SQUEEZE", "SQUEEZE", [normal(1, 3, 1, 2)])
case("SQUEEZE dims", "SQUEEZE", [normal(1, 3, 1, 2)], squeeze_dims=[-2])
case("EXPAND_DIMS", "EXPAND_DIMS", [normal(2, 3)], {1: np.int32(-1)})
case("TRANSPOSE", "TRANSPOSE", [X], {1: ints(3, 0, 2, 1)})
case("CONCATENATION", "CONCATENATION", [normal(1, 2, 3), normal(1, 2, 2)], axis=-1)
case("CONCATENATION first", "CONCATENATION", [normal(1, 2), normal(3, 2), normal(2, 2)], axis=0)
case("PACK", "PACK", [normal(2, 3), normal(2, 3)], axis=1, values_count=2)
case("PACK last", "PACK", [normal(2, 3), normal(2, 3)], axis=-1, values_count=2)
case("UNPACK", "UNPACK", [normal(2, 3, 4)], results=3, axis=1, num=3)
case("SPLIT", "SPLIT", [None, normal(2, 6)], {0: np.int32(1)}, results=3, num_splits=3)
case("SPLIT_V", "SPLIT_V", [normal(2, 7)], {1: ints(2, -1, 1), 2: np.int32(-1)}, results=3, num_splits=3)
case("SLICE", "SLICE", [X], {1: ints(0, 1, 1, 2), 2: ints(2, 2, -1, 3)})
case("SLICE computed", "SLICE", [X, ints(1, 0, 1, 0), ints(1, -1, 2, 3)], shapes=[(1, 3, 2, 3)])
SLICES: dict[str, tuple[list[int], list[int], list[int], dict[str, int]]] = {
    "plain": ([0, 1], [2, 3], [1, 1], {}),
    "steps": ([0, 0, 3, 4], [2, 3, 0, -6], [1, 2, -1, -2], {}),
    "masks": ([1, 1, 1, 1], [2, 2, 2, 2], [1, 1, 1, 2], {"begin_mask": 0b1001, "end_mask": 0b1010}),
    "backward masks": ([1, 1, 1, 1], [0, 0, 0, 0], [1, 1, -1, -1], {"begin_mask": 0b1100, "end_mask": 0b1111}),
    "shrink": ([0, 1, 0, -1], [2, 2, 4, 0], [1, 1, 1, 1], {"shrink_axis_mask": 0b1010}),
    "ellipsis": ([1, 0, 1], [2, 0, 3], [1, 1, 1], {"ellipsis_mask": 0b010}),
    "ellipsis shrink": ([1, 0, 1], [2, 0, 3], [1, 1, 1], {"ellipsis_mask": 0b010, "shrink_axis_mask": 0b101}),
    "new axis": ([0, 0, 1], [0, 0, 3], [1, 1, 1], {"new_axis_mask": 0b001, "end_mask": 0b010}),
    "out of range": ([-9, 1, -2, 0], [9, 9, 9, 9], [1, 1, 1, 1], {}),
}
for name, (begin, end, steps, masks) in SLICES.items():
    case(f"STRIDED_SLICE {name}", "STRIDED_SLICE", [X], {1: ints(*begin), 2: ints(*end), 3: ints(*steps)}, **masks)
for name in ("plain", "masks"):
    begin, end, steps, masks = SLICES[name]
    case(
        f"STRIDED_SLICE {name} computed",
        "STRIDED_SLICE",
        [X, ints(*begin), ints(*end)],
        {3: ints(*steps)},
        shapes=[(1, 1, 1, 1)],
        **masks,
    )
case("GATHER", "GATHER", [X], {1: ints([0, 2], [1, 1])}, axis=1)
case("GATHER batch", "GATHER", [normal(2, 4, 3), ints([0, 3], [1, 1])], axis=1, batch_dims=1)
case("GATHER_ND", "GATHER_ND", [normal(2, 3, 4), ints([0, 2], [1, 1])])
case("SCATTER_ND", "SCATTER_ND", [ints([1], [3], [1]), normal(3, 2)], {2: ints(5, 2)})
case("PAD", "PAD", [normal(1, 3, 4, 2)], {1: ints([0, 0], [1, 2], [0, 3], [0, 0])})
case("PAD channels", "PAD", [normal(1, 3, 4, 2)], {1: ints([0, 0], [0, 0], [0, 0], [1, 2])})
case("PADV2", "PADV2", [normal(1, 3, 4, 2)], {1: ints([0, 0], [1, 2], [0, 3], [0, 0]), 2: np.float32(-2)})
case("PAD computed", "PAD", [normal(2, 3), ints([1, 0], [2, 1])], shapes=[(1, 1)])
for mode in (0, 1):
    case(f"MIRROR_PAD {mode}", "MIRROR_PAD", [normal(1, 4, 5, 2)], {1: ints([0, 0], [2, 1], [3, 2], [0, 0])}, mode=mode)
case("SHAPE", "SHAPE", [X], dtypes=["int32"], out_type=2)
case("RANK", "RANK", [X], dtypes=["int32"])
case("FILL", "FILL", [ints(2, 3), np.float32(1.5)], shapes=[(1, 1)])
case("ZEROS_LIKE", "ZEROS_LIKE", [X])
case("RANGE", "RANGE", [np.int32(2), np.int32(9), np.int32(3)], dtypes=["int32"], shapes=[(1,)])
case("TILE", "TILE", [normal(2, 3)], {1: ints(2, 1)})
case("BROADCAST_TO", "BROADCAST_TO", [normal(1, 3)], {1: ints(4, 2, 3)}, version=2)
case("ONE_HOT", "ONE_HOT", [ints([0, 2], [-1, 5])], {1: np.int32(4), 2: np.float32(2), 3: np.float32(-1)}, axis=-1)
case("ONE_HOT first", "ONE_HOT", [ints(0, 2, 1)], {1: np.int32(4), 2: np.float32(1), 3: np.float32(0)}, axis=0)
case("REVERSE_V2", "REVERSE_V2", [normal(2, 3, 4)], {1: ints(1)})
case("WHERE", "WHERE", [np.array([[True, False], [True, True]])], dtypes=["int64"], shapes=[(1, 2)])
case("SPACE_TO_BATCH_ND", "SPACE_TO_BATCH_ND", [normal(2, 4, 5, 3)], {1: ints(2, 3), 2: ints([0, 0], [1, 0])})
case("BATCH_TO_SPACE_ND", "BATCH_TO_SPACE_ND", [normal(12, 2, 2, 3)], {1: ints(2, 3), 2: ints([0, 0], [1, 0])})
case("SPACE_TO_BATCH_ND one axis", "SPACE_TO_BATCH_ND", [normal(2, 5, 3)], {1: ints(2), 2: ints([0, 1])})
case("BITWISE_XOR", "BITWISE_XOR", [ints(1, 6, -3), ints(3, 5, 7)], dtypes=["int32"])

# ---- networks ------------------------------------------------------------------------------------------------------------


def sparse(dense: np.ndarray, block: int) -> tuple[bytes, dict[int, Field]]:
    """A matrix by rows, its columns compressed, in blocks of `block` columns; the data and the table that describes it."""
    rows, columns = dense.shape[0], dense.shape[1] // block
    kept = dense.reshape(rows, columns, block).any(2)
    segments, indices = [0, *np.cumsum(kept.sum(1)).tolist()], np.nonzero(kept)[1].tolist()
    levels: list[dict[int, Field]] = [
        {0: Field("b", 0), 1: Field("i", rows)},
        {
            0: Field("b", 1), 2: Field("B", 3), 3: Field("table", {0: Field("[B", segments)}), 4: Field("B", 2),
            5: Field("table", {0: Field("[H", indices)}),
        },
    ]  # fmt: skip
    if block > 1:
        levels.append({0: Field("b", 0), 1: Field("i", block)})
    order = list(range(len(levels)))
    described = {0: Field("[i", order), 1: Field("[i", [1] if block > 1 else []), 2: Field("tables", levels)}
    return dense.reshape(rows, columns, block)[kept].tobytes(), described


def half_and_sparse() -> bytes:
    """float16 weights made float32 by DEQUANTIZE, some of them sparse, as mediapipe's models have them."""
    net = Net()
    x = net.tensor((1, 5, 5, 4), name="x", signature=(-1, -1, -1, 4))
    h = x
    for i, block in enumerate((0, 1, 4)):
        weights = (normal(3 if i == 2 else 4, 4) * (RNG.random((3 if i == 2 else 4, 4)) > 0.6)).astype(np.float16)
        if i == 0:
            stored = net.constant(weights.reshape(-1, 1, 1, 4), f"w{i}")
        else:
            data, described = sparse(weights, block)
            flat = net.tensor(weights.shape, "float16", data, f"w{i}", sparsity=described)
            dense = net.tensor(weights.shape, "float16", name=f"w{i} dense")
            net.op("DENSIFY", [flat], [dense])
            shape = net.constant(ints(len(weights), 1, 1, 4), f"w{i} shape")
            single_ = net.tensor(weights.shape, name=f"w{i} float")
            net.op("DEQUANTIZE", [dense], [single_])
            stored = net.tensor((len(weights), 1, 1, 4), name=f"w{i} image")
            net.op("RESHAPE", [single_, shape], [stored], new_shape=[len(weights), 1, 1, 4])
        if i == 0:
            single_ = net.tensor((len(weights), 1, 1, 4), name=f"w{i} float")
            net.op("DEQUANTIZE", [stored], [single_])
            stored = single_
        bias = net.constant(normal(len(weights)), f"b{i}")
        y = net.tensor((1, 5, 5, len(weights)), name=f"h{i}")
        net.op("CONV_2D", [h, stored, bias], [y], padding=0, stride_w=1, stride_h=1, act=1 if i < 2 else 0)
        h = y
    net.inputs, net.outputs = [x], [h]
    return net.file()


def open_sizes() -> bytes:
    """Sizes taken from SHAPE, cut, joined and used for RESHAPE, with a residual block before."""
    net = Net()
    x = net.tensor((1, 6, 6, 3), name="x", signature=(-1, -1, 6, 3))
    w, b = net.constant(normal(1, 3, 3, 3), "w"), net.constant(normal(3), "b")
    h, r = net.tensor((1, 6, 6, 3), name="h"), net.tensor((1, 6, 6, 3), name="r")
    net.op("DEPTHWISE_CONV_2D", [x, w, b], [h], padding=0, stride_w=1, stride_h=1, multiplier=1, act=3)
    net.op("ADD", [x, h], [r], act=1)
    shape, size = net.tensor((4,), "int32", name="shape"), net.tensor((), "int32", name="size")
    net.op("SHAPE", [r], [shape], out_type=2)
    zero, one = net.constant(ints(0), "zero"), net.constant(ints(1), "one")
    net.op("STRIDED_SLICE", [shape, zero, one, one], [size], shrink_axis_mask=1)
    rest, wanted = net.constant(np.int32(-1), "rest"), net.tensor((3,), "int32", name="wanted")
    net.op("PACK", [size, rest, net.constant(np.int32(9), "nine")], [wanted], values_count=3)
    y, z = net.tensor((1, 12, 9), name="y"), net.tensor((1, 12, 9), name="z")
    net.op("RESHAPE", [r, wanted], [y])
    net.op("SOFTMAX", [y], [z], beta=1.0)
    net.inputs, net.outputs = [x], [z, r]
    return net.file()


def branches() -> bytes:
    """IF on whether a sum is positive; one branch returns its input as it is."""
    net = Net()
    x, axes, zero = net.tensor((2, 3), name="x"), net.constant(ints(0, 1), "axes"), net.constant(np.float32(0), "zero")
    total, positive, y = net.tensor((), name="sum"), net.tensor((), "bool", name="positive"), net.tensor((2, 3), name="y")
    net.op("SUM", [x, axes], [total], keep_dims=0)
    net.op("GREATER", [total, zero], [positive])
    net.op("IF", [positive, x], [y], then_subgraph_index=1, else_subgraph_index=2)
    net.inputs, net.outputs = [x], [y]
    then, other = Net(net.buffers, net.codes), Net(net.buffers, net.codes)
    a, scale, b = then.tensor((2, 3), name="x"), then.constant(normal(3), "scale"), then.tensor((2, 3), name="y")
    then.op("MUL", [a, scale], [b], act=1)
    then.inputs, then.outputs = [a], [b]
    other.inputs = other.outputs = [other.tensor((2, 3), name="x")]
    return net.file(then, other)


CASES["network of half and sparse weights"] = half_and_sparse(), [normal(2, 4, 7, 4)]
CASES["network of open sizes"] = open_sizes(), [normal(2, 3, 6, 3)]
CASES["network with branches, then"] = branches(), [np.abs(normal(2, 3))]
CASES["network with branches, else"] = branches(), [-np.abs(normal(2, 3))]

# ---- quantized ------------------------------------------------------------------------------------------------------------

Quantized = tuple[np.ndarray, float | np.ndarray, int]  # integers, scale or scales, zero point


def integers(*shape: int, dtype: str = "int8") -> np.ndarray:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def quantized(
    name: str, op: str, given: list[Quantized | np.ndarray], fixed: dict[int, Any], out: tuple[str, float, int] | None,
    channels: int = 0, version: int = 1, **options: Any,
) -> None:  # fmt: skip
    """One operator on quantized inputs; `out` has dtype, scale and zero point of the result, None for float32."""
    net, numbers, feeds = Net(), [], []
    for i in range(len(given) + len(fixed)):
        value = fixed[i] if i in fixed else given[len(feeds)]
        array, scale, zero = value if isinstance(value, tuple) else (value, (), 0)
        scales = np.atleast_1d(scale).tolist() if np.size(scale) else []
        about = {"scale": scales, "zero": [zero] * len(scales), "axis": channels if array.ndim > 1 and len(scales) > 1 else 0}
        if i in fixed:
            numbers.append(net.constant(array, f"c{i}", **about))
        else:
            feeds.append(array)
            numbers.append(net.tensor(array.shape, array.dtype.name, name=f"x{i}", **about))
            net.inputs.append(numbers[-1])
    if out is None:
        net.outputs = [net.tensor((), name="y")]
    else:
        net.outputs = [net.tensor((), out[0], name="y", scale=(out[1],), zero=(out[2],))]
    net.op(op, numbers, net.outputs, version, **options)
    CASES[f"quantized {name}"] = net.file(), feeds


for dtype, zero in (("int8", -7), ("uint8", 120)):
    x5 = integers(1, 7, 6, 4, dtype=dtype), 0.05, zero
    per = np.linspace(0.01, 0.03, 5).astype(np.float32)
    if dtype == "int8":
        weights: Quantized = (np.maximum(integers(5, 3, 3, 4), -127), per, 0)
        bias = RNG.integers(-900, 900, 5).astype(np.int32), (np.float32(0.05) * per).astype(np.float32), 0
    else:
        weights = integers(5, 3, 3, 4, dtype="uint8"), 0.02, 117
        bias = RNG.integers(-900, 900, 5).astype(np.int32), 0.05 * 0.02, 0
    window = {"stride_w": 1, "stride_h": 2}
    for act in (0, 1, 3):
        quantized(
            f"conv {dtype} act{act}",
            "CONV_2D",
            [x5],
            {1: weights, 2: bias},
            (dtype, 0.09, zero + 3),
            padding=act % 2,
            act=act,
            **window,
        )
    small_ = (weights[0][:1, :, :, :].reshape(1, 3, 3, 4), 0.02 if dtype == "uint8" else per[:4], 117 if dtype == "uint8" else 0)
    few = bias[0][:4], (np.float32(0.05) * np.float32(0.02)) if dtype == "uint8" else (np.float32(0.05) * per[:4]), 0
    quantized(
        f"depthwise {dtype}",
        "DEPTHWISE_CONV_2D",
        [x5],
        {1: small_, 2: few},
        (dtype, 0.06, zero),
        channels=3,
        padding=0,
        multiplier=1,
        **window,
    )
    rows = integers(3, 8, dtype=dtype), 0.04, zero
    flat = np.maximum(integers(5, 8), -127) if dtype == "int8" else integers(5, 8, dtype="uint8")
    dense = flat, 0.02, 0 if dtype == "int8" else 121
    plain = RNG.integers(-900, 900, 5).astype(np.int32), 0.04 * 0.02, 0
    quantized(f"fully connected {dtype}", "FULLY_CONNECTED", [rows], {1: dense, 2: plain}, (dtype, 0.08, zero))
    quantized(f"fully connected no bias {dtype}", "FULLY_CONNECTED", [rows], {1: dense}, (dtype, 0.08, zero), act=1)
    other = integers(1, 7, 6, 4, dtype=dtype), 0.03, zero + 9
    for op in ("ADD", "SUB", "MUL"):
        quantized(f"{op} {dtype}", op, [x5, other], {}, (dtype, 0.07, zero - 4), act=1)
    quantized(
        f"AVERAGE_POOL_2D {dtype}", "AVERAGE_POOL_2D", [x5], {}, (dtype, 0.05, zero), padding=0, filter_w=3, filter_h=2, **window
    )
    quantized(
        f"MAX_POOL_2D {dtype}", "MAX_POOL_2D", [x5], {}, (dtype, 0.05, zero), padding=0, filter_w=3, filter_h=2, act=1, **window
    )
    quantized(f"MEAN {dtype}", "MEAN", [x5], {1: ints(1, 2)}, (dtype, 0.02, zero), keep_dims=1)
    low = -128 if dtype == "int8" else 0
    quantized(f"LOGISTIC {dtype}", "LOGISTIC", [rows], {}, (dtype, 1 / 256, low))
    quantized(f"TANH {dtype}", "TANH", [rows], {}, (dtype, 1 / 128, 0 if dtype == "int8" else 128))
    quantized(f"SOFTMAX {dtype}", "SOFTMAX", [rows], {}, (dtype, 1 / 256, low), beta=1.0)
    quantized(f"LEAKY_RELU {dtype}", "LEAKY_RELU", [rows], {}, (dtype, 0.03, zero), alpha=0.2)
    quantized(f"HARD_SWISH {dtype}", "HARD_SWISH", [rows], {}, (dtype, 0.03, zero))
    quantized(f"RELU6 {dtype}", "RELU6", [rows], {}, (dtype, 0.03, zero))
    quantized(f"PAD {dtype}", "PAD", [x5], {1: ints([0, 0], [1, 2], [0, 1], [0, 0])}, (dtype, 0.05, zero))
    quantized(f"RESHAPE {dtype}", "RESHAPE", [rows], {1: ints(4, 6)}, (dtype, 0.04, zero))
    quantized(f"RESIZE_BILINEAR {dtype}", "RESIZE_BILINEAR", [x5], {1: ints(9, 11)}, (dtype, 0.05, zero), half_pixel_centers=1)
    quantized(f"RESIZE_NEAREST_NEIGHBOR {dtype}", "RESIZE_NEAREST_NEIGHBOR", [x5], {1: ints(9, 11)}, (dtype, 0.05, zero))
    quantized(f"ARG_MAX {dtype}", "ARG_MAX", [rows], {1: ints(1)}, ("int32", 1.0, 0), output_type=2)
    quantized(f"DEQUANTIZE {dtype}", "DEQUANTIZE", [rows], {}, None)
    quantized(f"QUANTIZE {dtype}", "QUANTIZE", [normal(3, 5) * 4], {}, (dtype, 0.05, zero))
    quantized(f"QUANTIZE {dtype} again", "QUANTIZE", [rows], {}, ("int8" if dtype == "uint8" else "uint8", 0.04, 5))
    quantized(f"CONCATENATION {dtype}", "CONCATENATION", [x5, (other[0], 0.05, zero)], {}, (dtype, 0.05, zero), axis=-1)
parts: list[Quantized | np.ndarray] = [(integers(1, 4, dtype="uint8"), 0.03, 100), (integers(1, 4, dtype="uint8"), 0.05, 120)]
quantized("CONCATENATION of scales", "CONCATENATION", parts, {}, ("uint8", 0.06, 110), axis=-1)
quantized("PRELU int8", "PRELU", [(integers(1, 3, 2, 4), 0.05, 4)], {1: (integers(1, 1, 4), 0.01, -3)}, ("int8", 0.04, 1))
quantized("TRANSPOSE_CONV int8", "TRANSPOSE_CONV", [(integers(1, 3, 3, 2), 0.05, 3)],
          {0: ints(1, 6, 6, 3), 1: (np.maximum(integers(3, 3, 3, 2), -127), np.linspace(0.01, 0.02, 3).astype(np.float32), 0)},
          ("int8", 0.2, 1), padding=0, stride_w=2, stride_h=2)  # fmt: skip
quantized(
    "BATCH_MATMUL int8", "BATCH_MATMUL", [(integers(2, 3, 4), 0.05, 3), (integers(2, 4, 5), 0.02, -2)], {}, ("int8", 0.1, 1)
)
quantized("conv int16", "CONV_2D", [(integers(1, 5, 5, 2, dtype="int16"), 0.0005, 0)],
          {1: (np.maximum(integers(3, 3, 3, 2), -127), 0.01, 0), 2: (RNG.integers(-900, 900, 3), 0.000005, 0)},
          ("int16", 0.0004, 0), padding=0, stride_w=1, stride_h=1)  # fmt: skip

# ---- recurrent layers and loops ------------------------------------------------------------------------------------------


def lstm_inputs(net: Net, inputs: int, cells: int, outputs: int, coupled: bool, peepholes: bool) -> list[int]:
    """Weights of one direction: 17 inputs."""
    gates = range(1 if coupled else 0, 4)
    found = [-1] * 17
    for k in gates:
        found[k], found[4 + k] = net.constant(normal(cells, inputs)), net.constant(normal(cells, outputs) / 2)
        found[11 + k] = net.constant(normal(cells))
    if peepholes:
        for k in range(1 if coupled else 0, 3):
            found[8 + k] = net.constant(normal(cells))
    if outputs != cells:
        found[15] = net.constant(normal(outputs, cells))
    return found


def lstm(
    major: int = 0, coupled: bool = False, peepholes: bool = False, outputs: int = 4, steps: int = 5, clip: float = 0.0,
    act: int = 4,
) -> Case:  # fmt: skip
    net = Net()
    x = net.tensor((steps, 2, 3) if major else (2, steps, 3), name="x")
    weights = lstm_inputs(net, 3, 4, outputs, coupled, peepholes)
    states = [net.tensor((2, size), variable=True) for size in (outputs, 4)]
    y = net.tensor((), name="y")
    net.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *weights, *states, -1, -1, -1, -1], [y], act=act, time_major=major, cell_clip=clip)
    net.inputs, net.outputs = [x], [y]
    return net.file(), [normal(*((steps, 2, 3) if major else (2, steps, 3)))]


def bidirectional_lstm(merge: int) -> Case:
    net = Net()
    x = net.tensor((2, 5, 3), name="x")
    weights = [*lstm_inputs(net, 3, 4, 4, False, False), *lstm_inputs(net, 3, 4, 4, False, False)]
    states = [net.tensor((2, 4), variable=True) for _ in range(4)]
    net.outputs = [net.tensor((), name=f"y{i}") for i in range(1 if merge else 2)]
    options = {"act": 4, "merge_outputs": merge, "time_major": 0}
    net.op("BIDIRECTIONAL_SEQUENCE_LSTM", [x, *weights, *states, *[-1] * 9], net.outputs, **options)
    net.inputs = [x]
    return net.file(), [normal(2, 5, 3)]


def rnn(op: str, act: int, **options: int) -> Case:
    net = Net()
    shape = (2, 3) if op == "RNN" else (2, 5, 3)
    x = net.tensor(shape, name="x")

    def direction() -> list[int]:
        arrays = [net.constant(a) for a in (normal(4, 3), normal(4, 4) / 2, normal(4))]
        return [*arrays, net.tensor((2, 4), variable=True)]

    both = op.startswith("BI")
    inputs = [x, *direction(), *([*direction(), -1, -1, -1] if both else [])]
    net.outputs = [net.tensor((), name=f"y{i}") for i in range(2 if both and not options["merge_outputs"] else 1)]
    net.op(op, inputs, net.outputs, act=act, **options)
    net.inputs = [x]
    return net.file(), [normal(*shape)]


CASES["LSTM"] = lstm()
CASES["LSTM time first, peepholes"] = lstm(major=1, peepholes=True)
CASES["LSTM coupled gates, peepholes"] = lstm(coupled=True, peepholes=True)
CASES["LSTM projection"] = lstm(outputs=3)
CASES["LSTM relu"] = lstm(act=1)
CASES["LSTM a clip that is not reached"] = lstm(clip=10.0)
CASES["network with a clipped LSTM"] = lstm(clip=0.4)
CASES["network with a clipped LSTM, time first"] = lstm(clip=0.4, major=1)
CASES["LSTM both ways"] = bidirectional_lstm(0)
CASES["LSTM both ways, joined"] = bidirectional_lstm(1)
CASES["RNN step"] = rnn("RNN", 4)
CASES["RNN"] = rnn("UNIDIRECTIONAL_SEQUENCE_RNN", 1, time_major=0)
CASES["RNN both ways"] = rnn("BIDIRECTIONAL_SEQUENCE_RNN", 4, time_major=0, merge_outputs=0)
CASES["RNN both ways, joined"] = rnn("BIDIRECTIONAL_SEQUENCE_RNN", 4, time_major=0, merge_outputs=1)


def loop() -> Case:
    """While i < n: i + 1, x * w, and a value that stays."""
    net = Net()
    i, x, w = net.tensor((), "int32", name="i"), net.tensor((2, 3), name="x"), net.tensor((3,), name="w")
    outs = [net.tensor((), "int32", name="i out"), net.tensor((2, 3), name="x out"), net.tensor((3,), name="w out")]
    net.op("WHILE", [i, x, w], outs, cond_subgraph_index=1, body_subgraph_index=2)
    net.inputs, net.outputs = [i, x, w], outs[:2]
    condition, body = Net(net.buffers, net.codes), Net(net.buffers, net.codes)
    a = [condition.tensor((), "int32", name="i"), condition.tensor((2, 3), name="x"), condition.tensor((3,), name="w")]
    less = condition.tensor((), "bool", name="less")
    condition.op("LESS", [a[0], condition.constant(np.int32(4), "limit")], [less])
    condition.inputs, condition.outputs = a, [less]
    b = [body.tensor((), "int32", name="i"), body.tensor((2, 3), name="x"), body.tensor((3,), name="w")]
    more, product = body.tensor((), "int32", name="more"), body.tensor((2, 3), name="product")
    body.op("ADD", [b[0], body.constant(np.int32(1), "one")], [more])
    body.op("MUL", [b[1], b[2]], [product], act=1)
    body.inputs, body.outputs = b, [more, product, b[2]]
    return net.file(condition, body), [np.array(1, np.int32), np.abs(normal(2, 3)), np.abs(normal(3))]


CASES["network with a loop"] = loop()
CASES["network with a loop of no rounds"] = CASES["network with a loop"][0], [np.array(9, np.int32), normal(2, 3), normal(3)]

# ---- further operators ---------------------------------------------------------------------------------------------------

for starts in ([1, 1], [5, -3]):
    case(f"DYNAMIC_UPDATE_SLICE {starts}", "DYNAMIC_UPDATE_SLICE", [normal(4, 5), normal(2, 3), ints(*starts)])
case("REVERSE_SEQUENCE", "REVERSE_SEQUENCE", [normal(3, 4, 2), ints(1, 4, 2)], seq_dim=1, batch_dim=0)
case("UNIQUE", "UNIQUE", [ints(3, 1, 3, 2, 1)], results=2, dtypes=["int32"], shapes=[(1,), (5,)], idx_out_type=2)
case("RIGHT_SHIFT", "RIGHT_SHIFT", [ints(-9, 9, 7), ints(1, 2, 0)], dtypes=["int32"])
for kind in (1, 2):
    for k in (2, 3):
        fixed = {1: normal(2, k, k, 3), 2: normal(2)}
        made = (1, 8, 10, 2) if kind == 1 else (1, 6 + k, 8 + k, 2)
        options = struct.pack("<iii", kind, 2, 2)
        name = f"transposed convolution of mediapipe {kind} k{k}"
        case(name, "Convolution2DTransposeBias", [normal(1, 4, 5, 3)], fixed, shapes=[made], custom=options)
