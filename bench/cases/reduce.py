"""Reductions: global pooling in both layouts, norms and log-sum-exp of rows, sums down columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastlayers.kernels.table import KINDS, REDUCE

from . import Case, normal


def _reduce(name: str, outer: int, n: int, inner: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x = normal(rng, outer, n, inner)
        if name == "log_sum":
            x = np.abs(x)
        return {"x": x, "out": np.empty((outer, inner), np.float32), "op": REDUCE[name]}

    return Case("reduce", f"{name} {outer}x{n}x{inner}", arguments, moved=4.0 * outer * inner * (n + 1))


def _running(outer: int, n: int, inner: int, dtype: str, exclusive: bool = False, reverse: bool = False) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x = rng.integers(-4, 9, (outer, n, inner)).astype(dtype)
        return {"x": x, "out": np.empty_like(x), "source": KINDS[dtype], "exclusive": exclusive, "reverse": reverse}

    words = f"{dtype} {outer}x{n}x{inner}" + " exclusive" * exclusive + " reverse" * reverse
    return Case("running_sum", words, arguments, moved=2.0 * np.dtype(dtype).itemsize * outer * n * inner)


def _blocks(planes: int, size: tuple[int, int, int], kernel: tuple[int, int, int], stride: int = 1, pad: int = 0) -> Case:
    places = [(s + 2 * pad * (k > 1) - k) // stride + 1 for s, k in zip(size, kernel, strict=True)]

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x, out = normal(rng, planes, math.prod(kernel), math.prod(places)), np.empty((planes, math.prod(size)), np.float32)
        pads = tuple(pad * (k > 1) for k in kernel for _ in range(2))
        words = {"size": size, "kernel": kernel, "stride": (stride,) * 3, "dilation": (1, 1, 1), "pads": pads}
        return {"x": x, "out": out, **words}

    label = f"{planes} of {'x'.join(map(str, size))}, {'x'.join(map(str, kernel))} s{stride} p{pad}"
    return Case("col2im", label, arguments, moved=4.0 * planes * (math.prod(kernel) * math.prod(places) + math.prod(size)))


CASES: tuple[Case, ...] = (
    _reduce("mean", 2048, 49, 1),  # global average pooling, channels-first
    _reduce("mean", 1, 49, 2048),  # and channels-last
    _reduce("mean", 1, 3136, 64),
    _reduce("mean", 8, 196, 24),
    _reduce("max", 2048, 49, 1),
    _reduce("max", 1, 49, 2048),
    _reduce("sum", 128, 768, 1),
    _reduce("sum", 1, 512, 512),
    _reduce("sum", 1, 200000, 1),
    _reduce("sum", 1, 20000, 3),
    _reduce("min", 50, 100, 7),
    _reduce("prod", 1000, 5, 1),
    _reduce("sum_square", 128, 768, 1),
    _reduce("l1", 100, 256, 1),
    _reduce("l2", 1000, 512, 1),  # embeddings
    _reduce("l2", 1, 512, 196),
    _reduce("log_sum", 20, 1000, 1),
    _reduce("log_sum_exp", 128, 768, 1),
    _reduce("log_sum_exp", 1, 21, 4096),
    _running(4, 128, 1, "int64"),
    _running(2, 50, 3, "int32", exclusive=True),
    _running(3, 100, 7, "float32", reverse=True),
    _running(1, 17, 1, "int64", exclusive=True, reverse=True),
    _blocks(16, (1, 32, 32), (1, 3, 3)),
    _blocks(3, (1, 17, 40), (1, 3, 5), stride=2, pad=2),
    _blocks(2, (5, 6, 7), (2, 1, 3), pad=1),
    _blocks(2, (7, 9, 37), (5, 5, 3)),  # more taps than are added at once
)
