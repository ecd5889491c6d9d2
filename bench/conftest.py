"""Benchmarks run on one thread, and end with a list of what each noted next to its time: variant, GF/s, GB/s."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fastlayers as fl

NOTES = pytest.StashKey[dict[str, dict[str, object]]]()


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = fl.get_num_threads()
    fl.set_num_threads(1)
    yield
    fl.set_num_threads(before)


@pytest.fixture(autouse=True)
def notes(request: pytest.FixtureRequest) -> Iterator[None]:
    benchmark = request.getfixturevalue("benchmark") if "benchmark" in request.fixturenames else None
    yield
    if benchmark is not None:
        request.config.stash.setdefault(NOTES, {})[request.node.name] = benchmark.extra_info


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("benchmark_disable", default=False):
        return
    for name, info in config.stash.get(NOTES, {}).items():
        terminalreporter.write_line(f"{name:60} " + " ".join(f"{key}={value}" for key, value in info.items()))


def pytest_report_header() -> str:
    return f"fastlayers: variant={fl.kernels.current()} threads=1"
