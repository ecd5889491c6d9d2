"""Products with weights of 2, 4 or 8 bits that share scales by blocks, in plain numpy."""

from __future__ import annotations

import numpy as np

from ..._tuples import NamedTuple
from ...errors import ArgumentError
from ..fits import fits, fits_bits
from ..table import NBITS_SUMS, Activation
from .activation import unary

__all__ = ["nbits", "nbits_pack"]


class Packed(NamedTuple):
    """The weights as numbers of the file, or what they stand for, in blocks of terms, the last one padded."""

    numbers__nbt: np.ndarray
    scale__nb: np.ndarray
    zero__nb: np.ndarray
    bias__n: np.ndarray | None
    size: int
    coded: bool = False


def nbits_pack(
    weight__nbq: np.ndarray, scale__nb: np.ndarray, zero__nb: np.ndarray | None, bias__n: np.ndarray | None, size: int, bits: int,
    codes__v: np.ndarray | None = None,
) -> Packed:  # fmt: skip
    """Weights (out, blocks, bytes of a block), lowest bits first, of `size` terms, with a scale a block, and zero points, one a
    block: uint8, float32, or None for half of the range. With codes, of 4 or 8 bits, numbers stand for those, without zero
    points.
    """
    fits_bits((weight__nbq, scale__nb, zero__nb, bias__n, codes__v), size, bits)
    apart = weight__nbq[..., None] >> np.arange(0, 8, bits, dtype=np.uint8) & np.uint8((1 << bits) - 1)
    numbers = apart.reshape(*weight__nbq.shape[:2], weight__nbq.shape[2] * 8 // bits)
    bias = None if bias__n is None else bias__n.astype(np.float64)
    if codes__v is not None:
        return Packed(codes__v[numbers], scale__nb.copy(), np.zeros(scale__nb.shape, np.float32), bias, size, True)
    zero = np.full(scale__nb.shape, 1 << bits - 1, np.float32) if zero__nb is None else zero__nb.astype(np.float32)
    return Packed(numbers, scale__nb.copy(), zero, bias, size)


def rounded(x__mbt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Blocks of rows as integers from -127 to 127, and the step of each block: 0 where it would be subnormal."""
    largest = np.abs(x__mbt).max(-1)
    step = np.where(np.isfinite(largest), largest / np.float32(127), np.float32(np.nan)).astype(np.float32)
    step[step < np.finfo(np.float32).tiny] = 0
    by = np.where(step > 0, np.float32(127) / largest, np.float32(0))
    return np.where(by[..., None] > 0, np.rint(x__mbt * by[..., None]), 0), step


def nbits(x__mk: np.ndarray, packed: Packed, out__mn: np.ndarray, mode: int, activation: Activation) -> None:
    """``out = act(x Wᵀ + b)``, summed in float64.

    With `NBITS_SUMS`'s "exact", and of codes always, W is (number - zero) * scale in float32; with "integer" each block of x is
    rounded to bytes first, whose step is its largest magnitude / 127.
    """
    n = len(packed.numbers__nbt)
    fits("nbits", (packed.size, n), (x__mk, out__mn))
    if mode not in NBITS_SUMS.values():
        raise ArgumentError(f"nbits: mode is {mode}: expected one of {NBITS_SUMS}")
    with np.errstate(all="ignore"):
        out__mn[...] = (exact if mode == NBITS_SUMS["exact"] or packed.coded else integer)(x__mk, packed)
        unary(out__mn, out__mn, activation)


def exact(x__mk: np.ndarray, packed: Packed) -> np.ndarray:
    """Sums of x with weights that were rounded to float32, and the bias."""
    n, blocks, block = packed.numbers__nbt.shape
    w = (packed.numbers__nbt - packed.zero__nb[..., None]) * packed.scale__nb[..., None]
    total = x__mk.astype(np.float64) @ w.reshape(n, blocks * block)[:, : packed.size].T.astype(np.float64)
    return np.asarray(total if packed.bias__n is None else total + packed.bias__n)


def integer(x__mk: np.ndarray, packed: Packed) -> np.ndarray:
    """Sums of rounded x, by blocks, times both scales, and the bias. What pads the last block of x is 0."""
    _, blocks, block = packed.numbers__nbt.shape
    wide = np.zeros((len(x__mk), blocks * block), np.float32)
    wide[:, : packed.size] = x__mk
    q, step = rounded(wide.reshape(-1, blocks, block))
    sums = np.einsum("mbt,nbt->mnb", q, packed.numbers__nbt.astype(np.float64) - packed.zero__nb[..., None])
    total = (sums * packed.scale__nb.astype(np.float64) * step[:, None].astype(np.float64)).sum(-1)
    return np.asarray(total if packed.bias__n is None else total + packed.bias__n)
