"""Fourier transforms and spectrograms as layers, with torch's and torchaudio's names and arguments. They have no weights.

Complex values are pairs, real and imaginary part, on a last axis of size 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arguments import shown
from ..errors import ArgumentError, ShapeError
from ..functional import (
    blackman_window,
    fft,
    hamming_window,
    hann_window,
    ifft,
    irfft,
    istft,
    melscale_fbanks,
    permute,
    rfft,
    spectrogram,
    stft,
)
from ..functional._linear import linear
from ..functional._padding import pad
from ..functional._spectral import check_norm
from ..functional._spectral_frames import frames_of, power_of
from ..graph.arrays import as_float32
from ..graph.symbol import symbolic
from ..ir.checks import differ, integer, number
from ._base import Layer

if TYPE_CHECKING:
    from ..functional._types import Tensor

__all__ = ["FFT", "IFFT", "IRFFT", "ISTFT", "RFFT", "STFT", "MelScale", "MelSpectrogram", "Spectrogram"]

_TRANSFORMS = {"FFT": fft, "IFFT": ifft, "RFFT": rfft, "IRFFT": irfft}
_WINDOWS = {"hann": hann_window, "hamming": hamming_window, "blackman": blackman_window}


class _Transform(Layer):
    def __init__(self, n: int | None = None, dim: int = -1, norm: str | None = None) -> None:
        name = type(self).__name__
        self.n, self.dim = None if n is None else integer(name, "n", n, 1), integer(name, "dim", dim)
        self.norm = check_norm(name, norm)

    def __call__(self, x: Tensor) -> np.ndarray:
        """The transform of x; returns float32."""
        return _TRANSFORMS[type(self).__name__](x, self.n, self.dim, self.norm)

    def _arguments(self) -> str:
        return f"n={self.n}, dim={self.dim}, norm={self.norm!r}"


class FFT(_Transform):
    """`functional.fft` as a layer: the Fourier transform of complex numbers, given as pairs.

    Args:
        n: points of the transform; None: all of x.
        dim: the axis, as if pairs were one number.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``.

    >>> import numpy as np, fastlayers as fl
    >>> fl.FFT()(np.zeros((3, 8, 2))).shape
    (3, 8, 2)
    """


class IFFT(_Transform):
    """`functional.ifft` as a layer: the inverse transform of complex numbers, given as pairs.

    Args:
        n: points of the transform; None: all of x.
        dim: the axis, as if pairs were one number.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``.

    >>> import numpy as np, fastlayers as fl
    >>> fl.IFFT()(np.zeros((3, 8, 2))).shape
    (3, 8, 2)
    """


class RFFT(_Transform):
    """`functional.rfft` as a layer: the transform of reals, of which the first half is given, as pairs.

    Args:
        n: points of the transform; None: all of x.
        dim: the axis.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``.

    >>> import numpy as np, fastlayers as fl
    >>> fl.RFFT()(np.zeros((3, 8))).shape
    (3, 5, 2)
    """


class IRFFT(_Transform):
    """`functional.irfft` as a layer: the reals of which half a spectrum is given, as pairs.

    Args:
        n: how many reals; None: the even one of the two values that x may come from.
        dim: the axis, as if pairs were one number.
        norm: ``"backward"``, ``"ortho"`` or ``"forward"``.

    >>> import numpy as np, fastlayers as fl
    >>> fl.IRFFT()(np.zeros((3, 5, 2))).shape
    (3, 8)
    """


def _window(name: str, window: Any, length: int) -> np.ndarray | None:
    """A window by its name, or the array that is given."""
    if window is None:
        return None
    if isinstance(window, str):
        if window not in _WINDOWS:
            names = ", ".join(map(repr, _WINDOWS))
            raise ArgumentError(f"{name}: window is {shown(window)}: expected one of {names} or an array")
        named: np.ndarray = _WINDOWS[window](length)
        return named
    made: np.ndarray = as_float32(window, name, "window").copy()
    if made.shape != (length,):
        raise ShapeError(f"{name}: window has shape {made.shape}: expected ({length},), win_length")
    made.flags.writeable = False
    return made


class _ShortTime(Layer):
    def _set(
        self, n_fft: Any, hop: Any, win: Any, window: Any, center: Any, pad_mode: Any, normalized: Any, onesided: Any
    ) -> None:
        name = type(self).__name__
        s = frames_of(name, n_fft, hop, win, center, pad_mode, normalized, onesided)
        self.n_fft, self.hop_length, self.win_length, self.center = s.n_fft, s.hop, s.win, s.center
        self.pad_mode, self.normalized, self.onesided = s.pad_mode, s.normalized, s.onesided
        self.window = _window(name, window, s.win)

    def _arguments(self) -> str:
        return f"n_fft={self.n_fft}, hop_length={self.hop_length}, win_length={self.win_length}"


class STFT(_ShortTime):
    """`functional.stft` as a layer: the transforms of overlapping frames of a signal.

    Args:
        n_fft: points of each transform.
        hop_length: from one frame to the next; None is a quarter of `n_fft`.
        win_length: values of the window; None is `n_fft`.
        window: ``"hann"``, ``"hamming"``, ``"blackman"`` or an array ``(win_length,)``; None is all ones.
        center: whether both ends are padded by half of `n_fft`.
        pad_mode: how they are: ``"reflect"``, ``"constant"``, ``"replicate"`` or ``"circular"``.
        normalized: whether results are divided by the root of `n_fft`.
        onesided: whether frequencies above the middle are left out.

    >>> import numpy as np, fastlayers as fl
    >>> fl.STFT(400, 160)(np.ones((2, 16000))).shape
    (2, 201, 101, 2)
    """

    def __init__(
        self,
        n_fft: int,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: Any = "hann",
        center: bool = True,
        pad_mode: str = "reflect",
        normalized: bool = False,
        onesided: bool = True,
    ) -> None:
        self._set(n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Frames of x ``(n, t)`` or ``(t,)``; returns float32 ``(n, frequencies, frames, 2)``, or the same without n."""
        given = self.n_fft, self.hop_length, self.win_length, self.window, self.center, self.pad_mode, self.normalized
        return stft(x, *given, self.onesided)


