"""Arrays that spectrograms are made with: filters of mel scales, and windows; names and arguments are those of torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._arguments import checked, shown
from ..errors import ArgumentError
from ..ir.checks import flag, integer, number
from ..kernels.fft_tables import MOST_SIZE

__all__ = ["blackman_window", "hamming_window", "hann_window", "melscale_fbanks"]


@checked
def melscale_fbanks(
    n_freqs: int, f_min: float, f_max: float, n_mels: int, sample_rate: int, norm: str | None = None, mel_scale: str = "htk"
) -> np.ndarray:
    """Triangular filters, equally wide in mel, that sum the frequencies of a spectrogram; torchaudio.functional.melscale_fbanks.

    Args:
        n_freqs: frequencies of the spectrogram, from 0 to half of `sample_rate`.
        f_min: where the first filter begins, in hertz.
        f_max: where the last one ends.
        n_mels: how many filters.
        sample_rate: of the signal, in hertz.
        norm: ``"slaney"`` divides each filter by its width in hertz; None does not.
        mel_scale: ``"htk"``, ``2595 log10(1 + f / 700)``, or ``"slaney"``, linear up to 1000 hertz.

    Returns:
        float32 ``(n_freqs, n_mels)``.

    Raises:
        ArgumentError: frequencies, `norm` or `mel_scale` make no filters.
        ArgumentError: a count is too small.
        DTypeError: an argument has a wrong type.

    >>> import fastlayers as fl
    >>> fl.functional.melscale_fbanks(5, 0.0, 8000.0, 2, 16000).round(2)
    array([[0.  , 0.  ],
           [0.49, 0.51],
           [0.  , 0.81],
           [0.  , 0.4 ],
           [0.  , 0.  ]], dtype=float32)
    """
    name = "melscale_fbanks"
    rows, count = integer(name, "n_freqs", n_freqs, 1, MOST_SIZE), integer(name, "n_mels", n_mels, 1, 1 << 16)
    low, high = number(name, "f_min", f_min), number(name, "f_max", f_max)
    rate = integer(name, "sample_rate", sample_rate, 1)
    if not 0 <= low <= high or not math.isfinite(high):
        raise ArgumentError(f"{name}: f_min is {low}, f_max {high}: expected 0 <= f_min <= f_max")
    if norm not in (None, "slaney") or mel_scale not in ("htk", "slaney"):
        raise ArgumentError(
            f"{name}: norm is {shown(norm)}, mel_scale {shown(mel_scale)}: expected None or 'slaney', and 'htk' or 'slaney'"
        )
    frequencies = np.linspace(0, rate // 2, rows)
    points = _hertz(np.linspace(_mel(low, mel_scale), _mel(high, mel_scale), count + 2), mel_scale)
    width = np.diff(points)
    slopes = points[None] - frequencies[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        made = 0.0 + np.maximum(0, np.minimum(-slopes[:, :-2] / width[:-1], slopes[:, 2:] / width[1:]))
        if norm == "slaney":
            made = made * (2 / (points[2:] - points[:-2]))
    filters: np.ndarray = np.nan_to_num(made).astype(np.float32)
    return filters


_LINEAR, _KNEE, _STEP = 200 / 3, 1000.0, math.log(6.4) / 27


def _mel(hertz: float, scale: str) -> float:
    if scale == "htk":
        return 2595 * math.log10(1 + hertz / 700)
    return hertz / _LINEAR if hertz < _KNEE else _KNEE / _LINEAR + math.log(hertz / _KNEE) / _STEP


def _hertz(mel: np.ndarray, scale: str) -> np.ndarray:
    if scale == "htk":
        made: np.ndarray = 700 * (10 ** (mel / 2595) - 1)
        return made
    knee = _KNEE / _LINEAR
    return np.where(mel < knee, mel * _LINEAR, _KNEE * np.exp(_STEP * (mel - knee)))


# ---- windows -----------------------------------------------------------------------------------------------------------


def _window(name: str, length: Any, periodic: Any, terms: tuple[float, ...]) -> np.ndarray:
    count = integer(name, "window_length", length, 0, MOST_SIZE)
    period = count if flag(name, "periodic", periodic) else count - 1
    t = np.arange(count) * (2 * np.pi / max(period, 1))
    made = sum(a * np.cos(k * t) for k, a in enumerate(terms)) if count > 1 else np.ones(count)
    return np.asarray(made, np.float32)


@checked
def hann_window(window_length: int, periodic: bool = True) -> np.ndarray:
    """Hann's window ``(1 - cos(2 pi i / n)) / 2``, as torch.hann_window.

    Args:
        window_length: how many values.
        periodic: whether the window is to be repeated: n is `window_length`, else one less.

    Returns:
        float32 ``(window_length,)``.

    Raises:
        ArgumentError: `window_length` is below 0.
        DTypeError: an argument has a wrong type.

    >>> import fastlayers as fl
    >>> fl.functional.hann_window(4)
    array([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    return _window("hann_window", window_length, periodic, (0.5, -0.5))


@checked
def hamming_window(window_length: int, periodic: bool = True) -> np.ndarray:
    """Hamming's window ``0.54 - 0.46 cos(2 pi i / n)``, as torch.hamming_window.

    Args:
        window_length: how many values.
        periodic: whether the window is to be repeated: n is `window_length`, else one less.

    Returns:
        float32 ``(window_length,)``.

    Raises:
        ArgumentError: `window_length` is below 0.
        DTypeError: an argument has a wrong type.

    >>> import fastlayers as fl
    >>> fl.functional.hamming_window(4)
    array([0.08, 0.54, 1.  , 0.54], dtype=float32)
    """
    return _window("hamming_window", window_length, periodic, (0.54, -0.46))


@checked
def blackman_window(window_length: int, periodic: bool = True) -> np.ndarray:
    """Blackman's window ``0.42 - 0.5 cos(2 pi i / n) + 0.08 cos(4 pi i / n)``, as torch.blackman_window.

    Args:
        window_length: how many values.
        periodic: whether the window is to be repeated: n is `window_length`, else one less.

    Returns:
        float32 ``(window_length,)``.

    Raises:
        ArgumentError: `window_length` is below 0.
        DTypeError: an argument has a wrong type.

    >>> import fastlayers as fl
    >>> fl.functional.blackman_window(4).round(2) + 0
    array([0.  , 0.34, 1.  , 0.34], dtype=float32)
    """
    return _window("blackman_window", window_length, periodic, (0.42, -0.5, 0.08))
