"""Spectra: DFT and STFT, OverlapAdd for the way back, the windows that go with them, and MelWeightMatrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls.spectral import frames, transform
from ..errors import LimitError
from ..ir.checks import differ
from ..ir.graph import Dim
from ..kernels.fft_tables import FFT, IFFT, IRFFT, REAL, REAL_INVERSE, RFFT
from ..kernels.reference.fft import overlap_add
from ..rules.spectral import bins_rule, frames_rule, norm_rule, pairs_rule, points_rule, window_rule
from ._base import Spec, View, register
from ._traits import PLAIN, Traits
from .activation import wide
from .shapes import axis_of, dtype_of, expect, known, need_kind, scalar
from .spectral_rules import check_overlap, scale_of

if TYPE_CHECKING:
    from .builder import Builder

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]
LARGEST = 1 << 40  # values of a result
MOST_PLANNED = 1 << 20  # points of a transform that a kernel plans: its tables take some 60 bytes each

# ---- DFT -------------------------------------------------------------------------------------------------------------


def _one(n: View, i: int) -> int | None:
    """The integer that input i holds, if it is known."""
    if not n.has(i):
        return None
    found = known(n, i)
    if found is None:
        return None
    if len(found) != 1:
        raise n.fail(f"input {i} has {len(found)} values: expected one")
    return found[0]


def _length(n: View, length: int, what: str = "dft_length", least: int = 1) -> int:
    if not least <= length <= LARGEST:
        raise (LimitError if length > LARGEST else n.fail)(f"{n.where}: {what} is {length}: expected {least} to {LARGEST}")
    return length


def _kept(n: View, length: Dim, half: bool, whole: bool) -> Dim:
    """Number of frequencies, or (`whole`: the other way round) of samples."""
    if not isinstance(length, int):
        return None if half and not whole else length
    return length // 2 + 1 if half and not whole else length


def _dft_infer(n: View) -> list[Spec]:
    """x (…, size, …, 1 or 2), the last axis being real and imaginary parts."""
    need_kind(n, "f", 0)
    x, dtype = n.shape(0), n.spec(0).dtype
    inverse, half = bool(n.get("inverse", 0)), bool(n.get("onesided", 0))
    axis = _one(n, 2) if n.has(2) else -2
    if x is None:
        return [Spec(None, dtype)]
    if n.get("parts") == 2 or (half and inverse):
        pairs_rule(n.where, x)
    if len(x) < 2 or (isinstance(x[-1], int) and x[-1] not in (1, 2)):
        raise n.fail(f"x has shape {x}: expected (…, size, …, 1 or 2)")
    if half and not inverse and differ(x[-1], 1):
        raise n.fail(f"x has shape {x}: onesided takes real values")
    last = 1 if half and inverse else 2
    if axis is None:
        return [Spec((*(None,) * (len(x) - 1), last), dtype)]
    axis = _axis(n, axis, len(x))
    bins_rule(n.where, x[axis], n.get("bins"))
    if n.has(1):
        given = _one(n, 1)
        length: Dim = None if given is None else _length(n, given)
    else:
        length = points_rule(n.where, x[axis], axis, half and inverse)
    return [Spec((*x[:axis], _kept(n, length, half, inverse), *x[axis + 1 : -1], last), dtype)]


def _axis(n: View, value: int, rank: int) -> int:
    axis = axis_of(n, value, rank)
    if axis == rank - 1:
        raise n.fail(f"axis is {value}: expected another than the last one, of real and imaginary parts")
    return axis


def _complex(x: np.ndarray) -> np.ndarray:
    y = wide(x)
    return y[..., 0] + 1j * y[..., 1] if x.shape[-1] == 2 else y[..., 0]


def _parts(x: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    return np.stack([x.real, x.imag], axis=-1).astype(dtype)


def _dft_run(n: View, x: np.ndarray, length: np.ndarray | None = None, axis: np.ndarray | None = None) -> Arrays:
    inverse, half = bool(n.get("inverse", 0)), bool(n.get("onesided", 0))
    at = _axis(n, -2 if axis is None else int(scalar(n, 2, axis)), x.ndim)
    count = _points(n, x.shape, at, None if length is None else int(scalar(n, 1, length)))
    signal, norm = _complex(x), _norm(n)
    if half and inverse:
        return (np.fft.irfft(signal, count, axis=at, norm=norm)[..., None].astype(x.dtype),)
    if half:
        return (_parts(np.fft.rfft(signal.real, count, axis=at, norm=norm), x.dtype),)
    return (_parts((np.fft.ifft if inverse else np.fft.fft)(signal, count, axis=at, norm=norm), x.dtype),)


def _norm(n: View) -> Any:
    """Normalization of results; our own attribute, whose default is ONNX's rule."""
    return norm_rule(n.where, n.get("norm", "backward"))


