"""Products with, and rows of, a matrix in ggml's blocks, which stay as a file has them until the kernel packs them.

Blocks are (rows, bytes) of uint8; `kind` is their type. The kernel has their few bits, and a float32 scale a group: see `_ggml`.
Sums are of integers, as ggml's own: each group of x is rounded to 8 bits; in strict precision x stays as it is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._ggml import BLOCKS, Blocks
from ..._held import unread
from ...kernels.table import NBITS_SUMS
from .._base import Spec, View, register
from .._costs import product
from .._traits import Traits
from ..builder import Parts
from ..fused import IDENTITY
from ..shapes import need_kind
from .parameters import Arrays

if TYPE_CHECKING:
    from ..builder import Builder

_AT_ONCE = 1 << 20  # weights that are packed at once
_LOOKED_UP = 32  # rows of a mapped file that are read before its pages are dropped


def _kind(n: View, i: int) -> tuple[Blocks, Any, Any]:
    """The type of input i, its rows and their elements, as far as they are known."""
    kind, shape = n.get("kind"), n.shape(i)
    if kind not in BLOCKS:
        raise n.fail(f"kind={kind!r}: expected one of {', '.join(BLOCKS)}")
    if n.spec(i).dtype != np.uint8:
        raise n.wrong_dtype(f"the blocks have dtype {n.spec(i).dtype}: expected uint8")
    blocks = BLOCKS[kind]
    if shape is None:
        return blocks, None, None
    if len(shape) != 2 or (isinstance(shape[1], int) and shape[1] % blocks.size):
        raise n.fail(f"the blocks have shape {shape}: expected (rows, bytes), {blocks.size} bytes a block")
    return blocks, shape[0], shape[1] // blocks.size * blocks.terms if isinstance(shape[1], int) else None


def _infer(n: View) -> list[Spec]:
    """Inputs: x (..., k), the blocks, a bias, the row of the blocks that each result is of (int32)."""
    _, rows, terms = _kind(n, 1)
    x = n.spec(0)
    if x.dtype != np.float32 or (n.has(2) and n.spec(2).dtype != x.dtype):
        raise n.wrong_dtype(f"x has dtype {x.dtype}, a bias the same: expected float32")
    if n.has(3) and n.spec(3).dtype != np.int32:
        raise n.wrong_dtype(f"the rows have dtype {n.spec(3).dtype}: expected int32")
    if rows == 0 or terms == 0:
        raise n.fail("the blocks have no elements")
    for i, what in ((2, "bias"), (3, "order of rows")):
        shape = n.shape(i) if n.has(i) else None
        if shape is not None and (len(shape) != 1 or _differ(shape[0], rows)):
            raise n.fail(f"the {what} has shape {shape}: expected ({rows},)")
    if x.shape is None:
        return [Spec(None, x.dtype)]
    if not x.shape or _differ(x.shape[-1], terms):
        raise n.fail(f"x has shape {x.shape}: expected {terms} along its last axis")
    return [Spec((*x.shape[:-1], rows), x.dtype)]


def _differ(a: Any, b: Any) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def _ordered(n: View, raw: np.ndarray, order: np.ndarray | None) -> np.ndarray:
    if order is None:
        return raw
    if order.min() < 0 or order.max() >= len(raw):
        raise n.fail(f"the order has rows {order.min()} .. {order.max()}: expected 0 .. {len(raw) - 1}")
    return np.asarray(raw[order])


def _floats(kind: Blocks, raw: np.ndarray) -> np.ndarray:
    out = np.empty((*raw.shape[:-1], raw.shape[-1] // kind.size * kind.terms), np.float32)
    kind.floats(raw.reshape(-1, kind.size), out)
    return out


def _run(n: View, x: np.ndarray, raw: np.ndarray, bias: np.ndarray | None = None, order: np.ndarray | None = None) -> Arrays:
    """x Wᵀ + bias, summed in float64."""
    y = x.astype(np.float64) @ _floats(_kind(n, 1)[0], _ordered(n, raw, order)).T.astype(np.float64)
    return (np.asarray(y if bias is None else y + bias, x.dtype),)


def _lower(n: View, b: Builder) -> Any:
    raw, bias, order = (n.value(i) if n.has(i) else None for i in (1, 2, 3))
    if raw is None or (n.has(2) and bias is None) or (n.has(3) and order is None):
        return False
    kind, rows, terms = _kind(n, 1)
    x, out = b.input(0), b.output(0)
    count = math.prod(x.shape[:-1])

    def part(i: int, j: int) -> tuple[Any, ...]:
        found = raw[i:j] if order is None else _ordered(n, raw, order[i:j])
        few = kind.few(found)
        unread(found)  # a matrix is not in memory twice while it is packed
        return *few, None if bias is None else bias[i:j], terms, kind.bits, None

    packed = b.pack("nbits_pack", lambda: Parts(rows, part, _AT_ONCE // terms))
    b.call("nbits", x.view((count, terms)), packed, out.view((count, rows)), NBITS_SUMS["integer"], IDENTITY)
    return True


def _infer_rows(n: View) -> list[Spec]:
    """Inputs: the blocks, numbers of rows."""
    need_kind(n, "iu", 1)
    _, _, terms = _kind(n, 0)
    ids = n.shape(1)
    return [Spec(None if ids is None else (*ids, terms), np.dtype(np.float32))]


def _taken(n: View, raw: np.ndarray, ids: np.ndarray) -> np.ndarray:
    wrong = ids[(ids < 0) | (ids >= len(raw))]
    if wrong.size:
        raise n.fail(f"id {wrong.reshape(-1)[0]} is out of range: expected 0 to {len(raw) - 1}")
    return np.take(raw, ids, 0)


def _run_rows(n: View, raw: np.ndarray, ids: np.ndarray) -> Arrays:
    return (_floats(_kind(n, 0)[0], _taken(n, raw, ids)),)


def _lower_rows(n: View, b: Builder) -> Any:
    raw: Any = n.value(0)
    if raw is None:
        return False

    kind, _, terms = _kind(n, 0)
    since = 0  # rows that were read since pages were dropped; several threads may miscount it, which does no harm

    def rows(ids: np.ndarray) -> Arrays:
        nonlocal since
        out, flat = np.empty((ids.size, terms), np.float32), ids.reshape(-1)
        for i in range(0, ids.size, _LOOKED_UP):
            found = _taken(n, raw, flat[i : i + _LOOKED_UP])
            kind.floats(found.reshape(-1, kind.size), out[i : i + len(found)])
            since += len(found)
            if since >= _LOOKED_UP:
                since = 0
                unread(raw)  # each page that was touched has brought fifteen others of the file
        return (out.reshape(*ids.shape, terms),)

    b.python(rows, (b.input(1),), (b.output(0),))
    return True


register("BlockLinear", _infer, _run, _lower, Traits(multiply_adds=product))
register("BlockEmbedding", _infer_rows, _run_rows, _lower_rows, Traits(time="gather"))
