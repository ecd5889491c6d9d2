"""A cloud function with a gradient-boosted model of 500 trees: how large it is, and how soon a new process answers.

    python -m bench.function build WORK fastlayers-*.whl     in an environment with tests/zoo/requirements-classical.txt
    python -m bench.function time WORK [--runs 10]
    python -m bench.function build --speech WORK fastlayers-*.whl      silero-vad in its place, for `python -m bench.services cold
                                                                       WORK/own WORK/onnxruntime [--tenth]`

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
from bench.demo import fetch
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
COLD = """
import os
import numpy as np
import fastlayers as fl
model = fl.load(os.path.join(os.path.dirname(__file__), "model.safetensors"))
print(model.run({"input": np.zeros((1, 576), "f4"), "state": np.zeros((2, 1, 128), "f4"), "sr": 16000})["output"])
"""
COLD_RUNTIME = """
import os
import numpy as np
import onnxruntime
session = onnxruntime.InferenceSession(os.path.join(os.path.dirname(__file__), "model.onnx"), providers=["CPUExecutionProvider"])
feeds = {"input": np.zeros((1, 576), "f4"), "state": np.zeros((2, 1, 128), "f4"), "sr": np.array(16000)}
print(session.run(None, feeds)[0])
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
    own, onnx = work / "own", work / "onnx"
    ours(wheel, own, MODEL=str(work / "model.safetensors"), HANDLER="rows.py")
    unpacked(own, onnx)
    (onnx / "model.safetensors").unlink()
    text = (BUILD.parent / "rows.py").read_text(encoding="utf-8").replace("model.safetensors", "model.onnx")
    (onnx / "handler.py").write_text(text, encoding="utf-8")
    shutil.copy(work / "model.onnx", onnx)
    compiled(onnx)
    shutil.make_archive(str(onnx), "zip", onnx)
    theirs(work / "onnxruntime", work / "model.onnx", "handler.py", RUNTIME)
    told(work)


def build_speech(work: Path, wheel: Path) -> None:
    """The same two with silero-vad; what is timed is cold.py, which loads it and answers once."""
    work.mkdir(parents=True, exist_ok=True)
    own = work / "own"
    ours(wheel, own)
    (own / "cold.py").write_text(COLD, encoding="utf-8")
    compiled(own)
    theirs(work / "onnxruntime", fetch(), "cold.py", COLD_RUNTIME)
    told(work)


def ours(wheel: Path, folder: Path, **more: str) -> None:
    """The zip of examples/deploy/lambda, and what is in it."""
    environment = {**os.environ, "PYTHON": sys.executable, **more}
    subprocess.run([BUILD, wheel, folder.with_suffix(".zip")], env=environment, check=True, stdout=subprocess.DEVNULL)
    unpacked(folder, folder)


def unpacked(source: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(source.with_suffix(".zip")) as file:
        file.extractall(folder)


def theirs(folder: Path, model: Path, name: str, text: str) -> None:
    """ONNX Runtime's function, and its zip."""
    shutil.rmtree(folder, ignore_errors=True)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(folder)]
    subprocess.run([*install, "--no-deps", "numpy", "onnxruntime", "protobuf", "flatbuffers", "packaging"], check=True)
    needless = ["bin", "numpy/f2py", "numpy/_core/include", "numpy/_core/lib", "onnxruntime/tools", "onnxruntime/quantization"]
    needless += ["onnxruntime/transformers", "onnxruntime/datasets"]
    for path in (*(folder / part for part in needless), *folder.glob("numpy/**/tests"), *folder.glob("numpy/tests")):
        shutil.rmtree(path, ignore_errors=True)
    for path in [*folder.rglob("*.pyi")]:
        path.unlink()
    (folder / name).write_text(text, encoding="utf-8")
    shutil.copy(model, folder / "model.onnx")
    compiled(folder)
    shutil.make_archive(str(folder), "zip", folder)


def compiled(folder: Path) -> None:
    """As the zip of examples/deploy/lambda is."""
    command = [sys.executable, "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", folder]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)


def told(work: Path) -> None:
    for name, (zipped, size) in sizes(work).items():
        print(f"{name:12} {zipped:5.1f} MB, unpacked {size:6.1f} MB")


NAMES = ("own", "onnx", "onnxruntime")


def sizes(work: Path) -> dict[str, tuple[float, float]]:
    """Megabytes of each: zipped (0 if the zip is gone) and unpacked."""
    found = {}
    for folder in (work / name for name in NAMES if (work / name).exists()):
        zipped = folder.with_suffix(".zip")
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        found[folder.name] = (zipped.stat().st_size / 1e6 if zipped.exists() else 0.0, size / 1e6)
    return found


def answers(folder: Path) -> str:
    """Output of a new process."""
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
    builds.add_argument("--speech", action="store_true", help="silero-vad instead of trees")
    times = commands.add_parser("time")
    times.add_argument("work", type=Path)
    times.add_argument("--runs", type=int, default=10)
    add_json(times)
    given = parser.parse_args(arguments)
    if given.what == "build":
        (build_speech if given.speech else build)(given.work.resolve(), given.wheel.resolve())
    else:
        measure(given.work.resolve(), given.runs, given.json)


if __name__ == "__main__":
    main()