def _points(n: View, shape: tuple[int, ...], at: int, length: int | None) -> int:
    """Number of points transformed along an axis of x, which is cut or filled with zeros."""
    if length is not None:
        return _length(n, length)
    points: Any = points_rule(n.where, shape[at], at, bool(n.get("inverse", 0) and n.get("onesided", 0)))
    return int(points)


def _dft_lower(n: View, b: Builder) -> Any:
    x, length, axis = n.sizes(0), _one(n, 1), _one(n, 2) if n.has(2) else -2
    if not n.float32(0) or axis is None or (n.has(1) and length is None):
        return False
    inverse, half, rank = bool(n.get("inverse", 0)), bool(n.get("onesided", 0)), len(x)
    at = _axis(n, axis, rank)
    count = _points(n, x, at, length)
    if count > MOST_PLANNED:
        return False
    real = (REAL, REAL_INVERSE) if x[-1] == 1 else (FFT, IFFT)
    op = (IRFFT if inverse else RFFT) if half else real[inverse]
    packed = b.pack("fft_pack", lambda: (count, op, scale_of(_norm(n), inverse, count)), ("fft", count, op), kept=n.has(1))
    transform(b.machine, packed, b.input(0), b.output(0), at, True, True)
    return True


register("DFT", _dft_infer, _dft_run, _dft_lower, Traits(steers=(1, 2)))

# ---- STFT ------------------------------------------------------------------------------------------------------------


def _frame(n: View, x: Dim, step: int | None, window: Dim, length: int | None) -> tuple[Dim, Dim]:
    """The number of frames and the length of each, as far as they are known."""
    size: Dim = length if length is not None or n.has(3) else window
    if step is not None and step < 1:
        raise n.fail(f"frame_step is {step}: expected at least 1")
    if isinstance(size, int):
        _length(n, size, "frame_length")
        window_rule(n.where, (window,), size, "frame_length")
        frames_rule(n.where, x, size, size, "frame_length")
    frames = (x - size) // step + 1 if isinstance(x, int) and isinstance(size, int) and step is not None else None
    return frames, size


def _stft_infer(n: View) -> list[Spec]:
    """x (n, length, 1 or 2) or (n, length): frames (n, frames, frequencies, 2)."""
    need_kind(n, "f", 0)
    x, dtype, window = n.shape(0), n.spec(0).dtype, None
    if not n.has(2) and not n.has(3):
        raise n.fail("neither a window nor a frame_length is given: expected one of them")
    if n.has(2):
        need_kind(n, "f", 2)
        shape = n.shape(2)
        if shape is not None and len(shape) != 1:
            raise n.fail(f"the window has shape {shape}: expected a vector")
        window = None if shape is None else shape[0]
    if x is None:
        return [Spec((None,) * 3 + (2,), dtype)]
    if len(x) not in (2, 3) or (len(x) == 3 and isinstance(x[2], int) and x[2] not in (1, 2)):
        raise n.fail(f"x has shape {x}: expected (n, length) or (n, length, 1 or 2)")
    half = bool(n.get("onesided", 1))
    if half and len(x) == 3 and x[2] == 2:
        raise n.fail(f"x has shape {x}: onesided takes real values")
    frames, size = _frame(n, x[1], _one(n, 1), window, _one(n, 3))
    return [Spec((x[0], frames, _kept(n, size, half, False), 2), dtype)]


