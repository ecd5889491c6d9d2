"""Spectra, layers and functions, against torch and torchaudio (spectral.npz), numpy.fft, and each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastlayers as fl

from ..each import each
from ..goldens.make_spectral import FILTERS, MEL, SHORT_TIME, WINDOWED

f = fl.functional
GOLDEN = np.load(Path(__file__).parents[1] / "goldens" / "spectral.npz")
X = GOLDEN["x"]
TOLERANCE = 2e-6  # of the largest number


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def close(got: np.ndarray, want: np.ndarray, tolerance: float = TOLERANCE) -> None:
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1.0, float(np.abs(want).max(initial=0))))


def complex_of(x: np.ndarray) -> np.ndarray:
    z: np.ndarray = x[..., 0] + 1j * x[..., 1].astype(np.float64)
    return z


def pairs_of(z: np.ndarray) -> np.ndarray:
    return np.stack([z.real, z.imag], -1)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 7, 30])
def test_transforms_are_those_of_numpy(n: Any, norm: Any, variant: str) -> None:
    x, reals = random(3, 12, 5, 2), random(3, 12, 5)
    for dim in (-1, 1, 0):
        z, axis = complex_of(x), dim % 3
        close(f.fft(x, n, dim, norm), pairs_of(np.fft.fft(z, n, axis, norm)))
        close(fl.IFFT(n, dim, norm)(x), pairs_of(np.fft.ifft(z, n, axis, norm)))
        close(f.irfft(x, n, dim, norm), np.fft.irfft(z, n, axis, norm))
        close(fl.RFFT(n, dim, norm)(reals), pairs_of(np.fft.rfft(reals.astype(np.float64), n, axis, norm)))


@pytest.mark.parametrize("i", range(len(SHORT_TIME)))
def test_short_time_transforms_are_those_of_torch(i: int, variant: str) -> None:
    given = SHORT_TIME[i]
    window = f.hann_window(given.get("win_length", given["n_fft"])) if WINDOWED[i] else None
    z = f.stft(X, window=window, **given)
    close(z, GOLDEN[f"stft {i}"])
    close(fl.STFT(window="hann" if WINDOWED[i] else None, **given)(X[0]), z[0])
    if f"istft {i}" in GOLDEN:
        back = {name: value for name, value in given.items() if name != "pad_mode"}
        close(f.istft(z, window=window, length=600, **back), GOLDEN[f"istft {i}"])
        close(fl.ISTFT(window=window, length=600, **back)(z), GOLDEN[f"istft {i}"])
        close(f.istft(z, window=window, length=600, **back), X[:, :600], 4e-6)


@pytest.mark.parametrize("i", range(len(FILTERS)))
def test_filters_are_those_of_torchaudio(i: int) -> None:
    close(f.melscale_fbanks(*FILTERS[i]), GOLDEN[f"filters {i}"], 1e-5)  # torchaudio makes them in float32


@pytest.mark.parametrize("i", range(len(MEL)))
def test_mel_spectrograms_are_those_of_torchaudio(i: int, variant: str) -> None:
    layer = fl.MelSpectrogram(**MEL[i])
    close(layer(X), GOLDEN[f"mel {i}"], 1e-5)
    np.testing.assert_array_equal(layer(X[0]), layer(X)[0])


LAYERS = (fl.STFT(32, 8), fl.Spectrogram(32), fl.MelSpectrogram(8000, 32, n_mels=5), fl.RFFT())


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_a_compiled_layer_has_the_numbers_of_a_call_for_any_length(layer: Any) -> None:
    model = fl.compile(layer, fl.graph.Input("x", ("n", "t")))
    for shape in ((1, 64), (3, 100), (2, 37)):
        close(model(random(*shape)), layer(random(*shape)))


def test_no_step_of_a_compiled_transform_runs_in_numpy() -> None:
    for layer, x in (
        (fl.MelSpectrogram(8000, 64, n_mels=5), X),
        (fl.ISTFT(64, 16), random(33, 9, 2)),
        (fl.FFT(dim=0), random(6, 5, 2)),
    ):
        text = str(fl.compile(layer, x).summary())
        assert "in numpy: nothing" in text, text


def test_windows() -> None:
    t = np.arange(9) / 9
    np.testing.assert_allclose(f.hann_window(9), 0.5 - 0.5 * np.cos(2 * np.pi * t), atol=1e-7)
    np.testing.assert_allclose(f.hamming_window(9), 0.54 - 0.46 * np.cos(2 * np.pi * t), atol=1e-7)
    np.testing.assert_allclose(f.blackman_window(9, periodic=False), np.blackman(9), atol=1e-7)
    for make in (f.hann_window, f.hamming_window, f.blackman_window):
        assert make(0).shape == (0,)
        assert make(1).tolist() == [1.0]


def test_any_kind_of_numbers_is_taken() -> None:
    x = random(20, 4).T  # not contiguous
    want = f.rfft(np.ascontiguousarray(x))
    np.testing.assert_array_equal(f.rfft(x), want)
    np.testing.assert_array_equal(f.rfft(x.astype(np.float64)), want)
    fixed = x.copy()
    fixed.flags.writeable = False
    np.testing.assert_array_equal(f.rfft(fixed), want)
    close(f.rfft(np.arange(8)), pairs_of(np.fft.rfft(np.arange(8.0))))


CASES: tuple[tuple[Any, Any, str], ...] = (
    (lambda: f.fft(random(3, 4)), fl.ShapeError, r"^fft: x has shape \(3, 4\): expected \(..., n, 2\)"),
    (lambda: f.rfft(random()), fl.ShapeError, "^rfft: x has shape"),
    (lambda: f.fft(random(3, 2), 0), fl.ArgumentError, "^fft: n is 0"),
    (lambda: f.fft(random(0, 2)), fl.ShapeError, "^fft: x has 0 values along axis 0: expected at least 1"),
    (lambda: f.irfft(random(1, 2)), fl.ShapeError, "^irfft: x has 1 values along axis 0: expected at least 2"),
    (lambda: f.fft(random(3, 2), dim=1), fl.ShapeError, "^fft: dim is 1"),
    (lambda: f.fft(random(3, 2), norm="half"), fl.ArgumentError, "^fft: norm is 'half'"),
    (lambda: f.rfft(np.ones(3, complex)), fl.DTypeError, "^rfft: x has dtype complex"),
    (lambda: f.stft(X, 64, win_length=65), fl.Error, "^stft: win_length is 65"),
    (lambda: f.stft(X, 64, hop_length=0), fl.ArgumentError, "^stft: hop_length is 0"),
    (lambda: f.stft(X, 64, window=np.ones(3)), fl.ShapeError, "^stft: window has shape"),
    (lambda: f.stft(X[:, :32], 64), fl.ShapeError, "^stft: x has 32 values: expected at least 33 for n_fft=64"),
    (lambda: f.stft(X[:, :63], 64, center=False), fl.ShapeError, "^stft: x has 63 values: expected at least 64 for n_fft=64"),
    (lambda: f.stft(X, 64, pad_mode="mirror"), fl.ArgumentError, "^stft: pad_mode is 'mirror'"),
    (lambda: f.istft(random(32, 5, 2), 64), fl.ShapeError, "^istft: x has 32 frequencies: expected 33"),
    (lambda: f.istft(random(33, 5, 2), 64, window=np.zeros(64)), fl.ShapeError, "^istft: no window of the 5 frames reaches"),
    (lambda: f.istft(random(33, 5, 2), 64, length=9999), fl.ShapeError, "^istft: no window of the 5 frames reaches"),
    (lambda: f.spectrogram(X, n_fft=64, power=3.0), fl.ArgumentError, "^spectrogram: power is 3.0"),
    (lambda: f.melscale_fbanks(33, 9.0, 8.0, 4, 16000), fl.ArgumentError, "^melscale_fbanks: f_min is 9.0"),
    (lambda: f.melscale_fbanks(33, 0.0, 8.0, 4, 16000, "both"), fl.ArgumentError, "^melscale_fbanks: norm is 'both'"),
    (lambda: fl.STFT(8, window="sine"), fl.ArgumentError, "^STFT: window is 'sine'"),
    (lambda: fl.MelScale(n_stft=5)(random(4, 3)), fl.ShapeError, "^MelScale: x has shape"),
)


@pytest.mark.parametrize(("call", "kind", "text"), CASES)
def test_what_does_not_fit_is_refused(call: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


@each("name", ["fft", "ifft", "irfft"])
def test_complex_arrays_are_transformed_as_numpy_does(name: str) -> None:
    rng = np.random.default_rng(0)
    for dtype, shape in ((np.complex64, (4,)), (np.complex128, (3, 5)), (np.complex64, (2, 3, 8))):
        x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
        for n, dim, norm in ((None, -1, None), (6, -1, None), (None, 0, "ortho"), (3, -1, "forward")):
            if name == "irfft" and n is None and shape[dim] < 2:
                continue
            got = getattr(fl.functional, name)(x, n, dim, norm)
            assert got.dtype == (np.float32 if name == "irfft" else np.complex64)
            np.testing.assert_allclose(got, getattr(np.fft, name)(x, n, dim, norm), rtol=2e-5, atol=2e-5)
    rows = rng.standard_normal((3, 8)).astype(np.float32)
    pairs = fl.functional.rfft(rows)
    np.testing.assert_allclose(pairs[..., 0] + 1j * pairs[..., 1], np.fft.rfft(rows), rtol=2e-5, atol=2e-5)
