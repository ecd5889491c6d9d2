"""Pooling of image networks, of sound and of volumes, in both layouts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import Case, normal

Triple = tuple[int, int, int]


def _pool(
    kind: str,
    c: int,
    size: Triple,
    kernel: Triple,
    stride: Triple,
    pads: tuple[int, ...] | None = None,
    include_pad: bool = False,
    channels_last: bool = False,
    p: float = 2.0,
) -> Case:
    """`pads` of None keep the size at stride 1."""
    pads = tuple(p for k in kernel for p in ((k - 1) // 2,) * 2) if pads is None else pads
    space = [(n + a + b - k) // s + 1 for n, k, s, a, b in zip(size, kernel, stride, pads[::2], pads[1::2], strict=True)]
    shape_in, shape_out = ([1, *s, c] if channels_last else [1, c, *s] for s in (size, space))

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, *shape_in),
            "out": np.empty(shape_out, np.float32),
            "kernel": kernel,
            "stride": stride,
            "dilation": (1, 1, 1),
            "pads": pads,
            "include_pad": include_pad,
            "factor": 1 / math.prod(kernel),
            "p": p,
            "norm": True,
            "channels_last": channels_last,
        }

    words = [
        f"{'x'.join(str(k) for k in kernel if k > 1)} s{max(stride)}",
        f"{c}@{'x'.join(str(n) for n in size if n > 1)}",
        *("pads" for _ in "p" if include_pad),
        *(f"p={p:g}" for _ in "p" if kind == "lp"),
        "nhwc" if channels_last else "nchw",
    ]
    return Case(f"{kind}_pool", " ".join(words), arguments, moved=4.0 * (math.prod(shape_in) + math.prod(shape_out)))


def _square(kind: str, k: int, stride: int, size: int, c: int, pad: int | None = None, **rest: Any) -> Case:
    pads = None if pad is None else (0, 0, pad, pad, pad, pad)
    return _pool(kind, c, (1, size, size), (1, k, k), (1, stride, stride), pads, **rest)


CASES: tuple[Case, ...] = tuple(
    entry
    for last in (False, True)
    for entry in (
        _square("max", 3, 2, 112, 64, channels_last=last),
        _square("max", 2, 2, 112, 64, channels_last=last),
        _square("max", 3, 1, 28, 192, channels_last=last),
        _square("max", 3, 1, 7, 832, channels_last=last),
        _square("max", 5, 1, 20, 256, channels_last=last),
        _square("avg", 2, 2, 56, 128, channels_last=last),
        _square("avg", 3, 1, 28, 192, channels_last=last),
        _square("avg", 3, 2, 28, 116, include_pad=True, channels_last=last),
        _square("avg", 7, 1, 7, 1024, 0, channels_last=last),
        _square("avg", 5, 3, 17, 768, 0, channels_last=last),
        _pool("max", 32, (1, 1, 8000), (1, 1, 4), (1, 1, 4), channels_last=last),
        _pool("avg", 1, (1, 1, 48000), (1, 1, 400), (1, 1, 160), (0,) * 6, channels_last=last),
        _square("sum", 3, 1, 28, 192, channels_last=last),
        _square("lp", 2, 2, 56, 128, channels_last=last),
        _square("lp", 3, 2, 28, 192, p=3.0, channels_last=last),
        _pool("max", 16, (16, 28, 28), (2, 2, 2), (2, 2, 2), channels_last=last),
    )
)
