"""MatMulNBits and MatMulBnb4 of ONNX Runtime: products with weights of few bits whose scales are shared by blocks.

MatMulNBits' weights (n, k) have 2, 4 or 8 bits and blocks along k: they are as (n, blocks, bytes of a block), lowest bits first;
integer zero points likewise. The kernel keeps them.
With g_idx, which says the block that each term belongs to, in any order, they become float32 once: as large as if they had never
been quantized. Weights of MatMulBnb4 are codes of sixteen numbers (4 bits, the first one highest), which the kernel looks up;
they become float32 where a block has terms of two columns. `codes`, an attribute that no file of ONNX has, says that weights of
MatMulNBits are such, too: one of `_codes.CODES`, of 4 or 8 bits.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._codes import CODES, values_of
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
    """Inputs: x (..., k), the weights, their scales, zero points, the block of each term (g_idx), a bias."""
    columns, terms, block, blocks, bits = _sizes(n)
    table = codes_of(n)
    if table is not None and (table.size != 1 << bits or n.has(3)):
        raise n.fail(f"codes={n.get('codes')!r} with {bits} bits: expected {table.size} codes, and no zero points")
    x = n.spec(0)
    if x.dtype.kind != "f" or n.spec(2).dtype != x.dtype:
        raise n.wrong_dtype(f"x has dtype {x.dtype}, the scales {n.spec(2).dtype}: expected the same float")
    if n.spec(1).dtype != np.uint8:
        raise n.wrong_dtype(f"the weights have dtype {n.spec(1).dtype}: expected uint8")
    if n.has(4) and n.spec(4).dtype != np.int32:
        raise n.wrong_dtype(f"g_idx has dtype {n.spec(4).dtype}: expected int32")
    if n.has(3) and n.spec(3).dtype not in (np.uint8, x.dtype):
        raise n.wrong_dtype(f"the zero points have dtype {n.spec(3).dtype}: expected uint8 or {x.dtype}")
    if n.has(5) and n.spec(5).dtype != x.dtype:
        raise n.wrong_dtype(f"input 5, the bias, has dtype {n.spec(5).dtype}: expected {x.dtype}")
    packed = blocks if n.has(3) and n.spec(3).dtype != np.uint8 else -(-blocks * bits // 8)
    for i, size in ((1, columns * blocks * block * bits // 8), (2, columns * blocks), (3, columns * packed), (5, columns)):
        shape = n.shape(i) if n.has(i) else None
        if shape is not None and all(isinstance(d, int) for d in shape) and math.prod(shape) != size:  # type: ignore[arg-type]
            raise n.fail(f"input {i} has shape {shape}: expected {size} values for N={columns}, K={terms}, block_size={block}")
    order = n.shape(4) if n.has(4) else None
    if order is not None and (len(order) != 1 or (isinstance(order[0], int) and order[0] not in (terms, blocks * block))):
        raise n.fail(f"g_idx has shape {order}: expected ({terms},) or ({blocks * block},)")
    if x.shape is None:
        return [Spec(None, x.dtype)]
    if not x.shape or (isinstance(x.shape[-1], int) and x.shape[-1] != terms):
        raise n.fail(f"x has shape {x.shape}: expected {terms} along its last axis")
    return [Spec((*x.shape[:-1], columns), x.dtype)]


def codes_of(n: View) -> np.ndarray | None:
    """Values that the weights' numbers stand for; None: they stand for themselves."""
    name = n.get("codes", "")
    if name and name not in CODES:
        raise n.fail(f"codes is {name!r:.50}: expected one of {', '.join(CODES)}")
    return values_of(name) if name else None


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """The values in rows of bytes, lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    apart = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return np.asarray(apart).reshape(*packed.shape[:-1], packed.shape[-1] * shifts.size)


def _apart(n: View, packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None) -> tuple[Any, Any, Any]:
    """The weights in rows of bytes, scales and zero points (n, blocks), a number each."""
    columns, _, _, blocks, bits = _sizes(n)
    if zeros is not None:
        packs = zeros.dtype == np.uint8
        zeros = unpacked(zeros.reshape(columns, -1), bits)[:, :blocks] if packs else zeros.reshape(columns, blocks)
    return packed.reshape(columns, -1), scales.reshape(columns, blocks), zeros


def _floats(n: View, packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None, order: np.ndarray | None) -> np.ndarray:
    _, terms, block, blocks, bits = _sizes(n)
    at = np.arange(terms) // block if order is None else order[:terms]
    if at.min() < 0 or at.max() >= blocks:
        raise n.fail(f"g_idx has {at.min()} .. {at.max()}: expected 0 .. {blocks - 1}")
    rows, scales, zeros = _apart(n, packed, scales, zeros)
    return floats(rows, scales, zeros, at, bits, codes_of(n))


def floats(
    packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None, at: np.ndarray, bits: int, table: np.ndarray | None = None
) -> np.ndarray:
    """Weights (n, terms) as float32, of rows of bytes, with scales and zero points (n, blocks); `at`: the block of each term."""
    if table is not None:
        return np.ascontiguousarray(table[unpacked(packed, bits)[:, : at.size]] * scales[:, at].astype(np.float32))
    numbers = unpacked(packed, bits)[:, : at.size].astype(np.float32)
    origin = np.float32(1 << (bits - 1)) if zeros is None else zeros[:, at].astype(np.float32)
    return np.ascontiguousarray((numbers - origin) * scales[:, at].astype(np.float32))


def kernel_arguments(
    packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None, bias: np.ndarray | None, terms: int, block: int, bits: int,
    table: np.ndarray | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Arguments of `nbits_pack`: a block that is too large becomes several of the same scale, and the last one is filled up."""
    size = min(block, _MOST, max(1 << (terms - 1).bit_length(), 16))
    blocks = -(-terms // size)
    if size != block:
        at = np.arange(blocks) * size // block
        scales, zeros = scales[:, at], None if zeros is None else zeros[:, at]
    width = blocks * size * bits // 8
    if packed.shape[1] != width:
        packed = np.pad(packed[:, :width], ((0, 0), (0, max(width - packed.shape[1], 0))))
    origin = None if zeros is None else np.ascontiguousarray(zeros, np.uint8 if zeros.dtype == np.uint8 else np.float32)
    return packed.reshape(len(packed), blocks, -1), np.ascontiguousarray(scales, np.float32), origin, bias, terms, bits, table


def run(
    n: View, x: np.ndarray, packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None = None,
    order: np.ndarray | None = None, bias: np.ndarray | None = None,
) -> Arrays:  # fmt: skip
    """act(x Wᵀ + bias), summed in float64."""
    y = x.astype(np.float64) @ _floats(n, packed, scales, zeros, order).T.astype(np.float64)
    return (finished(n, np.asarray(y if bias is None else y + bias, x.dtype)),)


def lower(n: View, b: Builder) -> Any:
    packed, scales, zeros, order, bias = (n.value(i) for i in range(1, 6))
    if not n.float32(0, 2, 5) or packed is None or scales is None or any(n.has(i) and n.value(i) is None for i in (3, 4, 5)):
        return False
    columns, terms, block, _, bits = _sizes(n)
    x, out = b.input(0), b.output(0)
    rows = math.prod(x.shape[:-1])
    x, out = x.view((rows, terms)), out.view((rows, columns))
    if order is not None and (order[:terms] != np.arange(terms) // block).any():
        b.call("linear", x, b.pack("linear_pack", lambda: (_floats(n, packed, scales, zeros, order), bias)), out, None, fused(n))
        return True
    # The integers of x share steps by blocks of the kernel's: larger ones are summed exactly.
    sums = NBITS_SUMS["integer" if n.get("accuracy_level", 0) == 4 and block <= _MOST else "exact"]
    arguments = partial(kernel_arguments, bias=bias, terms=terms, block=block, bits=bits, table=codes_of(n))
    b.call("nbits", x, b.pack("nbits_pack", lambda: arguments(*_apart(n, packed, scales, zeros))), out, sums, fused(n))
    return True


register(
    "MatMulNBits",
    infer,
    run,
    lower,
    Traits(time="product", multiply_adds=product, epilogue=("activation",), weights=(1, 2, 3, 5)),
)

# ---- MatMulBnb4 --------------------------------------------------------------------------------------------------------

_BNB4 = ("FP4", "NF4")  # by quant_type


def _bnb4_infer(n: View) -> list[Spec]:
    """Inputs: x (..., k), the weights (n k / 2 bytes), the largest magnitude of each block of them; without transB x (..., n)."""
    columns, terms, block, kind = n.get("N"), n.get("K"), n.get("block_size"), n.get("quant_type")
    if columns < 1 or terms < 1 or block < 16 or block & (block - 1) or kind not in (0, 1):
        raise n.fail(
            f"N={columns}, K={terms}, block_size={block}, quant_type={kind}: expected sizes of at least 1, a power of 2 from 16 "
            "on, and 0 or 1"
        )
    x = n.spec(0)
    if x.dtype.kind != "f" or n.spec(2).dtype != x.dtype or n.spec(1).dtype != np.uint8:
        raise n.wrong_dtype(f"dtypes are {x.dtype}, {n.spec(1).dtype}, {n.spec(2).dtype}: expected a float, uint8, that float")
    for i, size in ((1, -(-columns * terms // 2)), (2, -(-columns * terms // block))):
        shape = n.shape(i)
        if shape is not None and all(isinstance(d, int) for d in shape) and math.prod(shape) != size:  # type: ignore[arg-type]
            raise n.fail(f"input {i} has shape {shape}: expected {size} values for N={columns}, K={terms}, block_size={block}")
    summed, left = (terms, columns) if n.get("transB", 1) else (columns, terms)
    if x.shape is None:
        return [Spec(None, x.dtype)]
    if not x.shape or (isinstance(x.shape[-1], int) and x.shape[-1] != summed):
        raise n.fail(f"x has shape {x.shape}: expected {summed} along its last axis")
    return [Spec((*x.shape[:-1], left), x.dtype)]


def _bnb4_weights(n: View, packed: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Weights as (columns of the result, terms of a sum), in float32."""
    columns, terms = n.get("N"), n.get("K")
    packed = packed.reshape(-1)
    numbers = np.stack((packed >> np.uint8(4), packed & np.uint8(15)), -1).reshape(-1)[: columns * terms]
    made = values_of(_BNB4[n.get("quant_type")])[numbers] * np.repeat(largest.reshape(-1), n.get("block_size"))[: columns * terms]
    made = made.astype(np.float32).reshape(columns, terms)
    return np.ascontiguousarray(made if n.get("transB", 1) else made.T)


def _bnb4_run(n: View, x: np.ndarray, packed: np.ndarray, largest: np.ndarray) -> Arrays:
    """Summed in float64."""
    return ((x.astype(np.float64) @ _bnb4_weights(n, packed, largest).T.astype(np.float64)).astype(x.dtype),)


def _bnb4_lower(n: View, b: Builder) -> Any:
    packed, largest = n.value(1), n.value(2)
    if not n.float32(0, 2) or packed is None or largest is None:
        return False
    x, out = b.input(0), b.output(0)
    x, out = x.view((math.prod(x.shape[:-1]), x.shape[-1])), out.view((math.prod(out.shape[:-1]), out.shape[-1]))
    columns, terms, block = n.get("N"), n.get("K"), n.get("block_size")
    if n.get("transB", 1) and not terms % block:

        def arguments() -> tuple[Any, ...]:
            turned = packed << np.uint8(4) | packed >> np.uint8(4)
            table = values_of(_BNB4[n.get("quant_type")])
            return kernel_arguments(turned.reshape(columns, -1), largest.reshape(columns, -1), None, None, terms, block, 4, table)

        b.call("nbits", x, b.pack("nbits_pack", arguments), out, NBITS_SUMS["exact"], fused(n))
    else:
        b.call("linear", x, b.pack("linear_pack", lambda: (_bnb4_weights(n, packed, largest), None)), out, None, fused(n))
    return True


register("MatMulBnb4", _bnb4_infer, _bnb4_run, _bnb4_lower, Traits(multiply_adds=product))
