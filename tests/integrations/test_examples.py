"""examples/integrations: short, and as far as it goes without the servers, run."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from .network import loop, rows, save

FOLDER = Path(__file__).parents[2] / "examples" / "integrations"
EXAMPLES = [path for path in sorted(FOLDER.rglob("*.*")) if path.suffix in (".py", ".yaml")]


def test_examples_are_short() -> None:
    assert len(EXAMPLES) == 3
    assert [path.name for path in EXAMPLES if len(path.read_text().splitlines()) > 40] == []


class Tensor:
    """As Triton's."""

    def __init__(self, name: str, array: np.ndarray) -> None:
        if not array.flags.c_contiguous:
            raise ValueError("not contiguous")
        self._name, self._array = name, array

    def name(self) -> str:
        return self._name

    def as_numpy(self) -> np.ndarray:
        return self._array


class Config(SimpleNamespace):
    """As Triton's; takes what it takes."""

    def add_input(self, entry: dict[str, Any]) -> None:
        assert set(entry) == {"name", "data_type", "dims"} and entry["data_type"].startswith("TYPE_")
        self.inputs.append(entry)

    def add_output(self, entry: dict[str, Any]) -> None:
        assert set(entry) == {"name", "data_type", "dims"} and entry["data_type"].startswith("TYPE_")
        self.outputs.append(entry)

    def set_max_batch_size(self, size: int) -> None:
        self.max_batch_size = size


@pytest.fixture
def triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Triton's repository, and a stand-in for the module that its backend offers, with the names and rules that it documents."""
    module: Any = ModuleType("triton_python_backend_utils")
    module.TRITON_STRING_TO_NUMPY = {
        "TYPE_FP32": np.float32,
        "TYPE_INT64": np.int64,
        "TYPE_BOOL": bool,
        "TYPE_STRING": np.object_,
    }
    module.Tensor = Tensor
    module.TritonError = lambda message: SimpleNamespace(message=lambda: message)
    module.InferenceResponse = lambda output_tensors=(), error=None: SimpleNamespace(tensors=list(output_tensors), error=error)
    module.get_input_tensor_by_name = lambda request, name: next((t for t in request.inputs if t.name() == name), None)
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", module)
    folder = tmp_path / "network" / "1"
    folder.mkdir(parents=True)
    save(folder / "network.safetensors", two=True)
    (folder / "network.safetensors").rename(folder / "network.onnx")  # the format is inferred from the content
    (folder / "model.py").write_text((FOLDER / "triton" / "1" / "model.py").read_text())
    return folder / "model.py"


def test_triton(triton: Path) -> None:
    model = runpy.run_path(str(triton))["TritonPythonModel"]
    config = model.auto_complete_config(Config(inputs=[], outputs=[]))
    assert config.inputs == [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1, 3, 12, 12]}]
    assert [entry["dims"] for entry in config.outputs] == [[-1, 5], [-1, 16, 5, 5]] and config.max_batch_size == 0
    served = model()
    served.initialize({"model_name": "network", "model_version": "1"})
    x = rows(5)
    given = (x[:2], x[:, :1].copy(), x[2:])
    requests = [SimpleNamespace(inputs=[Tensor("x", array)], requested_output_names=lambda: ["softmax"]) for array in given]
    first, wrong, last = served.execute(requests)
    np.testing.assert_array_equal(
        np.concatenate([first.tensors[0].as_numpy(), last.tensors[0].as_numpy()]), loop(triton.with_name("network.onnx"), x)
    )
    assert "input 'x' has shape (5, 1, 12, 12)" in wrong.error.message() and wrong.tensors == []
