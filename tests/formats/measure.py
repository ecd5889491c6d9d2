"""How much memory a stretch of code held at its worst."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace


@contextmanager
def allocations() -> Iterator[SimpleNamespace]:
    """Gives an object whose `peak`, after the block, is the most bytes that were allocated in it at any time."""
    measured = SimpleNamespace(peak=0)
    tracemalloc.start()
    try:
        yield measured
        measured.peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