class ISTFT(_ShortTime):
    """`functional.istft` as a layer: the signal of which `STFT` is given.

    Args:
        n_fft: as those of `STFT`, as are the next ones.
        hop_length: from one frame to the next; None is a quarter of `n_fft`.
        win_length: values of the window; None is `n_fft`.
        window: ``"hann"``, ``"hamming"``, ``"blackman"`` or an array ``(win_length,)``; None is all ones.
        center: whether both ends were padded by half of `n_fft`.
        normalized: whether transforms were divided by the root of `n_fft`.
        onesided: whether frequencies above the middle are left out.
        length: of the signal; None: as far as frames reach.

    >>> import numpy as np, fastlayers as fl
    >>> fl.ISTFT(400, 160)(np.ones((201, 101, 2))).shape
    (16000,)
    """

    def __init__(
        self,
        n_fft: int,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: Any = "hann",
        center: bool = True,
        normalized: bool = False,
        onesided: bool = True,
        length: int | None = None,
    ) -> None:
        self._set(n_fft, hop_length, win_length, window, center, "reflect", normalized, onesided)
        self.length = None if length is None else integer("ISTFT", "length", length, 0)

    def __call__(self, x: Tensor) -> np.ndarray:
        """The signal of x ``(n, frequencies, frames, 2)`` or the same without n; returns float32 ``(n, t)`` or ``(t,)``."""
        given = self.n_fft, self.hop_length, self.win_length, self.window, self.center, self.normalized, self.onesided
        return istft(x, *given, self.length)


