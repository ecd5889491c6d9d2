"""Functions of one array, arithmetic, comparisons, logic, dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from . import Case, array, case, numbers

NAN, INF = math.nan, math.inf
X = [-3.5, -2.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 9.0]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def each(
    op: str,
    function: Callable[[float], float],
    x: list[float] = X,
    ulp: float = 4,
    native: bool = True,
    label: str = "plain",
    **attributes: float | str | int,
) -> Case:
    return case(op, label, [x], [function(v) for v in x], native=native, ulp=ulp, **attributes)


POSITIVE = [0.25, 0.5, 1.0, 2.0, 7.0, 100.0]
UNIT = [-0.99, -0.5, 0.0, 0.25, 0.75]
ALPHA = float(np.float32(0.3))

FUNCTIONS = [
    each("Relu", lambda v: max(v, 0.0), ulp=0),
    case("Relu", "int32", [array([-3, 0, 4], np.int32)], [0, 0, 4]),
    case("Relu", "nan", [[NAN, INF, -INF]], [NAN, INF, 0], native=True),
    each("LeakyRelu", lambda v: v if v >= 0 else float(np.float32(0.01)) * v),
    each("LeakyRelu", lambda v: v if v >= 0 else ALPHA * v, label="alpha", alpha=0.3),
    each("Elu", lambda v: v if v > 0 else math.expm1(v)),
    each("Elu", lambda v: v if v > 0 else ALPHA * math.expm1(v), label="alpha", alpha=0.3),
    each("Selu", lambda v: 1.0507009873554805 * (v if v > 0 else 1.6732632423543772 * math.expm1(v))),
    each("Selu", lambda v: 2 * (v if v > 0 else 3 * math.expm1(v)), label="alpha and gamma", alpha=3.0, gamma=2.0),
    each("Celu", lambda v: max(0.0, v) + min(0.0, math.expm1(v))),
    each("Celu", lambda v: max(0.0, v) + min(0.0, 2 * math.expm1(v / 2)), label="alpha", native=False, alpha=2.0),
    each("Sigmoid", sigmoid),
    each("HardSigmoid", lambda v: min(max(0.2 * v + 0.5, 0.0), 1.0)),
    each("HardSigmoid", lambda v: min(max(v + 0.25, 0.0), 1.0), label="alpha and beta", alpha=1.0, beta=0.25),
    each("HardSwish", lambda v: v * min(max(v / 6 + 0.5, 0.0), 1.0)),
    each("Swish", lambda v: v * sigmoid(v)),
    each("Swish", lambda v: v * sigmoid(2 * v), label="alpha", native=False, alpha=2.0),
    each("Tanh", math.tanh),
    each("Softplus", lambda v: math.log1p(math.exp(v))),
    each("Softplus", lambda v: v, x=[21.0, 30.0, 80.0], label="large"),
    each("Softsign", lambda v: v / (1 + abs(v))),
    each("Mish", lambda v: v * math.tanh(math.log1p(math.exp(v)))),
    each("Gelu", lambda v: v * math.erfc(-v / math.sqrt(2)) / 2),
    each("Gelu", lambda v: v / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))), label="tanh", ulp=8,
         approximate="tanh"),
    each("Erf", math.erf),
    each("Exp", math.exp),
    each("Log", math.log, x=POSITIVE),
    case("Log", "edges", [[0.0, -1.0, INF]], [-INF, NAN, INF], native=True),
    each("Sqrt", math.sqrt, x=POSITIVE),
    each("Neg", lambda v: -v, ulp=0),
    case("Neg", "int64", [array([-3, 0, 4], np.int64)], [3, 0, -4]),
    each("Abs", abs, ulp=0),
    case("Abs", "int8", [array([-3, 0, 4], np.int8)], [3, 0, 4]),
    each("Sign", lambda v: float((v > 0) - (v < 0)), ulp=0),
    case("Sign", "uint8", [array([0, 4], np.uint8)], [0, 1]),
    each("Reciprocal", lambda v: 1 / v, x=POSITIVE, ulp=1),
    each("Floor", math.floor, ulp=0),
    each("Ceil", math.ceil, ulp=0),
    case("Round", "half to even", [[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.51]], [-2, -2, 0, 0, 2, 2, 3], native=True),
    each("Sin", math.sin),
    each("Cos", math.cos),
    each("Tan", math.tan, native=False),
    each("Asin", math.asin, UNIT, native=False),
    each("Acos", math.acos, UNIT, native=False),
    each("Atan", math.atan, native=False),
    each("Sinh", math.sinh, native=False),
    each("Cosh", math.cosh, native=False),
    each("Asinh", math.asinh, native=False),
    each("Acosh", math.acosh, [1.0, 1.5, 8.0], native=False),
    each("Atanh", math.atanh, UNIT, native=False),
    each("ThresholdedRelu", lambda v: v if v > 1 else 0.0, native=False),
    each("ThresholdedRelu", lambda v: v if v > 0.5 else 0.0, label="alpha", native=False, alpha=0.5),
    each("Shrink", lambda v: 0.0 if abs(v) <= 0.5 else v, native=False),
    each("Shrink", lambda v: v + 1.5 if v < -2 else v - 1.5 if v > 2 else 0.0, label="bias", native=False, bias=1.5, lambd=2.0),
    case("IsNaN", "plain", [[1.0, NAN, INF]], array([False, True, False], bool)),
    case("IsInf", "both", [[1.0, NAN, INF, -INF]], array([False, False, True, True], bool)),
    case("IsInf", "positive", [[1.0, NAN, INF, -INF]], array([False, False, True, False], bool), detect_negative=0),
    case("IsInf", "negative", [[1.0, NAN, INF, -INF]], array([False, False, False, True], bool), detect_positive=0),
    case("Not", "plain", [array([True, False], bool)], [False, True], native=True),
    case("BitwiseNot", "uint8", [array([0, 5], np.uint8)], [255, 250]),
    case("BitwiseNot", "int32", [array([0, 5], np.int32)], [-1, -6]),
    case("Clip", "both", [[-2.0, 0.5, 3.0, NAN], array(-1.0), array(1.0)], [-1, 0.5, 1, NAN], native=True),
    case("Clip", "low", [[-2.0, 0.5], array(0.0)], [0, 0.5], native=True),
    case("Clip", "high", [[-2.0, 0.5], None, array(0.0)], [-2, 0], native=True),
    case("Clip", "computed bounds", [[-2.0, 0.5, 3.0, NAN], array(-1.0), array(1.0)], [-1, 0.5, 1, NAN], data=3, native=True),
    case("Clip", "a computed bound", [[-2.0, 0.5], None, array(0.0)], [-2, 0], data=3, native=True),
    case("Clip", "none", [[-2.0, INF]], [-2, INF], native=True),
    case("Clip", "low above high", [[0.0, 5.0], array(3.0), array(1.0)], [1, 1], native=True),
    case("Clip", "int64", [array([-5, 0, 5], np.int64), array(-1, np.int64), array(1, np.int64)], [-1, 0, 1], native=True),
    case("PRelu", "a channel", [[[[-1.0, 2.0], [-3.0, -4.0]], [[-1.0, -1.0], [1.0, -2.0]]], array([[0.5], [0.25]])],
         [[[-0.5, 2], [-0.75, -1]], [[-0.5, -0.5], [1, -0.5]]], native=True),
    case("PRelu", "one", [[[-1.0, 2.0], [-3.0, -4.0]], array([0.5])], [[-0.5, 2], [-1.5, -2]], native=True),
    case("PRelu", "last axis", [[[-1.0, 2.0], [-3.0, -4.0]], array([0.5, 2.0])], [[-0.5, 2], [-1.5, -8]], native=True),
    case("PRelu", "each its own", [[[-1.0, 2.0], [-3.0, -4.0]], array([[1.0, 2.0], [3.0, 4.0]])], [[-1, 2], [-9, -16]],
         native=True),
    case("PRelu", "int32", [array([-2, 3], np.int32), array([4], np.int32)], [-8, 3]),
]  # fmt: skip

A, B = [[1.0, 2.0, 3.0], [-4.0, 5.0, -6.0]], [2.0, 0.5, -2.0]
I8, I64, U8 = np.int8, np.int64, np.uint8

ARITHMETIC = [
    case("Add", "rows", [A, B], [[3, 2.5, 1], [-2, 5.5, -8]], data=2, native=True),
    case("Add", "same shape", [A, A], [[2, 4, 6], [-8, 10, -12]], data=2, native=True),
    case("Add", "outer", [[[1.0], [2.0]], [10.0, 20.0]], [[11, 21], [12, 22]], data=2, native=True),
    case("Add", "scalar", [A, array(1.0)], [[2, 3, 4], [-3, 6, -5]], data=1, native=True),
    case("Add", "scalars", [array(1.0), array(2.0)], array(3.0), data=2, native=True),
    case("Add", "empty", [np.zeros((0, 3), np.float32), B], np.zeros((0, 3), np.float32), data=2, native=True),
    case("Add", "int8 wraps", [array([127], I8), array([1], I8)], [-128], data=2),
    case("Sub", "rows", [A, B], [[-1, 1.5, 5], [-6, 4.5, -4]], data=2, native=True),
    case("Sub", "from a scalar", [array(1.0), A], [[0, -1, -2], [5, -4, 7]], data=2, native=True),
    case("Mul", "rows", [A, B], [[2, 1, -6], [-8, 2.5, 12]], data=2, native=True),
    case("Div", "rows", [A, B], [[0.5, 4, -1.5], [-2, 10, 3]], data=2, native=True),
    case("Div", "zero", [[1.0, -1.0, 0.0], [0.0, 0.0, 0.0]], [INF, -INF, NAN], data=2, native=True),
    case("Div", "integers are cut off", [array([7, -7, 7, -7, 6], I64), array([2, 2, -2, -2, 3], I64)], [3, -3, -3, 3, 2],
         data=2),
    case("Div", "uint8", [array([255, 7], U8), array([2, 200], U8)], [127, 0], data=2),
    case("Mod", "sign of the divisor", [array([7, -7, 7, -7], I64), array([3, 3, -3, -3], I64)], [1, 2, -2, -1], data=2),
    case("Mod", "fmod", [array([7, -7, 7, -7], I64), array([3, 3, -3, -3], I64)], [1, -1, 1, -1], data=2, fmod=1),
    case("Mod", "floats", [[5.5, -5.5], [2.0, 2.0]], [1.5, -1.5], data=2, fmod=1),
    case("Mod", "floats, floor", [[5.5, -5.5], [2.0, 2.0]], [1.5, 0.5], data=2),
    case("Pow", "rows", [[[1.0, 2.0], [4.0, 9.0]], [2.0, 0.5]], [[1, math.sqrt(2)], [16, 3]], data=2, native=True, ulp=4),
    case("Pow", "square", [A, array(2.0)], [[1, 4, 9], [16, 25, 36]], native=True, ulp=1),
    case("Pow", "integer square", [A, array(2, I64)], [[1, 4, 9], [16, 25, 36]], native=True, ulp=1),
    case("Pow", "one", [A, array([1.0])], A, native=True),
    case("Pow", "cube", [A, array(3.0)], [[1, 8, 27], [-64, 125, -216]], native=True, ulp=4),
    case("Pow", "integers", [array([2, -3], I64), array([3, 2], I64)], [8, 9], data=2),
    case("Pow", "integers, below zero", [array([2, 1, -1], I64), array([-1, -5, -3], I64)], [0, 1, -1], data=2),
    case("Pow", "integer base", [array([4, 9], np.int32), [0.5, 0.5]], [2, 3], data=2),
    case("Max", "three", [A, B, [[0.0], [1.0]]], [[2, 2, 3], [2, 5, 1]], data=3, native=True),
    case("Max", "nan", [[1.0, NAN, 2.0], [NAN, 1.0, 1.0]], [NAN, NAN, 2], data=2, native=True),
    case("Max", "int64", [array([1, 5], I64), array([3, 4], I64)], [3, 5], data=2),
    case("Min", "three", [A, B, [[0.0], [1.0]]], [[0, 0, -2], [-4, 0.5, -6]], data=3, native=True),
    case("Min", "one", [A], A, native=True),
    case("Sum", "three, growing", [[1.0, 2.0], array(10.0), [[0.0], [100.0]]], [[11, 12], [111, 112]], data=3, native=True),
    case("Sum", "twice the same", [A, A, A], [[3, 6, 9], [-12, 15, -18]], data=3, native=True),
    case("Mean", "two", [[1.0, 2.0], [3.0, -2.0]], [2, 0], data=2, native=True),
    case("Mean", "one", [[1.0, 2.0]], [1, 2], native=True),
    case("Equal", "floats", [[1.0, NAN, 2.0], [1.0, NAN, 3.0]], array([True, False, False], bool), data=2, native=True),
    case("Equal", "bool", [array([True, False], bool), array(False, bool)], array([False, True], bool), data=2, native=True),
    case("Less", "rows", [A, B], array([[True, False, False], [True, False, True]], bool), data=2, native=True),
    case("LessOrEqual", "plain", [[1.0, 2.0, NAN], [1.0, 1.0, 1.0]], array([True, False, False], bool), data=2, native=True),
    case("Greater", "int64", [array([1, 2], I64), array(1, I64)], array([False, True], bool), data=2, native=True),
    case("Greater", "plain", [[1.0, 2.0], [1.0, 1.0]], array([False, True], bool), data=2, native=True),
    case("GreaterOrEqual", "plain", [[1.0, 0.0], [1.0, 1.0]], array([True, False], bool), data=2, native=True),
    case("And", "table", [array([True, True, False, False], bool), array([True, False, True, False], bool)],
         [True, False, False, False], data=2, native=True),
    case("Or", "table", [array([True, True, False, False], bool), array([True, False, True, False], bool)],
         [True, True, True, False], data=2, native=True),
    case("Xor", "table", [array([True, True, False, False], bool), array([True, False, True, False], bool)],
         [False, True, True, False], data=2, native=True),
    case("BitwiseAnd", "plain", [array([12, 10], np.int32), array([10, 3], np.int32)], [8, 2], data=2, native=True),
    case("BitwiseOr", "plain", [array([12, 10], np.int32), array([10, 3], np.int32)], [14, 11], data=2, native=True),
    case("BitwiseXor", "plain", [array([12, 10], np.int32), array([10, 3], np.int32)], [6, 9], data=2, native=True),
    case("BitShift", "left", [array([1, 2, 200], U8), array([1, 8, 1], U8)], [2, 0, 144], data=2, direction="LEFT"),
    case("BitShift", "right", [array([8, 255, 7], U8), array([1, 8, 2], U8)], [4, 0, 1], data=2, direction="RIGHT"),
    case("BitShift", "signed right", [array([-8, -1, 8, -8, -8], I64), array([1, 64, 70, -1, 2], I64)], [-4, -1, 0, -1, -2],
         data=2, direction="RIGHT"),
    case("Where", "broadcast", [array([[True], [False]], bool), [1.0, 2.0], array(0.0)], array([[1, 2], [0, 0]]), data=3,
         native=True),
    case("Where", "int64", [array([True, False], bool), array([1, 2], I64), array([3, 4], I64)], array([1, 4], I64), data=3,
         native=True),
]  # fmt: skip

DTYPES = [
    case("Cast", "to int64", [[1.9, -1.9, 0.0]], array([1, -1, 0], I64), to=7, native=True),
    case("Cast", "to int32", [[1.9, -1.9, 0.0]], array([1, -1, 0], np.int32), to=6, native=True),
    case("Cast", "to bool", [[1.9, 0.0, NAN]], array([True, False, True], bool), to=9, native=True),
    case("Cast", "from int64", [array([1, -2], I64)], array([1, -2]), to=1, native=True),
    case("Cast", "from bool", [array([True, False], bool)], array([1, 0]), to=1, native=True),
    case("Cast", "to the same", [[1.5, NAN]], [1.5, NAN], to=1, native=True),
    case("Cast", "to float16", [[1.0, 65520.0, 0.1]], array([1.0, INF, 0.1], np.float16), to=10),
    case("Cast", "from complex", [array([1 + 2j], np.complex64)], array([1.0]), to=1),
    case("CastLike", "to int64", [[1.9, -1.9], array([0], I64)], array([1, -1], I64), data=2, native=True),
    case("BitCast", "to int32", [[1.0, -0.0]], array([0x3F800000, -(1 << 31)], np.int32), to=6),
    case("BitCast", "scalar", [array(1.0)], array(0x3F800000, np.int32), to=6),
    case("Constant", "plain", [], array([1.0, 2.0]), value=array([1.0, 2.0])),
    case("ConstantOfShape", "zeros", [array([2, 3], I64)], np.zeros((2, 3), np.float32), data=0, native=True),
    case("ConstantOfShape", "ones", [array([2], I64)], array([1, 1], np.int32), data=0, native=True, value=array([1], np.int32)),
    case("ConstantOfShape", "scalar", [array([], I64)], array(7.0), data=0, native=True, value=array([7.0])),
    case("Range", "up", [array(1, I64), array(10, I64), array(4, I64)], [1, 5, 9], data=0),
    case("Range", "down", [array(10, np.int32), array(4, np.int32), array(-2, np.int32)], [10, 8, 6], data=0),
    case("Range", "floats", [array(0.0), array(1.0), array(0.25)], [0, 0.25, 0.5, 0.75], data=0),
    case("Range", "nothing", [array(3, I64), array(3, I64), array(1, I64)], [], data=0),
    case("EyeLike", "plain", [numbers(2, 3)], [[1, 0, 0], [0, 1, 0]]),
    case("EyeLike", "above", [numbers(2, 3)], array([[0, 1, 0], [0, 0, 1]], I64), k=1, dtype=7),
    case("EyeLike", "below", [numbers(3, 2)], [[0, 0], [1, 0], [0, 1]], k=-1),
]  # fmt: skip

CASES = [*FUNCTIONS, *ARITHMETIC, *DTYPES]
