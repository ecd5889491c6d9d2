"""Tensors of a GGUF file as arrays of floats, or in the few bits that MatMulNBits takes; a piece after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._tuples import NamedTuple
from ...errors import FormatError
from .._arrays import Array, decode
from ..budget import Budget
from .parse import File, Tensor
from .types import Apart, Kind

__all__ = ["Few", "packed", "read"]

_PIECE = 1 << 16  # elements at once: what they take on the way stays in a cache


def pieces(kind: Kind, raw: Array) -> Iterator[tuple[slice, Apart]]:
    """Numbers, scales and minima of blocks (n, bytes), as many at once as are to be; with which of all groups they are."""
    assert kind.apart is not None
    groups, step = kind.terms // kind.group, max(1, _PIECE // kind.terms)
    for start in range(0, len(raw), step):
        part = raw[start : start + step]
        yield slice(start * groups, (start + len(part)) * groups), kind.apart(part)


def raw_of(file: File, tensor: Tensor) -> Array:
    """The blocks of a quantized tensor, (n, bytes)."""
    found = np.frombuffer(file.view, np.uint8)[tensor.start : tensor.start + tensor.size]
    return found.reshape(-1, tensor.kind.size)


def read(file: File, tensor: Tensor, budget: Budget) -> Array:
    """A tensor's array, read-only: quantized ones as float32, with the bits of ggml's own functions."""
    kind = tensor.kind
    if kind.codec:
        view = file.view[tensor.start : tensor.start + tensor.size]
        return decode(view, kind.codec, tensor.shape, budget, tensor.where)
    out = budget.empty(tensor.shape, np.float32, tensor.where)
    by_group = out.reshape(-1, kind.group)
    with np.errstate(all="ignore"):  # a scale may be infinite, or no number
        for where, (numbers, scale, low) in pieces(kind, raw_of(file, tensor)):
            found = by_group[where].reshape(numbers.shape)  # a view: pieces are whole groups
            np.subtract(numbers, np.float32(kind.origin), out=found, dtype=np.float32)
            np.multiply(scale[..., None], found, out=found)
            if low is not None:
                (np.subtract if kind.minus else np.add)(found, low[..., None], out=found)
    out.flags.writeable = False
    return out


class Few(NamedTuple):
    """A matrix (n, k) in few bits: an element is ``(number - zero point) * scale``.

    `numbers` (n, k * bits / 8), the lower half of a byte first; `scales` (n, k / block); `zeros` likewise, None for half of
    the range.
    """

    numbers: Array
    scales: Array
    zeros: Array | None
    bits: int
    block: int


def packed(file: File, tensor: Tensor, budget: Budget) -> Few:
    """A quantized matrix as MatMulNBits has it; elements are the same, and those of types without a minimum to the bit.

    A minimum m becomes a zero point -m / scale: rounding it, the difference and the product leaves an element v within
    2**-24 (|m| + 3 |v|) of ggml's, which is rounded once. Where the scale is 0, numbers become 0 and the scale 1, which is exact.
    """
    kind = tensor.kind
    rows, groups = tensor.shape[0], tensor.shape[1] // kind.group
    numbers = budget.empty((rows, tensor.shape[1] * kind.bits // 8), np.uint8, tensor.where)
    scales = budget.empty((rows, groups), np.float32, tensor.where)
    zeros = budget.empty((rows, groups), np.float32, tensor.where) if kind.minimum else None
    lift = np.uint8((1 << kind.bits - 1) - kind.origin)  # the zero point becomes half of the range
    by_group, scale_of = numbers.reshape(rows * groups, -1), scales.reshape(-1)
    with np.errstate(all="ignore"):
        for where, (found, scale, low) in pieces(kind, raw_of(file, tensor)):
            found, scale = found.reshape(-1, kind.group), scale.reshape(-1)
            if low is not None and zeros is not None:
                flat = scale == 0
                scale = np.where(flat, np.float32(1), scale)
                found = np.where(flat[:, None], np.uint8(0), found)
                zero = zeros.reshape(-1)[where]
                np.divide(low.reshape(-1), scale if kind.minus else -scale, out=zero)
                if not np.isfinite(zero).all():
                    raise FormatError(f"{tensor.where}: has minima that are NaN or infinite")
            elif lift:
                found = found + lift
            if not np.isfinite(scale).all():
                raise FormatError(f"{tensor.where}: has scales that are NaN or infinite")
            scale_of[where] = scale
            by_group[where] = found if kind.bits == 8 else found[:, ::2] | found[:, 1::2] << np.uint8(4)
    return Few(numbers, scales, zeros, kind.bits, kind.group)
