"""Operators that ONNX Runtime's own need next to ONNX's: `FusedMatMul`, `HeadBias`, `PaddingMask`, `Positions`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.graph import Dim, Shape
from ...kernels.table import BINARY, COMPARE, KINDS
from .._base import BOOL, FLOAT32, INT64, Spec, View, register
from .._costs import product as product_cost
from .._traits import PLAIN, Traits
from ..calls import copy, float32_constant, strides_of
from ..fused import IDENTITY
from ..linear import _batched, broadcast
from ..shapes import need_kind, same_dtype

if TYPE_CHECKING:
    from ..builder import Builder, Ref

__all__: list[str] = []

# ---- FusedMatMul -------------------------------------------------------------------------------------------------------


def _order(n: View, rank: int, side: str) -> tuple[int, ...]:
    """The order of the axes of A or B before the product; a vector stays one."""
    order = list(range(rank))
    if rank >= 2 and n.get(f"transBatch{side}", 0):  # the first axis goes after those of the batch
        order = [*order[1:-1], order[0], order[-1]]
    if rank >= 2 and n.get(f"trans{side}", 0):
        order[-2:] = order[:-3:-1]
    return tuple(order)


def _turned(n: View, i: int) -> Shape | None:
    shape = n.shape(i)
    return None if shape is None else tuple(shape[k] for k in _order(n, len(shape), "AB"[i]))


def _product_infer(n: View) -> list[Spec]:
    need_kind(n, "f")
    dtype, a, w = same_dtype(n), _turned(n, 0), _turned(n, 1)
    if a is None or w is None:
        return [Spec(None, dtype)]
    if not a or not w:
        raise n.fail(f"shapes {n.shape(0)} and {n.shape(1)}: expected one axis at least")
    left, right = (a if len(a) > 1 else (1, *a)), (w if len(w) > 1 else (*w, 1))
    if isinstance(left[-1], int) and isinstance(right[-2], int) and left[-1] != right[-2]:
        raise n.fail(f"inner sizes {left[-1]} and {right[-2]} differ: shapes {n.shape(0)} and {n.shape(1)}")
    rows, columns = (left[-2],) if len(a) > 1 else (), (right[-1],) if len(w) > 1 else ()
    return [Spec((*broadcast(n, left[:-2], right[:-2]), *rows, *columns), dtype)]


def _product_run(n: View, a: np.ndarray, w: np.ndarray) -> Sequence[np.ndarray]:
    """alpha A B, after the axes were transposed."""
    left, right = (x.transpose(_order(n, x.ndim, side)).astype(np.float64) for x, side in ((a, "A"), (w, "B")))
    return ((np.matmul(left, right) * n.get("alpha", 1.0)).astype(a.dtype),)


def _turn(b: Builder, x: Ref, order: tuple[int, ...]) -> Ref:
    """x with its axes in another order, copied where that changes anything."""
    if order == tuple(range(len(order))):
        return x
    strides = strides_of(x.shape)
    out = b.temp([x.shape[k] for k in order])
    copy(b, x, out, out.shape, 0, [strides[k] for k in order], 0, strides_of(out.shape))
    return out


def _product_lower(n: View, b: Builder) -> Any:
    shapes, alpha, weight = (n.sizes(0), n.sizes(1)), float(n.get("alpha", 1.0)), n.value(1)
    if not n.float32() or any(len(s) < 2 for s in shapes) or max(len(s) for s in shapes) > 8:
        return False
    left = _turn(b, b.input(0), _order(n, len(shapes[0]), "A"))
    if weight is not None and weight.ndim == 2:
        out = b.output(0)
        columns = weight if n.get("transB", 0) else weight.T
        packed = b.pack("linear_pack", lambda: (np.ascontiguousarray(columns * np.float32(alpha), FLOAT32), None))
        rows = math.prod(left.shape[:-1])
        b.call("linear", left.view((rows, left.shape[-1])), packed, out.view((rows, out.shape[-1])), None, IDENTITY)
        return True
    across = bool(n.get("transB", 0)) and not n.get("transBatchB", 0)
    right = b.input(1) if across else _turn(b, b.input(1), _order(n, len(shapes[1]), "B"))
    out = b.output(0)
    batch = out.shape[:-2]
    three = (math.prod(batch), *out.shape[-2:])
    b.call("matmul", _batched(b, left, batch), _batched(b, right, batch), out.view(three), across, IDENTITY)
    if alpha != 1:
        b.call("binary", out, float32_constant(b, alpha), out, BINARY["multiply"], IDENTITY)
    return True


register("FusedMatMul", _product_infer, _product_run, _product_lower, Traits(work="products", multiply_adds=product_cost))

# ---- HeadBias: the part of a bias of queries, keys and values that belongs to x --------------------------------------------


def _part(n: View, width: int, size: int) -> int:
    """The offset of a part: `part` 0 is queries, 1 keys, 2 values."""
    start = (0, width, size - width)[n.get("part", 0)]
    if start < 0 or start + width > size:
        raise n.fail(f"bias has {size} values, x has {width} features: expected one for each feature of q, k and v")
    return start


def _bias_infer(n: View) -> list[Spec]:
    need_kind(n, "f")
    bias = n.shape(1)
    if bias is not None and len(bias) != 1:
        raise n.fail(f"bias has shape {bias}: expected one axis")
    return [Spec(n.shape(0), same_dtype(n))]


def _bias_run(n: View, x: np.ndarray, bias: np.ndarray) -> Sequence[np.ndarray]:
    """x (b, t, h d) + its part of the bias; keys that have heads already, (b, h, t, d), have it already."""
    if x.ndim != 3:
        return (x,)
    start = _part(n, x.shape[2], len(bias))
    return (x + bias[start : start + x.shape[2]],)


def _bias_lower(n: View, b: Builder) -> Any:
    if not n.float32():
        return False
    x = b.input(0)
    if len(x.shape) != 3:
        return b.alias(0, x)
    width, bias = x.shape[2], b.input(1)
    part = bias.view((width,), _part(n, width, bias.shape[0]))
    return b.call("binary", x, part, b.output(0, over=x), BINARY["add"], IDENTITY)


register("HeadBias", _bias_infer, _bias_run, _bias_lower, PLAIN)

# ---- PaddingMask: ONNX Runtime's masks as values that are added ------------------------------------------------------------


def _mask_sizes(n: View) -> tuple[Dim, Dim, Dim, Dim]:
    """Batch, queries, keys of q (b, s, ...), k (b, t, ...) or (b, h, t, d), and of past (..., t, d) before."""
    q, k = n.shape(1), n.shape(2)
    past = n.shape(3) if n.has(3) else ()
    keys = None if k is None else k[2] if len(k) == 4 else k[1]
    before: Dim = 0 if not n.has(3) else None if past is None else past[-2]
    total = keys + before if isinstance(keys, int) and isinstance(before, int) else None
    return (None, None, total, before) if q is None else (q[0], q[1], total, before)


def _mask_infer(n: View) -> list[Spec]:
    """Inputs: mask, q, k, past keys. The mask is (b, t), (b, s, t) or (b, 1, m, m) of ones and zeros, or (b) or (2 b) of ends
    and starts.
    """
    need_kind(n, "i", 0)
    mask, (batch, rows, total, _) = n.shape(0), _mask_sizes(n)
    if mask is None:
        return [Spec((batch, 1, None, total), FLOAT32)]
    rank = len(mask)
    if not 1 <= rank <= 4:
        raise n.fail(f"mask has shape {mask}: expected (b,), (2 b,), (b, t), (b, s, t) or (b, 1, m, m)")
    known = all(isinstance(d, int) for d in (batch, rows, total, *mask))
    if known:
        wanted: list[tuple[Any, ...]] = [(batch,), (2 * batch,), (batch, total), (batch, rows, total)]  # type: ignore[operator]
        fits = mask in wanted if rank < 4 else mask[0] == batch and mask[1] == 1 and mask[3] >= total and mask[2] >= total  # type: ignore[operator]
        if not fits:
            raise n.fail(f"mask has shape {mask}, there are {batch} entries of {total} keys: expected {wanted} or (b, 1, m, m)")
    return [Spec((batch, 1, rows if rank > 2 else 1, total), FLOAT32)]


def _mask_run(n: View, mask: np.ndarray, q: np.ndarray, k: np.ndarray, past: np.ndarray | None = None) -> Sequence[np.ndarray]:
    """0 where a key may be seen, `filter` where not."""
    sizes: Any = _mask_sizes(n)
    batch, rows, total, before = sizes
    if mask.ndim == 1:
        position = np.arange(total)
        seen = position < mask[:batch, None]
        if len(mask) == 2 * batch:
            seen &= position >= mask[batch:, None]
        seen = seen[:, None, None]
    elif mask.ndim == 4:
        seen = mask[:, :, before : before + rows, :total] > 0
    else:
        seen = mask.reshape(batch, 1, -1, total) > 0
    return (np.where(seen, FLOAT32.type(0), FLOAT32.type(n.get("filter", -10000.0))),)


def _mask_lower(n: View, b: Builder) -> Any:
    sizes: Any = _mask_sizes(n)
    batch, _, total, before = sizes
    given, out = b.input(0), b.output(0)
    numbers, rank = b.temp(given.shape), len(given.shape)
    b.call("cast", given, numbers, KINDS[given.dtype.name], KINDS["float32"])
    seen = b.temp(out.shape, BOOL)
    if rank == 1:
        position = b.constant(np.arange(total, dtype=FLOAT32).reshape(1, 1, 1, total))
        b.call("compare", position, numbers.view((batch, 1, 1, 1)), seen, COMPARE["less"])
    elif rank == 4:
        part, m = b.temp(out.shape), given.shape[3]
        size = given.shape[2] * m
        copy(b, numbers, part, out.shape, before * m, (size, size, m, 1), 0, strides_of(out.shape))
        b.call("compare", part, float32_constant(b, 0), seen, COMPARE["greater"])
    else:
        b.call("compare", numbers.view(out.shape), float32_constant(b, 0), seen, COMPARE["greater"])
    closed = float32_constant(b, n.get("filter", -10000.0))
    b.call("where", seen, float32_constant(b, 0), closed, out)
    if rank == 1 and given.shape[0] == 2 * batch:
        late, starts = b.temp(out.shape, BOOL), numbers.view((batch, 1, 1, 1), batch)
        b.call("compare", position, starts, late, COMPARE["greater_equal"])
        b.call("where", late, out, closed, out)
    return True


register("PaddingMask", _mask_infer, _mask_run, _mask_lower, PLAIN)

# ---- Positions: one number to count on from, or one for each step ------------------------------------------------------------


def _positions_infer(n: View) -> list[Spec]:
    """Inputs: ids (1,) or (b, t), x (b, h, t, d) or (b, t, h d): the result is (b, t) of int64."""
    need_kind(n, "i", 0)
    ids, x = n.shape(0), n.shape(1)
    if x is not None and len(x) not in (3, 4):
        raise n.fail(f"x has shape {x}: expected three or four axes")
    if ids is not None and len(ids) not in (1, 2):
        raise n.fail(f"position_ids has shape {ids}: expected (1,) or (b, t)")
    return [Spec((None, None) if x is None else (x[0], x[2] if len(x) == 4 else x[1]), INT64)]


def _positions_run(n: View, ids: np.ndarray, x: np.ndarray) -> Sequence[np.ndarray]:
    batch, steps = x.shape[0], x.shape[2] if x.ndim == 4 else x.shape[1]
    if ids.ndim == 1:
        ids = ids.reshape(-1)[:1] + np.arange(steps)
    return (np.broadcast_to(ids, (batch, steps)).astype(np.int64),)


def _positions_lower(n: View, b: Builder) -> Any:
    ids, out = n.sizes(0), _positions_infer(n)[0].shape
    if ids == out and n.spec(0).dtype == INT64:
        return b.alias(0, b.input(0))
    value = n.value(0)
    if value is None:
        return False
    (found,) = _positions_run(n, value, np.broadcast_to(FLOAT32.type(0), n.sizes(1)))
    return b.alias(0, b.constant(found))


register("Positions", _positions_infer, _positions_run, _positions_lower, PLAIN)
