"""What all tests share: what is collected, kernel variants, the number of threads, a table of the worst errors of comparisons.

What is collected: an item that cannot run here is not collected, so that a skip in the report is a surprise. A test, or a whole
module by its ``pytestmark``, names what it needs by one of the marks of `EXTRAS`. More of what another test checks a part of is
marked ``exhaustive`` and left out unless ``-m`` asks for it; `.ci/run` has a step for each mark.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.kernels import dispatch
from fastlayers.kernels.table import KERNELS

from . import each

# What an item needs beyond the extra "test", by its mark, and the module that tells whether it is there.
EXTRAS = {"onnx": "onnx", "onnxruntime": "onnxruntime", "ml_dtypes": "ml_dtypes", "jit": "numba", "ray": "ray",
          "dask": "distributed", "spark": "pyspark", "joblib": "joblib", "kserve": "kserve", "gguf": "gguf",
          "serve": "uvicorn", "openai": "openai"}  # fmt: skip
# What a run without -m is given by pyproject.toml.
DEFAULT = "not exhaustive"

_MISSING = {mark for mark, module in EXTRAS.items() if importlib.util.find_spec(module) is None}
_SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


@cache
def variants(every: bool) -> list[Any]:
    """The reference, the level that this machine chooses by itself and, of `every`, its other levels and Numba's kernels.

    "cuda" needs a GPU, for the simulator would take hours: what that can run is in tests/cuda.
    """
    default, *others = dispatch.levels() or (None,)
    found: list[Any] = ["reference", *(f"aot/{level}" for level in (default,) if level)]
    if every:
        found += [pytest.param(f"aot/{level}", marks=pytest.mark.exhaustive) for level in others]
        if "jit" in dispatch.available():
            found.append(pytest.param("jit", marks=[pytest.mark.jit, pytest.mark.exhaustive]))
    if "cuda" in dispatch.available() and not _SIMULATED:
        found.append(pytest.param("cuda", marks=pytest.mark.gpu))
    return found


def named(variant: Any) -> str:
    return str(variant if isinstance(variant, str) else variant.values[0])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `variant` runs once under each, but for those that a mark ``without`` or, by default, ``later`` names."""
    if "variant" not in metafunc.fixturenames:
        return
    if any("variant" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")):
        return
    without = {name for mark in metafunc.definition.iter_markers("without") for name in mark.args}
    # A module that is named after a file of kernels, none of which the variant has, would test the reference once more.
    file = metafunc.module.__name__.rpartition(".")[2].removeprefix("test_")
    homes = [item.variants for item in KERNELS if item.file == file]
    without |= {name for name in ("jit", "cuda") if homes and not any(name in home for home in homes)}
    later = {name for mark in metafunc.definition.iter_markers("later") for name in mark.args}
    every = metafunc.config.option.markexpr != DEFAULT
    params = [item for item in variants(every) if named(item) not in without and (every or named(item) not in later)]
    params = [
        pytest.param(item, marks=pytest.mark.exhaustive) if isinstance(item, str) and item in later else item for item in params
    ]
    metafunc.parametrize("variant", params, indirect=True)


@pytest.fixture
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test once under every variant of the library that can run here."""
    with dispatch.switch(request.param):
        yield request.param


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A module that needs what is not installed is not imported."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    marks = re.search(r"^pytestmark = (.*)", collection_path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return True if marks and _MISSING & set(re.findall(r"pytest\.mark\.(\w+)", marks[1])) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collecting makes a million objects that live until the end: the garbage collector is to leave them alone."""
    gc.disable()
    try:
        return (yield)  # type: ignore[misc]
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest's own, which goes by -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that needs what is not installed is deselected; one item of n of a sampled one runs by default."""
    seen: set[str] = set()
    kept: list[pytest.Item] = []
    lacking: list[pytest.Item] = []
    for item in items:
        marks = {mark.name: mark for mark in item.iter_markers()}
        if "sampled" in marks:
            name = item.nodeid.partition("[")[0]
            # By its name: every n-th would be the same variant of each case.
            if name in seen and crc32(item.nodeid.encode()) % marks["sampled"].args[0]:
                item.add_marker(pytest.mark.exhaustive)
            seen.add(name)
        (kept if _MISSING.isdisjoint(marks) else lacking).append(item)
    if lacking:
        config.hook.pytest_deselected(items=lacking)
        items[:] = kept


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


class Guarded:
    """With --guard: every program that the compiled engine binds is guarded; see tests/program/guarded.py."""

    @pytest.fixture(scope="session", autouse=True)
    def _guarded(self, request: pytest.FixtureRequest) -> Iterator[None]:
        from tests.program.guarded import guard

        with guard(request.config.getoption("--guard")):
            yield


_worst: dict[str, float] = {}


class Watched:
    """With --worst: notes what every comparison with a tolerance finds, as a part of the largest value, at least of 1."""

    @pytest.fixture(autouse=True)
    def _watched(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--worst", action="store_true", help="list the worst error of each test's comparisons")
    parser.addoption("--guard", choices=["end", "start"], help="lay every value of a program against a forbidden page")
    parser.addoption("--subject", default="", metavar="TEXT", help="of tests that go through a list: what has TEXT in its name")


def pytest_configure(config: pytest.Config) -> None:
    # Registered when they are asked for: a fixture of every test costs every run a second and more.
    if config.getoption("--guard"):
        config.pluginmanager.register(Guarded())
    if config.getoption("--worst"):
        config.pluginmanager.register(Watched())
    each.only = config.getoption("--subject")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _worst:
        terminalreporter.section("worst errors, as parts of the largest value")
        for test, error in sorted(_worst.items()):
            terminalreporter.write_line(f"{error:9.1e}  {test}")
