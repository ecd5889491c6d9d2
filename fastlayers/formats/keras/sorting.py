"""Operations of keras.ops that sort, that look at matrices and angles, and norms: all of them written in several nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .build import BOOL, INT32, INT64, MOST_FILLED, Build, Refused, Tensor
from .layer import tensors
from .operation import OPERATIONS, as_tensor, integer, listed, put

__all__: list[str] = []


# ---- order -----------------------------------------------------------------------------------------------------------------


def _ordered(b: Build, x: Tensor, axis: Any, largest: bool) -> tuple[Tensor, Tensor, int]:
    """Sorted along an axis (None: all of it), the positions, and the axis."""
    if axis is None:
        x, axis = b.reshape(x, -1), 0
    at = x.axis(axis)
    size = b.shape_of(x, at)
    count = b.ints(size) if isinstance(size, int) else size
    values, places = b.many("TopK", 2, x, count, axis=at, largest=int(largest))
    return values, places, at


@put("Sort")
def sort(b: Build, x: Tensor, axis: Any = -1) -> Tensor:
    """From the smallest on."""
    values, _, _ = _ordered(b, b.cast(x, INT32) if x.dtype == BOOL else x, axis, False)
    return b.cast(values, x.dtype)


@put("Argsort")
def argsort(b: Build, x: Tensor, axis: Any = -1) -> Tensor:
    """The places of the sorted array's elements; the first of equal ones first."""
    return b.cast(_ordered(b, b.cast(x, INT32) if x.dtype == BOOL else x, axis, False)[1], INT32)


