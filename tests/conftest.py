"""What all tests share: the kernel variants, the number of threads, and a table of the worst errors that comparisons met."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import _dispatch

# Of the levels, those of this processor's family: the others' code is not even compiled here (tests/neon.sh emulates one).
_FAMILY = "neon" if platform.machine().lower() in ("aarch64", "arm64") else "x86"
# "cuda" runs on a GPU alone: the simulator would take hours. What it can run is in tests/cuda.
VARIANTS: tuple[Any, ...] = ("reference", *(f"aot/{name}" for name in _dispatch.LEVELS if name.startswith(_FAMILY)), "jit",
            pytest.param("cuda", marks=pytest.mark.gpu))  # fmt: skip


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test once under every variant of the library; skips, with the reason, those that this machine cannot run."""
    if request.param not in _dispatch.available():
        why = {"jit": "Numba is not installed", "cuda": "no GPU, or Numba is not installed"}.get(request.param, "")
        why = why or "it is not built here or this processor cannot run it"
        pytest.skip(f"{request.param}: {why}")
    if request.param == "cuda" and os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"):
        pytest.skip("cuda: tests/cuda is what the simulator can run")
    with fl.kernels.use(request.param):
        yield request.param


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Runs the test with one and with two threads."""
    before = fl.get_num_threads()
    fl.set_num_threads(request.param)
    yield request.param
    fl.set_num_threads(before)


@pytest.fixture
def kept_threads() -> Iterator[None]:
    """For tests that set the number of threads: afterwards it is what it was."""
    before = fl.get_num_threads()
    yield
    fl.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def _guarded(request: pytest.FixtureRequest) -> Iterator[None]:
    """With --guard: every program that the compiled engine binds is guarded; see tests/program/guarded.py."""
    edge = request.config.getoption("--guard")
    if edge is None:
        yield
        return
    from tests.program.guarded import guard

    with guard(edge):
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--worst", action="store_true", help="list the worst error of each test's comparisons")
    parser.addoption("--guard", choices=["end", "start"], help="lay every value of a program against a forbidden page")


_worst: dict[str, float] = {}


@pytest.fixture(autouse=True)
def _watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --worst: notes what every comparison with a tolerance finds, as a part of the largest number, at least of 1."""
    if not request.config.getoption("--worst"):
        return
    compare, test = np.testing.assert_allclose, request.node.nodeid.partition("[")[0]

    def watch(actual: Any, desired: Any, *args: Any, **kwargs: Any) -> None:
        compare(actual, desired, *args, **kwargs)
        got, want = np.asarray(actual, np.float64), np.asarray(desired, np.float64)
        both = np.isfinite(want) & np.isfinite(got)
        if both.any():
            error = np.abs(got - want, where=both, out=np.zeros(np.broadcast(got, want).shape)).max()
            scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max()))
            _worst[test] = max(_worst.get(test, 0.0), float(error) / scale)

    monkeypatch.setattr(np.testing, "assert_allclose", watch)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _worst:
        terminalreporter.section("worst errors, as parts of the largest number")
        for test, error in sorted(_worst.items()):
            terminalreporter.write_line(f"{error:9.1e}  {test}")
