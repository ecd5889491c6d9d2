"""Layouts of ggml's quantized blocks, GGUF's matrices: as floats, or in the few bits that the kernel `nbits` multiplies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from ._tuples import NamedTuple
from .errors import ArgumentError

__all__ = ["BLOCKS", "Blocks", "Few"]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
# Of blocks (n, bytes): numbers (n, groups, elements) in uint8, a scale a group (n, groups), and what is added to each product
# (or, in Q4_K and Q5_K, subtracted from it), or None.
Apart = tuple[Array, Array, Array | None]
_PIECE = 1 << 16  # elements at once: what they take on the way stays in a cache


class Few(NamedTuple):
    """A matrix (n, k) of elements ``(number - zero point) * scale``, as `nbits_pack` takes it.

    `numbers` (n, groups, bytes), the lower half of a byte first; `scales` (n, groups); `zeros` likewise, None: half of the range.
    """

    numbers: Array
    scales: Array
    zeros: Array | None


class Blocks(NamedTuple):
    """A type of blocks: an element is ``scale * (number - origin)``, plus a minimum."""

    name: str
    terms: int  # elements of a block, along the last axis
    size: int  # its bytes
    group: int  # elements with a scale in common
    bits: int  # that hold every number
    origin: int
    apart: Callable[[Array], Apart]
    minimum: bool = False
    minus: bool = False  # what is added is subtracted

    def floats(self, raw: Array, out: Array) -> None:
        """Elements of blocks (n, bytes), in float32 with the bits of ggml's own functions, into a contiguous array."""
        by_group = out.reshape(-1, self.group)
        with np.errstate(all="ignore"):  # a scale may be infinite, or no number
            for where, (numbers, scale, low) in self._pieces(raw):
                found = by_group[where].reshape(numbers.shape)  # a view: pieces are whole groups
                np.subtract(numbers, np.float32(self.origin), out=found, dtype=np.float32)
                np.multiply(scale[..., None], found, out=found)
                if low is not None:
                    (np.subtract if self.minus else np.add)(found, low[..., None], out=found)

    def few(self, raw: Array) -> Few:
        """Rows (n, bytes) in few bits; elements are the same, and those of types without a minimum to the bit.

        A minimum m becomes a zero point -m / scale: rounding it, the difference and the product leaves an element v within
        2**-24 (|m| + 3 |v|) of ggml's, which is rounded once. Where the scale is 0, numbers become 0 and the scale 1: exact.
        """
        rows, blocks = len(raw), raw.shape[1] // self.size
        groups = blocks * (self.terms // self.group)
        numbers = np.empty((rows * groups, self.group * self.bits // 8), np.uint8)
        scales = np.empty(rows * groups, np.float32)
        zeros = np.empty(rows * groups, np.float32) if self.minimum else None
        lift = np.uint8((1 << self.bits - 1) - self.origin)  # the zero point becomes half of the range
        with np.errstate(all="ignore"):
            for where, (found, scale, low) in self._pieces(raw.reshape(rows * blocks, self.size)):
                found, scale = found.reshape(-1, self.group), scale.reshape(-1)
                if low is not None and zeros is not None:
                    flat = scale == 0
                    scale = np.where(flat, np.float32(1), scale)
                    found = np.where(flat[:, None], np.uint8(0), found)
                    np.divide(low.reshape(-1), scale if self.minus else -scale, out=zeros[where])
                elif lift:
                    found = found + lift
                if not np.isfinite(scale).all() or (zeros is not None and not np.isfinite(zeros[where]).all()):
                    raise ArgumentError(f"{self.name}: blocks have scales or minima that are NaN or infinite")
                scales[where] = scale
                numbers[where] = found if self.bits == 8 else found[:, ::2] | found[:, 1::2] << np.uint8(4)
        shape = (rows, groups)
        return Few(numbers.reshape(*shape, -1), scales.reshape(shape), None if zeros is None else zeros.reshape(shape))

    def _pieces(self, raw: Array) -> Iterator[tuple[slice, Apart]]:
        """Parts of blocks (n, bytes), as many at once as are to be; with which of all groups they are."""
        groups, step = self.terms // self.group, max(1, _PIECE // self.terms)
        for start in range(0, len(raw), step):
            part = raw[start : start + step]
            yield slice(start * groups, (start + len(part)) * groups), self.apart(part)


def _half(raw: Array) -> Array:
    return np.asarray(raw.view("<f2"), np.float32)


def _parts(raw: Array, of: int, bits: int = 4) -> Array:
    """Bytes in runs of `of`: the lowest bits of a run, then the next ones, and so on."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)[:, None]
    found: Array = raw.reshape(len(raw), -1, 1, of) >> shifts & np.uint8((1 << bits) - 1)
    return found


def _fifth(low: Array, high: Array) -> Array:
    """Numbers of 4 bits with a fifth one each, the lowest bit of a byte first."""
    found: Array = low | np.unpackbits(high, axis=1, bitorder="little").reshape(low.shape) << np.uint8(4)
    return found


def _q4_0(raw: Array) -> Apart:
    return _parts(raw[:, 2:], 16).reshape(-1, 1, 32), _half(raw[:, :2]), None


def _q4_1(raw: Array) -> Apart:
    return _parts(raw[:, 4:], 16).reshape(-1, 1, 32), _half(raw[:, :2]), _half(raw[:, 2:4])


def _q5_0(raw: Array) -> Apart:
    return _fifth(_parts(raw[:, 6:], 16).reshape(-1, 1, 32), raw[:, 2:6]), _half(raw[:, :2]), None


def _q5_1(raw: Array) -> Apart:
    return _fifth(_parts(raw[:, 8:], 16).reshape(-1, 1, 32), raw[:, 4:8]), _half(raw[:, :2]), _half(raw[:, 2:4])


def _q8_0(raw: Array) -> Apart:
    return (raw[:, 2:] ^ np.uint8(128)).reshape(-1, 1, 32), _half(raw[:, :2]), None


def _scales(raw: Array) -> tuple[Array, Array]:
    """Scales and minima (n, 8) of blocks of Q4_K or Q5_K: a half times 6 bits each, of which two of the later four are apart."""
    scale, low, rest = raw[:, 4:8], raw[:, 8:12], raw[:, 12:16]
    scale = np.concatenate([scale & 63, rest & 15 | scale >> 2 & 48], axis=1)
    low = np.concatenate([low & 63, rest >> 4 | low >> 2 & 48], axis=1)
    return _half(raw[:, :2]) * scale.astype(np.float32), _half(raw[:, 2:4]) * low.astype(np.float32)


def _q4_k(raw: Array) -> Apart:
    return _parts(raw[:, 16:], 32).reshape(-1, 8, 32), *_scales(raw)


def _q5_k(raw: Array) -> Apart:
    low, high = _parts(raw[:, 48:], 32).reshape(-1, 8, 32), _parts(raw[:, 16:48], 32, 1).reshape(-1, 8, 32)
    return low | high << np.uint8(4), *_scales(raw)


def _q6_k(raw: Array) -> Apart:
    low, high = _parts(raw[:, :128], 64).reshape(-1, 16, 16), _parts(raw[:, 128:192], 32, 2).reshape(-1, 16, 16)
    scale = _half(raw[:, 208:]) * raw[:, 192:208].view(np.int8).astype(np.float32)
    return low | high << np.uint8(4), scale, None


BLOCKS: dict[str, Blocks] = {
    made.name: made
    for made in (
        Blocks("Q4_0", 32, 18, 32, 4, 8, _q4_0),
        Blocks("Q4_1", 32, 20, 32, 4, 0, _q4_1, True),
        Blocks("Q5_0", 32, 22, 32, 8, 16, _q5_0),
        Blocks("Q5_1", 32, 24, 32, 8, 0, _q5_1, True),
        Blocks("Q8_0", 32, 34, 32, 8, 128, _q8_0),
        Blocks("Q4_K", 256, 144, 32, 4, 0, _q4_k, True, True),
        Blocks("Q5_K", 256, 176, 32, 8, 0, _q5_k, True, True),
        Blocks("Q6_K", 256, 210, 16, 8, 32, _q6_k),
    )
}
