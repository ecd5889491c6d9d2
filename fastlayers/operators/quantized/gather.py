"""GatherBlockQuantized of ONNX Runtime: rows of a table of 2, 4 or 8 bits as floats; blocks along an axis share scales.

Only what is gathered becomes floats. Numbers are one an element (int4 and uint4, which the reader widens: `apart`), or bytes, of
which one has two of 4 bits, or four of 2, that are neighbours along the last axis, the lowest first; so have zero points then.
`codes`: see `blocks`. With `from_front` no index counts from the end, as layers look rows up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.graph import Shape
from ...rules.shapes import index_error
from .._base import Spec, View, register
from .._traits import PLAIN
from ..shapes import axis_of
from .blocks import codes_of, unpacked
from .parameters import Arrays


def _sizes(n: View, rank: int) -> tuple[int, int, int, int]:
    """Gathered and quantized axis, terms of a block, how many numbers a byte has."""
    bits, block = n.get("bits", 4), n.get("block_size", 128)
    if bits not in (2, 4, 8) or block < 16 or block & (block - 1):
        raise n.fail(f"block_size={block}, bits={bits}: expected a power of 2 from 16 on, and 2, 4 or 8 bits")
    gathered, quantized = axis_of(n, n.get("gather_axis", 0), rank), axis_of(n, n.get("quantize_axis", 1), rank)
    apart = 1 if n.get("apart", 0) else 8 // bits
    if apart > 1 and (gathered == rank - 1 or quantized != rank - 1):
        raise n.fail(
            f"gather_axis={gathered}, quantize_axis={quantized}, and bytes of {apart} numbers along axis {rank - 1}: expected to "
            "gather along another one, with blocks along that"
        )
    return gathered, quantized, block, apart


def infer(n: View) -> list[Spec]:
    """Inputs: the table, indices, scales, zero points."""
    table, indices, scales = n.spec(0), n.spec(1), n.spec(2)
    if table.dtype not in (np.uint8, np.int8) or (table.dtype == np.int8 and not n.get("apart", 0)):
        raise n.wrong_dtype(f"the table has dtype {table.dtype}: expected uint8, int4 or uint4")
    if indices.dtype not in (np.int32, np.int64) and not (n.get("from_front", 0) and indices.dtype.kind in "iu"):
        raise n.wrong_dtype(f"the indices have dtype {indices.dtype}: expected int32 or int64")
    if scales.dtype not in (np.float32, np.float16):
        raise n.wrong_dtype(f"the scales have dtype {scales.dtype}: expected float32 or float16")
    if n.has(3) and n.spec(3).dtype != table.dtype:
        raise n.wrong_dtype(f"the zero points have dtype {n.spec(3).dtype}: expected {table.dtype}, that of the table")
    codes = codes_of(n)
    if codes is not None and (codes.size != 1 << n.get("bits", 4) or n.has(3) or n.get("apart", 0)):
        raise n.fail(f"codes={n.get('codes')!r} with bits={n.get('bits', 4)}: expected {codes.size} codes, and no zero points")
    if table.shape is None:
        return [Spec(None, scales.dtype)]
    gathered, quantized, block, apart = _sizes(n, len(table.shape))
    *front, last = table.shape
    shape = (*front, last * apart if isinstance(last, int) else None)
    size = shape[quantized]
    want = (*shape[:quantized], -(-size // block) if isinstance(size, int) else None, *shape[quantized + 1 :])
    packed = (*want[:-1], -(-want[-1] // apart) if isinstance(want[-1], int) else None)
    for i, name, expected in ((2, "scales", want), (3, "zero points", packed)):
        given = n.shape(i) if n.has(i) else None
        if given is not None and (
            len(given) != len(expected)
            or any(isinstance(p, int) and isinstance(q, int) and p != q for p, q in zip(given, expected, strict=True))
        ):
            raise n.fail(f"the {name} have shape {given}: expected {expected} for a table {table.shape} and block_size={block}")
    if indices.shape is None:
        return [Spec(None, scales.dtype)]
    value = n.value(1)
    if value is not None and isinstance(shape[gathered], int):
        _positions(n, value, shape, gathered)
    return [Spec((*shape[:gathered], *indices.shape, *shape[gathered + 1 :]), scales.dtype)]


def _positions(n: View, indices: np.ndarray, shape: Shape, axis: int) -> np.ndarray:
    """Indices counted from the front; all of them in range."""
    size: Any = shape[axis]
    wrong = indices[(indices < (0 if n.get("from_front", 0) else -size)) | (indices >= size)]
    if wrong.size and n.get("from_front", 0):
        raise n.fail(f"id {wrong[0]} is out of range: expected 0 to {size - 1}")
    if wrong.size:
        raise index_error(n.where, wrong[0], shape, axis)
    return np.where(indices < 0, indices + size, indices) if indices.dtype.kind == "i" else indices


def run(n: View, table: np.ndarray, indices: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None = None) -> Arrays:
    """(number - zero point) * scale in float32 at least. Without zero points, bytes have half of the range for them."""
    gathered, quantized, block, apart = _sizes(n, table.ndim)
    at = _positions(n, indices, table.shape, gathered)
    blocks = scales.shape[quantized]

    def numbers(packed: np.ndarray) -> np.ndarray:
        return packed if apart == 1 else unpacked(packed, 8 // apart)

    def spread(values: np.ndarray, packed: bool = False) -> np.ndarray:
        """A number for each of the gathered ones."""
        if gathered == quantized:
            return np.take(values, at // block, axis=gathered)
        axis = quantized + (at.ndim - 1 if quantized > gathered else 0)
        taken = np.take(values, at, axis=gathered)
        if packed:
            taken = numbers(taken)[..., :blocks]
        return np.repeat(taken, block, axis)[(slice(None),) * axis + (slice(found.shape[axis]),)]

    origin: np.ndarray | int
    found = numbers(np.take(table, at, axis=gathered))
    codes = codes_of(n)
    if codes is not None:
        found, origin = codes[found], 0
    elif zeros is None:
        origin = 0 if n.get("apart", 0) else 1 << (n.get("bits", 4) - 1)
    else:
        origin = spread(zeros, apart > 1)
    wide = np.result_type(scales.dtype, np.float32)
    return (((found.astype(wide) - origin) * spread(scales).astype(wide)).astype(scales.dtype),)


register("GatherBlockQuantized", infer, run, None, PLAIN)
