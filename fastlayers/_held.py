"""Accounts for the memory that the package holds, and gives back the unused part. Holders register themselves: see `held_by`,
`map_of`."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Protocol

import numpy as np

from ._tuples import NamedTuple

__all__ = ["Memory", "held_by", "map_of", "memory", "trim_memory", "unread"]

_ENGINE = "fastlayers.kernels.aot._engine"
_CUDA = "fastlayers.kernels.cuda._memory"


class Memory(NamedTuple):
    """Bytes, as `memory` counted them.

    Attributes:
        free: recycled blocks that nothing uses: memory of runs and of results that are gone. `trim_memory` gives it back.
        used: blocks of 64 KB and more that are in use: memory of runs that are going on, results that live, packed weights.
        packed: weights as the compiled engine reads them, of models and of convolution layers that were called (also in `used`,
            unless they are in a mapped file).
        bindings: what models keep for sets of input sizes that they have seen.
        mapped: files that models and weights read from are in, mapped; the system has in memory what of them was touched.
    """

    free: int
    used: int
    packed: int
    bindings: int
    mapped: int


class Holder(Protocol):
    """Protocol of objects that hold memory for models."""

    def held(self) -> tuple[int, int]:
        """Bytes of packed weights, and of bindings."""


_holders: weakref.WeakSet[Any] = weakref.WeakSet()
# Models that were loaded under the variant of the process, which they keep.
models: weakref.WeakSet[Any] = weakref.WeakSet()
_maps: weakref.WeakSet[Any] = weakref.WeakSet()


def held_by(holder: Holder) -> None:
    """From now on, for as long as it lives, `memory` asks it as well."""
    _holders.add(holder)


def map_of(mapping: Any) -> Any:
    """The mapping of a file, which counts for as long as it lives."""
    _maps.add(mapping)
    return mapping


def unread(array: Any) -> None:
    """Drops the pages of an array of a mapped file from the process, after it has been read. The system has them still, or
    reads them from the file again if somebody asks.
    """
    base = array
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    mmap = sys.modules.get("mmap")  # which takes long to import, and which a mapping has brought
    drop = getattr(mmap, "MADV_DONTNEED", None)  # None where a system has no such call
    if mmap is None or drop is None or not isinstance(base, mmap.mmap) or base not in _maps:
        return
    first = array.__array_interface__["data"][0] - np.frombuffer(base, np.uint8).__array_interface__["data"][0]
    begin, end = -(-first // mmap.PAGESIZE), (first + array.nbytes) // mmap.PAGESIZE
    if begin < end:
        base.madvise(drop, begin * mmap.PAGESIZE, (end - begin) * mmap.PAGESIZE)


def memory() -> Memory:
    """Memory that the package holds in this process, by kind.

    Arrays of callers, and what numpy and Python take themselves, are not in it.

    >>> import fastlayers as fl
    >>> fl.trim_memory()
    >>> fl.memory().free
    0
    """
    engine: Any = sys.modules.get(_ENGINE)
    free, used = (0, 0) if engine is None else (engine.memory_kept(), engine.memory_used())
    told = [holder.held() for holder in list(_holders)]
    packed, bindings = (sum(one[i] for one in told) for i in (0, 1))
    return Memory(free, used, packed, bindings, sum(map(len, list(_maps))))


def trim_memory() -> None:
    """Gives all memory that is not in use back to the system.

    Large results and the memory of runs are otherwise kept for the next run, for which new memory would cost page faults: never
    more than was in use at one time not long ago, or 256 MB if that is less (see `memory`). Call it where a process that has had
    its peak waits for long. Calls that are going on are not disturbed; the next ones are slower once.
    """
    engine: Any = sys.modules.get(_ENGINE)
    if engine is not None:
        engine.memory_trim()
    cuda: Any = sys.modules.get(_CUDA)
    if cuda is not None:
        cuda.trim()
