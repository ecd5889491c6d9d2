"""Fourier transforms against numpy's in float64, and that a row has the same bits alone, among others and on several threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fastlayers as fl
from fastlayers.errors import LimitError, ShapeError
from fastlayers.kernels import dispatch
from fastlayers.kernels.fft_tables import KINDS, MOST_SIZE, reads, writes

from .space import bits

# Small ones; products of 2, 3, 4, 5; the factors above 5; primes; sizes of speech models; those that are cut in two; long ones.
SIZES = (
    *range(1, 65), 72, 96, 97, 100, 101, 120, 121, 125, 127, 128, 169, 192, 199, 210, 211, 256, 257, 331, 400, 480, 499, 500, 512,
    513, 521, 961, 997, 1000, 1009, 1021, 1024, 1155, 1536, 2003, 2048, 3000, 4096, 5000,
)  # fmt: skip
# A sum of n terms in log2(n) passes, each of which rounds a few times. Errors of a row in the mean, against its values' mean.
ULPS = 1.2  # times 2 ** -23 log2(2 n); the largest seen is 0.55


def transform(
    x: np.ndarray, size: int, what: str, window: Any = None, frames: int = 1, stride: int = 0, scale: float = 1.0
) -> Any:
    """What the current variant makes of the rows of x."""
    op = KINDS[what]
    out = np.full((len(x), frames, writes(size, op)), np.nan, np.float32)
    dispatch.kernel("fft")(x, dispatch.kernel("fft_pack")(size, op, scale), window, out, stride)
    return out


def numbers(rows: int, length: int) -> np.ndarray:
    return np.random.default_rng(rows * 7919 + length).standard_normal((rows, length)).astype(np.float32)


def by_numpy(x: np.ndarray, size: int, what: str) -> np.ndarray:
    """numpy's transforms of rows, in float64, not divided by anything; complex values as pairs."""
    z = x.astype(np.float64)
    z = z[..., ::2] + 1j * z[..., 1::2] if what in ("fft", "ifft", "irfft") else z
    if what == "irfft":
        return np.fft.irfft(z, size) * size
    y = np.fft.rfft(z, size) if what == "rfft" else np.fft.fft(z, size) if "ifft" not in what else np.fft.ifft(z, size) * size
    return np.stack([y.real, y.imag], -1).reshape(len(x), -1)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """The largest distance of a row from the right one, as a share of it."""
    size = np.linalg.norm(want, axis=-1)
    return float((np.linalg.norm(got - want, axis=-1) / np.where(size == 0, 1, size)).max(initial=0))


@pytest.mark.parametrize("what", KINDS)
def test_every_size_against_numpy(what: str, variant: str) -> None:
    for size in SIZES:
        for rows in (1, 19):  # in columns, and in lanes
            x = numbers(rows, reads(size, KINDS[what]))
            got = transform(x, size, what)[:, 0]
            bound = ULPS * 2**-23 * math.log2(2 * size)
            assert error(got, by_numpy(x, size, what)) <= bound, f"{size} points, {rows} rows"


@pytest.mark.parametrize("what", KINDS)
def test_an_inverse_undoes(what: str, variant: str) -> None:
    back = {"fft": "ifft", "ifft": "fft", "rfft": "irfft"}.get(what)
    for size in (1, 2, 7, 30, 64, 101, 400, 1000) if back else ():
        x = numbers(3, reads(size, KINDS[what]))
        y = transform(transform(x, size, what)[:, 0], size, str(back), scale=1 / size)[:, 0]
        np.testing.assert_allclose(y, x, rtol=0, atol=4e-6, err_msg=str(size))


@pytest.mark.without("reference")  # whose sums are numpy's
@pytest.mark.parametrize("what", KINDS)
def test_bits_do_not_depend_on_the_batch_or_the_threads(what: str, variant: str) -> None:
    for size in (5, 31, 48, 101, 128, 199, 400, 1000, 4099, 6000):
        x = numbers(37, reads(size, KINDS[what]))
        window = None if what == "irfft" else np.hanning(size).astype(np.float32)
        with_threads = []
        for threads in (1, 2):
            before = fl.get_num_threads()
            fl.set_num_threads(threads)
            with_threads.append(bits(transform(x, size, what, window)))
            fl.set_num_threads(before)
        np.testing.assert_array_equal(*with_threads)
        for rows in (slice(0, 1), slice(36, 37), slice(3, 12), slice(0, 17)):
            part = bits(transform(np.ascontiguousarray(x[rows]), size, what, window))
            np.testing.assert_array_equal(part, with_threads[0][rows], err_msg=f"{size} points, rows {rows}")


