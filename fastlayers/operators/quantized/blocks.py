"""MatMulNBits of ONNX Runtime: a product with weights of 2, 4 or 8 bits whose scales are shared by blocks along the summed axis.

The weights (n, k) are as (n, blocks, bytes of a block), lowest bits first; integer zero points likewise. The kernel keeps them,
those of blocks of more than 256 terms become float32 once, as large as if they had never been quantized.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.table import NBITS_SUMS
from .._base import Spec, View, register
from .._costs import product
from .._traits import Traits
from ..fused import finished, fused
from .parameters import Arrays

if TYPE_CHECKING:
    from ..builder import Builder

_MOST = 256  # terms of a block that the kernel takes


def _sizes(n: View) -> tuple[int, int, int, int, int]:
    """Columns, terms, terms of a block, blocks, bits."""
    columns, terms, block, bits = n.get("N"), n.get("K"), n.get("block_size"), n.get("bits", 4)
    if bits not in (2, 4, 8) or columns < 1 or terms < 1 or block < 16 or block & (block - 1):
        raise n.fail(
            f"N={columns}, K={terms}, block_size={block}, bits={bits}: expected sizes of at least 1, a power of 2 from 16 on, "
            "and 2, 4 or 8 bits"
        )
    return columns, terms, block, -(-terms // block), bits


def infer(n: View) -> list[Spec]:
    """Inputs: x (..., k), the weights, their scales, zero points, an order of blocks (g_idx, which is not supported), a bias."""
    columns, terms, block, blocks, bits = _sizes(n)
    x = n.spec(0)
    if x.dtype.kind != "f" or n.spec(2).dtype != x.dtype:
        raise n.wrong_dtype(f"x has dtype {x.dtype}, the scales {n.spec(2).dtype}: expected the same float")
    if n.spec(1).dtype != np.uint8:
        raise n.wrong_dtype(f"the weights have dtype {n.spec(1).dtype}: expected uint8")
    if n.has(4):
        raise n.fail("g_idx is given: blocks in another order are not supported")
    if n.has(3) and n.spec(3).dtype not in (np.uint8, x.dtype):
        raise n.wrong_dtype(f"the zero points have dtype {n.spec(3).dtype}: expected uint8 or {x.dtype}")
    packed = blocks if n.has(3) and n.spec(3).dtype != np.uint8 else -(-blocks * bits // 8)
    for i, size in ((1, columns * blocks * block * bits // 8), (2, columns * blocks), (3, columns * packed), (5, columns)):
        shape = n.shape(i) if n.has(i) else None
        if shape is not None and all(isinstance(d, int) for d in shape) and math.prod(shape) != size:  # type: ignore[arg-type]
            raise n.fail(f"input {i} has shape {shape}: expected {size} values for N={columns}, K={terms}, block_size={block}")
    if x.shape is None:
        return [Spec(None, x.dtype)]
    if not x.shape or (isinstance(x.shape[-1], int) and x.shape[-1] != terms):
        raise n.fail(f"x has shape {x.shape}: expected {terms} along its last axis")
    return [Spec((*x.shape[:-1], columns), x.dtype)]


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """The values in rows of bytes, lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    apart = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return np.asarray(apart).reshape(*packed.shape[:-1], packed.shape[-1] * shifts.size)


def _origin(n: View, zeros: np.ndarray) -> np.ndarray:
    """The zero points (n, blocks), a number each."""
    columns, _, _, blocks, bits = _sizes(n)
    if zeros.dtype == np.uint8:
        return unpacked(zeros.reshape(columns, -1), bits)[:, :blocks]
    return zeros.reshape(columns, blocks).astype(np.float32)


def weights(n: View, packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None) -> np.ndarray:
    """The weights (n, k) as float32."""
    columns, terms, block, blocks, bits = _sizes(n)
    numbers = unpacked(packed.reshape(columns, blocks, block * bits // 8), bits).astype(np.float32)
    origin = np.float32(1 << (bits - 1)) if zeros is None else _origin(n, zeros)[:, :, None].astype(np.float32)
    made = (numbers - origin) * scales.reshape(columns, blocks, 1).astype(np.float32)
    return np.ascontiguousarray(made.reshape(columns, blocks * block)[:, :terms])


def run(
    n: View, x: np.ndarray, packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None = None, order: None = None,
    bias: np.ndarray | None = None,
) -> Arrays:  # fmt: skip
    """act(x Wᵀ + bias), summed in float64."""
    y = x.astype(np.float64) @ weights(n, packed, scales, zeros).T.astype(np.float64)
    return (finished(n, np.asarray(y if bias is None else y + bias, x.dtype)),)


def lower(n: View, b: Builder) -> Any:
    packed, scales, zeros, bias = n.value(1), n.value(2), n.value(3), n.value(5)
    if not n.float32(0, 2) or packed is None or scales is None or (n.has(3) and zeros is None) or (n.has(5) and bias is None):
        return False
    columns, terms, block, blocks, bits = _sizes(n)
    x, out = b.input(0), b.output(0)
    rows = math.prod(x.shape[:-1])
    x, out = x.view((rows, terms)), out.view((rows, columns))
    if block > _MOST:
        b.call("linear", x, b.pack("linear_pack", lambda: (weights(n, packed, scales, zeros), bias)), out, None, fused(n))
        return True

    def arguments() -> tuple[Any, ...]:
        origin = None if zeros is None else np.ascontiguousarray(_origin(n, zeros))
        return packed.reshape(columns, blocks, -1), scales.reshape(columns, blocks), origin, bias, terms, bits

    sums = NBITS_SUMS["integer" if n.get("accuracy_level", 0) == 4 else "exact"]
    b.call("nbits", x, b.pack("nbits_pack", arguments), out, sums, fused(n))
    return True


register(
    "MatMulNBits",
    infer,
    run,
    lower,
    Traits(time="product", multiply_adds=product, epilogue=("activation",), weights=(1, 2, 3, 5)),
)
