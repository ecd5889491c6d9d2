"""Cost of importing fastlayers after numpy: time, modules, threads; and the size of the package.

python -m bench.imports [--runs 20]

Every import is one of a new process, which reads the clock itself: the stopwatch comes with what is to be imported.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastlayers
from bench.timing import add_json, store, times_of

__all__ = ["once"]

CODE = """
import json, os, sys, time
import numpy
before, threads = set(sys.modules), len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
begin = time.perf_counter()
import fastlayers
seconds = time.perf_counter() - begin
after = len(os.listdir("/proc/self/task")) if threads else 0
print(json.dumps({"seconds": seconds, "modules": sorted(set(sys.modules) - before), "threads": after - threads}))
"""


def once() -> dict[str, Any]:
    """Imports numpy, then fastlayers, in a fresh process: its seconds, modules and threads."""
    # As an installed package has its bytecode, this one may write its own.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def sizes() -> tuple[int, int]:
    """Bytes of the package without bytecode, what Numba keeps and the demo's data, and of its compiled modules alone."""
    folder = Path(fastlayers.__file__).parent
    files = [p for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc" and p.relative_to(folder).parts[0] != "data"]
    shipped = [p for p in files if p.suffix not in (".c", ".h", ".pyx", ".pxd", ".nbi", ".nbc")]
    return sum(p.stat().st_size for p in shipped), sum(p.stat().st_size for p in shipped if p.suffix in (".so", ".pyd"))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.imports", description="Cost of `import fastlayers` after numpy.")
    parser.add_argument("--runs", type=int, default=20)
    add_json(parser)
    options = parser.parse_args(arguments)
    runs = [once() for _ in range(options.runs + 1)][1:]  # the first one may write bytecode
    times = times_of([run["seconds"] for run in runs])
    modules = runs[0]["modules"]
    ours = [name for name in modules if name.split(".")[0] == "fastlayers"]
    total, compiled = sizes()
    middle, best = 1e3 * times.median, 1e3 * times.best
    print(f"import after numpy: median {middle:.1f} ms, best {best:.1f} ms of {len(runs)} processes")
    print(f"modules: {len(ours)} of fastlayers, {len(modules) - len(ours)} others: {' '.join(sorted(set(modules) - set(ours)))}")
    print(f"threads started: {max(run['threads'] for run in runs)}")
    print(f"size: {total / 1e6:.2f} MB without bytecode and demo data, of which compiled {compiled / 1e6:.2f} MB")
    store(options.json, {"import after numpy": {"fastlayers": times}}, modules=modules, bytes=total, bytes_compiled=compiled)


if __name__ == "__main__":
    main()
