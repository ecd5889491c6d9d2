"""Budget of memory of one load: every large allocation of a reader passes through here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..errors import LimitError
from ._arrays import Array

if TYPE_CHECKING:
    import numpy.typing as npt  # takes milliseconds to import

# What a file claims together is compared with its size, once it is more than any machine has left over.
_FREE_BYTES = 256 << 20
_MAX_RATIO = 100


class Budget:
    """Counts bytes down from `max_bytes`; refuses before anything is allocated."""

    def __init__(self, max_bytes: int, caller: str) -> None:
        self.max_bytes = max_bytes
        self.left = max_bytes
        self.narrow = False  # whether matrices of bfloat16 may stay as they are stored: what reads a network knows them
        self._caller = caller

    def check(self, nbytes: int, what: object) -> None:
        """Raises LimitError if `nbytes` more do not fit; takes nothing."""
        if nbytes > self.left:
            raise LimitError(
                f"{what}: needs {nbytes} bytes of memory, {self.left} of max_bytes={self.max_bytes} are left: "
                f"pass a larger max_bytes to {self._caller} if the file is to be trusted"
            )

    def take(self, nbytes: int, what: object) -> None:
        """Counts `nbytes` as allocated."""
        self.check(nbytes, what)
        self.left -= nbytes

    def release(self, nbytes: int) -> None:
        """Counts `nbytes` as free again."""
        self.left += nbytes

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike, what: object) -> Array:
        """An uninitialized array, counted; `shape` must have passed `_arrays.count_bytes`."""
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        self.take(nbytes, what)
        try:
            return np.empty(shape, dtype)
        except MemoryError:
            raise LimitError(f"{what}: allocating {nbytes} bytes failed: out of memory") from None


def check_ratio(claimed: int, length: int, where: str, doing: str, instead: str, free: int = _FREE_BYTES) -> None:
    """Raises LimitError if a file of `length` bytes claims to become ones that only a bomb becomes.

    Valid files have members or tensors that grow a thousandfold, as zeros do; but no valid file is large and nothing else.
    """
    if claimed > free and claimed > _MAX_RATIO * length:
        raise LimitError(
            f"{where}: {length} bytes {doing} {claimed}: more than {_MAX_RATIO} times is rejected as a decompression bomb "
            f"(beyond {free} bytes): {instead} if the file is to be trusted"
        )


def check_text(size: int, stored: int, free: int, ratio: int, where: str) -> None:
    """Raises LimitError if `stored` bytes claim to inflate to much more that is parsed: pickles or JSON, not arrays.

    A byte of those takes many bytes of memory, and its time, so they are allowed less: `free` bytes, or `ratio` times.
    """
    if size > max(free, ratio * stored):
        raise LimitError(
            f"{where}: {stored} bytes claim to inflate to {size}: more than {ratio} times is rejected as a decompression bomb "
            f"(beyond {free} bytes): save the file again, uncompressed, if it is to be trusted"
        )
