"""Sessions are in `fastlayers.ort` alone; models in memory; what a file says of itself."""

from __future__ import annotations

from pathlib import Path
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
    found = fl.ort.InferenceSession(path).get_modelmeta()
    assert (found.producer_name, found.domain, found.version, found.description) == ("tests", "org.example", 7, "what it does")
    assert found.custom_metadata_map == {"author": "someone"} and isinstance(found.graph_name, str)
    assert found.graph_description == ""


def test_the_root_has_no_session_and_says_who_has() -> None:
    for name in ("InferenceSession", "SessionOptions"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': it is fastlayers.ort.{name}"):
            getattr(fl, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'Infer'$"):
        _ = fl.Infer  # type: ignore[attr-defined]


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
    with pytest.raises(fl.FormatError, match="<Broken>: cannot be written as bytes: larger than 2 GB"):
        fl.load(Broken())  # type: ignore[arg-type]


@pytest.mark.onnx
def test_a_model_of_the_package_onnx(path: str) -> None:
    package: Any = pytest.importorskip("onnx")
    np.testing.assert_array_equal(fl.load(package.load(path))(X), np.maximum(X, 0))
