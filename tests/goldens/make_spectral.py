"""Makes spectral.npz: short-time transforms by torch (2.13), mel filters and spectrograms by torchaudio (2.11), seed 0.

Run ``python -m tests.goldens.make_spectral`` where they are installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

LENGTH = 700
# Arguments of stft; those of istft are the same without pad_mode.
SHORT_TIME: tuple[dict[str, Any], ...] = (
    {"n_fft": 64, "hop_length": 16},
    {"n_fft": 50, "hop_length": 17, "win_length": 40, "normalized": True},
    {"n_fft": 31, "hop_length": 8, "pad_mode": "constant"},
    {"n_fft": 64, "hop_length": 20, "center": False, "onesided": False, "pad_mode": "replicate"},
)
WINDOWED = (True, True, False, True)
# Arguments of melscale_fbanks.
FILTERS: tuple[tuple[Any, ...], ...] = (
    (33, 0.0, 8000.0, 12, 16000, None, "htk"),
    (33, 20.0, 3800.0, 9, 8000, "slaney", "slaney"),
    (101, 300.0, 300.0, 3, 22050, None, "htk"),
)
# Arguments of torchaudio's MelSpectrogram; `window` is the name of ours.
MEL: tuple[dict[str, Any], ...] = (
    {"sample_rate": 8000, "n_fft": 64, "hop_length": 20, "n_mels": 10},
    {"sample_rate": 16000, "n_fft": 80, "win_length": 60, "pad": 7, "n_mels": 8, "power": 1.0, "normalized": True, "f_min": 50.0,
     "f_max": 7000.0, "norm": "slaney", "mel_scale": "slaney", "center": False, "window": "hamming"},
)  # fmt: skip


def make() -> dict[str, np.ndarray]:
    """ "stft <number>", "istft <number>", "filters <number>", "mel <number>", of "x"."""
    import torch
    import torchaudio

    rng = np.random.default_rng(0)
    x = (np.round(rng.standard_normal((2, LENGTH)) * 64) / 64).astype(np.float32)
    signal = torch.tensor(x, dtype=torch.float64)
    made = {"x": x}
    for i, (given, windowed) in enumerate(zip(SHORT_TIME, WINDOWED, strict=True)):
        size = given.get("win_length", given["n_fft"])
        window = torch.hann_window(size, dtype=torch.float64) if windowed else None
        z = torch.stft(signal, window=window, return_complex=True, **given)
        made[f"stft {i}"] = torch.view_as_real(z).numpy()
        back = {name: value for name, value in given.items() if name != "pad_mode"}
        if given.get("center", True):  # torch refuses where a window's zero is the first number
            made[f"istft {i}"] = torch.istft(z, window=window, length=600, **back).numpy()
    for i, arguments in enumerate(FILTERS):
        made[f"filters {i}"] = torchaudio.functional.melscale_fbanks(*arguments).numpy()
    for i, given in enumerate(MEL):
        plain = {name: value for name, value in given.items() if name != "window"}
        shape = getattr(torch, f"{given.get('window', 'hann')}_window")
        made[f"mel {i}"] = torchaudio.transforms.MelSpectrogram(**plain, window_fn=shape)(signal.float()).numpy()
    return {name: np.asarray(array, np.float32) for name, array in made.items()}


if __name__ == "__main__":
    np.savez_compressed(Path(__file__).with_name("spectral.npz"), **make())
