"""Fixtures that all tests share: the kernel variants, and the number of threads."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import pytest

import fastlayers as fl
from fastlayers.kernels import _dispatch

# Of the levels, those of this processor's family: the others' code is not even compiled here (tests/neon.sh emulates one).
_FAMILY = "neon" if platform.machine().lower() in ("aarch64", "arm64") else "x86"
VARIANTS = ("reference", *(f"aot/{name}" for name in _dispatch.LEVELS if name.startswith(_FAMILY)))


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test once under every variant of the library; skips, with the reason, those that this machine cannot run."""
    if request.param not in _dispatch.available():
        pytest.skip(f"{request.param} is not built here or this processor cannot run it")
    with fl.kernels.use(request.param):
        yield request.param


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Runs the test with one and with two threads."""
    before = fl.get_num_threads()
    fl.set_num_threads(request.param)
    yield request.param
    fl.set_num_threads(before)
