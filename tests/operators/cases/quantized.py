"""Quantized numbers. Scales are powers of two, so that every step is exact and the results can be written down."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Case, array, case

U8, I8 = np.uint8, np.int8


def u8(*values: Any) -> np.ndarray:
    return np.array(values, U8)


def i8(*values: Any) -> np.ndarray:
    return np.array(values, I8)


def i32(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def zero(value: int, dtype: Any = U8) -> np.ndarray:
    return np.array(value, dtype)


def bytes_(*shape: int, dtype: Any = U8, seed: int = 0) -> np.ndarray:
    """Any bytes."""
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max + 1, shape).astype(dtype)


HALF, QUARTER, ONE = array(0.5), array(0.25), array(1.0)

QUANTIZE = [
    # halves go to the even neighbour, before the zero point is added
    case("QuantizeLinear", "ties", [[0.25, 0.75, 1.25, -0.25, -0.75, -1.25], HALF, zero(3)], u8(3, 5, 5, 3, 1, 1)),
    case("QuantizeLinear", "saturation", [[1e30, -1e30, np.inf, -np.inf, 130.0], ONE, zero(1, I8)], i8(127, -128, 127,
         -128, 127)),
    case("QuantizeLinear", "NaN", [[np.nan, 1.0], ONE, zero(1, I8)], i8(-128, 2)),
    case("QuantizeLinear", "no zero point", [[0.5, 1.0, 300.0], HALF], u8(1, 2, 255)),
    case("QuantizeLinear", "output_dtype", [[0.5, -1.0], HALF], i8(1, -2), output_dtype=3),
    case("QuantizeLinear", "uint16", [[-1.0, 3.0, 1e9], HALF, zero(7, np.uint16)], np.array([5, 13, 65535], np.uint16)),
    case("QuantizeLinear", "int16", [[-1.0, 3.0, 1e9], HALF, zero(-7, np.int16)], np.array([-9, -1, 32767], np.int16)),
    case("QuantizeLinear", "of int32", [i32(3, -5), HALF, zero(10)], u8(16, 0)),
    case("QuantizeLinear", "axis", [[[1, 2], [3, 4]], array([0.5, 0.25]), u8(0, 1)], u8([2, 9], [6, 17])),
    case("QuantizeLinear", "axis 0", [[[1, 2], [3, 4]], array([0.5, 0.25]), u8(0, 1)], u8([2, 4], [13, 17]), axis=0),
    case("QuantizeLinear", "axis from after", [[[1, 2], [3, 4]], array([0.5, 0.25]), u8(0, 1)], u8([2, 4], [13, 17]), axis=-2),
    case("QuantizeLinear", "blocks", [[[1, 2, 3], [3, 4, 5]], array([[0.5, 0.25], [1, 2]]), u8([0, 1], [2, 3])],
         u8([2, 4, 13], [5, 6, 5]), axis=1, block_size=2),
    case("QuantizeLinear", "float16", [np.array([0.25, 3], np.float16), np.array(0.5, np.float16), zero(1)], u8(1, 7)),
    case("QuantizeLinear", "empty", [np.zeros((0, 3), np.float32), ONE, zero(1)], np.zeros((0, 3), U8)),
]  # fmt: skip
DEQUANTIZE = [
    case("DequantizeLinear", "uint8", [u8(0, 3, 255), HALF, zero(3)], array([-1.5, 0, 126])),
    case("DequantizeLinear", "int8", [i8(-128, 3, 127), HALF, zero(-1, I8)], array([-63.5, 2, 64])),
    case("DequantizeLinear", "no zero point", [i8(-128, 3), HALF], array([-64, 1.5])),
    case("DequantizeLinear", "int32", [i32(1 << 24, -5), QUARTER], array([1 << 22, -1.25])),
    case("DequantizeLinear", "uint16", [np.array([0, 65535], np.uint16), HALF, zero(1, np.uint16)], array([-0.5, 32767])),
    case("DequantizeLinear", "axis", [u8([1, 2], [3, 4]), array([0.5, 2.0]), u8(0, 1)], array([[0.5, 2], [1.5, 6]])),
    case("DequantizeLinear", "axis 0", [u8([1, 2], [3, 4]), array([0.5, 2.0]), u8(0, 1)], array([[0.5, 1], [4, 6]]), axis=0),
    case("DequantizeLinear", "blocks", [u8([1, 2], [3, 4], [5, 6]), array([[0.5, 2], [1, 1]]), u8([0, 1], [2, 3])],
         array([[0.5, 2], [1.5, 6], [3, 3]]), axis=0, block_size=2),
    case("DequantizeLinear", "float16", [u8(1, 3), np.array(0.5, np.float16), zero(1)], np.array([0, 1], np.float16)),
    case("DequantizeLinear", "output_dtype", [u8(1, 3), HALF, zero(1)], np.array([0, 1], np.float16), output_dtype=10),
    case("DequantizeCodes", "axis", [u8([0x38, 0xC0], [0x01, 0x7E]), array([0.5, 2.0])], array([[0.5, -4], [2**-10, 896]]),
         codes="FLOAT8E4M3FN"),
    case("DequantizeCodes", "blocks", [u8([0x3C], [0x7C], [0xFC]), array([[2], [1]])], array([[2], [np.inf], [-np.inf]]),
         axis=0, block_size=2, codes="FLOAT8E5M2"),
    case("DequantizeLinear", "empty", [np.zeros((2, 0), U8), HALF], np.zeros((2, 0), np.float32)),
]  # fmt: skip
DYNAMIC = [
    case("DynamicQuantizeLinear", "plain", [[-1.0, 0.0, 254.0, 126.5]], u8(0, 1, 255, 127), ONE, zero(1)),
    case("DynamicQuantizeLinear", "above 0", [[255.0, 51.0]], u8(255, 51), ONE, zero(0)),
    case("DynamicQuantizeLinear", "below 0", [[-255.0, -51.0]], u8(0, 204), ONE, zero(255)),
    case("DynamicQuantizeLinear", "zeros", [[0.0, 0.0]], u8(0, 0), ONE, zero(0)),
    case("DynamicQuantizeLinear", "empty", [np.zeros((0,), np.float32)], np.zeros(0, U8), ONE, zero(0)),
]  # fmt: skip


def exact(a: np.ndarray, b: np.ndarray, a_zero: Any = 0, b_zero: Any = 0) -> np.ndarray:
    """The product of integers."""
    return np.einsum("...mk,...kn->...mn", a.astype(np.int64) - a_zero, b.astype(np.int64) - b_zero).astype(np.int32)


def steps(total: np.ndarray, by: Any, add: int = 0, dtype: Any = U8) -> np.ndarray:
    """Sums in steps of a result."""
    info = np.iinfo(dtype)
    return np.clip(np.rint(total * np.asarray(by, np.float64)) + add, info.min, info.max).astype(dtype)


A, B, S = bytes_(3, 5), bytes_(5, 4, dtype=I8, seed=1), bytes_(5, 4, seed=2)
BIAS = i32(100, -200, 3000, 7)

PRODUCTS = [
    case("MatMulInteger", "plain", [A, B], exact(A, B), data=2),
    case("MatMulInteger", "zero points", [A, S, zero(100), zero(7)], exact(A, S, 100, 7), data=2),
    case("MatMulInteger", "a row, a column", [A, B, u8(1, 2, 3), i8(-1, 2, 5, 0)],
         exact(A, B, np.array([[1], [2], [3]]), np.array([-1, 2, 5, 0])), data=2),
    case("MatMulInteger", "batches", [bytes_(2, 1, 3, 5), bytes_(4, 5, 2, dtype=I8)],
         exact(np.broadcast_to(bytes_(2, 1, 3, 5), (2, 4, 3, 5)), np.broadcast_to(bytes_(4, 5, 2, dtype=I8), (2, 4, 5,
         2))), data=2),
    case("MatMulInteger", "vectors", [u8(1, 2), i8(3, -4)], np.array(-5, np.int32), data=2),
    case("MatMulInteger", "nothing to sum", [A[:, :0], B[:0]], np.zeros((3, 4), np.int32), data=2),
    case("MatMulInteger", "extremes", [np.full((1, 600), 255, U8), np.full((600, 1), -128, I8), zero(0), zero(127, I8)],
         np.full((1, 1), 255 * -255 * 600, np.int32), data=2),
    case("QLinearMatMul", "plain", [A, HALF, zero(100), B, QUARTER, zero(-3, I8), array(64.0), zero(128)],
         steps(exact(A, B, 100, -3), 1 / 512, 128)),
    case("QLinearMatMul", "int8", [i8([1, -2]), HALF, zero(1, I8), i8([100], [-100]), ONE, zero(0, I8), ONE, zero(5, I8)],
         np.array([[127]], I8)),
    case("QLinearMatMul", "scales a column", [A, HALF, zero(100), B, array([0.25, 0.5, 1, 2]), i8(0, 1, 2, 3),
         array(64.0), zero(128)],
         steps(exact(A, B, 100, np.arange(4)), np.array([0.25, 0.5, 1, 2]) / 128, 128)),
    case("QLinearMatMul", "scales a row", [A, array([1.0, 2, 4]), u8(1, 2, 3), B, QUARTER, zero(-3, I8), array(64.0), zero(128)],
         steps(exact(A, B, np.array([[1], [2], [3]]), -3), np.array([[1], [2], [4]]) / 256, 128)),
    case("QGemm", "plain", [A, HALF, zero(100), B, QUARTER, zero(-3, I8), BIAS, array(64.0), zero(128)],
         steps(exact(A, B, 100, -3) + BIAS, 1 / 512, 128)),
    case("QGemm", "floats", [A, HALF, zero(100), B.T.copy(), array([0.25, 1, 2, 4]), i8(0, 1, 2, 3), None],
         ((exact(A, B, 100, np.arange(4))) * np.array([0.125, 0.5, 1, 2])).astype(np.float32), transB=1),
    case("QGemm", "alpha", [A.T.copy(), HALF, zero(100), B, QUARTER, zero(-3, I8), BIAS, array(64.0), zero(128)],
         steps(exact(A, B, 100, -3) + BIAS, 1 / 256, 128), transA=1, alpha=2.0),
    case("MatMulIntegerToFloat", "plain", [A, B, HALF, array([0.25, 0.5, 1, 2]), zero(100), i8(0, 1, 2, 3), array([1.0, 2,
         3, 4])],
         (exact(A, B, 100, np.arange(4)) * np.array([0.125, 0.25, 0.5, 1]) + np.arange(1, 5)).astype(np.float32), data=2),
    case("MatMulIntegerToFloat", "least", [A, B, HALF, QUARTER], (exact(A, B) / 8).astype(np.float32), data=2),
    case("DynamicQuantizeMatMul", "plain", [[[-1.0, 0.0, 254.0]], i8([1, 2], [3, 4], [5, -6]), array([0.5, 1]), i8(0, 1),
         array([1.0, 2])],
         array([[635.75 - 0.25 + 1 - 1, -1 - 1778 + 2]])),
    case("DynamicQuantizeMatMul", "least", [[[0.0, 255.0]], i8([1], [2]), ONE], array([[510.0]])),
]  # fmt: skip

X = bytes_(1, 2, 4, 5)
W, V = bytes_(2, 2, 3, 3, dtype=I8, seed=3), bytes_(4, 1, 2, 2, seed=4)


def convolved(x: np.ndarray, w: np.ndarray, x_zero: int, w_zero: Any, pads: int, step: int, groups: int = 1) -> np.ndarray:
    """Loops over everything."""
    x = np.pad(x.astype(np.int64) - x_zero, ((0, 0), (0, 0), (pads, pads), (pads, pads)))
    w = w.astype(np.int64) - np.reshape(w_zero, (-1, 1, 1, 1))
    kh, kw = w.shape[2:]
    h, wide = (x.shape[2] - kh) // step + 1, (x.shape[3] - kw) // step + 1
    y = np.zeros((x.shape[0], w.shape[0], h, wide), np.int32)
    for o in range(w.shape[0]):
        first = o // (w.shape[0] // groups) * w.shape[1]
        for i in range(h):
            for j in range(wide):
                part = x[:, first : first + w.shape[1], i * step : i * step + kh, j * step : j * step + kw]
                y[:, o, i, j] = (part * w[o]).sum((1, 2, 3))
    return y


LAST = np.ascontiguousarray(X.transpose(0, 2, 3, 1))
SCALES = array([0.25, 0.5])

CONVOLUTIONS = [
    case("ConvInteger", "plain", [X, W], convolved(X, W, 0, 0, 0, 1)),
    case("ConvInteger", "zero points", [X, W, zero(99), i8(3, -5)], convolved(X, W, 99, [3, -5], 1, 2), pads=[1, 1, 1, 1],
         strides=[2, 2]),
    case("ConvInteger", "groups", [X, V, zero(99), zero(7)], convolved(X, V, 99, 7, 0, 1, 2), group=2),
    case("QLinearConv", "plain", [X, HALF, zero(99), W, QUARTER, zero(-5, I8), array(64.0), zero(128)],
         steps(convolved(X, W, 99, -5, 0, 1), 1 / 512, 128)),
    case("QLinearConv", "bias, scales a channel", [X, HALF, zero(99), W, SCALES, i8(0, 0), array(64.0), zero(128),
         i32(4000, -4000)],
         steps(convolved(X, W, 99, 0, 1, 2) + np.array([4000, -4000]).reshape(-1, 1, 1), SCALES.reshape(-1, 1, 1) / 128, 128),
         pads=[1, 1, 1, 1], strides=[2, 2]),
    case("QLinearConv", "groups", [X, HALF, zero(99), V, QUARTER, zero(7), array(16.0), zero(128)],
         steps(convolved(X, V, 99, 7, 0, 1, 2), 1 / 128, 128), group=2),
    case("QLinearConv", "channels last", [LAST, HALF, zero(99), W, SCALES, i8(0, 0), array(64.0), zero(128), i32(4000, -4000)],
         np.ascontiguousarray(steps(convolved(X, W, 99, 0, 0, 1) + np.array([4000, -4000]).reshape(-1, 1, 1),
                                    SCALES.reshape(-1, 1, 1) / 128, 128).transpose(0, 2, 3, 1)), x_last=True, out_last=True),
]  # fmt: skip

X_LSTM = np.zeros((2, 1, 3), np.float32)
IMAGE = np.arange(16, dtype=np.uint8).reshape(1, 2, 2, 4) * 9
ELEMENTWISE = [
    # nothing but the state: c becomes 0.5 c, h 0.5 tanh(c)
    case("DynamicQuantizeLSTM", "plain", [X_LSTM, bytes_(1, 3, 8, dtype=I8), np.zeros((1, 2, 8), I8), None, None, None,
         np.full((1, 1, 2), 2, np.float32), None, array([0.5]), np.zeros(1, I8), array([0.5]), np.zeros(1, I8)],
         None, np.full((1, 1, 2), 0.5 * np.tanh(0.5), np.float32), np.full((1, 1, 2), 0.5, np.float32), ulp=2),
    case("QLinearAdd", "plain", [u8(0, 10, 255), HALF, zero(10), u8(1, 2, 255), QUARTER, zero(2), ONE, zero(3)],
         u8(0, 3, 189)),
    case("QLinearAdd", "broadcast, no zero points", [i8([1], [-100]), HALF, None, i8(4, 6), QUARTER, None, QUARTER],
         i8([6, 8], [-128, -128])),
    *(case(op, "image", [IMAGE, HALF, zero(10), IMAGE[:, ::-1].copy(), HALF, zero(2), ONE, zero(3)], None, data=4)
      for op in ("QLinearAdd", "QLinearMul")),
    case("QLinearMul", "plain", [u8(0, 10, 255), HALF, zero(10), u8(1, 2, 255), QUARTER, zero(2), ONE, zero(3)],
         u8(4, 3, 255)),
    case("QLinearMul", "one", [i8(-3, 5), HALF, zero(1, I8), i8(4), HALF, None, HALF], i8(-8, 8)),
    case("QLinearSigmoid", "plain", [u8(128, 0, 255), ONE, zero(128), array(1 / 256), zero(0)], u8(128, 0, 255)),
    case("QLinearLeakyRelu", "plain", [i8(-8, 0, 8), ONE, zero(0, I8), HALF, zero(1, I8)], i8(-3, 1, 17), alpha=0.25),
    case("QLinearSoftmax", "plain", [u8([7, 7], [0, 255]), ONE, zero(0), array(1 / 256), zero(0)], u8([128, 128], [0, 255]),
         axis=-1, opset=13),
    case("QLinearSoftmax", "all axes after one", [u8([[7, 7], [7, 7]]), ONE, zero(0), array(1 / 256), zero(0)],
         u8([[64, 64], [64, 64]]), axis=1, opset=12),
    case("QLinearGlobalAveragePool", "plain", [u8([[[1, 2], [3, 5]], [[8, 8], [8, 8]]]), HALF, zero(1), QUARTER, zero(2)],
         u8([[[6]], [[16]]])),
    case("QLinearGlobalAveragePool", "last", [u8([[[1, 8], [2, 8]], [[3, 8], [5, 8]]]), HALF, zero(1), QUARTER, zero(2)],
         u8([[[6, 16]]]), channels_last=1),
    case("QLinearAveragePool", "plain", [u8([[[1, 3, 5], [3, 5, 9], [9, 9, 9]]]), HALF, zero(1), QUARTER, zero(2)],
         u8([[[6, 11], [13, 16]]]), kernel_shape=[2, 2]),
    case("QLinearAveragePool", "padding counts", [u8([[[9, 5]]]), HALF, zero(1), QUARTER, zero(0)],
         u8([[[8, 12, 4]]]), kernel_shape=[1, 2], pads=[0, 1, 0, 1], count_include_pad=1),
    case("QLinearAveragePool", "last", [u8([[[1], [3], [6]]]), HALF, zero(1), QUARTER, zero(2)], u8([[[4], [9]]]),
         kernel_shape=[1, 2], channels_last=1),
    case("QLinearReduceMean", "plain", [u8([1, 3], [5, 7]), HALF, zero(1), QUARTER, zero(2)], u8([4], [12]), axes=[-1],
         keepdims=1),
    case("QLinearReduceMean", "axis gone", [u8([1, 3], [5, 7]), HALF, zero(1), QUARTER, zero(2)], u8(6, 10), axes=[0],
         keepdims=0),
    case("QLinearConcat", "plain", [HALF, zero(1), u8(3, 5), ONE, zero(1), u8(9), HALF], u8(5, 9, 10), data=0, axis=0),
    case("ByteTable", "plain", [i8(0, 1, -1, -128), np.arange(256).astype(U8)[::-1].copy()], u8(255, 254, 0, 127), native=True),
    case("QLinearWhere", "plain", [np.array([True, False]), u8(4, 5), HALF, zero(0), u8(6, 7), ONE, zero(1), HALF,
         zero(2)], u8(6, 14)),
]  # fmt: skip

# What runs in numpy: blocks, float16, other kinds of numbers, rows with scales of their own, sums that widen both operands.
IN_NUMPY = {
    "QuantizeLinear-blocks", "QuantizeLinear-float16", "QuantizeLinear-of int32", "DequantizeLinear-blocks",
    "DequantizeLinear-float16", "DequantizeLinear-output_dtype", "QLinearMatMul-scales a row", "QGemm-alpha",
    "QLinearReduceMean-plain", "QLinearReduceMean-axis gone",
    "QLinearAdd-broadcast, no zero points", "GatherBlockQuantized-bytes",
    "DequantizeCodes-axis", "DequantizeCodes-blocks",
    "BlockEmbedding-plain",
}  # fmt: skip
# 20 terms in blocks of 16 of 4 bits each: 1 and -1 in turn, times 0.5 and 2; or, with zero points, 9 - 9 and 7 - 5.
NIBBLES = np.full((1, 2, 8), 0x79, U8)
ALL_ONES = np.ones((2, 20), np.float32)
Q8_0 = np.array([[0, 0x38, *range(1, 33)], [0, 0x40, *[253] * 32]], U8)
BLOCKS = [
    case("MatMulNBits", "plain", [ALL_ONES, NIBBLES, array([[0.5, 2]])], [[0], [0]], N=1, K=20, block_size=16),
    case("MatMulNBits", "zero points, bias", [ALL_ONES, NIBBLES, array([[0.5, 2]]), u8([0x59]), None, array([1])],
         [[1 - 8 + 24], [17]], N=1, K=20, block_size=16),
    case("MatMulNBits", "bytes", [ALL_ONES, np.full((1, 2, 16), 130, U8), array([[0.5, 2]]), array([[128, 129]])],
         [[16 + 8], [24]], N=1, K=20, block_size=16, bits=8),
    case("MatMulNBits", "blocks in another order", [ALL_ONES, NIBBLES, array([[0.5, 2]]), None,
         np.array([0, 1] * 10, np.int32)], [[5 - 20], [-15]], N=1, K=20, block_size=16),
    case("MatMulNBits", "a block of 512", [ALL_ONES, np.full((1, 1, 256), 0x7B, U8), array([[0.5]])], [[10], [10]], N=1, K=20,
         block_size=512),
    # FP4: 1 and -1/2 in turn, in two blocks of 16 and one of 4, times 1, 2 and 3.
    case("MatMulBnb4", "FP4", [np.ones((1, 18), np.float32), np.full(18, 0x3D, U8), array([1, 2, 3])], [[4 + 1, 7 + 3]], N=2,
         K=18, block_size=16, quant_type=0),
    case("MatMulBnb4", "NF4, turned", [array([[1, 2]]), np.full(18, 0xF0, U8), array([1, 2, 3])],
         [[1 + 4, -1 - 4] * 7 + [1 + 6, -1 - 6] + [2 + 6, -2 - 6]], N=2, K=18, block_size=16, quant_type=1, transB=0),
    case("GatherBlockQuantized", "bytes", [np.full((2, 10), 0x79, U8), [-2], array([[0.5, 2], [1, 1]])],
         array([[0.5, -0.5] * 8 + [2, -2] * 2]), block_size=16),
    # Two rows of 32 terms in blocks of Q8_0: a half, 0.5 and 2, and bytes; 1 .. 32, and -3 everywhere.
    case("BlockLinear", "plain", [np.ones((2, 32), np.float32), Q8_0], [[264, -192]] * 2, kind="Q8_0"),
    case("BlockLinear", "bias, rows in another order",
         [np.ones((1, 32), np.float32), Q8_0, array([1, 2]), np.array([1, 0], np.int32)], [[-191, 266]], kind="Q8_0"),
    case("BlockEmbedding", "plain", [Q8_0, [[1], [0]]], array([[[-6] * 32], [np.arange(1, 33) / 2]]), kind="Q8_0"),
]  # fmt: skip
# Two experts, the second is chosen: relu(x [[1, 0], [0, -1]] + [0, 3]) is [1, 1], and that goes into the sums of the next rows.
CHOSEN = [array([[1, 2]]), array([[0, 1]])]
FIRST, SECOND = (np.stack((np.full((2, 2), 9, np.float32), array(w, np.float32))) for w in ([[1, 0], [0, -1]], [[1, 2], [3, 4]]))
EXPERTS = [
    case("MoE", "plain", [*CHOSEN, FIRST, array([[0, 0], [0, 3]]), SECOND, array([[0, 0], [0.5, -0.5]])], [[3.5, 6.5]], data=2,
         normalize_routing_weights=1),
    case("MoE", "two of them, half each", [CHOSEN[0], array([[1, 1]]), FIRST, array([[-40, -40], [0, 3]]), SECOND], [[1.5, 3.5]],
         data=2, k=2),
    case("MoE", "swiglu", [*CHOSEN, array([[[0, 0]] * 2, [[0, 0], [0, 2]]]), None, array([[[1]] * 2, [[3], [4]]])], [[0, 0]],
         data=2, activation_type="swiglu", swiglu_fusion=1),
    case("QMoE", "a scale a row", [*CHOSEN, np.stack((u8([0], [0]), u8([0x89], [0x78]))), array([[1, 1], [1, 0.5]]),
         array([[0, 0], [0, 3]]), np.stack((u8([0], [0]), u8([0xA9], [0xCB]))), array([[1, 1], [1, 2]])], [[5, 22]], data=2,
         normalize_routing_weights=1),
    case("QMoE", "zero points, weights of their own", [*CHOSEN, np.stack((u8([0], [0]), u8([0x89], [0x78]))),
         array([[1, 1], [1, 0.5]]), array([[0, 0], [0, 3]]), np.stack((u8([0], [0]), u8([0xA9], [0xCB]))),
         array([[1, 1], [1, 2]]), *(None,) * 4, u8([0], [0x88]), None, None, array([[1, 0.5]])], [[2.5, 11]], data=2),
]  # fmt: skip
IN_NUMPY |= {c.id for c in EXPERTS}  # what follows the choice is called from numpy
_ALL = [*EXPERTS, *BLOCKS, *QUANTIZE, *DEQUANTIZE, *DYNAMIC, *PRODUCTS, *CONVOLUTIONS, *ELEMENTWISE]
CASES: list[Case] = [c._replace(native=c.data < 2 and c.id not in IN_NUMPY) for c in _ALL]