def _stft_run(
    n: View, x: np.ndarray, step: np.ndarray, window: np.ndarray | None = None, length: np.ndarray | None = None
) -> Arrays:
    by = int(scalar(n, 1, step))
    given = None if length is None else int(scalar(n, 3, length))
    size: Any = _frame(n, x.shape[1], by, None if window is None else window.shape[0], given)[1]
    signal = _complex(x if x.ndim == 3 else x[..., None])
    frames = np.lib.stride_tricks.sliding_window_view(signal, size, axis=1)[:, ::by]
    if window is not None:
        frames = frames * wide(window)
    made = np.fft.rfft(frames.real) if n.get("onesided", 1) else np.fft.fft(frames)
    return (_parts(made, x.dtype),)


def _stft_lower(n: View, b: Builder) -> Any:
    x, step, length = n.sizes(0), _one(n, 1), _one(n, 3)
    if not n.float32(0) or (n.has(2) and not n.float32(2)) or step is None or (n.has(3) and length is None):
        return False
    size: Any = _frame(n, x[1], step, n.sizes(2)[0] if n.has(2) else None, length)[1]
    if size > MOST_PLANNED:
        return False
    parts = x[2] if len(x) == 3 else 1
    op = FFT if parts == 2 else RFFT if n.get("onesided", 1) else REAL
    packed = b.pack("fft_pack", lambda: (size, op, 1.0), ("fft", size, op), kept=n.has(3) or n.value(2) is not None)
    frames(b.machine, packed, b.input(0), b.optional(2), b.output(0), step)
    return True


register("STFT", _stft_infer, _stft_run, _stft_lower, Traits(steers=(1, 3)))

# ---- OverlapAdd --------------------------------------------------------------------------------------------------------


def _places(n: View) -> tuple[int, int, int | None]:
    """The distance between frames, the number of values before the first one, and the number of frames."""
    step, offset, length = n.get("step"), n.get("offset", 0), n.get("length")
    for name, value, least in (("step", step, 1), ("offset", offset, 0), ("length", length, 0)):
        if name == "length" and value is None:
            continue
        if type(value) is not int or not least <= value <= LARGEST:
            raise n.fail(f"{name} is {value!r}: expected an int from {least} to {LARGEST}")
    return step, offset, length


def _overlap_infer(n: View) -> list[Spec]:
    """Frames (n, frames, size) and their window (size,): what they were cut from, (n, length)."""
    need_kind(n, "f", 0)
    step, offset, length = _places(n)
    x, dtype = n.shape(0), n.spec(0).dtype
    if x is None:
        return [Spec((None, length), dtype)]
    if len(x) != 3:
        raise n.fail(f"x has shape {x}: expected (n, frames, size)")
    expect(n, 1, x[2])
    if length is None and isinstance(x[1], int) and isinstance(x[2], int):
        length = max((x[1] - 1) * step + x[2] - 2 * offset, 0)
    return [Spec((x[0], length), dtype)]


def _given_shape(n: View) -> tuple[int, ...]:
    """The shape of what the frames give, whose sizes are known."""
    shape: Any = _overlap_infer(n)[0].shape
    return tuple(map(int, shape))


def _overlap_run(n: View, x: np.ndarray, window: np.ndarray | None = None) -> Arrays:
    (step, offset, _), length = _places(n), _given_shape(n)[1]
    out = np.empty((len(x), _length(n, length, "length", 0)), np.float64)
    check_overlap(n.where, window, x.shape[1], x.shape[2], step, offset, length)
    overlap_add(wide(x), None if window is None else wide(window), out, step, offset, True)
    return (out.astype(x.dtype),)


