"""Arrays that end (or begin) at a page which nobody may touch: an access out of bounds kills the test at once. POSIX only."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

_PAGE = mmap.PAGESIZE
_PROT_NONE = 0


def guarded(values: np.ndarray, edge: str = "end") -> np.ndarray:
    """A copy of `values` (C order) whose last byte ("end") or first byte ("start") touches a forbidden page.

    At "end" the start is aligned to the item size only, which every kernel must take.
    """
    values = np.asarray(values, order="C")  # which leaves no axes where there are none
    pages = -(-max(values.nbytes, 1) // _PAGE)
    region = mmap.mmap(-1, (pages + 2) * _PAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(region))
    libc = ctypes.CDLL(None, use_errno=True)
    for page in (0, pages + 1):
        if libc.mprotect(ctypes.c_void_p(base + page * _PAGE), ctypes.c_size_t(_PAGE), _PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect failed")
    offset = _PAGE if edge == "start" else (pages + 1) * _PAGE - values.nbytes
    array = np.frombuffer(region, values.dtype, values.size, offset).reshape(values.shape)
    array[...] = values
    return array


def guarded_empty(shape: tuple[int, ...], edge: str = "end") -> np.ndarray:
    """A guarded float32 array for an output, filled with NaN so that an element that was not written shows."""
    return guarded(np.full(shape, np.nan, np.float32), edge)
