"""What shape rules can tell of sizes that are names, beyond being right (test_cases.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastlayers.ir.graph import Node, Shape
from fastlayers.operators import OPERATORS, Spec, View


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def infer(
    op: str, shapes: list[Shape | None], *parameters: np.ndarray, outputs: int = 1, **attributes: Any
) -> list[Shape | None]:
    """The shapes of the results; parameters are known arrays after the data."""
    specs = [Spec(s, np.dtype(np.float32)) for s in shapes] + [Spec(p.shape, p.dtype) for p in parameters]
    names = tuple(f"x{i}" for i in range(len(specs)))
    view = View(Node(op, names, tuple(f"y{i}" for i in range(outputs)), attributes), specs, [*[None] * len(shapes), *parameters])
    return [spec.shape for spec in OPERATORS[op].infer(view)]


RESHAPES: list[tuple[Shape, tuple[int, ...], Shape]] = [
    (("N", 3, 4), (0, -1), ("N", 12)),
    (("N", 3, 4), (-1, 12), ("N", 12)),
    (("N", 3, 4), (-1, 6), (None, 6)),
    (("N", "T", 8), (0, 0, 2, 4), ("N", "T", 2, 4)),
    (("N", "T", 8), (0, -1, 8), ("N", "T", 8)),
    (("N", "T", 8), (-1, 8), (None, 8)),
    ((None, 3), (0, -1), (None, 3)),
    ((None, None, 3), (0, -1), (None, None)),
    (("N", 0), (-1, 5), (0, 5)),
]


@pytest.mark.parametrize(("shape", "wanted", "result"), RESHAPES)
def test_reshape(shape: Shape, wanted: tuple[int, ...], result: Shape) -> None:
    assert infer("Reshape", [shape], ints(*wanted)) == [result]


def test_reshape_by_a_shape_of_known_length() -> None:
    spec = [Spec(("N", 4), np.dtype(np.float32)), Spec((3,), np.dtype(np.int64))]
    found = OPERATORS["Reshape"].infer(View(Node("Reshape", ("x", "s"), ("y",), {}), spec, [None, None]))
    assert found[0].shape == (None, None, None)


def test_names_survive() -> None:
    assert infer("Relu", [("N", 3)]) == [("N", 3)]
    assert infer("Add", [("N", 1, 3), ("T", 1)]) == [("N", "T", 3)]
    assert infer("Add", [("N", 3), ("N", 3)]) == [("N", 3)]
    assert infer("Add", [("N",), (3,)]) == [(3,)]
    assert infer("Add", [("N",), ("T",)]) == [(None,)]
    assert infer("Concat", [("N", 2), ("N", 3)], axis=1) == [("N", 5)]
    assert infer("Concat", [("N", 2), (7, 3)], axis=1) == [(7, 5)]
    assert infer("Concat", [("N", 2), None], axis=0) == [(None, 2)]
    assert infer("Transpose", [("N", 3, "T")]) == [("T", 3, "N")]
    assert infer("Flatten", [("N", 3, 4)]) == [("N", 12)]
    assert infer("Flatten", [("N", 1, 1)]) == [("N", 1)]
    assert infer("Unsqueeze", [("N", 3)], ints(0)) == [(1, "N", 3)]
    assert infer("Squeeze", [("N", 1)], ints(1)) == [("N",)]
    assert infer("Slice", [("N", 8)], ints(2), ints(4), ints(1)) == [("N", 2)]
    assert infer("Slice", [("N", 8)], ints(0), ints((1 << 63) - 1), ints(0)) == [("N", 8)]
    assert infer("Split", [("N", 8)], ints(3, 5), axis=1, outputs=2) == [("N", 3), ("N", 5)]
    assert infer("Split", [("N", 8)], axis=0, num_outputs=2, outputs=2) == [(None, 8), (None, 8)]
    assert infer("Pad", [("N", 8)], ints(0, 1, 0, 1)) == [("N", 10)]
    assert infer("Tile", [("N", 8)], ints(1, 2)) == [("N", 16)]
    assert infer("Gather", [("N", 8)], ints(1, 2), axis=1) == [("N", 2)]
    assert infer("ReduceMean", [("N", 3, 4, 4)], ints(2, 3)) == [("N", 3, 1, 1)]
    assert infer("ReduceMean", [("N", 3)], ints(1), keepdims=0) == [("N",)]
    assert infer("TopK", [("N", 9)], ints(4))[1] == ("N", 4)
    assert infer("Expand", [("N", 1)], ints(1, 5)) == [("N", 5)]
    assert infer("Einsum", [("N", "T", 8), ("N", 8, 5)], equation="bij,bjk->bik") == [("N", "T", 5)]
    assert infer("DepthToSpace", [("N", 8, "H", 3)], blocksize=2) == [("N", 2, None, 6)]
    assert infer("NonZero", [("N", 3)]) == [(2, None)]
    assert infer("Shape", [("N", 3)]) == [(2,)]