class Spectrogram(_ShortTime):
    """`functional.spectrogram` as a layer: magnitudes of a short-time Fourier transform, or their squares.

    Args:
        n_fft: points of each transform.
        win_length: values of the window; None is `n_fft`.
        hop_length: from one frame to the next; None is half of `win_length`.
        pad: zeros before and after the signal.
        window: ``"hann"``, ``"hamming"``, ``"blackman"`` or an array ``(win_length,)``; None is all ones.
        power: 1 for magnitudes, 2 for their squares.
        normalized: whether magnitudes are divided by the root of the sum of the window's squares.
        center: whether both ends are padded by half of `n_fft`.
        pad_mode: how they are: ``"reflect"``, ``"constant"``, ``"replicate"`` or ``"circular"``.
        onesided: whether frequencies above the middle are left out.

    >>> import numpy as np, fastlayers as fl
    >>> fl.Spectrogram(400, hop_length=160)(np.ones((2, 16000))).shape
    (2, 201, 101)
    """

    def __init__(
        self,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window: Any = "hann",
        power: float = 2.0,
        normalized: bool = False,
        center: bool = True,
        pad_mode: str = "reflect",
        onesided: bool = True,
    ) -> None:
        name = type(self).__name__
        points = integer(name, "n_fft", n_fft, 1)
        width = points if win_length is None else integer(name, "win_length", win_length, 1)
        hop = max(width // 2, 1) if hop_length is None else hop_length
        self._set(n_fft, hop, win_length, window, center, pad_mode, False, onesided)
        self.pad, self.power = integer(name, "pad", pad, 0, 1 << 31), power_of(name, power)
        if normalized:
            weights = np.ones(self.win_length, np.float32) if self.window is None else self.window
            self.window = (weights / np.sqrt((weights.astype(np.float64) ** 2).sum())).astype(np.float32)
        self.normalized = bool(normalized)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Frames of x ``(n, t)`` or ``(t,)``; returns float32 ``(n, frequencies, frames)``, or the same without n."""
        x = pad(x, (self.pad, self.pad)) if self.pad else x
        given = self.window, self.n_fft, self.hop_length, self.win_length, self.power, False, self.center, self.pad_mode
        return spectrogram(x, *given, self.onesided)


class MelScale(Layer):
    """Sums of the frequencies of a spectrogram by triangular filters: ``functional.melscale_fbanks``.

    Args:
        n_mels: how many filters.
        sample_rate: of the signal, in hertz.
        f_min: where the first filter begins, in hertz.
        f_max: where the last one ends; None is half of `sample_rate`.
        n_stft: frequencies of the spectrogram.
        norm: ``"slaney"`` divides each filter by its width in hertz; None does not.
        mel_scale: ``"htk"`` or ``"slaney"``.

    >>> import numpy as np, fastlayers as fl
    >>> fl.MelScale(n_mels=80, n_stft=201)(np.ones((2, 201, 7))).shape
    (2, 80, 7)
    """

    def __init__(
        self,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: float | None = None,
        n_stft: int = 201,
        norm: str | None = None,
        mel_scale: str = "htk",
    ) -> None:
        top = (
            float(integer("MelScale", "sample_rate", sample_rate, 1) // 2)
            if f_max is None
            else number("MelScale", "f_max", f_max)
        )
        self.n_mels, self.n_stft = integer("MelScale", "n_mels", n_mels, 1), integer("MelScale", "n_stft", n_stft, 1)
        self.fb = melscale_fbanks(n_stft, f_min, top, n_mels, sample_rate, norm, mel_scale)
        self._rows = np.ascontiguousarray(self.fb.T)
        for array in (self.fb, self._rows):
            array.flags.writeable = False

    def __call__(self, x: Tensor) -> np.ndarray:
        """Sums of the frequencies of x ``(n, n_stft, frames)`` or ``(n_stft, frames)``; returns float32 with `n_mels` of them."""
        x = x if symbolic(x) else as_float32(x, "MelScale", "x")
        shape = x.shape  # type: ignore[union-attr]
        if len(shape) not in (2, 3) or differ(shape[-2], self.n_stft):
            raise ShapeError(f"MelScale: x has shape {shape}: expected (n, {self.n_stft}, frames) or ({self.n_stft}, frames)")
        order = (0, 2, 1) if len(shape) == 3 else (1, 0)
        return permute(linear(permute(x, order), self._rows), order)

    def _arguments(self) -> str:
        return f"n_mels={self.n_mels}, n_stft={self.n_stft}"


class MelSpectrogram(Layer):
    """A spectrogram on a mel scale: `Spectrogram`, then `MelScale`.

    Args:
        sample_rate: of the signal, in hertz.
        n_fft: points of each transform.
        win_length: values of the window; None is `n_fft`.
        hop_length: from one frame to the next; None is half of `win_length`.
        f_min: where the first filter begins, in hertz.
        f_max: where the last one ends; None is half of `sample_rate`.
        pad: zeros before and after the signal.
        n_mels: how many filters.
        window: as in `Spectrogram`.
        power: 1 for magnitudes, 2 for their squares.
        normalized: as in `Spectrogram`.
        center: whether both ends are padded by half of `n_fft`.
        pad_mode: how they are.
        norm: ``"slaney"`` divides each filter by its width in hertz; None does not.
        mel_scale: ``"htk"`` or ``"slaney"``.

    >>> import numpy as np, fastlayers as fl
    >>> fl.MelSpectrogram(16000, n_fft=400, hop_length=160, n_mels=80)(np.ones(16000)).shape
    (80, 101)
    """

    def __init__(
        self,
        sample_rate: int = 16000,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        f_min: float = 0.0,
        f_max: float | None = None,
        pad: int = 0,
        n_mels: int = 128,
        window: Any = "hann",
        power: float = 2.0,
        normalized: bool = False,
        center: bool = True,
        pad_mode: str = "reflect",
        norm: str | None = None,
        mel_scale: str = "htk",
    ) -> None:
        self.spectrogram = Spectrogram(n_fft, win_length, hop_length, pad, window, power, normalized, center, pad_mode)
        self.mel_scale = MelScale(n_mels, sample_rate, f_min, f_max, self.spectrogram.n_fft // 2 + 1, norm, mel_scale)

    def __call__(self, x: Tensor) -> np.ndarray:
        """Frames of x ``(n, t)`` or ``(t,)``; returns float32 ``(n, n_mels, frames)``, or the same without n."""
        return self.mel_scale(self.spectrogram(x))
