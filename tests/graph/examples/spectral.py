"""Fourier transforms and spectrograms."""

from __future__ import annotations

from ._base import E, Example

EXAMPLES: list[Example] = [
    *(
        E(name, shape, n=n, dim=dim, norm=norm)
        for name in ("fft", "ifft", "irfft", "rfft")
        for shape, dim in (((3, 6, 2), -1), ((3, 6, 2), 0), ((2, 5, 4, 2), -2), ((6, 2), 0))
        for n, norm in ((None, None), (5, "ortho"), (9, "forward"))
    ),
    E("rfft", (7,), n=None, dim=0, norm="backward"),
    E("fft", (0, 4, 2), n=None, dim=-1, norm=None),
    E("stft", (2, 50), None, n_fft=8, hop_length=None, win_length=None, center=True, pad_mode="reflect", normalized=False,
      onesided=True),
    E("stft", (50,), (6,), n_fft=9, hop_length=4, win_length=6, center=True, pad_mode="constant", normalized=True,
      onesided=False),
    E("stft", (3, 50), (8,), n_fft=8, hop_length=3, win_length=None, center=False, pad_mode="circular", normalized=False,
      onesided=True),
    E("istft", (2, 5, 9, 2), None, n_fft=8, hop_length=2, win_length=None, center=True, normalized=False, onesided=True,
      length=None),
    E("istft", (5, 9, 2), (8,), n_fft=8, hop_length=3, win_length=8, center=True, normalized=True, onesided=True, length=20),
    E("istft", (9, 7, 2), (9,), n_fft=9, hop_length=4, win_length=9, center=False, normalized=False, onesided=False, length=None),
    E("spectrogram", (2, 50), (8,), n_fft=8, hop_length=3, win_length=None, power=2.0, normalized=False, center=True,
      pad_mode="reflect", onesided=True),
    E("spectrogram", (50,), None, n_fft=8, hop_length=5, win_length=5, power=1.0, normalized=True, center=False,
      pad_mode="replicate", onesided=False),
]  # fmt: skip
