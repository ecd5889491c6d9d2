"""Padding of any axes of an array of any rank, out of calls of the kernel, which pads three."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls import padding as calls
from ..calls.machine import ARRAYS
from ..errors import ArgumentError
from ..graph.arrays import as_float32, contiguous, empty
from ..graph.ops import op
from ..graph.record import ints, record, scalar
from ..ir.checks import integer, number
from ..ir.graph import Shape
from ..kernels.table import PAD_MODES
from ..rules.windows import padded_size
from ._shape import copy_to

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["pad"]

# As the operator Pad has them.
ONNX_MODES = {"constant": "constant", "zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_SMALL = 1 << 16
_MODES = {"constant": PAD_MODES["zeros"], **PAD_MODES}


def pad_rule(x: Shape, pad: Any, mode: Any, value: Any) -> Shape:
    """Checks the arguments of `pad` and returns the shape of its result."""
    number("pad", "value", value)
    return _shape(x, _numbers(pad), mode)


def _numbers(pad: Any) -> tuple[int, ...]:
    if not isinstance(pad, (tuple, list)):
        raise ArgumentError(
            f"pad: pad is {pad!r}: expected a sequence (last axis before, last axis after, the axis before it, ...)"
        )
    for p in pad:
        if p.__class__ is not int or not -_SMALL < p < _SMALL:
            return tuple([integer("pad", "pad", p) for p in pad])
    return tuple(pad)  # as nearly all are: a small call notices


def _shape(x: Shape, pad: tuple[int, ...], mode: Any) -> Shape:
    pairs = _pairs(len(x), pad)
    if not isinstance(mode, str) or mode not in _MODES:
        raise ArgumentError(f"pad: mode is {mode!r}: expected one of {', '.join(map(repr, _MODES))}")
    return tuple(padded_size("pad", i, size, *pairs[i], mode) for i, size in enumerate(x))


def _pairs(ndim: int, pad: tuple[int, ...]) -> list[tuple[int, int]]:
    """(before, after) of every axis, in the order of the axes."""
    if len(pad) % 2 or len(pad) > 2 * ndim:
        raise ArgumentError(f"pad: pad has {len(pad)} values, x {ndim} axes: expected an even count of at most {2 * ndim}")
    pairs = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    return [(0, 0)] * (ndim - len(pairs)) + pairs


def _plain(attributes: dict[str, Any]) -> None:
    attributes["pad"] = tuple(int(p) for p in attributes["pad"])
    attributes["value"] = float(attributes["value"])


def _record(x: Any, pad: tuple[int, ...], mode: str, value: float) -> Any:
    pairs = _pairs(x.ndim, pad)
    flat = (*(before for before, _ in pairs), *(after for _, after in pairs))
    return record_pad(x, flat, mode, value)


def record_pad(x: Any, flat: Sequence[int], mode: str, value: float = 0.0) -> Any:
    """The operator Pad, with the function's limits: `flat` are the beginnings of all axes and then the ends."""
    own: dict[str, Any] = {} if ONNX_MODES[mode] == "constant" else {"mode": ONNX_MODES[mode], "bounded": True}
    return record("Pad", x, ints(*flat), scalar(value), **own)


@op("pad", "x", pad_rule, _record, _plain)
def pad(x: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0) -> np.ndarray:
    """Makes axes longer at their ends.

    Args:
        x: any shape, any real dtype.
        pad: counts of new entries ``(last axis before, last axis after, the axis before it: before, after, ...)``, as in torch;
            negative ones cut (constant mode alone).
        mode: ``"constant"`` (or ``"zeros"``), ``"reflect"`` (mirrored at the edge, which is not repeated), ``"replicate"`` (the
            edge repeated) or ``"circular"`` (from the other end).
        value: what constant mode fills in.

    Returns:
        float32, each size longer by what its axis got.

    Raises:
        ShapeError: `pad` or `mode` is not as described, or x is too small for the mode.
        DTypeError: x is complex or not numeric.

    >>> import fastlayers as fl
    >>> fl.functional.pad([[1.0, 2.0, 3.0]], (1, 2), mode="reflect")
    array([[2., 1., 2., 3., 2., 1.]], dtype=float32)
    """
    array = as_float32(x, "pad", "x")
    if value.__class__ is not float:
        value = number("pad", "value", value)
    crop, found = _plan(array.shape, _numbers(pad), mode if isinstance(mode, str) else repr(mode))
    if crop is not None:
        array = contiguous(array[crop], "pad")
    if not found:
        return copy_to(array, array.shape)
    out = empty(found[-1].shape)
    calls.pad(ARRAYS, array, out, found, _MODES[mode], value)
    return out


@functools.lru_cache(maxsize=256)
def _plan(shape: tuple[int, ...], pad: tuple[int, ...], mode: str) -> tuple[tuple[slice, ...] | None, tuple[calls.Step, ...]]:
    """Cutting off, and the calls of the kernel."""
    _shape(shape, pad, mode)
    pairs, crop = _pairs(len(shape), pad), None
    if any(p < 0 for p in pad):
        crop = tuple(slice(max(-before, 0), size - max(-after, 0)) for size, (before, after) in zip(shape, pairs, strict=True))
        shape = tuple(s.stop - s.start for s in crop)
        pairs = [(max(before, 0), max(after, 0)) for before, after in pairs]
    return crop, calls.steps(shape, tuple(pairs))
