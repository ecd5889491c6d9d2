"""Benchmarks run on one thread, and say which variant ran."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fastlayers as fl


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = fl.get_num_threads()
    fl.set_num_threads(1)
    yield
    fl.set_num_threads(before)


def pytest_report_header() -> str:
    return f"fastlayers: variant={fl.kernels.current()} threads=1"
