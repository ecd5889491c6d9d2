"""Fourier transforms: the frames of speech and music models, single rows, lengths of one prime; sums of overlapping frames."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.kernels.fft_tables import KINDS, reads, writes

from . import Case, normal


def _fft(rows: int, size: int, what: str, window: bool = False, frames: int = 1, stride: int = 0) -> Case:
    op = KINDS[what]
    length = reads(size, op) + (frames - 1) * stride

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, rows, length), "packed": {"size": size, "op": op, "scale": 1 / math.sqrt(size)},
            "window": np.hanning(size).astype(np.float32) if window else None,
            "out": np.empty((rows, frames, writes(size, op)), np.float32), "stride": stride,
        }  # fmt: skip

    cut = f" {frames} frames every {stride}" if frames > 1 else ""
    flops = 5.0 * rows * frames * size * math.log2(max(size, 2)) / (2 if "rfft" in what else 1)
    return Case("fft", f"{what} {rows}x{size}{cut}{' window' * window}", arguments, flops)


def _sum(rows: int, frames: int, size: int, stride: int, offset: int, weighed: bool = True) -> Case:
    length = (frames - 1) * stride + size - 2 * offset

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, rows, frames, size), "window": np.hamming(size).astype(np.float32) if weighed else None,
            "out": np.empty((rows, length), np.float32), "stride": stride, "offset": offset, "norm": weighed,
        }  # fmt: skip

    label = f"{rows}x{frames}x{size} every {stride} from {offset}{' weighed' * weighed}"
    return Case("overlap_add", label, arguments, 2.0 * rows * frames * size)


CASES: tuple[Case, ...] = (
    _fft(1, 400, "rfft", True, 98, 160),
    _fft(2, 512, "rfft", True, 61, 128),
    _fft(1, 1024, "fft"),
    _fft(8, 256, "fft", True),
    _fft(20, 1000, "ifft"),
    _fft(98, 400, "irfft"),
    _fft(3, 101, "fft of reals"),
    _fft(17, 30, "ifft of reals"),
    _fft(5, 211, "rfft", True),
    _fft(3, 75, "irfft"),
    _fft(2, 8192, "rfft"),
    _sum(2, 101, 400, 160, 200),
    _sum(3, 7, 30, 11, 0, False),
)
