"""Tensors of a GGUF file as arrays of floats, a piece after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._arrays import Array, decode
from ..budget import Budget
from .parse import File, Tensor
from .types import Apart, Kind

__all__ = ["pieces", "read"]

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
