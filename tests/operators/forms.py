"""Which forms of operators run in NumPy inside a compiled program: every operator that ONNX Runtime has a kernel for, by dtype.

A *form* is an operator with a dtype and a word for its attributes and inputs, such as "TopK float32 smallest". `python -m
tests.operators.forms` prints the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fastlayers.errors import Error
from fastlayers.ir.graph import Graph, Node, Value
from fastlayers.kernels import dispatch
from fastlayers.operators.builder import Call, PythonCall
from fastlayers.program import Program

__all__ = ["Form", "forms", "runs_in"]

FLOATS = ("float32", "float64", "float16")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, "bool")


class Form(NamedTuple):
    """`inputs` from number `constants` on are constants of the graph."""

    op: str
    dtype: str
    label: str
    inputs: tuple[Any, ...]
    constants: int
    outputs: int
    attributes: dict[str, Any]

    @property
    def name(self) -> str:
        """As reports have it."""
        return f"{self.op} {self.dtype} {self.label}".strip()


def values(dtype: str, *shape: int) -> np.ndarray:
    """Small values from 1 up: right for exponents, shifts and divisors."""
    return (np.arange(np.prod(shape, dtype=int)) % 5 + 1).reshape(shape).astype(dtype)


def form(op: str, dtype: str, *inputs: Any, label: str = "", constants: int = 99, outputs: int = 1, **attributes: Any) -> Form:
    return Form(op, dtype, label, inputs, constants, outputs, attributes)


UNARY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Exp", "Floor", "Gelu",
         "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Reciprocal", "Round", "Selu", "Sigmoid",
         "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu"), FLOATS,
    ),
    **dict.fromkeys(("Abs", "Sign", "Relu", "Erf", "Shrink"), NUMBERS),
    "Neg": (*FLOATS, *SIGNED),
    "BitwiseNot": INTEGERS,
    "Not": ("bool",),
}  # fmt: skip
BINARY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("Add", "Div", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "PRelu", "Pow", "Sub",
         "Sum"),
        NUMBERS,
    ),
    "Mean": FLOATS,
    "Equal": ALL,
    **dict.fromkeys(("And", "Or", "Xor"), ("bool",)),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), INTEGERS),
}  # fmt: skip


def elementwise() -> Iterator[Form]:
    """Functions of one array, of two, and choices."""
    for op, dtypes in UNARY.items():
        for dtype in dtypes:
            yield form(op, dtype, values(dtype, 3, 4))
    for dtype in FLOATS:
        yield form("IsInf", dtype, values(dtype, 3, 4), label="negative", detect_positive=0)
    for op, dtypes in BINARY.items():
        for dtype in dtypes:
            yield form(op, dtype, values(dtype, 3, 4), values(dtype, 4))
    for dtype in NUMBERS:
        yield form("Mod", dtype, values(dtype, 3, 4), values(dtype, 4), label="fmod", fmod=1)
        yield form("Clip", dtype, values(dtype, 3, 4), np.array(2, dtype), np.array(3, dtype), label="bounds computed")
        yield form("Clip", dtype, values(dtype, 3, 4), np.array(2, dtype), np.array(3, dtype), constants=1)
    for dtype in UNSIGNED:
        for direction in ("LEFT", "RIGHT"):
            yield form("BitShift", dtype, values(dtype, 3, 4), values(dtype, 4), label=direction.lower(), direction=direction)
    for dtype in ALL:
        yield form("Where", dtype, values("bool", 3, 4), values(dtype, 3, 4), values(dtype, 4))
    for dtype, other in (
        ("float32", "int64"),
        ("float32", "float64"),
        ("float64", "float32"),
        ("int64", "float32"),
        ("int32", "int64"),
    ):
        yield form("Pow", dtype, values(dtype, 3, 4), values(other, 4), label=f"to {other}")


def casts() -> Iterator[Form]:
    """From every dtype to every other."""
    from fastlayers.operators.shapes import DTYPES

    for number, dtype in DTYPES.items():
        for source in ALL:
            if dtype.name in ALL:
                yield form("Cast", source, values(source, 3, 4), label=f"to {dtype.name}", to=number)
    yield form("Cast", "float32", values("float32", 3, 4), label="to bfloat16", to=16)


def indexed() -> Iterator[Form]:
    """Elements picked and replaced by number."""
    for index in ("int64", "int32"):
        for dtype in ALL:
            x, at = values(dtype, 3, 4), np.array([[0, 1, 2, 0]], index)
            pairs = np.array([[0, 1], [2, 3]], index)
            yield form("Gather", dtype, x, at, label=index)
            yield form("GatherElements", dtype, x, at, label=index)
            yield form("GatherND", dtype, x, pairs, label=index)
            yield form("OneHot", dtype, at, np.array(4, np.int64), values(dtype, 2), label=index, constants=1)
        for dtype in ("float32", "int64"):
            x, at = values(dtype, 3, 4), np.array([[0, 1, 2, 0]], index)
            pairs = np.array([[0, 1], [2, 3]], index)
            yield form("GatherND", dtype, values(dtype, 2, 3, 4), pairs, label=f"{index} batched", batch_dims=1)
            for reduction in ("none", "add", "mul", "max", "min"):
                words = {"reduction": reduction}
                yield form("ScatterElements", dtype, x, at, values(dtype, 1, 4), label=f"{index} {reduction}", **words)
                yield form("ScatterND", dtype, x, pairs, values(dtype, 2), label=f"{index} {reduction}", **words)
    for dtype in ALL:
        x, at = values(dtype, 3, 4), np.array([[0, 1, 2, 0]])
        yield form("ScatterElements", dtype, x, at, values(dtype, 1, 4))
        yield form("ScatterND", dtype, x, np.array([[0, 1], [2, 3]]), values(dtype, 2))
        yield form("ReverseSequence", dtype, x, np.array([1, 2, 3, 1]))
        yield form("Compress", dtype, x, values("bool", 3), axis=0)
        yield form("NonZero", dtype, x)
        yield form("Trilu", dtype, x)
        yield form("EyeLike", dtype, values(dtype, 3, 3))
        yield form("TensorScatter", dtype, values(dtype, 2, 4, 3), values(dtype, 2, 1, 3), np.array([0, 1]))
        yield form("CenterCropPad", dtype, x, np.array([5, 2]), constants=1)


def ordered() -> Iterator[Form]:
    """Extremes, sums and the largest elements."""
    for dtype in NUMBERS:
        x = values(dtype, 3, 4, 2)
        for op in ("ArgMax", "ArgMin"):
            yield form(op, dtype, x, axis=1)
            yield form(op, dtype, x, label="last", axis=1, select_last_index=1)
        yield form("TopK", dtype, x, np.array([2]), constants=1, outputs=2, axis=1)
        yield form("TopK", dtype, x, np.array([2]), label="smallest", constants=1, outputs=2, largest=0)
        yield form("CumSum", dtype, x, np.array(1), constants=1)
        yield form("CumProd", dtype, x, np.array(1), constants=1)
        for op in ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceSumSquare"):
            yield form(op, dtype, x, np.array([1]), constants=1)
    for dtype in FLOATS:
        for op in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp"):
            yield form(op, dtype, values(dtype, 3, 4, 2), np.array([1]), constants=1)
        for op in ("Softmax", "LogSoftmax", "Hardmax"):
            yield form(op, dtype, values(dtype, 3, 4))
    for op in ("ReduceMax", "ReduceMin"):
        yield form(op, "bool", values("bool", 3, 4), np.array([1]), constants=1)


def placed() -> Iterator[Form]:
    """Movement, padding, pools and boxes."""
    for dtype in ALL:
        x = values(dtype, 2, 3, 4)
        yield form("Transpose", dtype, x, perm=(2, 0, 1))
        yield form("Concat", dtype, x, x + x, axis=1)
        yield form("Tile", dtype, x, np.array([1, 2, 2]), constants=1)
        yield form("Slice", dtype, x, np.array([1]), np.array([3]), np.array([2]), constants=1)
        yield form("Expand", dtype, values(dtype, 1, 4), np.array([3, 4]), constants=1)
        yield form("Pad", dtype, x, np.array([0, 1, 1, 0, 1, 1]), constants=1)
        yield form("Pad", dtype, x, np.array([0, 1, 1, 0, 1, 1]), label="reflect", constants=1, mode="reflect")
        yield form("Pad", dtype, x, np.array([0, -1, 1, 0, 0, -1]), label="cropped", constants=1)
    for dtype in ("float32", "float64", "float16", "int8", "uint8"):
        x = values(dtype, 1, 2, 6, 6)
        yield form("MaxPool", dtype, x, kernel_shape=(2, 2), strides=(2, 2))
        yield form("MaxPool", dtype, x, label="indices", outputs=2, kernel_shape=(2, 2), strides=(2, 2))
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], np.float32)
    scores = np.array([[[0.9, 0.8, 0.7]]], np.float32)
    limits = np.array([2]), np.array([0.5], np.float32), np.array([0.0], np.float32)
    yield form("NonMaxSuppression", "float32", boxes, scores, *limits, constants=2)
    yield form(
        "RoiAlign", "float32", values("float32", 1, 2, 6, 6), boxes[0], np.array([0, 0, 0]), output_height=2, output_width=2
    )
    yield form(
        "MaxUnpool",
        "float32",
        values("float32", 1, 1, 2, 2),
        np.array([[[[5, 7], [13, 15]]]]),
        kernel_shape=(2, 2),
        strides=(2, 2),
    )
    yield form("Range", "int64", np.array(0), np.array(5), np.array(1), label="computed")
    yield form("Range", "float32", np.float32(0), np.float32(5), np.float32(1), label="computed")
    for dtype in ("float32", "float64"):
        yield form("MatMul", dtype, values(dtype, 3, 4), values(dtype, 4, 2))
        yield form("Gemm", dtype, values(dtype, 3, 4), values(dtype, 4, 2))
    yield form("Unique", "float32", values("float32", 12), outputs=4)


def forms() -> list[Form]:
    """All of them."""
    return [*elementwise(), *casts(), *indexed(), *ordered(), *placed()]


def graph_of(item: Form) -> tuple[Graph, list[np.ndarray]]:
    """The form's node alone, and what is fed to it."""
    names = [f"x{i}" for i in range(len(item.inputs))]
    arrays = [np.asarray(a) for a in item.inputs]
    fed = list(zip(names, arrays, strict=True))[: item.constants]
    outputs = tuple(f"y{i}" for i in range(item.outputs))
    made = Graph(
        tuple(Value(n, (None,) * a.ndim, a.dtype) for n, a in fed),
        tuple(Value(n, None, np.dtype(np.void)) for n in outputs),
        (Node(item.op, tuple(names), outputs, item.attributes),),
        dict(list(zip(names, arrays, strict=True))[item.constants :]),
    )
    return made, [np.array(a, order="C") for _, a in fed]


def runs_in(item: Form) -> str:
    """What runs a form: "native"; "numpy", for a step in NumPy; "alone", where sizes depend on values; "refused"."""
    graph, feeds = graph_of(item)
    try:
        plan = Program(graph, dispatch.variant()).binding(feeds).plan
    except Error as error:
        return f"refused: {error}"
    if plan is None:
        return "alone"
    assert all(isinstance(call, (Call, PythonCall)) for call in plan.calls)
    return "numpy" if any(isinstance(call, PythonCall) for call in plan.calls) else "native"


if __name__ == "__main__":
    found: dict[tuple[str, str, str], list[str]] = {}
    every = forms()
    for each_form in every:
        found.setdefault((runs_in(each_form), each_form.op, each_form.label), []).append(each_form.dtype)
    for (how, op, label), dtypes in sorted(found.items()):
        if how != "native":
            print(f"{how:8} {op} {label}: {' '.join(dtypes)}")
    total = sum(len(d) for (how, *_), d in found.items() if how == "numpy")
    print(f"{total} of {len(every)} forms run in NumPy")
