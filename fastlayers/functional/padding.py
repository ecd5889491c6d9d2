"""Padding of any axes of an array of any rank, out of calls of the kernel, which pads three."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError
from ..graph.ir import Dim, Shape
from ..graph.ops import op
from ..kernels import _dispatch
from ..kernels.table import PAD_MODES
from ._arrays import as_float32, empty
from ._checks import integer, number

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["pad"]

_MODES = {"constant": PAD_MODES["zeros"], **PAD_MODES}


def pad_rule(x: Shape, pad: Any, mode: Any, value: Any) -> Shape:
    """Checks the arguments of `pad` and returns the shape of its result."""
    pairs = _pairs(len(x), pad)
    if mode not in _MODES:
        raise ShapeError(f"pad: mode is {mode!r}: expected one of {', '.join(map(repr, _MODES))}")
    number("pad", "value", value)
    return tuple(_size(i, size, *pairs[i], mode) for i, size in enumerate(x))


def _pairs(ndim: int, pad: Any) -> list[tuple[int, int]]:
    """(before, after) of every axis, in the order of the axes."""
    if not isinstance(pad, (tuple, list)):
        raise ShapeError(f"pad: pad is {pad!r}: expected a sequence (last axis before, last axis after, the axis before it, ...)")
    flat = [integer("pad", "pad", p) for p in pad]
    if len(flat) % 2 or len(flat) > 2 * ndim:
        raise ShapeError(f"pad: pad has {len(flat)} numbers, x {ndim} axes: expected an even count of at most {2 * ndim}")
    pairs = list(zip(flat[::2], flat[1::2], strict=True))[::-1]
    return [(0, 0)] * (ndim - len(pairs)) + pairs


def _size(axis: int, size: Dim, before: int, after: int, mode: str) -> Dim:
    if not isinstance(size, int):
        return size if before + after == 0 else None
    if mode in ("constant", "zeros"):
        if size + min(before, 0) + min(after, 0) < 0:
            raise ShapeError(f"pad: ({before}, {after}) cuts more than there is from size {size} along axis {axis}: expected a size >= 0")
        return size + before + after
    most = {"reflect": max(size - 1, 0), "replicate": math.inf if size else 0, "circular": size}[mode]
    if not 0 <= min(before, after) <= max(before, after) <= most:
        raise ShapeError(f"pad: ({before}, {after}) along axis {axis} of size {size}: expected 0 to {most} with mode={mode!r}")
    return size + before + after


def _plain(attributes: dict[str, Any]) -> None:
    attributes["pad"] = tuple(int(p) for p in attributes["pad"])
    attributes["value"] = float(attributes["value"])


@op("pad", "x", pad_rule, _plain)
def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> np.ndarray:
    """Makes axes longer at their ends.

    Args:
        x: any shape, any real dtype.
        pad: numbers of new entries ``(last axis before, last axis after, the axis before it: before, after, ...)``, as in torch;
            negative ones cut (constant mode alone).
        mode: ``"constant"`` (or ``"zeros"``), ``"reflect"`` (mirrored at the edge, which is not repeated), ``"replicate"`` (the edge
            repeated) or ``"circular"`` (from the other end).
        value: what constant mode fills in.

    Returns:
        float32, each size longer by what its axis got.

    Raises:
        ShapeError: `pad` or `mode` is not as described, or x is too small for the mode.
        DTypeError: x is complex, or no array of numbers.

    >>> import fastlayers as fl
    >>> fl.functional.pad([[1.0, 2.0, 3.0]], (1, 2), mode="reflect")
    array([[2., 1., 2., 3., 2., 1.]], dtype=float32)
    """
    x = as_float32(x, "pad", "x")
    pad_rule(x.shape, pad, mode, value)
    return run_pad(x, _pairs(x.ndim, pad), _MODES[mode], float(value))


def run_pad(x: np.ndarray, pairs: Sequence[tuple[int, int]], mode: int, value: float) -> np.ndarray:
    """Checked padding; `pairs` has (before, after) of every axis."""
    if any(min(pair) < 0 for pair in pairs):
        kept = tuple(slice(max(-before, 0), size - max(-after, 0)) for size, (before, after) in zip(x.shape, pairs, strict=True))
        x = np.ascontiguousarray(x[kept])
        pairs = [(max(before, 0), max(after, 0)) for before, after in pairs]
    todo = [i for i, pair in enumerate(pairs) if any(pair)]
    if not todo:
        return x.copy()
    while todo:
        x, todo = _pad_three(x, pairs, todo, mode, value)
    return x


def _pad_three(
    x: np.ndarray, pairs: Sequence[tuple[int, int]], todo: list[int], mode: int, value: float
) -> tuple[np.ndarray, list[int]]:
    """Pads the first axes of `todo`, as many as one call of the kernel can; returns the others."""
    first = todo[0]
    sizes: list[int] = []
    pads: list[tuple[int, int]] = []
    end = first
    for i in range(first, todo[-1] + 1):
        if i in todo:
            if len(sizes) == 3:
                break
            sizes.append(x.shape[i])
            pads.append(pairs[i])
        elif pads[-1] == (0, 0):
            sizes[-1] *= x.shape[i]
        elif len(sizes) < 2:
            sizes.append(x.shape[i])
            pads.append((0, 0))
        else:
            break
        end = i + 1
    done = [i for i in todo if i < end]
    lead = 3 - len(sizes)
    middle, before_after = [1] * lead + sizes, [(0, 0)] * lead + pads
    outer, inner = math.prod(x.shape[:first]), math.prod(x.shape[end:])
    out = empty(tuple(size + sum(pairs[i]) if i in done else size for i, size in enumerate(x.shape)))
    target = (outer, *(s + b + a for s, (b, a) in zip(middle, before_after, strict=True)), inner)
    flat = tuple(p for pair in before_after for p in pair)
    _dispatch.kernel("pad")(x.reshape(outer, *middle, inner), out.reshape(target), flat, mode, value)
    return out, todo[len(done) :]
