"""Memory of caches: zeros of any shape, which go back to the system at once, and which a forked process has for itself."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from fastlayers import _pages

from .each import each


def resident() -> int:
    """Bytes of memory that are this process's own."""
    text = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon"))


@each("shape", [(), (0,), (3, 0, 5), (1,), (16383,), (16384,), (16385,), (2, 3, 127, 64), (7, 1 << 16)])
def test_zeros(shape: tuple[int, ...]) -> None:
    for found in (_pages.zeros(shape), *_pages.together([shape, shape])):
        assert found.shape == shape and found.dtype == np.float32 and found.flags.c_contiguous and not found.any()
        found[...] = 1
        assert found.sum() == math.prod(shape)


def test_arrays_of_one_memory_are_apart() -> None:
    found = _pages.together([(5,), (0, 3), (1 << 20,), (2, 7)])
    for i, array in enumerate(found):
        array[...] = i
    assert [set(array.reshape(-1).tolist()) for array in found] == [{0}, set(), {2}, {3}]
    assert _pages.together([]) == []


def test_no_memory() -> None:
    for make in (lambda: _pages.zeros((1 << 58,)), lambda: _pages.together([(1 << 58,)] * 4), lambda: _pages.zeros((1 << 70,))):
        with pytest.raises(MemoryError):
            make()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell")
def test_they_take_what_is_written_to_and_leave_nothing() -> None:
    before = resident()
    made = [_pages.zeros((4, 1 << 20)) for _ in range(8)]
    assert resident() - before < 4 << 20
    for array in made:
        array[0] = 1
    between = [np.ones(10_000) for _ in made]
    assert 30 << 20 < resident() - before < 40 << 20
    del array, made
    assert resident() - before < 4 << 20 and len(between) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_has_its_own() -> None:
    for array in (_pages.zeros((1 << 20,)), *_pages.together([(1 << 20,)])):
        array[:] = 1
        child = os.fork()
        if not child:
            array[:] = 2
            os._exit(int(array[0]) - 2)
        assert os.waitpid(child, 0)[1] == 0 and array.min() == array.max() == 1
