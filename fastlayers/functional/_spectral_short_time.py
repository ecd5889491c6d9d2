"""Short-time Fourier transforms, their inverse, and spectrograms; names and arguments are those of torch and torchaudio.

Complex values are pairs, real and imaginary part, on a last axis of size 2, as `torch.view_as_real` gives them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls.machine import ARRAYS
from ..calls.spectral import transform
from ..errors import ShapeError
from ..graph.arrays import as_float32, contiguous, empty, optional_float32
from ..graph.ops import op
from ..graph.record import ints, record, scalar
from ..ir.checks import integer
from ..ir.graph import Shape
from ..kernels import dispatch
from ..kernels.fft_tables import IRFFT
from ..operators.spectral_rules import check_overlap, scale_of
from ..rules.spectral import bins_rule, pairs_rule, window_rule
from ._arithmetic import sqrt
from ._padding import record_pad
from ._spectral_frames import Frames, cut, frames_in, frames_of, inverse_scale, padded, plan, power_of, whole_window

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["istft", "spectrogram", "stft"]


def _stft_rule(
    x: Shape, window: Shape | None, n_fft: Any, hop_length: Any, win_length: Any, center: Any, pad_mode: Any, normalized: Any,
    onesided: Any,
) -> Shape:  # fmt: skip
    s = frames_of("stft", n_fft, hop_length, win_length, center, pad_mode, normalized, onesided)
    window_rule("stft", window, s.win, "win_length")
    return (*x[:-1], s.bins, frames_in("stft", x, s), 2)


def _plain(attributes: dict[str, Any]) -> None:
    for name in ("n_fft", "hop_length", "win_length"):
        attributes[name] = None if attributes[name] is None else int(attributes[name])
    for name in ("center", "normalized", "onesided"):
        if name in attributes:
            attributes[name] = bool(attributes[name])


def _record_window(name: str, s: Frames, window: Any) -> Any:
    """The window of a whole transform; one that is shorter and comes when the model runs gets its zeros then."""
    if window is None or isinstance(window, np.ndarray):
        return whole_window(name, s, window)
    if s.win == s.n_fft:
        return window
    before = (s.n_fft - s.win) // 2
    return record("Pad", window, ints(before, s.n_fft - s.win - before), scalar(0.0))


def _record_transform(name: str, s: Frames, x: Any, window: Any) -> Any:
    """(n, frames, frequencies, 2)."""
    if x.ndim == 1:
        x = record("Unsqueeze", x, ints(0))
    if s.around:
        x = record_pad(x, (0, s.around, 0, s.around), s.pad_mode)
    hop, size = np.array(s.hop, np.int64), np.array(s.n_fft, np.int64)
    made = record("STFT", x, hop, _record_window(name, s, window), size, onesided=int(s.onesided))
    return record("Mul", made, scalar(scale_of("ortho", False, s.n_fft))) if s.normalized else made


def _record_turned(x: Any, made: Any) -> Any:
    """Frequencies before frames, and no batch where x had none."""
    turned = record("Transpose", made, perm=(0, 2, 1, 3)[: made.ndim])
    return record("Squeeze", turned, ints(0)) if x.ndim == 1 else turned


def _record_stft(x: Any, window: Any, **given: Any) -> Any:
    return _record_turned(x, _record_transform("stft", frames_of("stft", **given), x, window))


def _record_spectrogram(x: Any, window: Any, power: float, **given: Any) -> Any:
    made = _record_transform("spectrogram", frames_of("spectrogram", **given), x, window)
    made = record("ReduceSumSquare", made, ints(-1), keepdims=0)
    return _record_turned(x, record("Sqrt", made) if power == 1 else made)


def _record_istft(x: Any, window: Any, length: int | None, **given: Any) -> Any:
    s, alone = frames_of("istft", pad_mode="reflect", **given), x.ndim == 3
    if alone:
        x = record("Unsqueeze", x, ints(0))
    x = record("Transpose", x, perm=(0, 2, 1, 3))
    norm = "ortho" if s.normalized else "backward"
    size, at = np.array(s.n_fft, np.int64), np.array(2, np.int64)
    reals = record("DFT", x, size, at, inverse=1, onesided=1, norm=norm, bins=s.bins)
    pieces = record("Squeeze", reals, ints(-1))
    places = {"step": s.hop, "offset": s.around} | ({} if length is None else {"length": length})
    made = record("OverlapAdd", pieces, _record_window("istft", s, window), **places)
    return record("Squeeze", made, ints(0)) if alone else made


@op("stft", "x window", _stft_rule, _record_stft, _plain)
def stft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool = True,
) -> np.ndarray:
    """Short-time Fourier transform: the transforms of overlapping frames of a signal, each multiplied by a window; torch.stft.

    Args:
        x: ``(t,)`` or ``(n, t)``, any real dtype.
        n_fft: points of each transform.
        hop_length: from one frame to the next; None is a quarter of `n_fft`.
        win_length: values of the window, at most `n_fft`, in whose middle it is; None is `n_fft`.
        window: ``(win_length,)``; None is all ones.
        center: whether frame i has number ``i * hop_length`` in its middle, which pads both ends by half of `n_fft`.
        pad_mode: what is there: ``"reflect"``, ``"constant"`` (zeros), ``"replicate"`` or ``"circular"``.
        normalized: whether results are divided by the root of `n_fft`.
        onesided: whether frequencies above the middle, which mirror those below, are left out.

    Returns:
        float32 ``(n, frequencies, frames, 2)``, or ``(frequencies, frames, 2)``: complex values as pairs.

    Raises:
        ShapeError: shapes do not fit, or the signal is too short.
        ArgumentError: `pad_mode` is unknown.
        DTypeError: an argument has a wrong dtype.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.stft(np.ones((2, 16000)), 400, 160, window=fl.functional.hann_window(400)).shape
    (2, 201, 101, 2)
    """
    x, window = as_float32(x, "stft", "x"), optional_float32(window, "stft", "window")
    s = frames_of("stft", n_fft, hop_length, win_length, center, pad_mode, normalized, onesided)
    frames: Any = frames_in("stft", x.shape, s)
    weights = whole_window("stft", s, window)
    made = cut(padded("stft", x, s), weights, s, frames, scale_of("ortho" if s.normalized else "backward", False, s.n_fft))
    out = empty((*x.shape[:-1], s.bins, frames, 2))
    np.copyto(out.reshape(len(made), s.bins, frames, 2), made.swapaxes(1, 2))
    return out


def _istft_rule(
    x: Shape, window: Shape | None, n_fft: Any, hop_length: Any, win_length: Any, center: Any, normalized: Any, onesided: Any,
    length: Any,
) -> Shape:  # fmt: skip
    s = frames_of("istft", n_fft, hop_length, win_length, center, "reflect", normalized, onesided)
    window_rule("istft", window, s.win, "win_length")
    if len(x) not in (3, 4):
        raise ShapeError(f"istft: x has shape {x}: expected (n, {s.bins}, frames, 2) or ({s.bins}, frames, 2)")
    pairs_rule("istft", x)
    bins_rule("istft", x[-3], s.bins)
    if length is not None:
        return (*x[:-3], integer("istft", "length", length, 0, 1 << 40))
    frames = x[-2]
    if not isinstance(frames, int):
        return (*x[:-3], None)
    whole = (frames - 1) * s.hop + s.n_fft - 2 * s.around
    if frames < 1 or whole < 0:
        raise ShapeError(f"istft: x has shape {x}: expected frames enough for n_fft={s.n_fft}")
    return (*x[:-3], whole)


def _plain_back(attributes: dict[str, Any]) -> None:
    _plain(attributes)
    attributes["length"] = None if attributes["length"] is None else int(attributes["length"])


@op("istft", "x window", _istft_rule, _record_istft, _plain_back, plans="window")
def istft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool = True,
    length: int | None = None,
) -> np.ndarray:
    """The signal whose `stft` is x: inverse transforms, weighed by the window, added, divided by its squares' sum; torch.istft.

    Args:
        x: ``(n, frequencies, frames, 2)`` or ``(frequencies, frames, 2)``, complex values as pairs; any real dtype.
        n_fft: as given to `stft`, as are the next ones.
        hop_length: from one frame to the next; None is a quarter of `n_fft`.
        win_length: values of the window; None is `n_fft`.
        window: ``(win_length,)``; None is all ones.
        center: whether half of `n_fft` was padded on both ends, which is cut off.
        normalized: whether results were divided by the root of `n_fft`.
        onesided: whether x has the frequencies up to the middle alone. If not, the others are taken to mirror them.
        length: of the signal; None: as far as frames reach, less what was padded.

    Returns:
        float32 ``(n, t)`` or ``(t,)``.

    Raises:
        ShapeError: shapes do not fit, or there is a number that no window reaches.
        DTypeError: an argument has a wrong dtype.

    >>> import numpy as np, fastlayers as fl
    >>> x, window = np.arange(8.0), fl.functional.hann_window(4)
    >>> fl.functional.istft(fl.functional.stft(x, 4, window=window), 4, window=window).round(4)
    array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    x, window = as_float32(x, "istft", "x"), optional_float32(window, "istft", "window")
    shape: Any = _istft_rule(
        x.shape, None if window is None else window.shape, n_fft, hop_length, win_length, center, normalized, onesided, length
    )
    s = frames_of("istft", n_fft, hop_length, win_length, center, "reflect", normalized, onesided)
    weights, frames = whole_window("istft", s, window), x.shape[-2]
    half = s.n_fft // 2 + 1
    turned = contiguous(x.reshape(-1, s.bins, frames, 2)[:, :half].swapaxes(1, 2), "istft")
    pieces = empty((len(turned), frames, s.n_fft))
    transform(ARRAYS, plan(s.n_fft, IRFFT, inverse_scale(s)), turned, pieces, 2, True, False)
    check_overlap("istft", weights, frames, s.n_fft, s.hop, s.around, shape[-1])
    out = empty(shape)
    dispatch.kernel("overlap_add")(pieces, weights, out.reshape(len(pieces), shape[-1]), s.hop, s.around, True)
    return out


