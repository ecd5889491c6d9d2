"""Linear models and support vectors read rows of as many features as they have coefficients for; rows of others are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from tests.formats import onnx_build as build

FEATURES = 4
ROWS: list[float] = np.linspace(-1, 1, 3 * FEATURES).tolist()
SUPPORTED = {"support_vectors": ROWS, "coefficients": [0.5, -1.0, 0.25], "rho": [0.5], "n_supports": 3}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("LinearRegressor", {"coefficients": ROWS, "targets": 3}),
    ("LinearClassifier", {"coefficients": ROWS, "intercepts": [0.0, 0.5, 1.0], "classlabels_ints": [0, 1, 2]}),
    ("SVMRegressor", {"coefficients": ROWS[:FEATURES], "rho": [0.5]}),
    *(
        ("SVMRegressor", {**SUPPORTED, "kernel_type": kind, "kernel_params": [gamma, 0.0, 3.0]})
        for kind, gamma in (("LINEAR", 1.0), ("POLY", 1.0), ("SIGMOID", 1.0), ("RBF", 0.5), ("RBF", 64.0))
    ),
]


@pytest.mark.parametrize("shape", [("n", "w"), None], ids=["rows", "any"])
@pytest.mark.parametrize(("op", "attributes"), CASES, ids=[f"{op} {i}" for i, (op, _) in enumerate(CASES)])
def test_rows_of_other_widths_are_refused(op: str, attributes: dict[str, Any], shape: tuple[str, str] | None) -> None:
    outputs = "label y" if op == "LinearClassifier" else "y"
    made = build.node(op, "x", outputs, domain="ai.onnx.ml", **attributes)
    graph = build.graph([made], [build.value_info("x", shape)], [build.value_info("y", None)])
    model = fl.load(build.model(graph, imports="ai.onnx.ml"))
    x = np.linspace(-2, 2, 6 * FEATURES, dtype=np.float32).reshape(6, FEATURES)
    y = model(x)
    assert y.shape[0] == 6
    if shape is None:  # one row may come without its axis
        np.testing.assert_array_equal(model(x[2])[0], y[2])
    # As many values as whole rows have, in rows of another length: nothing of them may be read as if they were those rows.
    for wrong in ((12, 2), (24, 1), (3, 8), (2, 1), (4, 0)):
        with pytest.raises(fl.ShapeError):
            model(np.zeros(wrong, np.float32))
