"""Caches of sequences that were computed before, for others that begin alike: the last ones, up to a number of bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._locks import Lock
from .._tuples import NamedTuple

__all__ = ["Prefixes"]


class _Entry(NamedTuple):
    ids: np.ndarray
    cache: list[np.ndarray]
    nbytes: int


class Prefixes:
    """Caches by the ids that they are of. May be used from any number of threads at once.

    Args:
        most: bytes of all caches; those that were not used for longest go.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = Lock()
        self._entries: list[_Entry] = []  # the last used at the end

    @property
    def nbytes(self) -> int:
        """Bytes of all caches."""
        return sum(entry.nbytes for entry in self._entries)

    def clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._entries = []

    def find(self, ids: Sequence[int]) -> tuple[int, list[np.ndarray]] | None:
        """The cache of the longest beginning that is known, and how many ids that has: at least one is left out, since its logits
        are needed. None if there is none.
        """
        wanted = np.asarray(ids[:-1], np.int64)
        with self._lock:
            best, found = 0, None
            for entry in self._entries:
                alike = _alike(entry.ids, wanted)
                if alike > best or (alike == best and found is not None and len(entry.ids) < len(found.ids)):
                    best, found = alike, entry
            if found is None:
                return None
            self._entries = [*(entry for entry in self._entries if entry is not found), found]
        # Whole, it is given as it is: what it is made longer by is appended in place. Its own values never change.
        return best, found.cache if best == len(found.ids) else [array[:, :, :best] for array in found.cache]

    def add(self, ids: Sequence[int], cache: list[np.ndarray]) -> None:
        """Keeps a cache; one whose ids are the beginning of these goes."""
        kept = np.asarray(ids, np.int64)
        nbytes = sum(_memory(array) for array in cache)
        if nbytes > self.most or any(array.ndim != 4 or array.shape[2] != len(kept) for array in cache):
            return
        with self._lock:
            left = [entry for entry in self._entries if _alike(entry.ids, kept) < len(entry.ids)]
            left.append(_Entry(kept, cache, nbytes))
            while sum(entry.nbytes for entry in left) > self.most:
                del left[0]
            self._entries = left


def _alike(a: np.ndarray, b: np.ndarray) -> int:
    """The number of ids at the beginning that are the same."""
    n = min(len(a), len(b))
    differ = np.flatnonzero(a[:n] != b[:n])
    return int(differ[0]) if len(differ) else n


def _memory(array: np.ndarray) -> int:
    """Bytes that an array keeps in memory: all of what it is a view of."""
    base = array.base
    return max(array.nbytes, base.nbytes if isinstance(base, np.ndarray) else 0)
