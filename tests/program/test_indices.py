"""Indices that come with a run: what is out of range is an error that names it, and nothing is written; in place or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from .graphs import graph, node
from .test_program import program, run

X = np.arange(24, dtype=np.float32).reshape(4, 6)
# What a node does, its index within bounds, one beyond, and what the error says.
NODES: list[tuple[str, Any, Any, str]] = [
    ("y = GatherElements(r, i)", [[0, -1]], [[0, 4]], "4 is out of range: expected -4 to 3"),
    ("y = GatherND(r, i)", [[0, -6], [3, 5]], [[0, 0], [0, -7]], "-7 is out of range: expected -6 to 5"),
    ("y = ScatterND(r, i, u)", [[0], [-1]], [[0], [-5]], "-5 is out of range: expected -4 to 3"),
    ("y = ScatterElements(r, i, v)", [[1, 1]], [[1, 4]], "4 is out of range: expected -4 to 3"),
]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("text", [text for text, *_ in NODES])
def test_indices_of_a_run(text: str, dtype: str, variant: str) -> None:
    good, wrong, message = next(rest for name, *rest in NODES if name == text)
    shape = np.shape(good)
    constants = {"u": np.full((2, 6), 9, np.float32), "v": np.full((1, 2), 9, np.float32)}
    kept = {name: array for name, array in constants.items() if f" {name})" in text}
    made = program(graph({"x": (4, 6), "i": (shape, dtype)}, [node("r = Relu(x)"), node(text)], ["y"], kept))
    want = run(made, X, np.array(good, dtype))[0]
    with pytest.raises(fl.ShapeError, match=message):
        run(made, X, np.array(wrong, dtype))
    np.testing.assert_array_equal(run(made, X, np.array(good, dtype))[0], want)


def test_what_is_scattered_into_may_be_read_elsewhere(variant: str) -> None:
    """The result takes the memory of x only where nobody needs x any more, and x is not what it is updated with."""
    nodes = [node("r = Relu(x)"), node("y = ScatterND(r, i, r)"), node("z = ScatterND(y, i, x)"), node("a = Add(y, z)")]
    made = program(graph({"x": (4, 6)}, nodes, ["a"], {"i": np.array([[3], [0], [1], [2]])}))
    y = X[[1, 2, 3, 0]]
    np.testing.assert_array_equal(run(made, X)[0], y + X[[1, 2, 3, 0]])
