"""``fastlayers doctor``: what this installation has, what runs and why, and whether a few results are right. Changes nothing."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import warnings
from collections.abc import Callable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TextIO

import numpy as np

import fastlayers as fl
from fastlayers import functional as F

from .. import _cpus, threads
from .._extras import install
from .._tuples import NamedTuple
from ..errors import Error
from ..kernels import dispatch
from ..testing.timing import processor
from ._draw import printable
from ._model import tell

__all__ = ["Finding", "examine", "run"]

# Modules that the optional parts need. The names of the parts are those of pyproject.toml.
EXTRAS = {"jit": ("numba",), "cuda": ("numba", "numba_cuda"), "cli": ("rich",)}
# Processors that compiled levels exist for; elsewhere plain numpy is all there is, and nothing is wrong with that.
COMPILED_FOR = ("x86_64", "amd64", "aarch64", "arm64")
TOLERANCE = 1e-5  # of the largest number: sums here are short, and 1e-6 is what they reach


class Finding(NamedTuple):
    """One line of the report."""

    label: str
    text: str
    wrong: bool = False


def run(out: TextIO, as_json: bool = False) -> int:
    """Prints the report; returns 0, or 1 if something is wrong."""
    problems = 0
    if as_json:
        found = list(examine())
        problems = sum(finding.wrong for finding in found)
        tell(out, {"problems": problems, "findings": [{"about": f.label, "text": f.text, "wrong": f.wrong} for f in found]})
        return 1 if problems else 0
    for finding in examine():
        problems += finding.wrong
        line = f"{'!' if finding.wrong else ' '} {finding.label:10} {finding.text}"
        out.write(printable(line, out.encoding or "ascii") + "\n")
    out.write("all is well\n" if not problems else f"{problems} problem(s), marked with !\n")
    return 1 if problems else 0


def examine() -> Iterator[Finding]:
    """The findings, one after the other."""
    yield Finding("fastlayers", f"{fl.__version__} in {Path(fl.__file__).parent}")
    yield Finding("python", f"{platform.python_version()} ({platform.python_implementation()}), numpy {np.__version__}")
    yield Finding("platform", f"{platform.platform()}, {processor()}")
    yield from _shadowing()
    yield _engine()
    variant = _variant()
    yield variant
    yield _threads()
    for extra, modules in EXTRAS.items():
        missing = [m for m in modules if importlib.util.find_spec(m) is None]
        yield Finding(f"[{extra}]", f"not installed: {install(extra)}" if missing else "installed")
    if not variant.wrong:
        yield from _checks()


def _shadowing() -> Iterator[Finding]:
    """Sources in the current folder, which Python started here would import instead of the installed package."""
    here = Path.cwd() / "fastlayers"
    if dispatch.source_tree(str(here)) is None or not (here / "__init__.py").is_file() or here.samefile(Path(fl.__file__).parent):
        return
    built = any(path.name.endswith(tuple(EXTENSION_SUFFIXES)) for path in (here / "kernels" / "aot").glob("_engine.*"))
    state = "which is built" if built else "which is not built and would run plain numpy: build it, or start Python elsewhere"
    yield Finding("here", f"Python that is started in this folder imports the source tree {here.parent}, {state}", not built)


def _engine() -> Finding:
    """The compiled levels, or how to get them."""
    built = [n for n in dispatch.LEVELS if importlib.util.find_spec(f"fastlayers.kernels.aot._{n}") is not None]
    try:
        engine = dispatch.engine()
    except Error as error:  # it is there
        return Finding("engine", str(error), True)
    if engine is not None:
        usable = ", ".join(dispatch.levels()) or "none"
        return Finding("engine", f"levels built: {', '.join(built) or 'none'}; this processor runs: {usable}", not built)
    instead = "Numba" if "jit" in dispatch.available() else "plain numpy, many times slower,"
    if platform.machine().lower() not in COMPILED_FOR:
        return Finding("engine", f"none exists for {platform.machine()}: {instead} runs")
    compiler = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    first = "" if compiler else "install GCC or Clang (Debian: apt install gcc libc6-dev, macOS: xcode-select --install), then "
    return Finding("engine", f"MISSING ({dispatch.missing()}): {instead} runs. To build it: {first}{_reinstall()}", True)


def _reinstall() -> str:
    """The command that builds the engine: in the source tree that runs, or, of an installed package, in a source tree."""
    tree = dispatch.source_tree(str(Path(fl.__file__).parent))
    source = f"-e {tree}" if tree else "--no-cache-dir ."
    where = "" if tree else " in a clone of fastlayers"
    return f"python -m pip install --force-reinstall --no-deps {source}{where}"


def _variant() -> Finding:
    """Describes the kernel variant that runs, and why."""
    forced = os.environ.get("FASTLAYERS_ISA")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that the engine is missing is in the line above
        try:
            variant = dispatch.current()
        except Error as error:
            return Finding("variant", str(error), True)
    if forced:
        return Finding("variant", f"{variant}, because FASTLAYERS_ISA={forced}")
    if not variant.startswith("aot/"):
        return Finding("variant", f"{variant}, nothing compiled can run")
    return Finding(
        "variant", f"{variant}, the best here; FASTLAYERS_ISA forces one of {', '.join((*dispatch.levels(), 'reference'))}"
    )


def _threads() -> Finding:
    """Describes the number of threads, and where it comes from."""
    try:
        count = fl.get_num_threads()
    except Error as error:
        return Finding("threads", str(error), True)
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    usable = _cpus.usable_cpus()
    counted = f"{os.cpu_count()} processors, {bound} by affinity, {usable} with the control group's quota"
    if os.environ.get(threads.VARIABLE, "").strip():
        return Finding("threads", f"{count}, because {threads.VARIABLE}={os.environ[threads.VARIABLE]} ({counted})")
    if threads.shared_limit() < usable:
        told = os.environ[threads.SHARED_VARIABLE]
        return Finding(
            "threads", f"{count}, because {threads.SHARED_VARIABLE}={told} ({counted}); {threads.VARIABLE} goes before it"
        )
    return Finding("threads", f"{count}: {counted}; {threads.VARIABLE} sets another number")


def _checks() -> Iterator[Finding]:
    """A few results next to the same formulas in float64."""
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape) for shape in ((5, 37), (19, 37), (19,)))
    image, kernel = (rng.standard_normal(shape) for shape in ((2, 3, 11, 9), (17, 3, 3, 3)))
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(2, 3))
    exp = np.exp(x)
    f = np.float32
    cases: dict[str, tuple[Callable[[], object], np.ndarray]] = {
        "linear": (lambda: F.linear(x.astype(f), w.astype(f), b.astype(f)), x @ w.T + b),
        "conv2d": (lambda: F.conv2d(image.astype(f), kernel.astype(f)), np.einsum("nchwij,ocij->nohw", windows, kernel)),
        "sigmoid": (lambda: F.sigmoid(x.astype(f)), 1.0 / (1.0 + np.exp(-x))),
        "softmax": (lambda: F.softmax(x.astype(f), 1), exp / exp.sum(1, keepdims=True)),
    }
    for name, (call, expected) in cases.items():
        yield _check(name, call, expected)


def _check(name: str, call: Callable[[], object], expected: np.ndarray) -> Finding:
    try:
        error = float(np.abs(np.asarray(call(), np.float64) - expected).max() / np.abs(expected).max())
    except Exception as failure:  # whatever a broken installation does is a finding
        return Finding("check", f"{name}: FAILED: {type(failure).__name__}: {failure}", True)
    good = error <= TOLERANCE  # false for NaN
    return Finding("check", f"{name}: {'ok' if good else 'FAILED'}, error {error:.1e} of the largest number", not good)
