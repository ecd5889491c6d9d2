"""Fourier transforms and spectrograms of speech and music; torch has mel spectrograms in another package."""

from __future__ import annotations

from typing import Any

import numpy as np

import fastlayers as fl

from . import Pair, Row, normal


def transform(name: str, shape: tuple[int, ...]) -> Row:
    def make() -> Pair:
        x, layer = normal(np.random.default_rng(0), *shape), getattr(fl, name)()

        def theirs(torch: Any) -> Any:
            pairs, gives = name != "RFFT", name != "IRFFT"
            z = torch.view_as_complex(torch.tensor(x)) if pairs else torch.tensor(x)
            call = getattr(torch.fft, name.lower())
            return lambda: torch.view_as_real(call(z)) if gives else call(z)

        return Pair(lambda: layer(x), theirs)

    return Row((name, name.lower()), f"@{shape}", make)


def short_time() -> Pair:
    x, layer, window = normal(np.random.default_rng(0), 1, 16000), fl.STFT(400, 160), fl.functional.hann_window(400)

    def theirs(torch: Any) -> Any:
        t, w = torch.tensor(x), torch.tensor(window)
        return lambda: torch.view_as_real(torch.stft(t, 400, 160, window=w, return_complex=True))

    return Pair(lambda: layer(x), theirs)


def back() -> Pair:
    window = fl.functional.hann_window(400)
    x, layer = fl.functional.stft(normal(np.random.default_rng(0), 1, 16000), 400, 160, window=window), fl.ISTFT(400, 160)

    def theirs(torch: Any) -> Any:
        z, w = torch.view_as_complex(torch.tensor(x)), torch.tensor(window)
        return lambda: torch.istft(z, 400, 160, window=w)

    return Pair(lambda: layer(x), theirs)


def spectrum() -> Pair:
    x, layer, window = (
        normal(np.random.default_rng(0), 1, 16000),
        fl.Spectrogram(400, hop_length=160),
        fl.functional.hann_window(400),
    )

    def theirs(torch: Any) -> Any:
        t, w = torch.tensor(x), torch.tensor(window)
        return lambda: torch.stft(t, 400, 160, window=w, return_complex=True).abs() ** 2

    return Pair(lambda: layer(x), theirs)


def mel() -> Pair:
    x, layer = normal(np.random.default_rng(0), 1, 16000), fl.MelSpectrogram(16000, n_fft=400, hop_length=160, n_mels=80)
    return Pair(lambda: layer(x))


def sums() -> Pair:
    x, layer = np.abs(normal(np.random.default_rng(0), 1, 201, 101)), fl.MelScale(80, n_stft=201)
    return Pair(lambda: layer(x))


def made(name: str, *arguments: Any) -> Row:
    def make() -> Pair:
        call = getattr(fl.functional, name)

        def theirs(torch: Any) -> Any:
            return lambda: getattr(torch, name)(*arguments)

        return Pair(lambda: call(*arguments), theirs if name.endswith("window") else None)

    return Row((name,), " ".join(map(str, arguments)), make)


ROWS = [
    transform("FFT", (8, 1024, 2)),
    transform("IFFT", (8, 1000, 2)),
    transform("RFFT", (98, 400)),
    transform("IRFFT", (98, 201, 2)),
    Row(("STFT", "stft"), "1 s of speech, 400 every 160", short_time),
    Row(("ISTFT", "istft"), "1 s of speech, 400 every 160", back),
    Row(("Spectrogram", "spectrogram"), "1 s of speech, 400 every 160", spectrum),
    Row(("MelSpectrogram",), "1 s of speech, 80 bands", mel),
    Row(("MelScale",), "201 to 80, 101 frames", sums),
    made("melscale_fbanks", 201, 0.0, 8000.0, 80, 16000),
    made("hann_window", 400),
    made("hamming_window", 400),
    made("blackman_window", 400),
]
