"""What tests of threads and memory share: the compiled driver, and scripts in processes that cannot hang the tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastlayers.kernels import dispatch

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def engine() -> Any:
    """The compiled driver; skips where there is none."""
    module = dispatch.engine()
    if module is None:
        pytest.skip("the compiled engine is not built here")
    return module


def run_process(command: list[str], seconds: float = 60) -> str:
    """Runs a command and returns what it printed; fails if it fails, and kills it with all its children if it hangs."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=os.name == "posix"
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        pytest.fail(f"{command[0]} hung for {seconds} s and printed: {process.communicate()[0]}")
    assert process.returncode == 0, f"ended with {process.returncode} and printed: {output}"
    return output


@pytest.fixture
def run_script(engine: Any) -> Callable[[str], str]:
    """Runs Python text in a fresh process, where `engine` is the compiled driver, and returns what it printed."""
    head = "import os, sys, threading, time, warnings\nimport numpy as np\nfrom fastlayers.kernels.aot import _engine as engine\n"
    return lambda text: run_process([sys.executable, "-c", head + textwrap.dedent(text)])


@pytest.fixture(scope="session")
def stress(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Compiles a C program of this folder with the pool and the allocator, runs it, and returns what it printed."""
    if os.name != "posix":
        pytest.skip("the stress programs are written for POSIX")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no C compiler here ({compiler})")
    folder = tmp_path_factory.mktemp("stress")
    csrc = ROOT / "fastlayers/kernels/aot/csrc"

    def build(sources: list[str], program: Path, flags: list[str]) -> subprocess.CompletedProcess[str]:
        command = [compiler, "-O1", "-g", "-Wall", "-Wextra", "-Werror", *flags, f"-I{csrc}", "-pthread", *sources]
        return subprocess.run([*command, "-o", str(program)], capture_output=True, text=True, timeout=60)

    def skip_unless_usable(flags: list[str]) -> None:
        # A sanitizer may be missing, or be installed and yet not start under this kernel: an empty program tells.
        (folder / "empty.c").write_text("int main(void) { return 0; }\n")
        done = build([str(folder / "empty.c")], folder / "empty", flags)
        if done.returncode == 0:
            done = subprocess.run([str(folder / "empty")], capture_output=True, text=True, timeout=60)
        if done.returncode:
            pytest.skip(f"{compiler} {' '.join(flags)} does not work here: {done.stderr.strip()[-200:]}")

    def run(source: str, *words: str, flags: list[str]) -> str:
        program = folder / "".join((Path(source).stem, *flags)).replace(",", "-")
        if not program.exists():
            skip_unless_usable(flags)
            done = build(
                [str(Path(__file__).parent / source), *(str(csrc / name) for name in ("pool.c", "lockstep.c", "memory.c"))],
                program,
                flags,
            )
            assert done.returncode == 0, done.stderr
        return run_process([str(program), *words])

    return run
