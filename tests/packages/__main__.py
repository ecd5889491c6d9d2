"""Packages out of their own wheels, unmodified, with fastlayers in place of onnxruntime.

``python -m tests.packages WORK [case ...]``: an environment is made in WORK for each group. Every case runs four times, in
processes of their own: with onnxruntime itself; with fastlayers in its place, while onnxruntime is installed; the same once it
is not; and with fastlayers' outputs two percent off, which must be noticed. Answers are compared with onnxruntime's. Ends with 1
if a case fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from .table import GROUPS, ONNXRUNTIME, TOLERANCE, TOLERANCES, Group

ROOT = Path(__file__).parents[2]
RUNS = ("onnxruntime", "fastlayers", "without", "wrong")
SECONDS = 900
FLOOR = 1e-6  # of numbers, where all of an array are next to nothing


def pip(python: Path, *arguments: str) -> None:
    subprocess.run([python, "-m", "pip", "-qq", *arguments], check=True)


def environment(work: Path, name: str, group: Group) -> Path:
    """The group's Python, made if it is not there."""
    python = work / name / "bin" / "python"
    if not (work / f"{name}.done").exists():
        subprocess.run([sys.executable, "-m", "venv", work / name], check=True)
        pip(python, "install", ONNXRUNTIME, *group.requirements)
        for package in group.alone:
            pip(python, "install", "--no-deps", package)
        (work / f"{name}.done").touch()
    return python


def run(python: Path, case: str, engine: str, target: Path) -> str:
    """Runs a case; what went wrong, or ""."""
    target.unlink(missing_ok=True)
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    named = "fastlayers" if engine == "without" else engine
    with target.with_suffix(".log").open("w") as log:
        try:
            done = subprocess.run(
                [python, "-m", "tests.packages.one", case, named, target],
                cwd=ROOT, env=settings, stdout=log, stderr=log, timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"not done after {SECONDS} s"
    if done.returncode == 0:
        return ""
    lines = target.with_suffix(".log").read_text(errors="replace").strip().splitlines()
    return f"exit status {done.returncode}: {lines[-1] if lines else ''}"


def difference(expected: Path, found: Path, tolerance: float) -> str:
    """What differs between two answers, or "" if values are equal within the tolerance, bytes within one, and all else."""
    theirs, ours = dict(np.load(expected)), dict(np.load(found))
    if list(theirs) != list(ours):
        return f"answers {sorted(set(theirs) ^ set(ours))[:4]} are in one alone"
    for name, want in theirs.items():
        have = ours[name]
        if want.shape != have.shape:
            return f"{name}: shape {have.shape}: expected {want.shape}"
        if want.dtype.kind in "fc":
            most = np.abs(want[np.isfinite(want)]).max(initial=0)
            apart = np.abs(np.nan_to_num(have) - np.nan_to_num(want)).max(initial=0)
            if apart > tolerance * most + FLOOR:
                return f"{name}: {apart:.3g} apart, of {most:.3g}"
        elif want.dtype == np.uint8:
            if (np.abs(want.astype(int) - have).max(initial=0)) > 1:
                return f"{name}: bytes differ by more than one"
        elif not np.array_equal(want, have):
            return f"{name}: {have.ravel()[:4]}: expected {want.ravel()[:4]}"
    return ""


def largest(expected: Path, found: Path) -> float:
    """The largest difference of numbers, of the largest magnitude of their array."""
    theirs, ours = dict(np.load(expected)), dict(np.load(found))
    apart = [0.0]
    for name, want in theirs.items():
        if want.dtype.kind == "f" and want.size and (most := np.abs(np.nan_to_num(want)).max()) > 0:
            apart.append(float(np.abs(np.nan_to_num(ours[name]) - np.nan_to_num(want)).max() / most))
    return max(apart)


def verdict(engine: str, trouble: str, expected: Path, found: Path, tolerance: float) -> str:
    """ "ok", or what is wrong with a run."""
    if not expected.exists():
        return trouble or "there is no answer of onnxruntime's"
    if trouble or engine == "onnxruntime":
        return trouble or "ok"
    told = difference(expected, found, tolerance)
    if engine == "wrong":
        return "ok" if told else "two percent off, and nothing noticed it"
    return told or "ok"


def main(work: Path, chosen: list[str]) -> int:
    work.mkdir(parents=True, exist_ok=True)
    known = {case for group in GROUPS.values() for case in group.cases}
    if unknown := set(chosen) - known:
        raise SystemExit(f"there are no cases {sorted(unknown)}: expected some of {sorted(known)}")
    failed = passed = 0
    for name, group in GROUPS.items():
        cases = [case for case in group.cases if not chosen or case in chosen]
        if not cases:
            continue
        python = environment(work, name, group)
        results: dict[str, list[str]] = {case: [] for case in cases}
        took = dict.fromkeys(cases, 0.0)
        for engine in RUNS:
            pip(python, *(("uninstall", "-y", "onnxruntime") if engine == "without" else ("install", "--no-deps", ONNXRUNTIME)))
            for case in cases:
                begin = time.monotonic()
                target = work / f"{case}.{engine}.npz"
                trouble = run(python, case, engine, target)
                took[case] += time.monotonic() - begin
                tolerance = TOLERANCES.get(case, TOLERANCE)
                results[case].append(verdict(engine, trouble, work / f"{case}.onnxruntime.npz", target, tolerance))
        for case in cases:
            good = all(result == "ok" for result in results[case])
            passed, failed = passed + good, failed + (not good)
            told = ", ".join(
                f"{engine}: {result:.200}" for engine, result in zip(RUNS, results[case], strict=True) if result != "ok"
            )
            apart = largest(work / f"{case}.onnxruntime.npz", work / f"{case}.fastlayers.npz") if good else float("nan")
            print(
                f"{case:24}{'ok' if good else 'FAILED'}  largest difference {apart:.1e}  {took[case]:.0f} s  {told}", flush=True
            )
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
