"""InferenceSession's options and what it tells of a file: nothing is swallowed."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from tests.formats import onnx_build as onnx

X = np.array([[-1.0, 2.0]], np.float32)


@pytest.fixture
def path(tmp_path: Path) -> str:
    values = [onnx.value_info("x", (1, 2))], [onnx.value_info("y", (1, 2))]
    graph = onnx.graph([onnx.node("Relu", "x", "a"), onnx.node("Identity", "a", "y")], *values)
    told = onnx.field(4, "org.example") + onnx.field(5, 7) + onnx.field(6, "what it does")
    entry = onnx.field(14, onnx.field(1, "author") + onnx.field(2, "someone"))
    (tmp_path / "m.onnx").write_bytes(onnx.model(graph, told, entry))
    return str(tmp_path / "m.onnx")


def test_all_that_the_file_says_of_itself(path: str) -> None:
    found = fl.InferenceSession(path).get_modelmeta()
    assert (found.producer_name, found.domain, found.version, found.description) == ("tests", "org.example", 7, "what it does")
    assert found.custom_metadata_map == {"author": "someone"} and isinstance(found.graph_name, str)
    assert found.graph_description == ""


@pytest.mark.onnxruntime
def test_modelmeta_is_onnxruntimes(path: str) -> None:
    ort: Any = pytest.importorskip("onnxruntime")
    theirs, ours = ort.InferenceSession(path).get_modelmeta(), fl.InferenceSession(path).get_modelmeta()
    for name in ours.__slots__:
        assert getattr(ours, name) == getattr(theirs, name), name
    given = ort.SessionOptions()
    options_of_theirs = {name for name in dir(given) if not name.startswith("_") and not callable(getattr(given, name))}
    assert options_of_theirs <= set(dir(fl.SessionOptions()))
    for name in ("intra_op_num_threads", "enable_profiling", "log_severity_level", "optimized_model_filepath", "logid"):
        assert getattr(ort.SessionOptions(), name) == getattr(fl.SessionOptions(), name), name
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    np.testing.assert_array_equal(fl.InferenceSession(path, options).run(None, {"x": X})[0], np.maximum(X, 0))


def test_options(path: str, tmp_path: Path) -> None:
    options = fl.SessionOptions()
    options.intra_op_num_threads = 2
    options.optimized_model_filepath = str(tmp_path / "written.safetensors")
    options.add_session_config_entry("session.x", "1")
    assert copy.copy(options).intra_op_num_threads == 2 and options.get_session_config_entry("session.x") == "1"
    session = fl.InferenceSession(path, options, ["CPUExecutionProvider"], [{}], enable_fallback=False)
    assert session._model.num_threads == 2
    np.testing.assert_array_equal(fl.load(tmp_path / "written.safetensors")(X), session.run(None, {"x": X})[0])
    options.optimized_model_filepath = str(tmp_path / "written.onnx")
    with pytest.warns(UserWarning, match="a file of fastlayers .safetensors., not of ONNX"):
        session = fl.InferenceSession(path, options)
    np.testing.assert_array_equal(fl.load(tmp_path / "written.onnx")(X), session.run(None, {"x": X})[0])
    levels = [0, SimpleNamespace(name="ORT_DISABLE_ALL"), 99, SimpleNamespace(name="ORT_ENABLE_ALL")]
    for level, plain in zip(levels, (True, True, False, False), strict=True):
        options = fl.SessionOptions()
        options.graph_optimization_level = level
        assert fl.InferenceSession(path, options)._model._options.optimize is not plain
    with pytest.raises(fl.ArgumentError, match="no entry 'q' was added"):
        options.get_session_config_entry("q")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"mmap": False}, fl.ArgumentError, "unknown argument mmap: expected sess_options, providers"),
        ({"session_options": None}, fl.ArgumentError, "unknown argument session_options"),
        ({"provider": ["CPUExecutionProvider"], "num_threads": 2}, fl.ArgumentError, "unknown argument provider, num_threads"),
        ({"sess_options": {"intra_op_num_threads": 2}}, fl.DTypeError, "sess_options is of type dict: expected SessionOptions"),
        ({"sess_options": SimpleNamespace(intra_op_num_threads=0, enable_profiling=True)}, fl.UnsupportedError, "profiling"),
    ],
)
def test_what_is_not_there_is_refused(arguments: dict[str, Any], error: type[Exception], message: str, path: str) -> None:
    with pytest.raises(error, match=message):
        fl.InferenceSession(path, **arguments)


def test_misspelt_options_are_refused() -> None:
    with pytest.raises(AttributeError):
        fl.SessionOptions().intra_op_threads = 2  # type: ignore[attr-defined]


def test_models_in_memory(path: str) -> None:
    content = Path(path).read_bytes()

    class Proto:
        def SerializeToString(self) -> bytes:  # noqa: N802 - as protobuf has it
            return content

    class Program:
        model_proto = Proto()

    class Broken:
        def SerializeToString(self) -> bytes:  # noqa: N802
            raise ValueError("larger than 2 GB")

    for source in (Proto(), Program()):
        np.testing.assert_array_equal(fl.load(source)(X), np.maximum(X, 0))  # type: ignore[arg-type]
        np.testing.assert_array_equal(fl.InferenceSession(source).run(None, {"x": X})[0], np.maximum(X, 0))
    with pytest.raises(fl.FormatError, match="<Broken>: cannot be written as bytes: larger than 2 GB"):
        fl.load(Broken())  # type: ignore[arg-type]


@pytest.mark.onnx
def test_a_model_of_the_package_onnx(path: str) -> None:
    package: Any = pytest.importorskip("onnx")
    np.testing.assert_array_equal(fl.load(package.load(path))(X), np.maximum(X, 0))