@put("Median")
def median(b: Build, x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The middle, or the mean of the two in the middle; NaN where there is one."""
    x = b.floats(x)
    axes = sorted(x.axes(list(range(x.rank)) if axis is None else axis))
    kept = [a for a in range(x.rank) if a not in axes]
    count = math.prod(x.size(a) for a in axes)
    flat = b.reshape(b.transpose(x, *kept, *axes), *(b.shape_of(x, a) for a in kept), count)
    values, _, at = _ordered(b, flat, -1, False)
    low, high = (b.take(values, at, i) for i in ((count - 1) // 2, count // 2))
    middle = low if count % 2 else b.op("Mul", b.op("Add", low, high), 0.5)
    unknown = b.cast(b.reduce("Max", b.cast(b.op("IsNaN", flat), INT32), [at]), BOOL)
    result = b.op("Where", unknown, math.nan, middle)
    return b.unsqueeze(result, *axes) if keepdims else result


# ---- parts -----------------------------------------------------------------------------------------------------------------


@put("Diff")
def diff(b: Build, a: Tensor, n: int = 1, axis: int = -1) -> Tensor:
    """Every element less the one before, n times."""
    for _ in range(integer(n)):
        after, before = b.slice(a, axis, 1, None), b.slice(a, axis, None, -1)
        a = b.op("Not", b.op("Equal", after, before)) if a.dtype == BOOL else b.op("Sub", after, before)
    return a


def _starts(start_indices: Any, rank: int) -> list[int]:
    """Constant starts, one per axis."""
    found = [integer(i) for i in start_indices]
    if len(found) != rank or min(found, default=0) < 0:
        raise ValueError(f"start_indices {found!s:.80} of an array of {rank} axes")
    return found


@put("Slice")
def slice_(b: Build, inputs: Tensor, start_indices: Any, shape: Any) -> Tensor:
    """A block of this shape from the starts on."""
    sizes = [integer(s) for s in shape]
    if len(sizes) != inputs.rank or min(sizes, default=0) < 0:
        raise Refused(f"a slice of shape {sizes!s:.80} of an array of {inputs.rank} axes")
    axes = b.ints(*range(inputs.rank))
    if isinstance(start_indices, Tensor):
        starts = b.cast(start_indices, INT64)
        return b.op("Slice", inputs, starts, b.op("Add", starts, b.ints(*sizes)), axes)
    begins = _starts(start_indices, inputs.rank)
    ends = [start + size for start, size in zip(begins, sizes, strict=True)]
    for axis, end in enumerate(ends):
        size = inputs.sizes[axis]
        if isinstance(size, int) and end > size:
            raise ValueError(f"a slice to {end} along axis {axis} of {size}")
    return b.op("Slice", inputs, b.ints(*begins), b.ints(*ends), axes)


@put("SliceUpdate")
def slice_update(b: Build, inputs: Tensor, start_indices: Any, updates: Any) -> Tensor:
    """The array with a block put in at the given starts."""
    block = b.cast(as_tensor(b, updates), inputs.dtype)
    sizes = [block.size(a) for a in range(block.rank)]
    if math.prod(sizes) * max(len(sizes), 1) > MOST_FILLED:
        raise Refused(f"a block of {math.prod(sizes)} elements")
    grid: Any = np.stack(np.meshgrid(*(np.arange(s, dtype=np.int64) for s in sizes), indexing="ij"), -1)
    if isinstance(start_indices, Tensor):
        index = b.op("Add", b.constant(grid), b.cast(start_indices, INT64))
    else:
        index = b.constant(grid + np.array(_starts(start_indices, inputs.rank), np.int64))
    return b.op("ScatterND", inputs, index, block)


def _diagonal_of(b: Build, x: Tensor, offset: Any, axis1: int, axis2: int) -> Tensor:
    i, j, k = x.axis(axis1), x.axis(axis2), integer(offset)
    rows, columns = x.size(i), x.size(j)
    kept = [a for a in range(x.rank) if a not in (i, j)]
    flat = b.reshape(b.transpose(x, *kept, i, j), *(b.shape_of(x, a) for a in kept), rows * columns)
    index = [r * columns + r + k for r in range(rows) if 0 <= r + k < columns]
    return b.op("Gather", flat, b.constant(np.array(index, np.int64)), axis=len(kept))


@put("Diagonal")
def diagonal(b: Build, x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal of matrices, as the last axis."""
    return _diagonal_of(b, x, offset, axis1, axis2)


@put("Trace")
def trace(b: Build, x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of the diagonal."""
    return b.reduce("Sum", _diagonal_of(b, x, offset, axis1, axis2), [-1])


@put("Diag")
def diag(b: Build, x: Tensor, k: int = 0) -> Tensor:
    """The diagonal of a matrix, or a matrix with this diagonal."""
    if x.rank != 1:
        return _diagonal_of(b, x, k, 0, 1)
    size, off = x.size(0), integer(k)
    wide = size + abs(off)
    index = np.arange(size)[:, None] + np.array([[max(-off, 0), max(off, 0)]])
    if wide * wide > MOST_FILLED:
        raise Refused(f"a matrix of {wide} rows")
    return b.op("ScatterND", b.constant(np.zeros((wide, wide), x.dtype)), b.constant(index.astype(np.int64)), x)


@put("Flipud")
def flipud(b: Build, x: Tensor) -> Tensor:
    """Rows the other way round."""
    return b.flip(x, 0)


@put("Fliplr")
def fliplr(b: Build, x: Tensor) -> Tensor:
    """Columns the other way round."""
    return b.flip(x, 1)


@put("Hstack")
def hstack(b: Build, xs: Any) -> Tensor:
    """One next to the other."""
    joined: Tensor = OPERATIONS["Concatenate"](b, xs, axis=min(1, tensors([xs])[0].rank - 1))
    return joined


@put("Vstack")
def vstack(b: Build, xs: Any) -> Tensor:
    """One under the other."""
    rows = [b.unsqueeze(t, 0) if t.rank == 1 else t for t in tensors([xs])]
    joined: Tensor = OPERATIONS["Concatenate"](b, rows, axis=0)
    return joined


_MOST_COLUMNS = 64  # of a matrix that is decomposed: some seven nodes each
_WINDOWS = {"hann": 0.5, "hamming": 0.54}  # the mean of each


# ---- vectors and matrices --------------------------------------------------------------------------------------------------


@put("Det")
def det(b: Build, x: Tensor) -> Tensor:
    """Determinants."""
    return b.op("Det", b.floats(x))


@put("Cholesky")
def cholesky(b: Build, x: Tensor, upper: bool = False) -> Tensor:
    """L of x = L times its transpose, column by column from the lower half of x; NaN where there is none."""
    x = b.floats(x)
    size = x.size(-1)
    if x.size(-2) != size or size > _MOST_COLUMNS:
        raise Refused(f"a matrix of {x.size(-2)} rows and {size} columns: expected a square one of at most {_MOST_COLUMNS}")
    columns: list[Tensor] = []
    for j in range(size):
        column = b.slice(x, -1, j, j + 1)
        if columns:
            before = b.concat(columns, x.rank - 1)
            products = b.op("Mul", before, b.slice(before, -2, j, j + 1))
            column = b.op("Sub", column, b.reduce("Sum", products, [x.rank - 1], True))
        column = b.op("Div", column, b.op("Sqrt", b.slice(column, -2, j, j + 1)))
        columns.append(b.op("Where", b.constant(np.arange(size)[:, None] < j), 0.0, column))
    made = b.concat(columns, x.rank - 1)
    return b.transpose(made, *range(x.rank - 2), x.rank - 1, x.rank - 2) if upper else made


@put("Cross")
def cross(b: Build, x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Tensor:
    """Products at right angles, of vectors of three."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = b.together(as_tensor(b, x1), as_tensor(b, x2))
    if x.size(axisa) != 3 or y.size(axisb) != 3:
        raise Refused("a cross product of vectors that do not have three elements")
    a, c = ([b.take(t, at, i) for i in range(3)] for t, at in ((x, axisa), (y, axisb)))
    parts = [b.op("Sub", b.op("Mul", a[i], c[j]), b.op("Mul", a[j], c[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    joined: Tensor = OPERATIONS["Stack"](b, parts, axis=axisc)
    return joined


@put("Outer")
def outer(b: Build, x1: Any, x2: Any) -> Tensor:
    """Every element of one times every one of the other."""
    x, y = b.together(as_tensor(b, x1), as_tensor(b, x2))
    return b.op("Mul", b.reshape(x, -1, 1), b.reshape(y, 1, -1))


@put("RFFT")
def rfft(b: Build, x: Any, fft_length: Any = None) -> list[Tensor]:
    """The first half of the Fourier transform of real numbers, real and imaginary parts."""
    x = b.floats(as_tensor(b, x))
    length = None if fft_length is None else b.constant(np.array(integer(fft_length), np.int64))
    at = b.constant(np.array(x.rank - 1, np.int64))
    made = b.op("DFT", b.unsqueeze(x, x.rank), length, at, onesided=1)
    return [b.take(made, -1, i) for i in (0, 1)]


def _pairs(b: Build, x: Any) -> Tensor:
    """(real, imaginary) parts next to each other on their own axis."""
    parts = [b.floats(as_tensor(b, part)) for part in x]
    if len(parts) != 2 or parts[0].rank != parts[1].rank:
        raise ValueError("expected real and imaginary parts of one shape")
    return b.op("Concat", *(b.unsqueeze(part, part.rank) for part in parts), axis=-1)


def _both(b: Build, made: Tensor) -> list[Tensor]:
    return [b.take(made, -1, i) for i in (0, 1)]


def _count(b: Build, value: int) -> Tensor:
    return b.constant(np.array(value, np.int64))


@put("STFT")
def stft(
    b: Build, x: Any, sequence_length: int, sequence_stride: int, fft_length: int, window: Any = "hann", center: bool = True
) -> list[Tensor]:
    """Transforms of windows of the last axis, real and imaginary parts."""
    x = b.floats(as_tensor(b, x))
    length, stride, size = integer(sequence_length), integer(sequence_stride), integer(fft_length)
    if not 0 < length <= size <= MOST_FILLED or stride < 1:
        raise ValueError(f"sequence_length={length}, sequence_stride={stride}, fft_length={size}")
    if center and size // 2:
        ends = np.zeros((2, x.rank), np.int64)
        ends[:, -1] = size // 2
        x = b.op("Pad", x, b.constant(ends.reshape(-1)), mode="reflect")
    if window is None:
        shape = np.ones(length)
    elif isinstance(window, str) and window in _WINDOWS:
        base = _WINDOWS[window]
        shape = base - (1 - base) * np.cos(2 * np.pi * np.arange(length) / length)
    elif isinstance(window, (list, tuple, np.ndarray)) and np.shape(window) == (length,):
        shape = np.asarray(window, np.float64)
    else:
        raise Refused(f"the window {window!r:.80}")
    before = (size - length) // 2
    weights = b.constant(np.pad(shape, (before, size - length - before)).astype(np.float32))
    kept = [b.shape_of(x, a) for a in range(x.rank - 1)]
    signal = b.reshape(x, -1, b.shape_of(x, x.rank - 1), 1)
    made = b.op("STFT", signal, b.constant(np.array(stride, np.int64)), weights, b.constant(np.array(size, np.int64)))
    made = b.reshape(made, *kept, b.shape_of(made, 1), size // 2 + 1, 2)
    return _both(b, made)


@put("FFT")
def fft(b: Build, x: Any) -> list[Tensor]:
    """Along the last axis of complex numbers, real and imaginary parts."""
    z = _pairs(b, x)
    return _both(b, b.op("DFT", z, None, _count(b, z.rank - 2)))


@put("FFT2")
def fft2(b: Build, x: Any) -> list[Tensor]:
    """Along the last two axes."""
    z = _pairs(b, x)
    return _both(b, b.op("DFT", b.op("DFT", z, None, _count(b, z.rank - 2)), None, _count(b, z.rank - 3)))


@put("IFFT2")
def ifft2(b: Build, x: Any) -> list[Tensor]:
    """The inverse of `fft2`."""
    z = b.op("DFT", _pairs(b, x), None, _count(b, as_tensor(b, x[0]).rank - 1), inverse=1)
    return _both(b, b.op("DFT", z, None, _count(b, z.rank - 3), inverse=1))


@put("IRFFT")
def irfft(b: Build, x: Any, fft_length: Any = None) -> Tensor:
    """The reals of which half a spectrum is given."""
    z = _pairs(b, x)
    length = None if fft_length is None else _count(b, integer(fft_length))
    made = b.op("DFT", z, length, _count(b, z.rank - 2), inverse=1, onesided=1)
    return b.squeeze(made, made.rank - 1)


# ---- numbers ---------------------------------------------------------------------------------------------------------------


def _negative(b: Build, x: Tensor) -> Tensor:
    """Whether the sign is there, of -0 too."""
    return b.op("Or", b.op("Less", x, 0.0), b.op("Less", b.op("Reciprocal", x), 0.0))


@put("Arctan2")
def arctan2(b: Build, x1: Any, x2: Any) -> Tensor:
    """The angle of the point (x2, x1)."""
    y, x = (b.floats(t) for t in b.together(as_tensor(b, x1), as_tensor(b, x2)))
    far, near = b.op("Abs", y), b.op("Abs", x)
    same = b.op("Where", b.op("Equal", far, 0.0), 0.0, 1.0)  # of 0 / 0 and of infinity / infinity
    ratio = b.op("Where", b.op("Equal", far, near), same, b.op("Div", far, near))
    angle = b.op("Atan", ratio)
    angle = b.op("Where", _negative(b, x), b.op("Sub", math.pi, angle), angle)
    return b.op("Where", _negative(b, y), b.op("Neg", angle), angle)


@put("Isfinite")
def isfinite(b: Build, x: Tensor) -> Tensor:
    """Neither infinite nor NaN."""
    x = b.floats(x)
    return b.op("Not", b.op("Or", b.op("IsNaN", x), b.op("IsInf", x)))


@put("Trunc")
def trunc(b: Build, x: Tensor) -> Tensor:
    """Without what is after the point."""
    if x.dtype.kind != "f":
        return x
    return b.op("Where", b.op("Less", x, 0.0), b.op("Ceil", x), b.op("Floor", x))


@put("CountNonzero")
def count_nonzero(b: Build, x: Tensor, axis: Any = None) -> Tensor:
    """The number of elements that are not 0."""
    other = b.cast(b.op("Not", b.op("Equal", b.cast(x, INT32) if x.dtype == BOOL else x, b.operand(0, x.dtype)
                                    if x.dtype != BOOL else b.operand(0, INT32))), INT32)  # fmt: skip
    return b.reduce("Sum", other, None if axis is None else listed(axis))


@put("Ptp")
def ptp(b: Build, x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest less the smallest."""
    axes = None if axis is None else listed(axis)
    return b.op("Sub", b.reduce("Max", x, axes, bool(keepdims)), b.reduce("Min", x, axes, bool(keepdims)))


OPERATIONS.update(
    Deg2rad=lambda b, x: b.op("Mul", b.floats(x), math.pi / 180),
    Rad2deg=lambda b, x: b.op("Mul", b.floats(x), 180 / math.pi),
    Exp2=lambda b, x: b.op("Pow", 2.0, b.floats(x)),
    Fabs=lambda b, x: b.op("Abs", b.floats(x)),
)


# ---- norms -----------------------------------------------------------------------------------------------------------------

_EPSILON = 1e-7  # Keras' own, where none is named


def _wide(b: Build, x: Tensor, axes: list[int], weight: Any) -> Tensor:
    """Weights unchanged, or with axes of size 1 put in between, so that their own are the normalized ones."""
    found = b.floats(as_tensor(b, weight))
    return found if found.rank in (1, x.rank) and axes == [x.rank - 1] else b.reshape(
        found, *(x.size(a) if a in axes else 1 for a in range(x.rank))
    )  # fmt: skip


def _norm_axes(x: Tensor, axis: Any) -> list[int]:
    return sorted(x.axes(axis))


@put("RMSNorm")
def rms_norm(b: Build, x: Tensor, scale: Any = None, axis: Any = -1, epsilon: Any = None) -> Tensor:
    """x / root of the mean of squares."""
    x = b.floats(x)
    axes = _norm_axes(x, axis)
    mean = b.reduce("Mean", b.op("Mul", x, x), axes, True)
    y = b.op("Div", x, b.op("Sqrt", b.op("Add", mean, _EPSILON if epsilon is None else float(epsilon))))
    return y if scale is None else b.op("Mul", y, _wide(b, x, axes, scale))


@put("LayerNorm")
def layer_norm(
    b: Build, x: Tensor, gamma: Any = None, beta: Any = None, axis: Any = -1, epsilon: Any = None, rms_scaling: bool = False
) -> Tensor:
    """(x - mean) / root of the variance; with rms_scaling the mean stays, and there is no beta."""
    x = b.floats(x)
    axes = _norm_axes(x, axis)
    centred = b.op("Sub", x, b.reduce("Mean", x, axes, True))
    variance = b.reduce("Mean", b.op("Mul", centred, centred), axes, True)
    root = b.op("Sqrt", b.op("Add", variance, _EPSILON if epsilon is None else float(epsilon)))
    y = b.op("Div", x if rms_scaling else centred, root)
    y = y if gamma is None else b.op("Mul", y, _wide(b, x, axes, gamma))
    return y if beta is None or rms_scaling else b.op("Add", y, _wide(b, x, axes, beta))
