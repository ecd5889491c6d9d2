"""A cloud function with a gradient-boosted model of 500 trees: how large it is, and how soon a new process answers.

    python -m bench.function build WORK fastlayers-*.whl     in an environment with tests/zoo/requirements-classical.txt
    python -m bench.function time WORK [--runs 10]

examples/deploy/lambda packs the model as our own file, and once more as the ONNX file that it came from; ONNX Runtime's function
has the same ONNX file, its package with what inference needs, and is trimmed and compiled by the same rules. A run is a process
from its start to its end, with an empty environment; the three take turns. Best and median are of the clock.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np

import fastlayers as fl

COLUMNS = 30
BUILD = Path(__file__).parents[1] / "examples" / "deploy" / "lambda" / "build.sh"
RUNTIME = """
import os
import numpy as np
import onnxruntime

folder = os.environ.get("LAMBDA_TASK_ROOT", os.path.dirname(__file__))
session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), providers=["CPUExecutionProvider"])


def handler(event, context):
    rows = np.asarray(event["rows"], np.float32)
    names = [o.name for o in session.get_outputs()]
    return {name: value.tolist() for name, value in zip(names, session.run(names, {session.get_inputs()[0].name: rows}))}
"""
CALL = "import os, sys; sys.path.insert(0, os.getcwd()); import handler; print(handler.handler({'rows': [[0.1] * 30]}, None))"


def trained() -> bytes:
    """The model as ONNX."""
    import onnxmltools
    from onnxmltools.convert.common.data_types import FloatTensorType
    from xgboost import XGBClassifier

    rng = np.random.default_rng(0)
    x = rng.normal(size=(5000, COLUMNS)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(np.int64)
    model = XGBClassifier(n_estimators=500, max_depth=6).fit(x, y)
    made = onnxmltools.convert_xgboost(model, initial_types=[("x", FloatTensorType([None, COLUMNS]))], target_opset=15)
    return made.SerializeToString()  # type: ignore[no-any-return]


def build(work: Path, wheel: Path) -> None:
    """The three zips, unpacked beside each other."""
    work.mkdir(parents=True, exist_ok=True)
    (work / "model.onnx").write_bytes(trained())
    fl.load(work / "model.onnx").save(work / "model.safetensors")
    own, onnx, runtime = work / "own", work / "onnx", work / "onnxruntime"
    environment = {**os.environ, "PYTHON": sys.executable, "MODEL": str(work / "model.safetensors"), "HANDLER": "rows.py"}
    subprocess.run([BUILD, wheel, own.with_suffix(".zip")], env=environment, check=True, stdout=subprocess.DEVNULL)
    for folder in (own, onnx, runtime):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in (own, onnx):
        with zipfile.ZipFile(own.with_suffix(".zip")) as file:
            file.extractall(folder)
    (onnx / "model.safetensors").unlink()
    text = (BUILD.parent / "rows.py").read_text(encoding="utf-8").replace("model.safetensors", "model.onnx")
    (onnx / "handler.py").write_text(text, encoding="utf-8")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(runtime)]
    subprocess.run([*install, "--no-deps", "numpy", "onnxruntime", "protobuf", "flatbuffers", "packaging"], check=True)
    needless = ["bin", "numpy/f2py", "numpy/_core/include", "numpy/_core/lib", "onnxruntime/tools", "onnxruntime/quantization"]
    needless += ["onnxruntime/transformers", "onnxruntime/datasets"]
    for path in (*(runtime / name for name in needless), *runtime.glob("numpy/**/tests"), *runtime.glob("numpy/tests")):
        shutil.rmtree(path, ignore_errors=True)
    for path in [*runtime.rglob("*.pyi")]:
        path.unlink()
    (runtime / "handler.py").write_text(RUNTIME, encoding="utf-8")
    for folder in (onnx, runtime):
        shutil.copy(work / "model.onnx", folder)
        subprocess.run(
            [sys.executable, "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", folder],
            check=False, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        shutil.make_archive(str(folder), "zip", folder)
    for folder in (own, onnx, runtime):
        unpacked = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{folder.name:12} {folder.with_suffix('.zip').stat().st_size / 1e6:5.1f} MB, unpacked {unpacked / 1e6:6.1f} MB")


def answers(folder: Path) -> str:
    """What a new process says."""
    command = ["env", "-i", sys.executable, "-I", "-B", "-c", CALL]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def measure(work: Path, runs: int) -> None:
    """Processes of each, by turns."""
    folders = [work / name for name in ("own", "onnx", "onnxruntime")]
    for folder in folders:
        print(f"{folder.name:12} {answers(folder).strip()}")  # also brings its files into memory
    took: dict[str, list[float]] = {folder.name: [] for folder in folders}
    for _ in range(runs):
        for folder in folders:
            begin = time.perf_counter()
            answers(folder)
            took[folder.name].append(time.perf_counter() - begin)
    for name, seconds in took.items():
        print(f"{name:12} best {min(seconds):.3f} s, median {statistics.median(seconds):.3f} s")


def main() -> None:
    """Builds or times."""
    parser = argparse.ArgumentParser(prog="python -m bench.function", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="what", required=True)
    builds = commands.add_parser("build")
    builds.add_argument("work", type=Path)
    builds.add_argument("wheel", type=Path)
    times = commands.add_parser("time")
    times.add_argument("work", type=Path)
    times.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    if given.what == "build":
        build(given.work.resolve(), given.wheel.resolve())
    else:
        measure(given.work.resolve(), given.runs)


if __name__ == "__main__":
    main()
