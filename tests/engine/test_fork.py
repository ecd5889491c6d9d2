"""A process that has used threads forks, and both sides go on. Each scene has a process of its own, killed if it hangs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import run_process

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def test_forks_answer(engine: Any) -> None:
    assert "20 forks after threaded use all answer" in run_process([sys.executable, "-m", "bench.forks", "20"])


def test_multiprocessing(run_script: Callable[[str], str]) -> None:
    script = """
        import multiprocessing

        def work(k):
            done = engine.parallel_probe(16, 2, 5_000 + k, 2)
            kept = engine.empty_array((300, 300))
            return int(done["runs"].sum() + done["inner"].sum()) + kept.size

        warnings.simplefilter("ignore", DeprecationWarning)
        want = [work(k) for k in range(6)]
        with multiprocessing.get_context("fork").Pool(3) as pool:
            assert pool.map(work, range(6), chunksize=1) == want
        assert [work(k) for k in range(6)] == want
    """
    run_script(script)


def test_children_of_children(run_script: Callable[[str], str]) -> None:
    script = """
        import signal
        warnings.simplefilter("ignore", DeprecationWarning)

        def descend(depth):
            assert (engine.parallel_probe(16, 3, 5_000)["runs"] == 1).all()
            assert engine.pool_workers() == 2
            if depth:
                child = os.fork()
                if child == 0:
                    signal.alarm(20)
                    code = 1
                    try:
                        assert engine.pool_workers() == 0
                        descend(depth - 1)
                        code = 0
                    finally:
                        os._exit(code)
                assert os.waitpid(child, 0)[1] == 0
                assert (engine.parallel_probe(16, 3, 5_000)["runs"] == 1).all()

        descend(4)
    """
    run_script(script)


def test_a_child_keeps_its_results_and_recycles(run_script: Callable[[str], str]) -> None:
    script = """
        warnings.simplefilter("ignore", DeprecationWarning)
        result = engine.empty_array((512, 512))
        result[:] = 3
        spare = engine.empty_array((512, 512))
        del spare
        kept = engine.memory_kept()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                assert engine.memory_kept() == kept
                assert (result == 3).all()
                del result
                assert engine.memory_kept() == 2 * kept
                engine.memory_trim()
                assert engine.memory_kept() == 0
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert engine.memory_kept() == kept and (result == 3).all()
    """
    run_script(script)