def _spectrogram_rule(
    x: Shape, window: Shape | None, n_fft: Any, hop_length: Any, win_length: Any, power: Any, normalized: Any, center: Any,
    pad_mode: Any, onesided: Any,
) -> Shape:  # fmt: skip
    power_of("spectrogram", power)
    s = frames_of("spectrogram", n_fft, hop_length, win_length, center, pad_mode, normalized, onesided)
    window_rule("spectrogram", window, s.win, "win_length")
    return (*x[:-1], s.bins, frames_in("spectrogram", x, s))


def _normal_spectrogram(attributes: dict[str, Any]) -> None:
    _plain(attributes)
    attributes["power"] = float(attributes["power"])


@op("spectrogram", "x window", _spectrogram_rule, _record_spectrogram, _normal_spectrogram)
def spectrogram(
    x: Tensor,
    window: Tensor | None = None,
    n_fft: int = 400,
    hop_length: int | None = None,
    win_length: int | None = None,
    power: float = 2.0,
    normalized: bool = False,
    center: bool = True,
    pad_mode: str = "reflect",
    onesided: bool = True,
) -> np.ndarray:
    """Magnitudes of a short-time Fourier transform, or their squares: ``abs(stft(x)) ** power``.

    Args:
        x: ``(t,)`` or ``(n, t)``, any real dtype.
        window: ``(win_length,)``; None is all ones.
        n_fft: points of each transform.
        hop_length: from one frame to the next; None is a quarter of `n_fft`.
        win_length: values of the window, at most `n_fft`; None is `n_fft`.
        power: 1 for magnitudes, 2 for their squares.
        normalized: whether transforms are divided by the root of `n_fft`.
        center: as in `stft`.
        pad_mode: as in `stft`.
        onesided: as in `stft`.

    Returns:
        float32 ``(n, frequencies, frames)`` or ``(frequencies, frames)``.

    Raises:
        ShapeError: shapes do not fit, or the signal is too short.
        ArgumentError: `power` or `pad_mode` is unknown.
        DTypeError: an argument has a wrong dtype.

    >>> import numpy as np, fastlayers as fl
    >>> fl.functional.spectrogram(np.ones(16000), fl.functional.hann_window(400), hop_length=160).shape
    (201, 101)
    """
    x, window = as_float32(x, "spectrogram", "x"), optional_float32(window, "spectrogram", "window")
    exponent = power_of("spectrogram", power)
    s = frames_of("spectrogram", n_fft, hop_length, win_length, center, pad_mode, normalized, onesided)
    frames: Any = frames_in("spectrogram", x.shape, s)
    weights = whole_window("spectrogram", s, window)
    scale = scale_of("ortho" if s.normalized else "backward", False, s.n_fft)
    z = cut(padded("spectrogram", x, s), weights, s, frames, scale)
    np.multiply(z, z, out=z)
    out = empty((*x.shape[:-1], s.bins, frames))
    np.add(z[..., 0].swapaxes(1, 2), z[..., 1].swapaxes(1, 2), out=out.reshape(len(z), s.bins, frames))
    return sqrt(out) if exponent == 1 else out
