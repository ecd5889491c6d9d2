"""Counts the instructions of a call of a model with valgrind, in its own process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .. import model as _model
from ..errors import ArgumentError, DeviceError

__all__ = ["instructions", "why_not"]

# Of the levels those that valgrind can run, which knows no AVX-512.
LEVELS = ("x86_v3", "x86_v1", "neon")
WARM = 3  # calls before anything is counted


def why_not() -> str:
    """Names the missing requirement of counting instructions; empty if they can be counted."""
    from ..kernels import dispatch

    if not sys.platform.startswith("linux"):
        return "instructions can be counted on Linux alone"
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    if not any(level in dispatch.levels() for level in LEVELS):
        return "there is no compiled engine that valgrind can run"
    return ""


def instructions(
    model: str | os.PathLike[str] | _model.Model, feeds: Mapping[str, np.ndarray], runs: int = 20, timeout: float = 300.0
) -> int:
    """Instructions of one call on one thread, a call like those before it: what is planned and packed once is not in it.

    The model runs in a child, on the best level that valgrind can run. Two forks of it make different numbers of calls: their
    difference has nothing else in it, so that counts of two runs are within about 0.1 % of each other.

    Args:
        model: a model, or its file.
        feeds: as in `Model.run`.
        runs: how many calls are averaged.
        timeout: seconds.

    Raises:
        DeviceError: there is no valgrind, or no engine that it can run.
        ArgumentError: the model cannot be run on `feeds`.
    """
    from ..kernels import dispatch

    if reason := why_not():
        raise DeviceError(f"instructions: {reason}")
    level = next(level for level in LEVELS if level in dispatch.levels())
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "feeds.npz"
        np.savez(arrays, **{f"in_{i}": np.asarray(feeds[name]) for i, name in enumerate(feeds)})  # type: ignore[arg-type]
        if isinstance(model, _model.Model):
            path = str(Path(folder) / "model.safetensors")
            model.save(path)
        else:
            path = os.fspath(model)
        command = [
            "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", sys.executable, "-m",
            f"{__package__}._counted", path, str(arrays), str(runs), str(WARM), *feeds,
        ]  # fmt: skip
        root = str(Path(__file__).parents[2])
        environment = {
            **os.environ, "FASTLAYERS_ISA": level, "FASTLAYERS_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])]),
        }  # fmt: skip
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, errors="replace", timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            raise DeviceError(f"instructions: not done after {timeout:g} seconds") from None
    counts = [int(found.replace(",", "")) for found in re.findall(r"I\s+refs:\s+([\d,]+)", done.stderr)]
    if done.returncode or len(counts) != 3:
        told = " ".join(line for line in done.stderr.splitlines() if not line.startswith(("==", "--")))[-400:]
        raise ArgumentError(f"instructions: the model could not be run under valgrind: {told or done.returncode}")
    few, many, _ = counts
    return round((many - few) / runs)
