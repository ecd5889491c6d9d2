"""Whether the arrays of a call fit each other and the packed weights that it gets: their axes, and the one check of them all.

Packed weights fix sizes that a kernel uses as addresses, and may be of other sizes than the arrays that come with them. So every
kernel that takes or makes them asks first, in every folder: those of ``aot/`` through ``_fit.pyx``, which reads the same table
and has its errors made here, all others by calling `fits`. A step asks once, when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._lazy import Registry
from .._tuples import NamedTuple
from ..errors import ArgumentError, ShapeError
from .table import KERNELS, Kernel
from .winograd_points import check_tile, terms_of

__all__ = [
    "FITS", "Fit", "compare", "divides", "fits", "fits_cells", "fits_taps", "fits_tile", "fits_winograd", "last_of",
    "one_or_two", "places_of", "resized_sizes", "steps_of", "tables_of", "whole_columns", "whole_slices", "window_of",
]  # fmt: skip


class Fit(NamedTuple):
    """The axes of a kernel's arrays, one letter for each: axes of one letter have one size. A digit is a size; "1" alone stands
    for one element in any number of axes.

    Attributes:
        known: letters whose sizes come with the packed weights (or follow from plain arguments), in the order of the call's.
        axes: for each array argument in the table's order one entry for every set of its layout flags, counted in bits (the
            first flag 1, the second 2), or one for all; "a|b" are two ways.
    """

    known: str
    axes: Mapping[str, tuple[str, ...]]


# Of kernels that take packed weights or make them, the letters that are known, and the axes of arrays that the table does not
# tell, since they depend on flags: b batch, c and o channels of x and out, dhw and xyz their space; of recurrent layers as in the
# table, z all of a step's outputs, q values of h with projections.
_FIRST, _LAST = "bcdhw", "bdhwc"
_X = (_FIRST, _LAST, _FIRST, _LAST)  # flags: is x channels-last, is out?
_OUT = ("boxyz", "boxyz", "bxyzo", "bxyzo")
_SEQUENCE = {  # flags: batch_first, directions_apart
    "x": ("tbi", "bti", "tbi", "bti"), "lengths": ("b|bt",), "out": ("tbz", "btz", "tdbh", "btdh"),
}  # fmt: skip
_OF_FLAGS: dict[str, dict[str, tuple[str, ...]]] = {
    "conv": {"x": _X, "out": _OUT, "residual": _OUT},
    "conv_transpose": {"x": _X, "out": _OUT},
    "depthwise": {"x": (_FIRST, _LAST), "out": ("boxyz", "bxyzo"), "residual": ("boxyz", "bxyzo")},
    "winograd": {"x": _X, "out": _OUT, "residual": _OUT},
    "qconv": {"x": _X, "x_zero": ("1",), "x_scale": ("1",), "out": _OUT},
    "lstm_pack": {"w_hh": ("dgh", "dgq")},
    **dict.fromkeys(("lstm", "gru", "rnn"), _SEQUENCE),
}
_KNOWN = {
    "": "linear_pack nbits_pack conv_pack depthwise_pack winograd_pack qconv_pack overlap_add tree_log_prob tree_argmax",
    "kn": "linear nbits", "co": "conv conv_transpose depthwise winograd qconv", "o": "conv_transpose_pack",
    "gp": "lstm_pack dynamic_lstm_pack gru_pack rnn_pack", "dihuz": "lstm gru rnn", "dih": "dynamic_lstm",
    "dhwixyz": "resize", "no": "fft", "n": "tree_ensemble tree_distribution",
}  # fmt: skip


def _fit(kernel: Kernel, known: str) -> Fit:
    named = [kernel.arguments[i].partition("__") for i in kernel.arrays]
    own = _OF_FLAGS.get(kernel.name, {})
    return Fit(known, {name: own.get(name) or (axes,) for name, _, axes in named})


_LETTERS = {name: known for known, names in _KNOWN.items() for name in names.split()}
_KERNELS = {kernel.name: kernel for kernel in KERNELS if kernel.name in _LETTERS}
FITS: Registry[Fit] = Registry(_KERNELS, lambda name: _fit(_KERNELS[name], _LETTERS[name]))

# Kernel, stride, dilation and pads of a convolution, three axes each, pads in pairs.
Window = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]

# Calls that passed the checks, by everything that was compared: a look-up takes a fifth of the time of the checks.
_fitted: set[Any] = set()
_MOST = 1024


def fits(kernel: str, known: tuple[int, ...], arrays: tuple[Any, ...], flags: int = 0, window: Window | None = None) -> None:
    """Raises ShapeError unless the arrays of a call have the sizes that each other and the packed weights say.

    Args:
        kernel: a name of `FITS`.
        known: the sizes that the packed weights fix, in the order of its letters.
        arrays: the array arguments (or, of steps, their shapes), None where there is none.
        flags: the layouts, see `Fit`.
        window: of kernels whose result has one place for each window of x; its pads may be below 0 after x, where the last
            windows are not wanted.
    """
    key = kernel, known, flags, window, tuple([getattr(a, "shape", a) for a in arrays])
    if key in _fitted:
        return
    compare(kernel, known, arrays, flags, window)
    if len(_fitted) >= _MOST:
        _fitted.clear()
    _fitted.add(key)


def compare(kernel: str, known: tuple[int, ...], arrays: Sequence[Any], flags: int = 0, window: Window | None = None) -> None:
    """`fits` without looking whether the call has fitted before."""
    shapes = [getattr(array, "shape", array) for array in arrays]
    fit = FITS[kernel]
    sizes: dict[str, int] = dict(zip(fit.known, known, strict=True))
    for (name, layouts), shape in zip(fit.axes.items(), shapes, strict=True):
        if shape is None:
            continue
        ways = layouts[flags if len(layouts) > 1 else 0].split("|")
        axes = next((way for way in ways if len(way) == len(shape)), ways[0])
        if axes == "1" and _one(shape):
            continue
        if len(axes) != len(shape) or any(
            size != (int(axis) if axis.isdigit() else sizes.setdefault(axis, size))
            for axis, size in zip(axes, shape, strict=True)
        ):
            want = ", ".join(str(sizes.get(axis, axis)) for axis in axes) + ("," if len(axes) == 1 else "")
            fixed = ", ".join(f"{axis} = {size}" for axis, size in zip(fit.known, known, strict=True))
            why = f", as the other arguments and packed weights of {fixed} say" if fixed else ""
            raise ShapeError(f"{kernel}: {name} has shape {tuple(shape)}: expected ({want}){why}")
    if window is not None:
        _check_window(kernel, sizes, shapes, window)


def _one(shape: Sequence[int]) -> bool:
    return all(size == 1 for size in shape)


def _check_window(kernel: str, sizes: dict[str, int], shapes: Sequence[Any], window: Window) -> None:
    taps, stride, dilation, pads = window
    if len(pads) != 6:
        raise ShapeError(f"{kernel}: pads are {tuple(pads)}: expected six values, two for each of d, h and w")
    size, space = tuple(sizes[axis] for axis in "dhw"), tuple(sizes[axis] for axis in "xyz")
    want = tuple(
        max((n + before + after - d * (k - 1) - 1) // s + 1, 0)
        for n, k, s, d, before, after in zip(size, taps, stride, dilation, pads[::2], pads[1::2], strict=True)
    )
    if space != want:
        out = shapes[list(FITS[kernel].axes).index("out")]
        raise ShapeError(
            f"{kernel}: out has shape {tuple(out)}, of which {space} is space: expected {want} for x {tuple(shapes[0])}, "
            f"pads {tuple(pads)} and the packed weights' kernel {tuple(taps)}, stride {tuple(stride)}, dilation {tuple(dilation)}"
        )


def window_of(packed: Any, pads: Sequence[int]) -> Window:
    """The window of packed weights that have `kernel`, `stride` and `dilation`."""
    return packed.kernel, packed.stride, packed.dilation, tuple(pads)


def whole_slices(kernel: str, pads: Sequence[int]) -> None:
    """Raises ShapeError for padding along depth, in the name of a kernel that has none there."""
    if any(pads[:2]):
        raise ShapeError(f"{kernel}: pads are {tuple(pads)}: expected none before and after the depth")


def fits_taps(
    kernel: str, arrays: tuple[Any, ...], stride: Sequence[int], dilation: Sequence[int], groups: int, known: tuple[int, ...] = ()
) -> None:
    """`fits` for a kernel that packs the weights of a convolution, which come first."""
    steps_of(kernel, stride, dilation)
    if arrays[0].ndim:
        divides(kernel, "channels" if kernel == "depthwise_pack" else "groups", groups, arrays[0].shape[0])
    fits(kernel, known, arrays)


def whole_columns(kernel: str, pads: Sequence[int]) -> None:
    """Raises ShapeError where there are pads around slices, of a kernel whose taps are along the depth alone."""
    if any(pads[2:]):
        raise ShapeError(f"{kernel}: pads are {tuple(pads)}: expected none around slices for a kernel along the depth")


def fits_tile(arrays: tuple[Any, ...], tile: int, groups: int, stride: Sequence[int]) -> None:
    """`fits` for `winograd_pack`."""
    fits("winograd_pack", (), arrays)
    steps_of("winograd_pack", stride, (1, 1, 1))
    check_tile(arrays[0].shape[2:], tile, tuple(stride))
    divides("winograd_pack", "groups", groups, arrays[0].shape[0])


def fits_winograd(packed: Any, arrays: tuple[Any, ...], flags: int, pads: Sequence[int]) -> None:
    """`fits` for `winograd`, of packed weights that have `sizes`, `kernel` and `stride`, and dilations of 1."""
    if len(pads) == 6:
        if packed.kernel[0] == 1:
            whole_slices("winograd", pads)
        elif terms_of(packed.kernel) == 1:
            whole_columns("winograd", pads)
    fits("winograd", packed.sizes, arrays, flags, window_of(packed, pads))


def fits_cells(kernel: str, gates: int, arrays: tuple[Any, ...]) -> None:
    """`fits` for a kernel that packs the weights of a recurrent layer; `arrays` as in `lstm_pack`, or its first four."""
    w_ih, w_hh = arrays[:2]
    projection = arrays[5] if len(arrays) > 5 else None
    hidden = last_of((w_hh if projection is None else projection).shape)
    fits(kernel, (gates * hidden, 3 * hidden), arrays, int(projection is not None))
    one_or_two(kernel, w_ih.shape)


def one_or_two(kernel: str, w_ih: tuple[int, ...]) -> None:
    """Raises ShapeError unless a layer has one or two directions."""
    if not 1 <= w_ih[0] <= 2:
        raise ShapeError(f"{kernel}: w_ih has shape {w_ih}: expected weights of 1 or 2 directions")


def fits_bits(arrays: tuple[Any, ...], size: int, bits: int) -> None:
    """`fits` for `nbits_pack`, with what its weights, scales and zero points may be."""
    weight, scale, zero, _, codes = arrays
    fits("nbits_pack", (), arrays)
    if bits not in (2, 4, 8):
        raise ArgumentError(f"nbits_pack: bits is {bits}: expected 2, 4 or 8")
    block = weight.shape[2] * 8 // bits
    if block not in (16, 32, 64, 128, 256):
        raise ShapeError(f"nbits_pack: weight has shape {weight.shape}, {block} terms a block: expected 16, 32, 64, 128 or 256")
    if size < 1 or -(-size // block) != weight.shape[1]:
        raise ShapeError(
            f"nbits_pack: size is {size}, and the weights have {weight.shape[1]} blocks of {block} terms: expected as many as "
            "the size needs, and at least one"
        )
    if codes is not None and (bits == 2 or codes.dtype != np.float32 or len(codes) != 1 << bits or zero is not None):
        raise ArgumentError(
            f"nbits_pack: {len(codes)} codes of {codes.dtype} for {bits} bits: expected 16 or 256 of float32, and no zero points"
        )
    for name, array in (("scale", scale), ("zero", zero)):
        if array is not None and array.dtype == np.float32 and not np.isfinite(array).all():
            raise ArgumentError(f"nbits_pack: {name} has NaN or infinity: expected finite values")


def divides(kernel: str, name: str, groups: int, channels: int) -> None:
    """Raises ShapeError unless channels fall into so many groups; no channels fall into any number of them, 0 included."""
    if groups < 0 or (channels and (groups == 0 or channels % groups)):
        raise ShapeError(
            f"{kernel}: {name} is {groups}, and the weights have {channels} channels: expected a number that divides them"
        )


def steps_of(kernel: str, stride: Sequence[int], dilation: Sequence[int]) -> None:
    """Raises ShapeError unless stride and dilation are three values from 1 up."""
    for name, value in (("stride", stride), ("dilation", dilation)):
        if len(value) != 3 or any(step < 1 for step in value):
            raise ShapeError(f"{kernel}: {name} is {tuple(value)}: expected three values, each at least 1, for d, h and w")


def tables_of(kernel: str, axes: Sequence[Any], size: Sequence[int], values: bool = True) -> None:
    """Raises ShapeError unless axes are tables for d, h and w of an array: None, or index and weight [taps][outputs].

    Args:
        values: whether the positions that the tables name are looked at too.
    """
    if len(axes) != 3 or len(size) != 4 or any(n < 0 for n in size):
        raise ShapeError(
            f"{kernel}: {len(axes)} axes and the size {tuple(size)}: expected tables for d, h and w, and (d, h, w, i)"
        )
    for at, axis in enumerate(axes):
        if axis is None:
            continue
        index, weight = axis
        if index.ndim != 2 or index.dtype != np.int64 or not (len(index) == 1 if weight is None else len(index) > 0):
            raise ShapeError(
                f"{kernel}: the positions of axis {'dhw'[at]} have shape {index.shape} and dtype {index.dtype}: expected int64 "
                "(taps, outputs), and one tap where there are no weights"
            )
        if weight is not None and (weight.shape != index.shape or weight.dtype != np.float32):
            raise ShapeError(
                f"{kernel}: the weights of axis {'dhw'[at]} have shape {weight.shape} and dtype {weight.dtype}: expected float32 "
                f"{index.shape}, that of the positions"
            )
        if values and index.size and not (index.min() >= 0 and index.max() < size[at]):
            places_of(kernel, at, index, size[at])


def resized_sizes(axes: Sequence[Any], size: Sequence[int]) -> tuple[int, ...]:
    """(d, h, w, i) of x and (d, h, w) of the result that tables make of it."""
    return (*size, *(n if axis is None else axis[0].shape[1] for axis, n in zip(axes, size, strict=False)))


def places_of(kernel: str, at: int, index: np.ndarray, size: int) -> None:
    """The error for a table that names a place outside an axis."""
    wrong = index[(index < 0) | (index >= size)]
    raise ShapeError(f"{kernel}: place {wrong[0]} of axis {'dhw'[at]} is out of range: expected 0 to {size - 1}")


def last_of(shape: Sequence[int]) -> int:
    """The size of the last axis; 0 where there is none, which no check accepts."""
    return shape[-1] if shape else 0
