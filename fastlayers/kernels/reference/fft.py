"""Fourier transforms in plain numpy: computed in float64, rounded at the end."""

from __future__ import annotations

import numpy as np

from ..._tuples import NamedTuple
from ..fft_tables import FFT, IFFT, IRFFT, REAL_INVERSE, RFFT, plan_fits, reads, window_fits, writes
from ..fits import fits

__all__ = ["fft", "fft_pack", "overlap_add"]


class Packed(NamedTuple):
    """Transform that was prepared: its size, operation and scale."""

    size: int
    op: int
    scale: float


def fft_pack(size: int, op: int, scale: float) -> Packed:
    """A plan of transforms of `size` points; `op` is a number of `fft_tables.KINDS`, results are multiplied by `scale`."""
    plan_fits(size, op)
    return Packed(size, op, float(np.float32(scale)))


def fft(x__bl: np.ndarray, packed: Packed, window__n: np.ndarray | None, out__bfo: np.ndarray, stride: int) -> None:
    """out[b, f] = the transform of the frame of row b that begins at number f * stride; complex values are pairs.

    Args:
        x__bl: frames reach past the end of a row where there are too few values; there are zeros.
        window__n: what the points of a frame are multiplied by, or None.
    """
    size, op = packed.size, packed.op
    fits("fft", (size, writes(size, op)), (x__bl, window__n, out__bfo))
    window_fits(op, window__n, stride)
    width, (count, frames, _) = reads(size, op), out__bfo.shape
    rows = np.zeros((count, frames, width))
    for f in range(frames):
        piece = x__bl[:, f * stride : f * stride + width]
        rows[:, f, : piece.shape[1]] = piece
    pairs = op in (FFT, IFFT, IRFFT)
    z: np.ndarray = rows.reshape(count, frames, width // 2, 2).view(np.complex128)[..., 0] if pairs else rows
    with np.errstate(all="ignore"):
        if window__n is not None:
            z = z * window__n
        y: np.ndarray
        if op == RFFT:
            y = np.fft.rfft(z, size)
        elif op == IRFFT:
            y = np.fft.irfft(z, size) * size
        elif op in (IFFT, REAL_INVERSE):
            y = np.fft.ifft(z, size) * size
        else:
            y = np.fft.fft(z, size)
        y = y * packed.scale
        out__bfo[...] = y if op == IRFFT else np.stack([y.real, y.imag], axis=-1).reshape(out__bfo.shape)


def overlap_add(
    x__bfn: np.ndarray, window__n: np.ndarray | None, out__bl: np.ndarray, stride: int, offset: int, norm: bool
) -> None:
    """out[b, i] = the sum of the values of frames, frame f at ``f * stride``, that are at position ``offset + i``.

    Args:
        window__n: what the values of a frame are multiplied by, or None.
        norm: whether sums are divided by those of the windows' squares; NaN where both are 0.
    """
    fits("overlap_add", (), (x__bfn, window__n, out__bl))
    count, frames, size = x__bfn.shape
    length = out__bl.shape[1]
    whole = np.zeros((count + 1, max(offset + length, frames * stride + size)))
    weights = np.ones(size) if window__n is None else window__n.astype(np.float64)
    with np.errstate(all="ignore"):
        for f in range(frames):
            whole[:count, f * stride : f * stride + size] += x__bfn[:, f] * weights
            whole[count, f * stride : f * stride + size] += weights * weights
        y = whole[:, offset : offset + length]
        out__bl[...] = y[:count] / y[count] if norm else y[:count]
