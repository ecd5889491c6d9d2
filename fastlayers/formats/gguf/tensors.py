"""Tensors of a GGUF file as arrays, or as their blocks in place."""

from __future__ import annotations

import numpy as np

from .._arrays import Array, decode
from ..budget import Budget
from .parse import Tensor

__all__ = ["raw_rows", "read"]


def raw_rows(tensor: Tensor) -> Array:
    """The blocks of a quantized matrix, (rows, bytes), in place."""
    found = np.frombuffer(tensor.view, np.uint8)[tensor.start : tensor.start + tensor.size]
    return found.reshape(tensor.shape[0], -1) if tensor.size else found.reshape(tensor.shape[0], 0)


def read(tensor: Tensor, budget: Budget) -> Array:
    """A tensor's array, read-only: quantized ones as float32, with the bits of ggml's own functions."""
    view, blocks = tensor.view[tensor.start : tensor.start + tensor.size], tensor.kind.blocks
    if tensor.kind.codec:
        return decode(view, tensor.kind.codec, tensor.shape, budget, tensor.where)
    assert blocks is not None
    out = budget.empty(tensor.shape, np.float32, tensor.where)
    if tensor.size:
        blocks.floats(np.frombuffer(view, np.uint8).reshape(-1, blocks.size), out)
    out.flags.writeable = False
    return out
