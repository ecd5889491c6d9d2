"""ONNX's backend suite, case by case, over `fastlayers.onnx_backend`; and what that module does besides.

A case that is left out must be refused by an error of ours; one that passes must not be left out.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.onnx

from onnx import TensorProto, helper  # noqa: E402

from fastlayers import onnx_backend  # noqa: E402

from .onnx_suite import LEFT_OUT, UNCHECKED, cases, operators, reason  # noqa: E402


@pytest.mark.parametrize("name", cases())
@pytest.mark.sampled(2)
def test_suite(name: str) -> None:
    left_out, unchecked = reason(LEFT_OUT, name), reason(UNCHECKED, name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the suite's own code
            cases()[name]()
    except fl.UnsupportedError:
        if left_out is None:
            raise
    except (AssertionError, TypeError):
        if unchecked is None:
            raise
    else:
        assert left_out is None, f"it passes, but is left out: {left_out}"


def test_every_pattern_is_needed() -> None:
    for pattern in (*LEFT_OUT, *UNCHECKED):
        assert any(reason({pattern: "?"}, name) for name in cases()), pattern


def test_nothing_of_the_suite_is_lost() -> None:
    assert set(operators()) == set(cases())
    assert len(cases()) > 2000


# ---- the module itself -----------------------------------------------------------------------------------------------


def model(op: str, given: int, made: int, count: int = 1, **attributes: Any) -> Any:
    """A model of one node; element types of its inputs and of its output by number."""
    names = [f"x{i}" for i in range(count)]
    inputs = [helper.make_tensor_value_info(n, given, ["n"]) for n in names]
    output = helper.make_tensor_value_info("y", made, ["n"])
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=10)


X = np.array([1.0, -2.0, 3.5], np.float32)


def test_prepare_and_run(tmp_path: Path) -> None:
    proto = model("Neg", TensorProto.FLOAT, TensorProto.FLOAT)
    path = tmp_path / "neg.onnx"
    path.write_bytes(proto.SerializeToString())
    for source in (proto, proto.SerializeToString(), path, str(path)):
        rep = onnx_backend.prepare(source, "CPU")
        assert isinstance(rep.model, fl.Model)
        for given in ([X], (X,), X, {"x0": X}):
            (y,) = rep.run(given)
            np.testing.assert_array_equal(y, -X)
    np.testing.assert_array_equal(onnx_backend.run_model(proto, [X])[0], -X)


@pytest.mark.ml_dtypes
def test_results_have_the_types_that_the_model_names() -> None:
    types = pytest.importorskip("ml_dtypes")
    (y,) = onnx_backend.run_model(model("Cast", TensorProto.FLOAT, TensorProto.FLOAT8E5M2, to=TensorProto.FLOAT8E5M2), [X])
    assert y.dtype == types.float8_e5m2
    np.testing.assert_array_equal(y.astype(np.float32), X)
    (y,) = onnx_backend.run_model(model("Neg", TensorProto.BFLOAT16, TensorProto.BFLOAT16), [X.astype(types.bfloat16)])
    assert y.dtype == types.bfloat16
    (y,) = onnx_backend.run_model(model("Cast", TensorProto.FLOAT, TensorProto.INT4, to=TensorProto.INT4), [X])
    assert y.dtype == types.int4
    np.testing.assert_array_equal(y.astype(np.int8), [1, -2, 3])


def test_run_node() -> None:
    node = helper.make_node("Add", ["a", "b"], ["y"])
    np.testing.assert_array_equal(onnx_backend.run_node(node, [X, X])[0], X + X)
    node = helper.make_node("Clip", ["x", "", "most"], ["y"])
    np.testing.assert_array_equal(
        onnx_backend.run_node(node, [X, np.float32(2)], outputs_info=[(np.float32, (3,))])[0], [1, -2, 2]
    )
    node = helper.make_node("Softmax", ["x"], ["y"])  # before opset 13 over all axes from the first on
    (y,) = onnx_backend.run_node(node, [np.zeros((1, 2, 2), np.float32)], opset_version=12)
    np.testing.assert_array_equal(y, np.full((1, 2, 2), 0.25))
    node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml")
    np.testing.assert_array_equal(onnx_backend.run_node(node, [X])[0], [1, 0, 1])


def test_devices() -> None:
    assert [onnx_backend.supports_device(d) for d in ("CPU", "cpu:0", "CUDA", "GPU:1")] == [True, True, False, False]
    with pytest.raises(fl.DeviceError, match="device is 'CUDA'"):
        onnx_backend.prepare(model("Neg", 1, 1), "CUDA")


def test_errors() -> None:
    rep = onnx_backend.prepare(model("Add", 1, 1, 2))
    with pytest.raises(fl.ArgumentError, match="1 inputs were given: expected 2"):
        rep.run([X])
    with pytest.raises(fl.DTypeError, match="of type int"):
        onnx_backend.prepare(3)
    with pytest.raises(fl.ArgumentError, match="3 inputs were given: expected 2"):
        onnx_backend.run_node(helper.make_node("Add", ["a", "b"], ["y"]), [X, X, X])
    with pytest.raises(fl.UnsupportedError, match="RegexFullMatch"):
        onnx_backend.prepare(model("RegexFullMatch", 8, 9))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    node = helper.make_node("Neg", ["x"], ["y"])
    proto = model("Neg", 1, 1)
    monkeypatch.setitem(sys.modules, "onnx", None)
    np.testing.assert_array_equal(onnx_backend.run_model(proto, [X])[0], -X)
    with pytest.raises(fl.MissingExtraError, match=r'pip install "onnx>='):
        onnx_backend.run_node(node, [X])
