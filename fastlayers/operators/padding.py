"""Pad: more elements around an array, or fewer. Beyond ONNX's attributes there is `bounded`, of recorded functions: then no axis
mirrors or repeats more than it has, as `functional.pad` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..calls import padding as calls
from ..kernels.table import PAD_MODES
from ..rules.windows import padded_size
from ._base import Spec, View, register, unknown
from ._traits import Traits
from .calls import MOST_AXES, copy, move, strides_of
from .movement import movers
from .shapes import axis_of, known, need_number, scalar

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]

# Modes, as numpy calls them and as the kernels do.
MODES = {
    "constant": ("constant", "zeros"),
    "reflect": ("reflect", "reflect"),
    "edge": ("edge", "replicate"),
    "wrap": ("wrap", "circular"),
}


def _pads(n: View, rank: int, pads: Sequence[int], axes: Sequence[int] | None) -> list[tuple[int, int]]:
    """(before, after) of every axis."""
    chosen = range(rank) if axes is None else [axis_of(n, a, rank) for a in axes]
    if len(pads) != 2 * len(chosen):
        raise n.fail(f"pads are {tuple(pads)}: expected {2 * len(chosen)}, the beginnings of all axes and then the ends")
    found = [(0, 0)] * rank
    for i, axis in enumerate(chosen):
        found[axis] = (pads[i], pads[len(chosen) + i])
    return found


def _mode(n: View) -> str:
    mode = n.get("mode", "constant")
    if mode not in MODES:
        raise n.fail(f"mode is {mode!r}: expected one of {', '.join(MODES)}")
    return str(mode)


def _pad_infer(n: View) -> list[Spec]:
    _mode(n)  # by ONNX's names, which are not those of functions
    need_number(n, 2)
    shape, pads, axes, dtype = n.shape(0), known(n, 1), known(n, 3), n.spec(0).dtype
    if shape is None:
        return [Spec(None, dtype)]
    if pads is None or (n.has(3) and axes is None):
        return [unknown(len(shape), dtype)]
    pairs = enumerate(zip(shape, _pads(n, len(shape), pads, axes), strict=True))
    mode = MODES[_mode(n)][1] if n.get("bounded") else "constant"
    return [Spec(tuple(padded_size(n.where, axis, size, *pair, mode) for axis, (size, pair) in pairs), dtype)]


def _pad_run(n: View, x: np.ndarray, pads: np.ndarray, value: np.ndarray | None = None, axes: np.ndarray | None = None) -> Arrays:
    pairs = _pads(n, x.ndim, [int(v) for v in pads.reshape(-1)], None if axes is None else [int(v) for v in axes.reshape(-1)])
    mode = _mode(n)
    # What is taken away goes first, and then counts for no border.
    x = x[tuple(slice(max(-a, 0), s - max(-z, 0)) for (a, z), s in zip(pairs, x.shape, strict=True))]
    options: dict[str, Any] = {}
    if mode == "constant":
        options["constant_values"] = x.dtype.type(0) if value is None else scalar(n, 2, value).astype(x.dtype)
    return (np.pad(x, [(max(a, 0), max(z, 0)) for a, z in pairs], mode=MODES[mode][0], **options),)  # type: ignore[call-overload]


def _pad_lower(n: View, b: Any) -> Any:
    pads, axes, shape = known(n, 1), known(n, 3), n.sizes(0)
    if pads is None or (n.has(3) and axes is None):
        return False
    pairs = _pads(n, len(shape), pads, axes)
    if all(a <= 0 and z <= 0 for a, z in pairs):
        if not movers(n):
            return False
        strides = strides_of(shape)
        kept = [s + a + z for s, (a, z) in zip(shape, pairs, strict=True)]
        return move(b, b.input(0), kept, sum(-a * s for (a, _), s in zip(pairs, strides, strict=True)), strides)
    return _pad_native(n, b, shape, pairs) is not False or _pad_copied(n, b, shape, pairs)


def _pad_native(n: View, b: Any, shape: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Any:
    """More float32 elements than a result may have."""
    mode, value = _mode(n), n.value(2)
    most = {"reflect": -1, "wrap": 0}
    inside = all(
        a >= 0 and z >= 0 and (mode not in most or max(a, z) <= s + most[mode]) for (a, z), s in zip(pairs, shape, strict=True)
    )
    if not n.float32(0) or not inside or (n.has(2) and value is None) or (0 in shape and mode != "constant"):
        return False
    fill = 0.0 if value is None else float(value.reshape(-1)[0])
    found = calls.steps(tuple(shape), tuple(pairs))
    return calls.pad(b.machine, b.input(0), b.output(0), found, PAD_MODES[MODES[mode][1]], fill)


def _pad_copied(n: View, b: Any, shape: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Any:
    """Constant borders of any dtype, and fewer elements than x has at others: filled first, then x copied into the middle."""
    dtype, value = n.spec(0).dtype, n.value(2)
    if _mode(n) != "constant" or not movers(n) or len(shape) > MOST_AXES or (n.has(2) and value is None):
        return False
    fill = np.zeros((), dtype) if value is None else scalar(n, 2, value).astype(dtype).reshape(())
    x, out = b.input(0), b.output(0)
    copy(b, b.constant(np.asarray(fill)), out, (out.size,), 0, (0,), 0, (1,))
    strides, to = strides_of(shape), strides_of(out.shape)
    kept = [s - max(-a, 0) - max(-z, 0) for s, (a, z) in zip(shape, pairs, strict=True)]
    if min(kept, default=1) > 0:
        first = sum(max(-a, 0) * s for (a, _), s in zip(pairs, strides, strict=True))
        copy(b, x, out, kept, first, strides, sum(max(a, 0) * s for (a, _), s in zip(pairs, to, strict=True)), to)
    return True


register("Pad", _pad_infer, _pad_run, _pad_lower, Traits(time="pad", work="elements", steers=(1, 3)))
