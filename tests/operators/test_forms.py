"""What still runs in NumPy inside a compiled program, each with its reason: anything else is a kernel that is missing."""

from __future__ import annotations

import pytest

from .forms import FLOATS, INTEGERS, Form, forms, runs_in

HALF = "float16: networks of it are computed in float32, between casts that passes leave"
PARAMETERS = "float64 networks of this activation are rare, and its formula is the reference's"
RARE = "rare in networks: no kernel yet"
WIDE = "a product or normalization in float64: NumPy's BLAS runs it; kernels would double every level's code"
NEW = "among the last operators that ONNX has added: no kernel yet"
PADDED = "reflected borders of other dtypes than float32"

# By operator: what stays in NumPy of which dtypes, and why. Of float16 all arithmetic does (HALF).
ALLOWED: dict[str, tuple[tuple[str, ...], str]] = {
    "Cast": (("float32",), "to bfloat16, which kernels have no arrays of"),
    **dict.fromkeys(
        ("Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Selu", "Softplus", "Softsign", "Swish",
         "ThresholdedRelu"), (("float64",), PARAMETERS),
    ),
    "Erf": (INTEGERS, PARAMETERS),
    "Shrink": (("float64", *INTEGERS), PARAMETERS),
    **dict.fromkeys(("Gemm", "Hardmax", "LogSoftmax", "MatMul", "ReduceLogSumExp", "Softmax"), (("float64",), WIDE)),
    "MaxPool": (("float64",), WIDE),
    "CumSum": (("float64", "int8", "int16", "uint8", "uint16", "uint32", "uint64"), RARE),
    "CumProd": (("float32", "float64", *INTEGERS), NEW),
    "CenterCropPad": (("float32", "float64", *INTEGERS, "bool", "float16"), RARE),
    "Pad": (("float64", *INTEGERS, "bool", "float16"), PADDED),
}  # fmt: skip
# Whose result's size depends on values, and is not counted: they run alone, between programs.
ALONE = frozenset(("Range",))
# What only moves or tests elements has kernels for float16, too.
OF_HALVES = frozenset(
    ("Abs", "Cast", "Compress", "Concat", "EyeLike", "Expand", "Gather", "GatherElements", "GatherND", "IsInf", "IsNaN", "Neg",
     "NonZero", "OneHot", "Relu", "ReverseSequence", "ScatterElements", "ScatterND", "Slice", "Tile", "TopK", "Transpose",
     "Trilu", "Where")
)  # fmt: skip


def allowed(item: Form) -> bool:
    """Whether a form may run in NumPy."""
    if item.dtype == "float16" and item.op not in OF_HALVES | {"Pad"}:
        return True
    dtypes, _ = ALLOWED.get(item.op, ((), ""))
    if item.op == "Cast":
        return item.label == "to bfloat16"
    if item.op == "Pad":
        return item.label == "reflect" and item.dtype in dtypes
    if item.op == "MaxPool":
        return item.dtype in dtypes and item.label != "indices"
    return item.dtype in dtypes


@pytest.mark.without("reference", "jit", "cuda")
def test_nothing_else_runs_in_numpy(variant: str) -> None:
    found = {item.name: (item, runs_in(item)) for item in forms()}
    wrong = [f"{name}: {how}" for name, (item, how) in found.items() if how == "numpy" and not allowed(item)]
    assert not wrong
    refused = [f"{name}: {how}" for name, (_, how) in found.items() if how.startswith("refused")]
    assert not refused
    assert {item.op for item, how in found.values() if how == "alone"} == ALONE


@pytest.mark.without("reference", "jit", "cuda")
def test_what_is_allowed_is_needed(variant: str) -> None:
    """A line of the list for which there is a kernel goes."""
    numpy = {(item.op, item.dtype) for item in forms() if runs_in(item) == "numpy"}
    listed = {(op, dtype) for op, (dtypes, _) in ALLOWED.items() for dtype in dtypes}
    assert not {pair for pair in listed if pair not in numpy}


def test_forms_have_names_of_their_own() -> None:
    names = [item.name for item in forms()]
    assert len(names) == len(set(names))
    assert {item.dtype for item in forms()} >= {*FLOATS, *INTEGERS, "bool"}
