"""Builds what examples/deploy and examples/services describe, and runs it: each in an environment of its own.

    python -m tests.packaging.deploy WORK [--wheel fastlayers-*.whl] [name ...]

Names: lambda, rows, zipapp, pyinstaller, services, systemd, container. What this machine cannot do (mount, systemd, a container
engine) is said, and the rest is done. WORK is kept, so that a second run is short.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from . import deploy_services

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "examples" / "deploy"
SPEECH = ROOT / "fastlayers" / "data" / "speech_16k.wav"


def run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """What a command prints; fails with all that it said if it does."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return done.stdout


def environment(work: Path, name: str, wheel: Path, *packages: str) -> Path:
    """The Python of an environment with the wheel and some packages."""
    folder = work / name
    python = folder / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", folder)
    run(python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", wheel)
    run(python, "-m", "pip", "install", "--quiet", "numpy", *packages)
    return python


def megabytes(path: Path) -> float:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(p.stat().st_size for p in files) / 1e6


# What holds where a function runs, and what this machine may not be able to set up.
SEALED = """
import os
assert not os.path.exists("/proc/self"), "/proc is there"
try:
    open("written", "w")
except OSError:
    pass
else:
    raise SystemExit("the folder can be written")
"""
CALL = """
import base64, os, sys
sys.path.insert(0, os.getcwd())
import handler
print(handler.handler({"audio": base64.b64encode(open(sys.argv[1], "rb").read()[44:])}, None))
"""


def try_lambda(work: Path, wheel: Path) -> None:
    """The zip, unpacked where nothing can be written, without HOME, PATH and /proc."""
    packed, folder = work / "function.zip", work / "function"
    print(run(DEPLOY / "lambda" / "build.sh", wheel, packed, env={**os.environ, "PYTHON": sys.executable}).strip())
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(packed) as file:
        file.extractall(folder)
    assert packed.stat().st_size < 50e6, "more than may be uploaded"
    shutil.copy(SPEECH, folder / "speech.wav")
    script = (
        f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} && mount -t tmpfs none /proc && cd {folder} && "
        'exec env -i "$0" -I -c "$1" speech.wav'
    )
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, sys.executable, SEALED + CALL]
    if subprocess.run(["unshare", "--mount", "--map-root-user", "true"], capture_output=True, check=False).returncode:
        print("lambda: this machine lets nobody mount: run in a folder that can be written, with /proc")
        command = ["env", "-i", sys.executable, "-I", "-c", CALL, "speech.wav"]
    shown = run(*command, cwd=folder)
    assert "'seconds': 6." in shown and "aot/" in shown, shown
    print(f"lambda: {shown.strip()}")


TREES = ROOT / "tests" / "formats" / "classical" / "goldens.zip"
SAVED = "import sys, fastlayers as fl; fl.load(sys.argv[1]).save(sys.argv[2])"
ROWS = """
import os, sys
sys.path.insert(0, os.getcwd())
import handler
print(handler.handler({"rows": [[0.5] * int(sys.argv[1])] * 2}, None))
"""


def try_rows(work: Path, wheel: Path) -> None:
    """The same zip with boosted trees and the handler for rows."""
    packed, folder, model = work / "trees.zip", work / "trees", work / "trees.safetensors"
    with zipfile.ZipFile(TREES) as file:
        (work / "trees.onnx").write_bytes(file.read("XGBClassifier, 2 classes, missing.onnx"))
        columns = json.loads(file.read("XGBClassifier, 2 classes, missing.json"))["feeds"]["X"]["shape"][1]
    run(environment(work, "saver", wheel), "-c", SAVED, work / "trees.onnx", model, cwd=work)
    env = {**os.environ, "PYTHON": sys.executable, "MODEL": str(model), "HANDLER": "rows.py"}
    print(run(DEPLOY / "lambda" / "build.sh", wheel, packed, env=env).strip())
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(packed) as file:
        file.extractall(folder)
    shown = run("env", "-i", sys.executable, "-I", "-c", ROWS, str(columns), cwd=folder)
    assert "'label': [" in shown and "'probabilities': [[" in shown, shown
    print(f"rows: {shown.strip()}")


def try_zipapp(work: Path, wheel: Path) -> None:
    packed = work / "speech.pyz"
    run(DEPLOY / "zipapp" / "build.sh", wheel, packed, env={**os.environ, "PYTHON": sys.executable})
    cache = work / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir()
    for _ in range(2):  # the second time from what was unpacked
        shown = run(sys.executable, "-I", packed, env={"XDG_CACHE_HOME": str(cache)}, cwd=work)
        assert "% speech, aot/" in shown, shown
    assert len(list(cache.iterdir())) == 1
    print(f"zipapp: {megabytes(packed):.1f} MB; {shown.strip()}")