def _overlap_lower(n: View, b: Builder) -> Any:
    if not n.float32():
        return False
    x, (step, offset, _) = b.input(0), _places(n)
    out = b.output(0)
    if not n.has(1) or n.value(1) is not None:  # of a window that comes when the model runs, what it does not reach is NaN
        check_overlap(n.where, n.value(1), x.shape[1], x.shape[2], step, offset, out.shape[1])
    b.call("overlap_add", x, b.optional(1), out, step, offset, True)
    return True


register("OverlapAdd", _overlap_infer, _overlap_run, _overlap_lower, PLAIN)

# ---- windows ---------------------------------------------------------------------------------------------------------

# Coefficients of sums a0 - a1 cos(t) + a2 cos(2t).
WINDOWS = {"BlackmanWindow": (0.42, 0.5, 0.08), "HammingWindow": (25 / 46, 21 / 46, 0.0), "HannWindow": (0.5, 0.5, 0.0)}


def _window_infer(n: View) -> list[Spec]:
    need_kind(n, "iu", 0)
    _need_size(n)
    size = _one(n, 0)
    return [Spec((None if size is None else _length(n, size, "size", 0),), dtype_of(n, n.get("output_datatype", 1)))]


def _need_size(n: View) -> None:
    """Raises unless the size is one number."""
    if n.shape(0) not in ((), (1,), (None,), None):
        raise n.fail(f"size has shape {n.shape(0)}: expected one number")


def _window_run(n: View, size: np.ndarray) -> Arrays:
    count = _length(n, int(scalar(n, 0, size)), "size", 0)
    a, b, c = WINDOWS[n.op]
    t = np.arange(count) * (2 * np.pi / max(count if n.get("periodic", 1) else count - 1, 1))
    return ((a - b * np.cos(t) + c * np.cos(2 * t)).astype(dtype_of(n, n.get("output_datatype", 1))),)


for _name in WINDOWS:
    register(_name, _window_infer, _window_run, traits=Traits(steers=(0,)))

# ---- MelWeightMatrix -------------------------------------------------------------------------------------------------

MEL = ("num_mel_bins", "dft_length", "sample_rate")


def _mel_infer(n: View) -> list[Spec]:
    """Weights (frequencies, bins): triangles of equal width in mel, one beginning where the one before has its top."""
    need_kind(n, "iu", 0, 1, 2)
    need_kind(n, "f", 3, 4)
    bins, length, rate = (_one(n, i) for i in range(3))
    sizes = [
        None if v is None else _length(n, v, name, least)
        for v, name, least in zip((bins, length, rate), MEL, (0, 0, 1), strict=True)
    ]
    frequencies = None if sizes[1] is None else sizes[1] // 2 + 1
    return [Spec((frequencies, sizes[0]), dtype_of(n, n.get("output_datatype", 1)))]


def _mel_run(n: View, bins: np.ndarray, length: np.ndarray, rate: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Arrays:
    count, size = (_length(n, int(scalar(n, i, v)), MEL[i], 0) for i, v in enumerate((bins, length)))
    hertz = _length(n, int(scalar(n, 2, rate)), MEL[2])
    low, high = float(scalar(n, 3, lower)), float(scalar(n, 4, upper))
    if not -700 < low <= high < np.inf:
        raise n.fail(f"the edges are {low} and {high} hertz: expected the lower one first")
    rows = size // 2 + 1
    mel = 2595 * np.log10(1 + np.array([low, high]) / 700)
    points = mel[0] + np.arange(count + 2) * ((mel[1] - mel[0]) / (count + 2))
    at = ((size + 1) * (700 * (10 ** (points / 2595) - 1)) // hertz).astype(np.int64)
    row, start, top, end = np.arange(rows)[:, None], at[:-2], at[1:-1], at[2:]
    rising = (row - start) / np.maximum(top - start, 1)
    falling = (end - row) / np.maximum(end - top, 1)
    made = np.where((row >= start) & (row < top), rising, np.where((row >= top) & (row < end), falling, 0.0))
    made = np.where(row == top, 1.0, made)
    return (made.astype(dtype_of(n, n.get("output_datatype", 1))),)


register("MelWeightMatrix", _mel_infer, _mel_run, traits=Traits(steers=(0, 1, 2)))
