"""Caches of sequences that run together, a row for each: in one memory where the network appends to it, else each by itself."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._pages import together, zeros
from ..errors import LimitError
from ._decoder import Decoder

__all__ = ["Apart", "Rows", "Together", "Unfit"]

ROUND = 64  # tokens: room is a multiple of it
KEPT = 64 << 20  # bytes of memory that stay where there is no row any more

Cache = Sequence[np.ndarray]  # arrays (1, heads, tokens, d)


class Unfit(Exception):
    """The network does not run on rows of different lengths."""


class Rows(ABC):
    """Rows 0, 1, ..., each a sequence whose cache has `lengths[i]` tokens. For one thread at a time."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self.lengths: list[int] = []

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all caches."""

    @abstractmethod
    def add(self, length: int, most: int, cache: Cache | int = ()) -> None:
        """A new row behind the others.

        Args:
            length: its tokens so far.
            most: the tokens that it may come to.
            cache: has at least `length` tokens; or the number of another row that has them.

        Raises:
            LimitError: there is no memory for one more.
        """

    def grow(self, i: int, length: int, most: int) -> None:
        """Makes room for that many tokens in a row; errors as of `add`."""
        return  # nothing, where each row has memory of its own

    @abstractmethod
    def swap(self, i: int, j: int) -> None:
        """Two rows in each other's place."""

    @abstractmethod
    def remove(self, i: int, length: int) -> list[np.ndarray]:
        """Takes a row out; the last one takes its place. Its first tokens, as a cache that nothing changes."""

    @abstractmethod
    def append(self, begin: int, ids: np.ndarray) -> np.ndarray:
        """The logits (n, vocabulary) after the last of ids (n, t) that follow the rows from `begin` on, for which there is room.

        Raises:
            Unfit: the network cannot; nothing has changed.
            Error: as the model raises them; then the rows are as they were.
        """


