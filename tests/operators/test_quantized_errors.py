"""What operators on quantized values refuse, and how they say it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.errors import DTypeError, Error, ShapeError
from fastlayers.ir.graph import Node
from fastlayers.operators import OPERATORS, Spec, View

U, M, S = np.zeros((2, 3), np.uint8), np.zeros((3, 4), np.int8), np.float32(0.5)
Z, F = np.uint8(3), np.zeros((2, 3), np.float32)
X, W = np.zeros((1, 4, 5, 5), np.uint8), np.zeros((6, 4, 3, 3), np.int8)
ZW = np.int8(0)

WRONG: list[tuple[str, list[Any], dict[str, Any], type[Error], str]] = [
    ("QuantizeLinear", [U, S], {}, DTypeError, "expected a float or int32"),
    ("QuantizeLinear", [F, np.ones(2, np.float32)], {}, ShapeError, "expected 3, the size of axis 1"),
    ("QuantizeLinear", [F, np.ones(3, np.float32), Z], {}, ShapeError, "zero point has shape"),
    ("QuantizeLinear", [F, S, np.float32(0)], {}, DTypeError, "expected int8, uint8, int16 or uint16"),
    ("QuantizeLinear", [F, S, Z], {"output_dtype": 3}, DTypeError, "expected the same"),
    ("QuantizeLinear", [F, np.ones((2, 3), np.float32)], {"block_size": 2}, ShapeError, "expected 2 along axis 1"),
    ("QuantizeLinear", [F, np.ones((2, 2), np.float32)], {"block_size": -1}, ShapeError, "block_size is -1"),
    ("QuantizeLinear", [F, np.ones(2, np.float32)], {"axis": 7}, ShapeError, "axis is 7"),
    ("DequantizeLinear", [np.zeros(3, np.int64), S], {}, DTypeError, "8, 16 or 32 bits"),
    ("DequantizeLinear", [U, S, ZW], {}, DTypeError, "expected uint8, that of x"),
    ("DequantizeLinear", [U, np.int32(1)], {}, DTypeError, "expected a float"),
    ("DynamicQuantizeLinear", [U], {}, DTypeError, "expected float32"),
    ("MatMulInteger", [F, M], {}, DTypeError, "expected int8 or uint8"),
    ("MatMulInteger", [U, U], {}, ShapeError, "inner sizes 3 and 2"),
    ("MatMulInteger", [U, M, Z, np.zeros(3, np.int8)], {}, ShapeError, "one per column"),
    ("QLinearMatMul", [U, S, Z, M, S, Z, S, Z], {}, DTypeError, "expected int8, that of input 3"),
    ("QLinearMatMul", [U, S, Z, M, S, ZW, np.ones(2, np.float32), Z], {}, ShapeError, "expected one number"),
    ("QGemm", [U, S, Z, M, np.ones(3, np.float32), ZW, None, S, Z], {}, ShapeError, "expected one number, or 4"),
    ("QGemm", [U, S, Z, M, S, ZW, np.zeros(4, np.float32), S, Z], {}, DTypeError, "bias, has dtype float32: expected int32"),
    ("MatMulIntegerToFloat", [U, M, S, S, Z, ZW, np.zeros(3, np.float32)], {}, ShapeError, r"expected \(4,\)"),
    ("DynamicQuantizeMatMul", [U, M, S], {}, DTypeError, "expected float32"),
    ("ConvInteger", [X, W, np.zeros(2, np.uint8)], {}, ShapeError, "expected one number"),
    ("QLinearConv", [X, S, Z, W, np.ones(5, np.float32), ZW, S, Z], {}, ShapeError, "one per channel"),
    ("QLinearConv", [X, S, Z, W, S, ZW, S, Z], {"group": 2}, ShapeError, "weight has 4 input channels, x .* \\(groups=2\\)"),
    ("QLinearConv", [X, S, Z, W, S, ZW, S, Z, np.zeros(6, np.float32)], {}, DTypeError, "expected int32"),
    ("QLinearConv", [X, S, Z, W, S, ZW, S, np.float32(0)], {}, DTypeError, "expected int8 or uint8"),
    ("QLinearAdd", [U, S, Z, np.zeros((2, 3), np.int8), S, ZW, S, Z], {}, DTypeError, "expected the same for all"),
    ("QLinearAdd", [U, S, Z, np.zeros(2, np.uint8), S, Z, S, Z], {}, ShapeError, "aligned at the last axis"),
    ("QLinearConcat", [S, Z, U, S], {"axis": 0}, ShapeError, "has 4 inputs"),
    ("QLinearWhere", [U, U, S, Z, U, S, Z, S, Z], {}, DTypeError, "expected booleans"),
    ("QLinearGlobalAveragePool", [F, S, Z, S, Z], {}, DTypeError, "expected int8 or uint8"),
    ("ByteTable", [U, np.zeros(255, np.uint8)], {}, ShapeError, "expected 256 bytes"),
    ("MatMulNBits", [F, U, S], {"N": 2, "K": 3, "block_size": 12}, ShapeError, "a power of 2"),
    ("MatMulNBits", [F, U, S], {"N": 2, "K": 3, "block_size": 16}, ShapeError, "expected 16 values"),
    ("DynamicQuantizeLSTM", [np.zeros((2, 1, 3), np.float32), np.zeros((1, 3, 8), np.int8), np.zeros((1, 2, 7), np.int8), None,
                             None, None, None, None, S, ZW, S, ZW], {}, ShapeError, "expected"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attributes", "error", "text"), WRONG, ids=[f"{w[0]}-{i}" for i, w in enumerate(WRONG)])
def test_rules(op: str, inputs: list[Any], attributes: dict[str, Any], error: type[Error], text: str) -> None:
    names = tuple(None if a is None else f"x{i}" for i, a in enumerate(inputs))
    arrays = [None if a is None else np.asarray(a) for a in inputs]
    node = Node(op, names, ("y",), attributes)
    with pytest.raises(error, match=text) as caught:
        OPERATORS[op].infer(View(node, [None if a is None else Spec(a.shape, a.dtype) for a in arrays], [None] * len(arrays)))
    assert str(caught.value).startswith(f"{op} (y): ")
