"""Forks while other threads are anywhere in the package: the child's first call answers. Each scene has a process of its own,
which is killed if it hangs; ``FASTLAYERS_FORKS`` sets how many children it has.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fastlayers import _forks
from fastlayers._locks import Lock

ROOT = Path(__file__).parent.parent
FORKS = os.environ.get("FASTLAYERS_FORKS", "40")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def run(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# The names of `bench.served_forks.scenes`, which takes models to make.
@pytest.mark.parametrize(
    "scene",
    [
        "known sizes",
        "new sizes",
        "new models",
        *(pytest.param(s, marks=pytest.mark.exhaustive) for s in ("random lengths", "names", "layers", "switching kernels")),
    ],
)
def test_a_child_of_a_serving_process_answers(scene: str) -> None:
    assert run("-m", "bench.served_forks", FORKS, scene) == f"{scene}: {FORKS} of {FORKS} forked children answer\n"


# The first use of fastlayers in a thread, while the main thread forks at a given moment of it.
FIRST = """
    import os, signal, sys, threading, time, warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    import numpy as np
    import fastlayers as fl
    {given}

    def first():
        {first}

    thread = threading.Thread(target=first)
    thread.start()
    time.sleep({after})
    child = os.fork()
    if child == 0:
        signal.alarm(250)
        first()
        os._exit(0)
    thread.join()
    print(os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize("after", [0, 0.001, 0.003, 0.01, 0.03])
def test_a_fork_waits_for_imports(after: float) -> None:
    first = 'fl.compile(fl.ReLU(), fl.graph.Input("x", ("n", 2)))(np.zeros((3, 2), np.float32))'
    assert run("-c", textwrap.dedent(FIRST.format(given="", first=first, after=after))) == "0\n"


def test_a_fork_waits_for_a_module_of_the_standard_library(tmp_path: Path) -> None:
    # Functions import some when they are first called. This one, of a name that nothing else imports, takes long.
    (tmp_path / "antigravity.py").write_text("import time\ntime.sleep(0.5)\n")
    given = f"sys.path.insert(0, {str(tmp_path)!r})"
    assert run("-c", textwrap.dedent(FIRST.format(given=given, first="import antigravity", after=0.1))) == "0\n"


@pytest.mark.jit
def test_a_fork_waits_for_jit_compilation() -> None:
    # A user's function, which no cache has.
    first = (
        'f = fl.operator(f"Twice{time.monotonic_ns()}", "test")(twice); '
        'fl.compile(lambda x: f(x), fl.graph.Input("x", ("n", 2)))(np.ones((3, 2), np.float32))'
    )
    assert (
        run(
            "-c",
            textwrap.dedent(
                FIRST.format(given="import numba; twice = numba.njit(lambda x: x + x); twice(1)", first=first, after=0.3)
            ),
        )
        == "0\n"
    )


def test_a_fork_waits_for_a_lock_and_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Lock(again=False)
    monkeypatch.setattr(_forks, "_waited_for", [lock])
    _forks._before_fork()
    assert not lock.acquire(blocking=False)
    _forks._give_all()
    assert lock.acquire(blocking=False)
    # A lock that is never given back delays a fork, and no more; the others are not held meanwhile.
    other = Lock(again=False)
    monkeypatch.setattr(_forks, "_waited_for", [other, lock])
    monkeypatch.setattr(_forks, "MOST_SECONDS", 0.01)
    _forks._before_fork()
    assert other.acquire(blocking=False)
    _forks._give_all()
    assert not lock.acquire(blocking=False)