def try_pyinstaller(work: Path, wheel: Path) -> None:
    """One folder and one file, run with an empty PATH and nothing in the environment."""
    python = environment(work, "freezer", wheel, "pyinstaller")
    for form, program in (("--onedir", "folder/app/app"), ("--onefile", "file/app")):
        place = work / program.partition("/")[0]
        shutil.rmtree(place, ignore_errors=True)
        run(
            python, "-m", "PyInstaller", "--noconfirm", "--log-level", "ERROR", form, "--distpath", place,
            "--workpath", work / "freezing", "--specpath", work, DEPLOY / "pyinstaller" / "app.py", cwd=work,
        )  # fmt: skip
        shown = run(work / program, env={"PATH": ""}, cwd=work)
        assert "% speech, aot/" in shown, shown
        print(f"pyinstaller {form}: {megabytes(place):.1f} MB; {shown.strip()}")
    # Without the engine it stops instead of running in plain numpy.
    engines = list((work / "folder").rglob("kernels/aot/*.so"))
    assert engines, "the bundle has no engine"
    for path in engines:
        path.unlink()
    done = subprocess.run([work / "folder/app/app"], env={"PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode and "DeviceError" in done.stderr and "frozen" in done.stderr, done.stderr
    print("pyinstaller: a program without the engine stops with DeviceError")


def try_services(work: Path, wheel: Path) -> None:
    python = environment(work, "server", wheel, "fastapi", "uvicorn", "gunicorn", "celery")
    deploy_services.check(python, work)


def try_systemd(work: Path, wheel: Path) -> None:
    """systemd's own opinion of the unit, with what it starts in its place."""
    unit = DEPLOY / "systemd" / "speech.service"
    if not shutil.which("systemd-analyze"):
        print("systemd: systemd-analyze is not installed: the unit is not checked")
        return
    copy = work / unit.name
    copy.write_text(unit.read_text(encoding="utf-8").replace("/opt/speech/venv/bin/gunicorn", "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert not done.returncode and not said, done.stderr
    print("systemd: the unit is well formed")


def try_container(work: Path, wheel: Path) -> None:
    """What the file copies is there; with an engine, the image is built and its workers started."""
    text = (DEPLOY / "container" / "Containerfile").read_text(encoding="utf-8")
    copied = [
        source for line in text.splitlines() if line.startswith("COPY ") and "--from" not in line for source in line.split()[1:-1]
    ]
    assert copied and all((ROOT / source).exists() for source in copied), copied
    engine = next((name for name in ("docker", "podman") if shutil.which(name)), "")
    if not engine or subprocess.run([engine, "info"], capture_output=True, check=False).returncode:
        print("container: no container engine runs here: only the names in the file are checked")
        return
    run(engine, "build", "--file", DEPLOY / "container" / "Containerfile", "--tag", "speech", ROOT)
    shown = run(
        engine,
        "run",
        "--rm",
        "--read-only",
        "speech",
        "python",
        "-c",
        "import wsgi_app, fastlayers as fl; print(fl.kernels.current())",
    )
    assert "aot/" in shown
    print(f"container: {shown.strip()}")


TRIALS: dict[str, Callable[[Path, Path], None]] = {
    "lambda": try_lambda,
    "rows": try_rows,
    "zipapp": try_zipapp,
    "pyinstaller": try_pyinstaller,
    "services": try_services,
    "systemd": try_systemd,
    "container": try_container,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("names", nargs="*", metavar="name", help=f"all of {', '.join(TRIALS)} if left out")
    parser.add_argument("--wheel", type=Path, help="made of this tree if left out")
    options = parser.parse_intermixed_args()
    if unknown := set(options.names) - TRIALS.keys():
        parser.error(f"no trial {sorted(unknown)}: expected some of {', '.join(TRIALS)}")
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    wheel = options.wheel
    if wheel is None:
        shutil.rmtree(work / "wheel", ignore_errors=True)
        env = {**os.environ, "FASTLAYERS_REQUIRE_ENGINE": "1"}
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", work / "wheel", ROOT, env=env)
        (wheel,) = (work / "wheel").glob("*.whl")
    for name in options.names or TRIALS:
        TRIALS[name](work, wheel.resolve())


if __name__ == "__main__":
    main()
