"""The place that a model was loaded from, so that a pickle of it can name the file instead of carrying the weights.

Workers that get such a pickle map the same file: they share its memory, and nothing is copied. The file must be the one that was
loaded, both when the model is pickled and when it comes back: its size, its time of change and its first bytes say so.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tuples import NamedTuple
from ..errors import FormatError

if TYPE_CHECKING:
    from ..ir.graph import Graph
    from .model import Model

__all__ = ["Origin", "look", "reference", "reload", "unchanged"]

HEAD = 4096  # bytes that are compared
MOST_WIDENED = 4  # how much larger weights may be in memory than in a file: float32 of 8 bits


class Origin(NamedTuple):
    """A file at the time when it was loaded, and with which options it was."""

    path: str
    size: int
    changed: int
    head: bytes
    options: Mapping[str, Any]
    load: Callable[..., Model] | None


def look(source: Any, options: Mapping[str, Any], load: Callable[..., Model] | None = None) -> Origin | None:
    """The file that a source names, as it is now; None for what is no path, or cannot be looked at."""
    if not isinstance(source, (str, os.PathLike)):
        return None
    path = os.path.abspath(os.fsdecode(source))
    try:
        # A pipe that nothing writes to would be waited for, and may be put in a file's place at any time.
        opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode):
                return None
            head = os.read(opened, HEAD)
        finally:
            os.close(opened)
    except (OSError, ValueError):
        return None
    return Origin(path, status.st_size, status.st_mtime_ns, head, options, load)


def unchanged(origin: Origin) -> bool:
    """Whether the file still exists, unchanged."""
    return look(origin.path, origin.options, origin.load) == origin


def reference(origin: Origin | None, graph: Graph) -> tuple[str, int, int, bytes] | None:
    """The name of the file that a pickle refers to; None if the file has changed since, or does not have all of the weights."""
    if origin is None or not unchanged(origin) or not _holds(origin.size, graph):
        return None
    return origin.path, origin.size, origin.changed, _digest(origin.head)


def _holds(size: int, graph: Graph) -> bool:
    """Whether the graph's constants can all come from a file of this size, and none from another that is next to it."""
    import mmap

    total = 0
    for array in graph.constants.values():
        total += array.nbytes
        base: Any = array
        while isinstance(base, (np.ndarray, memoryview)):
            base = base.base if isinstance(base, np.ndarray) else base.obj
        if isinstance(base, mmap.mmap) and len(base) != size:
            return False
    return total <= MOST_WIDENED * size


def reload(named: tuple[str, int, int, bytes], load: Callable[..., Model], options: Mapping[str, Any], threads: int) -> Model:
    """The model of a file that a pickle names.

    Raises:
        FormatError: there is no such file, or it is not the one that was loaded then.
    """
    path, size, changed, digest = named
    found = look(path, options)
    if found is None or (found.size, found.changed, _digest(found.head)) != (size, changed, digest):
        told = "cannot be read" if found is None else "has changed since"
        raise FormatError(
            f"unpickle: {path!r}: the model was pickled as a reference to this file, which {told}: expected the file as it was; "
            "load(..., mmap=False) makes models whose pickles carry the weights"
        )
    model = load(path, **options)
    model.num_threads = threads
    return model


def _digest(head: bytes) -> bytes:
    from hashlib import blake2b

    return blake2b(head, digest_size=16).digest()
