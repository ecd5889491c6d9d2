"""What nodes may not have: every error is ours, names the node, and comes before anything runs where it can."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.errors import ArgumentError, DTypeError, Error, LimitError, ShapeError, UnsupportedError
from fastlayers.ir.graph import Node
from fastlayers.operators import OPERATORS, Spec, View
from fastlayers.operators.reference import run_operator

from ..each import each
from .models import one, run

F, I = np.zeros((2, 3), np.float32), np.zeros(3, np.int64)  # noqa: E741
B = np.zeros(3, np.bool_)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


# Operator, inputs, attributes, error, part of the message.
WRONG: list[tuple[str, list[Any], dict[str, Any], type[Error], str]] = [
    ("Add", [F, np.zeros((2, 2), np.float32)], {}, ShapeError, r"operands have shapes \(2, 3\) and \(2, 2\): expected sizes"),
    ("Add", [F, I], {}, DTypeError, "dtypes float32, int64"),
    ("Add", [B, B], {}, DTypeError, "bool: expected floats, integers"),
    ("Sum", [], {}, ShapeError, "no inputs"),
    ("Pow", [B, B], {}, DTypeError, "bool"),
    ("And", [F, F], {}, DTypeError, "expected booleans"),
    ("Not", [F], {}, DTypeError, "expected booleans"),
    ("BitwiseAnd", [F, F], {}, DTypeError, "expected integers"),
    ("BitShift", [I, I], {"direction": "UP"}, ShapeError, "direction is 'UP'"),
    ("Where", [F, F, F], {}, DTypeError, "input 0 has dtype float32: expected booleans"),
    ("Sqrt", [I], {}, DTypeError, "int64: expected floats"),
    ("Gelu", [F], {"approximate": "erf"}, ShapeError, "approximate is 'erf'"),
    ("Celu", [F], {"alpha": 0.0}, ShapeError, "alpha is 0"),
    ("Clip", [F, F], {}, ShapeError, r"input 1 has shape \(2, 3\): expected one number"),
    ("Clip", [F, ints(1).reshape(())], {}, DTypeError, "input 1 has dtype int64: expected float32"),
    ("PRelu", [F, np.zeros((1, 2, 3), np.float32)], {}, ShapeError, "expected one that broadcasts to x"),
    ("PRelu", [np.zeros((2, 1), np.float32), F], {}, ShapeError, "expected one that broadcasts to x"),
    ("Cast", [F], {"to": 99}, UnsupportedError, "ONNX type 99"),
    ("BitCast", [F], {"to": 11}, DTypeError, "cannot be read as float64"),
    ("Reshape", [F, ints(4, 2)], {}, ShapeError, "with 6 values: expected a shape of as many"),
    ("Reshape", [F, ints(-1, -1)], {}, ShapeError, "at most one -1"),
    ("Reshape", [F, ints(-1, 4)], {}, ShapeError, "expected a shape of as many"),
    ("Reshape", [F, ints(1, 1, 0)], {}, ShapeError, "no 0 for an axis that x does not have"),
    ("Reshape", [F, ints(-2, 3)], {}, ShapeError, "at least 0"),
    ("Reshape", [F, ints(0, -1)], {"allowzero": 1}, ShapeError, "expected no -1 next to a 0"),
    ("Reshape", [F, F], {}, DTypeError, "input 1 has dtype float32: expected integers"),
    ("Reshape", [F], {}, ShapeError, "input 1 is missing"),
    ("Flatten", [F], {"axis": 3}, ShapeError, "axis is 3, x has 2 axes: expected -2 to 2"),
    ("Squeeze", [F, ints(0)], {}, ShapeError, "expected size 1 along axis 0"),
    ("Squeeze", [F, ints(2)], {}, ShapeError, "axis is 2, x has 2 axes: expected -2 to 1"),
    ("Unsqueeze", [F, ints(0, 0)], {}, ShapeError, "name one axis twice"),
    ("Unsqueeze", [F], {}, ShapeError, "input 1 is missing"),
    ("Transpose", [F], {"perm": (0, 0)}, ShapeError, "each of the 2 axes once"),
    ("Transpose", [F], {"perm": (0,)}, ShapeError, "axes once"),
    ("Concat", [F, F[0]], {"axis": 0}, ShapeError, "expected equal sizes but along axis 0"),
    ("Concat", [F, F.T], {"axis": 0}, ShapeError, "expected equal sizes but along axis 0"),
    ("Concat", [F, F], {}, ShapeError, "no attribute axis"),
    ("Split", [F, ints(1, 2)], {}, ShapeError, "add up to 2"),
    ("Split", [F], {"num_outputs": 3}, ShapeError, "it has 1 outputs"),
    ("Slice", [F, ints(0), ints(1, 2)], {}, ShapeError, "equal lengths"),
    ("Slice", [F, ints(0), ints(1), ints(0), ints(0)], {}, ArgumentError, "step is 0"),
    ("Slice", [F, ints(0), None], {}, ShapeError, "expected both"),
    ("Expand", [F, ints(2, 2)], {}, ShapeError, "expected sizes that are equal or 1"),
    ("Tile", [F, ints(2)], {}, ShapeError, "expected 2 values"),
    ("Tile", [F, ints(1, -1)], {}, ShapeError, "at least 0"),
    ("DepthToSpace", [F], {"blocksize": 2}, ShapeError, r"expected \(n, c, h, w\)"),
    ("DepthToSpace", [np.zeros((1, 3, 2, 2), np.float32)], {"blocksize": 2}, ShapeError, "expected a multiple of 4"),
    ("SpaceToDepth", [np.zeros((1, 3, 2, 3), np.float32)], {"blocksize": 2}, ShapeError, "expected a multiple of 2"),
    ("SpaceToDepth", [np.zeros((1, 3, 2, 2), np.float32)], {"blocksize": 0}, ShapeError, "at least 1"),
    ("Trilu", [F[0]], {}, ShapeError, "at least two axes"),
    ("Pad", [F, ints(1, 1)], {}, ShapeError, "expected 4"),
    ("Pad", [F, ints(-2, 0, -1, 0)], {}, ShapeError, "cuts more than there is"),
    ("Pad", [F, ints(1, 1, 1, 1)], {"mode": "symmetric"}, ShapeError, "mode is 'symmetric'"),
    ("Gather", [F, ints(2)], {}, ShapeError, r"index 2 is out of range: expected -2 to 1 along axis 0 of x \(2, 3\)"),
    ("Gather", [F, F], {}, DTypeError, "expected integers"),
    ("GatherElements", [F, I], {}, ShapeError, "same number of axes"),
    ("GatherND", [F, ints(0, 0, 0)], {}, ShapeError, "a last axis of 1 to 2"),
    ("GatherND", [F, ints(0)], {"batch_dims": 1}, ShapeError, "batch_dims is 1"),
    ("ScatterElements", [I, I, I[:2]], {}, ShapeError, "expected the same"),
    ("ScatterElements", [I, I, I], {"reduction": "mean"}, ShapeError, "reduction is 'mean'"),
    ("OneHot", [I, ints(2), I], {}, ShapeError, "two values"),
    ("OneHot", [I, ints(-2), I[:2]], {}, ShapeError, "depth is -2"),
    ("Compress", [F, I], {}, DTypeError, "expected booleans"),
    ("ReduceSum", [F, ints(0, -2)], {}, ShapeError, "name one axis twice"),
    ("ReduceMean", [B], {}, DTypeError, "bool"),
    ("ArgMax", [np.zeros((2, 0), np.float32)], {"axis": 1}, ShapeError, "no elements to choose from"),
    ("CumSum", [F, ints(2)], {}, ShapeError, "axis is 2"),
    ("CumSum", [F, ints(0, 1)], {}, ShapeError, "expected one number"),
    ("TopK", [F, ints(4)], {}, ShapeError, "k is 4: expected 0 to 3"),
    ("Range", [ints(1)[0], ints(2)[0], ints(0)[0]], {}, ShapeError, "delta is 0"),
    ("Range", [np.float32(0), np.float32("inf"), np.float32(1)], {}, ShapeError, "no number of elements"),
    ("ConstantOfShape", [ints(-1)], {}, ShapeError, "at least 0"),
    ("Constant", [], {}, ShapeError, "no attribute value"),
    ("EyeLike", [I], {}, ShapeError, "expected a matrix"),
    ("Einsum", [F], {"equation": "ij,j"}, ShapeError, "has 2 terms"),
    ("Einsum", [F], {"equation": "ijk"}, ShapeError, "another number of axes"),
    ("Einsum", [F, F], {"equation": "ij,jk->ik"}, ShapeError, "letter 'j' has sizes 3 and 2"),
    ("Einsum", [F], {"equation": "ij->k"}, ShapeError, "letters of the inputs"),
    ("Einsum", [F], {"equation": "i1"}, ShapeError, "expected letters"),
]  # fmt: skip


def label(item: Any) -> str:
    return f"{item[0]}-{item[4]}"


@each(("op", "inputs", "attributes", "error", "text"), WRONG, ids=map(label, WRONG))
def test_rule(op: str, inputs: list[Any], attributes: dict[str, Any], error: type[Error], text: str) -> None:
    arrays = [None if a is None else np.asarray(a) for a in inputs]
    node = Node(op, tuple(None if a is None else f"x{i}" for i, a in enumerate(arrays)), ("there",), attributes)
    view = View(node, [None if a is None else Spec(a.shape, a.dtype) for a in arrays], arrays)
    with pytest.raises(error, match=text) as caught:
        OPERATORS[op].infer(view)
    assert str(caught.value).startswith(f"{op} (there): ")


# What only numbers show.
LATE: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("Gather", [F, ints(0, -3)], {}, "index -3 is out of range"),
    ("GatherElements", [I, ints(3)], {}, "index 3 is out of range: expected -3 to 2"),
    ("GatherElements", [F, np.zeros((3, 1), np.int64)], {"axis": 1}, "at most its size but for axis 1"),
    ("GatherND", [F, ints(1, 3)], {}, "index 3 is out of range"),
    ("GatherND", [np.zeros((2, 3), np.float32), np.zeros((3, 1), np.int64)], {"batch_dims": 1}, "the same 1 batch axes"),
    ("ScatterND", [F, np.array([[2]]), F[:1]], {}, "index 2 is out of range"),
    ("ScatterND", [F, np.array([[0]]), F], {}, r"updates have shape \(2, 3\): expected \(1, 3\)"),
    ("TopK", [F, ints(9)], {}, "k is 9"),
    ("Reshape", [F, ints(5)], {}, "with 6 values: expected a shape of as many"),
    ("Split", [F, ints(5)], {}, "add up to 2"),
    ("Expand", [F, ints(5)], {}, "expected sizes that are equal or 1"),
    ("Tile", [F, ints(5)], {}, "expected 2 values"),
    ("Dropout", [F, np.float32(1), np.array(True)], {}, "ratio is 1"),
    ("Pad", [np.zeros((0,), np.float32), ints(1, 1)], {"mode": "reflect"}, "cannot be computed"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attributes", "text"), LATE, ids=[f"{i[0]}-{i[3]}" for i in LATE])
def test_run(op: str, inputs: list[Any], attributes: dict[str, Any], text: str) -> None:
    arrays = [np.asarray(a) for a in inputs]
    node = Node(op, tuple(f"x{i}" for i in range(len(arrays))), ("there",), attributes)
    view = View(node, [Spec(a.shape, a.dtype) for a in arrays], [None] * len(arrays))
    with pytest.raises(Error, match=text) as caught:
        run_operator(node, view, arrays)
    assert str(caught.value).startswith(f"{op} (there): ")


HUGE = [ints(1 << 20, 1 << 20, 1 << 10), ints(1 << 40, 1 << 40)]


@pytest.mark.parametrize("shape", HUGE, ids=["4 PiB", "more than any address"])
def test_results_that_no_memory_holds(shape: np.ndarray) -> None:
    for graph, given in ((one("ConstantOfShape", [shape]), [shape]), (one("Expand", [F[0, :1], shape]), [F[0, :1], shape])):
        with pytest.raises(LimitError):
            run(graph, given)
