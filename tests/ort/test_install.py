"""`install` and ``python -m fastlayers.ort``, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fastlayers as fl
from fastlayers.ort import _stand_in

from .networks import added

ROOT = Path(__file__).parents[2]


def python(code: str, *before: str, status: int = 0) -> str:
    """What Python writes to its output; `before` are arguments in place of ``-c``."""
    done = subprocess.run(
        [sys.executable, *(before or ("-c", code))], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done.stdout.strip() if status == 0 else done.stderr


def test_it_stands_in_by_name() -> None:
    code = """
import importlib.metadata, importlib.util, sys
import fastlayers.ort
fastlayers.ort.install()
fastlayers.ort.install()  # once more does nothing
import onnxruntime
assert onnxruntime.capi.onnxruntime_pybind11_state.Fail is fastlayers.ort.Fail  # onnxruntime imports these itself
assert onnxruntime.capi.onnxruntime_inference_collection.C.__version__ == onnxruntime.version == "1.32.0"
assert not hasattr(onnxruntime.capi, "InferenceSesion") and onnxruntime.import_capi_exception is None
import onnxruntime as ort, onnxruntime.capi._pybind_state as C
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidProtobuf, Fail
from onnxruntime.capi.onnxruntime_inference_collection import OrtValue, check_and_normalize_provider_args
from onnxruntime.capi.onnxruntime_validation import get_package_name_and_version_info
from onnxruntime.transformers.io_binding_helper import TypeHelper
import onnxruntime.backend as backend
assert InferenceSession is fastlayers.ort.InferenceSession and InvalidProtobuf is fastlayers.ort.InvalidProtobuf
assert OrtValue is fastlayers.ort.OrtValue is C.OrtValue and C.kSameAsRequested == 1
assert onnxruntime.__path__ == [] and onnxruntime.__spec__.name == "onnxruntime" and onnxruntime.__version__ == "1.32.0"
assert importlib.util.find_spec("onnxruntime") is onnxruntime.__spec__ and importlib.util.find_spec("onnxruntime.capi")
assert importlib.util.find_spec("onnxruntime.quantization") is None
assert importlib.metadata.version("onnxruntime") == get_package_name_and_version_info()[1] == "1.32.0"
assert importlib.metadata.metadata("onnxruntime")["Name"] == "onnxruntime"
assert [d.version for d in importlib.metadata.distributions() if d.name == "onnxruntime"][0] == "1.32.0"
assert importlib.metadata.version("numpy")  # others are found as ever
try:
    import onnxruntime.quantization
except ModuleNotFoundError as error:
    assert error.name == "onnxruntime.quantization"
try:
    onnxruntime.training
except AttributeError as error:
    print(error)
class Mine(InferenceSession):
    def run(self, *arguments):
        return ["mine", *super().run(*arguments)]
import numpy as np
from tests.ort.networks import relu
session = Mine(relu())
print(session.run(None, {"x": np.array([[-1, 0, 2]], np.float32)}))
print(TypeHelper.get_io_numpy_type_map(session))
print(backend.run(relu(), np.array([[-1, 0, 2]], np.float32)), backend.supports_device("CUDA"))
fastlayers.ort.uninstall()
fastlayers.ort.uninstall()
assert not [name for name in sys.modules if name.startswith("onnxruntime")]
assert not [f for f in sys.meta_path if "fastlayers.ort" in type(f).__module__]
"""
    told = python(code).splitlines()
    assert told == [
        "fastlayers.ort has no 'training': it runs models; for that install onnxruntime itself",
        "['mine', array([[0., 0., 2.]], dtype=float32)]",
        "{'x': <class 'numpy.float32'>, 'y': <class 'numpy.float32'>}",
        "[array([[0., 0., 2.]], dtype=float32)] False",
    ]


def test_it_does_not_take_what_is_imported_already() -> None:
    code = """
import sys, types
sys.modules["onnxruntime"] = real = types.ModuleType("onnxruntime")
real.__file__ = "/there/onnxruntime/__init__.py"
sys.modules["onnxruntime.capi"] = types.ModuleType("onnxruntime.capi")
import fastlayers as fl, fastlayers.ort
try:
    fastlayers.ort.install()
except fl.ArgumentError as error:
    print(error)
assert sys.modules["onnxruntime"] is real
fastlayers.ort.install(force=True)
import onnxruntime
assert onnxruntime is not real and onnxruntime.InferenceSession
fastlayers.ort.uninstall()
assert sys.modules["onnxruntime"] is real and "onnxruntime.capi" in sys.modules
import onnxruntime
assert onnxruntime is real
"""
    assert "onnxruntime is imported already (from /there/onnxruntime/__init__.py): call install() before it is" in python(code)


@pytest.mark.onnxruntime
def test_what_is_installed_comes_back() -> None:
    code = """
import fastlayers.ort
fastlayers.ort.install()
import onnxruntime
ours = onnxruntime.InferenceSession
assert not onnxruntime.__path__
fastlayers.ort.uninstall()
import onnxruntime, onnxruntime.quantization, importlib.metadata
assert onnxruntime.__path__ and onnxruntime.InferenceSession is not ours
assert importlib.metadata.files("onnxruntime")
"""
    python(code)


def test_a_script_and_a_module_run_with_it(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("WORD = 'helped'\n")
    (tmp_path / "m.onnx").write_bytes(added())
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, onnxruntime, helper\n"
        "session = onnxruntime.InferenceSession(sys.argv[1])\n"
        "print(__name__, sys.argv[2:], helper.WORD, session.get_inputs()[0].type, onnxruntime.get_build_info().split()[3])\n"
        "sys.exit(int(sys.argv[3]))\n"
    )
    arguments = (str(tmp_path / "m.onnx"), "--more", "0")
    expected = "__main__ ['--more', '0'] helped tensor(float) fastlayers"
    assert python("", "-m", "fastlayers.ort", str(script), *arguments) == expected
    python("", "-m", "fastlayers.ort", str(script), *arguments[:2], "3", status=3)
    assert python("", "-m", "fastlayers.ort", "-m", "tests.ort.shown", "a", "-b") == "__main__ ['a', '-b'] fastlayers.ort"
    assert "usage: python -m fastlayers.ort" in python("", "-m", "fastlayers.ort", status=2)
    assert "usage" in python("", "-m", "fastlayers.ort", "-m", status=2)


def test_every_module_that_stands_in_can_be_made() -> None:
    code = f"""
import importlib, fastlayers.ort
fastlayers.ort.install()
for name in {list(_stand_in._MODULES)!r}:
    assert importlib.import_module(name)._stands_in == "fastlayers.ort", name
"""
    python(code)


def test_importing_fastlayers_imports_none_of_it() -> None:
    assert python("import sys, fastlayers; print([m for m in sys.modules if m.startswith('fastlayers.ort')])") == "[]"
    assert python("import fastlayers; print(fastlayers.ort.get_device())") == "CPU"


def test_types_that_there_are_not() -> None:
    with pytest.raises(fl.ArgumentError, match="tensor\\(nothing\\) not found in map"):
        _stand_in.TypeHelper.ort_type_to_numpy_type("tensor(nothing)")
    with pytest.raises(fl.ArgumentError, match="input name q not found"):
        _stand_in.TypeHelper.get_input_type(fl.ort.InferenceSession(added()), "q")
    assert _stand_in.TypeHelper.get_output_type(fl.ort.InferenceSession(added()), "t") == "tensor(int64)"