class Together(Rows):
    """Rows of one memory for each cache of the network, (rows, heads, room, d).

    A row has the bits that it has alone: the sums over its keys are those of its own, and all else is row by row.
    """

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder)
        self._growing: Any = decoder.model._growing
        self._parts: list[np.ndarray] = []

    @property
    def nbytes(self) -> int:
        """As `Rows.nbytes`."""
        return sum(part.nbytes for part in self._parts)

    def add(self, length: int, most: int, cache: Cache | int = ()) -> None:
        """As `Rows.add`."""
        i = len(self.lengths)
        self._make_room(i + 1, max(length, 1), most)
        for at, part in enumerate(self._parts):
            if not self._growing.skips:  # what is there is multiplied by 0, and must be a number
                part[i] = 0
            if length:
                part[i, :, :length] = part[cache, :, :length] if isinstance(cache, int) else cache[at][0, :, :length]
        self.lengths.append(length)

    def grow(self, i: int, length: int, most: int) -> None:
        """As `Rows.grow`."""
        self._make_room(len(self.lengths), length, most)

    def swap(self, i: int, j: int) -> None:
        """As `Rows.swap`."""
        a, b = self.lengths[i], self.lengths[j]
        for part in self._parts:
            one = part[i, :, :a].copy()
            part[i, :, :b] = part[j, :, :b]
            part[j, :, :a] = one
        self.lengths[i], self.lengths[j] = b, a

    def remove(self, i: int, length: int) -> list[np.ndarray]:
        """As `Rows.remove`."""
        last, parts = len(self.lengths) - 1, self._parts
        if len(parts[0]) == 1 and length:  # the memory itself
            self._parts, self.lengths = [], []
            return [part[:, :, :length] for part in parts]
        found = [_copied(part[i : i + 1, :, :length]) for part in parts if length]
        if i != last:
            used = self.lengths[last]
            for part in parts:
                part[i, :, :used] = part[last, :, :used]
            self.lengths[i] = used
        del self.lengths[last]
        if not self.lengths and self.nbytes > KEPT:
            self._parts = []
        return found

    def _make_room(self, rows: int, length: int, most: int) -> None:
        """Memory for that many rows and tokens. It moves cache by cache, so that one alone is there twice."""
        had = (len(self._parts[0]), self._parts[0].shape[2]) if self._parts else (0, 0)
        if rows <= had[0] and length <= had[1]:
            return
        if not self.lengths:
            had, self._parts = (0, 0), []
        shapes, most_bytes = self._decoder.shapes, self._growing.most
        # With some to spare, so that it seldom grows, if that is allowed.
        ahead = max(length, min(most, max(length + 2 * ROUND, length * 5 // 4))) if length > had[1] else had[1]
        for count, tokens in ((max(rows, 2 * had[0]) if rows > had[0] else had[0], ahead), (rows, length)):
            tokens = -(-tokens // ROUND) * ROUND
            need = sum(4 * count * heads * tokens * d for heads, d in shapes)
            if need <= most_bytes:
                break
        told = f"generate: caches of {count} sequences of up to {tokens} tokens take {need} bytes"
        if need > most_bytes:
            raise LimitError(f"{told}: more than {most_bytes} (max_bytes of fastlayers.load)")
        try:
            made = [zeros((count, heads, tokens, d)) for heads, d in shapes]
        except MemoryError as error:
            raise LimitError(f"{told}, which are not there: {error}") from error
        if not self._parts:
            self._parts = made
            return
        for at, part in enumerate(made):  # memory that was not written to is none yet
            for i, used in enumerate(self.lengths):
                part[i, :, :used] = self._parts[at][i, :, :used]
            self._parts[at] = part

    def append(self, begin: int, ids: np.ndarray) -> np.ndarray:
        """As `Rows.append`."""
        n, t = ids.shape
        end = begin + n
        if n == 1 and t > 1 and not self.lengths[begin]:  # the graph as it is leaves out what no query sees
            shapes = [(1, heads, t, d) for heads, d in self._decoder.shapes]
            own = 4 * sum(map(math.prod, shapes)) > KEPT // 8  # what is retained for the next run has no use for that much
            logits, cache = self._decoder(ids, self._decoder.empty(), 0, together(shapes) if own else ())
            for part, array in zip(self._parts, cache, strict=True):
                part[begin, :, :t] = array[0]
        else:
            starts = np.array(self.lengths[begin:end], np.int64)
            parts = self._parts if n == len(self._parts[0]) else [part[begin:end] for part in self._parts]
            decoder = self._decoder
            found = self._growing.append(parts, starts, ids, decoder.feeds, decoder.pasts, decoder.model.num_threads)
            if found is None:
                raise Unfit
            logits = found["logits"][:, -1]
        for i in range(begin, end):
            self.lengths[i] += t
        return logits


class Apart(Rows):
    """Rows with arrays of their own, which run one after the other.

    For networks whose caches do not grow where they are, or whose results depend on more than a row.
    """

    def __init__(self, decoder: Decoder) -> None:
        super().__init__(decoder)
        self._caches: list[list[np.ndarray]] = []

    @property
    def nbytes(self) -> int:
        """As `Rows.nbytes`."""
        return sum(array.nbytes for cache in self._caches for array in cache)

    def add(self, length: int, most: int, cache: Cache | int = ()) -> None:
        """As `Rows.add`."""
        given = self._caches[cache] if isinstance(cache, int) else cache
        self._caches.append([_first(array, length) for array in given] if length else self._decoder.empty())
        self.lengths.append(length)

    def swap(self, i: int, j: int) -> None:
        """As `Rows.swap`."""
        self._caches[i], self._caches[j] = self._caches[j], self._caches[i]
        self.lengths[i], self.lengths[j] = self.lengths[j], self.lengths[i]

    def remove(self, i: int, length: int) -> list[np.ndarray]:
        """As `Rows.remove`."""
        self.swap(i, len(self.lengths) - 1)
        del self.lengths[-1]
        return [_first(array, length) for array in self._caches.pop()]

    def append(self, begin: int, ids: np.ndarray) -> np.ndarray:
        """As `Rows.append`."""
        found = []
        for i, row in enumerate(ids, begin):
            logits, self._caches[i] = self._decoder(row[None], self._caches[i], self.lengths[i])
            self.lengths[i] += len(row)
            found.append(logits)
        return np.concatenate(found)


def _first(array: np.ndarray, length: int) -> np.ndarray:
    """The array itself where it is all of it: then it may grow where it is."""
    return array if array.shape[2] == length else array[:, :, :length]


def _copied(array: np.ndarray) -> np.ndarray:
    made = zeros(array.shape)
    made[...] = array
    return made
