"""Parts of matrices and images: depth to space and back, triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.graph import Dim, Shape
from ..rules.shapes import blocks_rule
from ._base import Spec, View, register
from ._traits import MOVES, Traits
from .calls import chosen, move, strides_of
from .movement import movers
from .shapes import known, like

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]
MOST_MASKED = 1 << 24  # elements of a matrix that Trilu cuts by a mask of a byte each


def _block(n: View) -> int:
    block, mode = n.get("blocksize", 0), n.get("mode", "DCR")
    if block < 1:
        raise n.fail(f"blocksize is {block}: expected at least 1")
    if mode not in ("DCR", "CRD"):
        raise n.fail(f"mode is {mode!r}: expected 'DCR' or 'CRD'")
    return int(block)


def _blocks(n: View, shape: Shape | None) -> Shape:
    """The new shape of (n, c, h, w)."""
    block = _block(n)
    if shape is None:
        return (None,) * 4
    if len(shape) != 4:
        raise n.fail(f"x has shape {shape}: expected (n, c, h, w)")
    deep = n.op == "DepthToSpace"
    sizes: list[Dim] = [shape[0]]
    parts = [(block * block, deep, "channels"), (block, not deep, "rows"), (block, not deep, "columns")]
    for size, (by, split, what) in zip(shape[1:], parts[1:] + parts[:1] if n.get("x_last") else parts, strict=True):
        times = size * by if isinstance(size, int) else None
        sizes.append(blocks_rule(n.where, shape, size, by, what) if split else times)
    return tuple(sizes) if block > 1 else shape


def _split_blocks(n: View, shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The input's axes split up, and their order in the output."""
    k = _block(n)
    crd = n.get("mode", "DCR") == "CRD"
    if n.get("x_last"):  # the channels after the others: our extension, CRD alone
        batch, h, w, c = shape
        if n.op == "DepthToSpace":
            return (batch, h, w, c // (k * k), k, k), (0, 1, 4, 2, 5, 3)
        return (batch, h // k, k, w // k, k, c), (0, 1, 3, 5, 2, 4)
    batch, c, h, w = shape
    if n.op == "DepthToSpace":
        if crd:
            return (batch, c // (k * k), k, k, h, w), (0, 1, 4, 2, 5, 3)
        return (batch, k, k, c // (k * k), h, w), (0, 3, 4, 1, 5, 2)
    return (batch, c, h // k, k, w // k, k), (0, 1, 3, 5, 2, 4) if crd else (0, 3, 5, 1, 2, 4)


def _blocks_run(n: View, x: np.ndarray) -> Arrays:
    shape: Any = _blocks(n, x.shape)
    split, order = _split_blocks(n, x.shape)
    return (x.reshape(split).transpose(order).reshape(shape),)


def _blocks_lower(n: View, b: Any) -> Any:
    if not movers(n):
        return False
    split, order = _split_blocks(n, n.sizes(0))
    strides = strides_of(split)
    return move(b, b.input(0), [split[i] for i in order], 0, [strides[i] for i in order])


for _name in ("DepthToSpace", "SpaceToDepth"):
    register(_name, lambda n: [Spec(_blocks(n, n.shape(0)), n.spec(0).dtype)], _blocks_run, _blocks_lower, MOVES)

# ---- Trilu -----------------------------------------------------------------------------------------------------------


def _trilu_infer(n: View) -> list[Spec]:
    shape = n.shape(0)
    if shape is not None and len(shape) < 2:
        raise n.fail(f"x has shape {shape}: expected at least two axes")
    known(n, 1)
    return [like(n.spec(0))]


def _trilu_run(n: View, x: np.ndarray, k: np.ndarray | None = None) -> Arrays:
    diagonal = 0 if k is None else int(k.reshape(-1)[0])
    return (np.triu(x, diagonal) if n.get("upper", 1) else np.tril(x, diagonal),)


def _trilu_lower(n: View, b: Any) -> Any:
    """As a choice between x and 0, by a mask of one matrix."""
    k, (h, w), dtype = n.value(1), n.sizes(0)[-2:], n.spec(0).dtype
    if (n.has(1) and k is None) or not movers(n) or h * w > MOST_MASKED:
        return False
    kept = np.ones((h, w), np.bool_)
    mask = b.constant(_trilu_run(n, kept, k)[0])
    return chosen(b, mask, b.input(0), b.constant(np.zeros((), dtype)), dtype)


register("Trilu", _trilu_infer, _trilu_run, _trilu_lower, Traits(work="elements"))
