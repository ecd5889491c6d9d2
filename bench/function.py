"""A cloud function with a gradient-boosted model of 500 trees: how large it is, and how soon a new process answers.

    python -m bench.function build WORK fastlayers-*.whl     in an environment with tests/zoo/requirements-classical.txt
    python -m bench.function time WORK [--runs 10]

examples/deploy/lambda packs the model as our own file, and once more as the ONNX file that it came from; ONNX Runtime's function
has the same ONNX file, its package with what inference needs, and is trimmed and compiled by the same rules. A run is a process
from its start to its end, with an empty environment; the three take turns, each with a watch of its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import fastlayers as fl
from bench.timing import Watch, add_json, store

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
    for name, (zipped, unpacked) in sizes(work).items():
        print(f"{name:12} {zipped:5.1f} MB, unpacked {unpacked:6.1f} MB")


NAMES = ("own", "onnx", "onnxruntime")


def sizes(work: Path) -> dict[str, tuple[float, float]]:
    """Megabytes of each: zipped (0 if the zip is gone) and unpacked."""
    found = {}
    for folder in (work / name for name in NAMES):
        zipped = folder.with_suffix(".zip")
        unpacked = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        found[folder.name] = (zipped.stat().st_size / 1e6 if zipped.exists() else 0.0, unpacked / 1e6)
    return found


def answers(folder: Path) -> str:
    """What a new process says."""
    command = ["env", "-i", sys.executable, "-I", "-B", "-c", CALL]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def measure(work: Path, runs: int, json: Path | None) -> None:
    """Processes of each, by turns."""
    folders = [work / name for name in NAMES]
    for folder in folders:
        print(f"{folder.name:12} {answers(folder).strip()}")  # also brings its files into memory
    watches = {folder.name: Watch() for folder in folders}
    for _ in range(runs):
        for folder in folders:
            with watches[folder.name]:
                answers(folder)
    times = {name: watch.times() for name, watch in watches.items()}
    for name, found in times.items():
        print(f"{name:12} best {found.best:.3f} s, median {found.median:.3f} s")
    store(json, {"cold start": times}, megabytes={name: {"zip": z, "unpacked": u} for name, (z, u) in sizes(work).items()})


def main(arguments: Sequence[str] | None = None) -> None:
    """Builds or times."""
    parser = argparse.ArgumentParser(prog="python -m bench.function", description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="what", required=True)
    builds = commands.add_parser("build")
    builds.add_argument("work", type=Path)
    builds.add_argument("wheel", type=Path)
    times = commands.add_parser("time")
    times.add_argument("work", type=Path)
    times.add_argument("--runs", type=int, default=10)
    add_json(times)
    given = parser.parse_args(arguments)
    if given.what == "build":
        build(given.work.resolve(), given.wheel.resolve())
    else:
        measure(given.work.resolve(), given.runs, given.json)


if __name__ == "__main__":
    main()