@pytest.mark.parametrize("size", [16, 75, 101, 400])
def test_frames_overlap_and_reach_past_the_end(size: int, variant: str) -> None:
    x, window = numbers(3, 3 * size + 5), np.hamming(size).astype(np.float32)
    frames, stride = 9, size // 2 + 1
    for what in ("rfft", "fft of reals", "ifft of reals"):
        got = transform(x, size, what, window, frames, stride)
        longer = np.pad(x, ((0, 0), (0, 4 * size)))
        for f in range(frames):
            piece = longer[:, f * stride : f * stride + size] * window
            bound = ULPS * 2**-23 * math.log2(2 * size)
            assert error(got[:, f], by_numpy(piece, size, what)) <= bound, f"{what}, frame {f}"
    # Complex numbers: half a pair may be left at the end.
    pairs = numbers(2, 2 * size + 7)
    got = transform(pairs, size, "fft", window, 3, 2 * stride)
    whole = np.pad(pairs, ((0, 0), (0, 6 * size)))
    for f in range(3):
        piece = whole[:, 2 * f * stride : 2 * f * stride + 2 * size] * np.repeat(window, 2)
        assert error(got[:, f], by_numpy(piece, size, "fft")) <= 1e-6


@pytest.mark.parametrize("size", [8, 9, 101])
def test_short_rows_are_filled_with_zeros(size: int, variant: str) -> None:
    for what in KINDS:
        width = reads(size, KINDS[what])
        for length in {0, 1, 2, width - 1} & set(range(width)):
            x = numbers(2, length)
            whole = np.pad(x, ((0, 0), (0, width - length)))
            got, want = transform(x, size, what), transform(whole, size, what)
            np.testing.assert_array_equal(bits(got), bits(want), err_msg=f"{what}, {length} values")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_row(value: float, variant: str) -> None:
    for size in (6, 64, 101, 400):
        for what in KINDS:
            x = numbers(20, reads(size, KINDS[what]))
            clean = transform(x, size, what)
            x[3, 2] = value
            got = transform(x, size, what)
            assert not np.isfinite(got[3]).all(), f"{what} of {size}"
            np.testing.assert_array_equal(bits(np.delete(got, 3, 0)), bits(np.delete(clean, 3, 0)), err_msg=f"{what} of {size}")


def test_nothing_and_a_scale(variant: str) -> None:
    assert transform(numbers(0, 8), 8, "rfft").shape == (0, 1, 10)
    assert transform(numbers(2, 8), 8, "rfft", frames=0).shape == (2, 0, 10)
    x = numbers(2, 8)
    np.testing.assert_allclose(transform(x, 8, "rfft", scale=0.5), transform(x, 8, "rfft") / 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: transform(numbers(2, 8), 0, "rfft"), ShapeError, "^fft_pack: size is 0"),
        (lambda: dispatch.kernel("fft_pack")(8, 6, 1.0), ShapeError, "^fft_pack: op is 6"),
        (lambda: dispatch.kernel("fft_pack")(MOST_SIZE + 1, 0, 1.0), LimitError, "^fft_pack: size is "),
        (lambda: transform(numbers(2, 8), 8, "rfft", stride=-1), ShapeError, "^fft: stride is -1"),
        (lambda: transform(numbers(2, 10), 8, "irfft", np.ones(8, np.float32)), ShapeError, "^fft: a window is given"),
        (lambda: transform(numbers(2, 8), 8, "rfft", np.ones(7, np.float32)), ShapeError, r"^fft: window has shape \(7,\)"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, kind: type[Exception], text: str, variant: str) -> None:
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize(("size", "stride", "frames"), [(7, 3, 5), (16, 16, 3), (5, 9, 4), (1, 1, 9), (400, 160, 60), (3, 0, 4)])
def test_sums_of_overlapping_frames(size: int, stride: int, frames: int, variant: str) -> None:
    whole = (frames - 1) * stride + size
    x = np.random.default_rng(size).standard_normal((2, frames, size)).astype(np.float32)
    window = np.hamming(size).astype(np.float32)
    for offset in {0, 1, size // 2} & set(range(whole)):
        for length in {0, 1, whole - offset, whole - offset + 3}:
            for weigh in (False, True):
                out = np.full((2, length), np.nan, np.float32)
                dispatch.kernel("overlap_add")(x, window if weigh else None, out, stride, offset, weigh)
                want, squares = np.zeros((2, whole + 3)), np.zeros(whole + 3)
                for f in range(frames):
                    want[:, f * stride : f * stride + size] += x[:, f].astype(np.float64) * (window if weigh else 1)
                    squares[f * stride : f * stride + size] += window.astype(np.float64) ** 2
                with np.errstate(all="ignore"):
                    want = (want / squares if weigh else want)[:, offset : offset + length]
                np.testing.assert_allclose(out, want, rtol=0, atol=2e-6 * max(1, np.nanmax(np.abs(want), initial=0)))
                again = np.full((1, length), np.nan, np.float32)
                dispatch.kernel("overlap_add")(x[1:], window if weigh else None, again, stride, offset, weigh)
                np.testing.assert_array_equal(bits(again[0]), bits(out[1]))
