"""Amount of memory that this machine grants."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from ._groups import files

__all__ = ["LARGEST", "memory"]

# Without a limit no result takes more bytes; sums of a few such values are far from where 64 bits end.
LARGEST = 1 << 46

_LIMITS = {"cgroup2": ("memory.max",), "cgroup": ("memory.limit_in_bytes",)}


def memory(root: Path = Path("/")) -> int:
    """Bytes of memory that the machine has, or the least that a control group around this process grants; LARGEST if none tells.

    `root` is where the file system begins. Where there is no file handle to read with, the groups count from the next call on.
    """
    try:
        return min(_physical(), _granted(root))
    except OSError:
        return _physical()


@cache
def _physical() -> int:
    found = [LARGEST]
    with suppress(AttributeError, OSError, ValueError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(size for size in found if size > 0)


@cache
def _granted(root: Path) -> int:
    found = [LARGEST]
    for _, (text,) in files("memory", _LIMITS, root):
        if text.isascii() and text.isdigit():  # version 2's "max" means none
            found.append(int(text))
    return min(size for size in found if size > 0)
