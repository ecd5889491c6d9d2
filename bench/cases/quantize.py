"""Conversions, tables, sums and pools of quantized values, at the sizes of feature maps and of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import BINARY, KINDS, REDUCE

from . import Case, normal
from .qconv import numbers


def _convert(kernel: str, kind: str, o: int, c: int, i: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        scales = {"step": rng.uniform(0.01, 0.05, c).astype(np.float32), "zero": rng.integers(0, 9, c).astype(np.int32)}
        if kernel == "quantize":
            return {"x": normal(rng, o, c, i), "out": np.empty((o, c, i), kind), "target": KINDS[kind], **scales}
        return {"x": numbers(rng, kind, o, c, i), "out": np.empty((o, c, i), np.float32), "source": KINDS[kind], **scales}

    return Case(kernel, f"{kind} {o}x{c}x{i}", arguments, 3.0 * o * c * i, 5.0 * o * c * i)


def _dynamic(n: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {"x": normal(rng, n), "out": np.empty(n, np.uint8), "step": np.empty(1, np.float32), "zero": np.empty(1, np.uint8)}

    return Case("dynamic_quantize", f"{n}", arguments, 5.0 * n, 9.0 * n)


def _lookup(n: int) -> Case:
    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {"x": numbers(rng, "int8", n), "table": numbers(rng, "int8", 256), "out": np.empty(n, np.int8)}

    return Case("lookup", f"{n}", arguments, float(n), 2.0 * n)


def _binary(op: str, kind: str, a: tuple[int, int, int], b: tuple[int, int, int]) -> Case:
    options = (KINDS[kind], 3, 5, 7, 0.02, 0.03, 0.04 if op == "add" else 0.011)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        arrays = {"a": numbers(rng, kind, *a), "b": numbers(rng, kind, *b), "out": np.empty(a, kind)}
        return {**arrays, "op": BINARY[op], "options": options}

    size = float(np.prod(a))
    return Case("qbinary", f"{op} {kind} {a}, {b}".replace(",", ""), arguments, 6 * size, 3 * size)


def _pool(op: str, kind: str, c: int, size: int, k: int, stride: int, pad: int, count: bool = False) -> Case:
    end = (size + 2 * pad - k) // stride + 1

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": numbers(rng, kind, 1, 1, size, size, c), "out": np.empty((1, 1, end, end, c), kind), "kernel": (1, k, k),
            "stride": (1, stride, stride), "dilation": (1, 1, 1), "pads": (0, 0, pad, pad, pad, pad), "op": REDUCE[op],
            "source": KINDS[kind], "options": (3, 0.02, 0.01, 5, count),
        }  # fmt: skip

    work = float(c * end * end * k * k)
    return Case("qpool", f"{op} {kind} {k}x{k} {c}@{size}" + " padding counts" * count, arguments, work, float(c * size * size))


CASES: tuple[Case, ...] = (
    _convert("quantize", "uint8", 1, 1, 3 * 224 * 224),
    _convert("quantize", "int8", 100, 65, 1),
    _convert("quantize", "uint16", 3, 5, 77),
    _convert("dequantize", "uint8", 1, 1, 64 * 56 * 56),
    _convert("dequantize", "int32", 128, 768, 1),
    _convert("dequantize", "int8", 3, 5, 77),
    _dynamic(128 * 768),
    _dynamic(33),
    _lookup(64 * 56 * 56),
    _binary("add", "uint8", (1, 1, 64 * 56 * 56), (1, 1, 64 * 56 * 56)),
    _binary("add", "int8", (3, 5, 33), (3, 1, 33)),
    _binary("multiply", "uint8", (1, 49, 96), (1, 1, 96)),
    _binary("multiply", "int8", (2, 3, 17), (2, 3, 1)),
    _pool("max", "uint8", 64, 112, 3, 2, 1),
    _pool("mean", "uint8", 1024, 7, 7, 1, 0),
    _pool("mean", "int8", 17, 9, 3, 2, 1, True),
    _pool("max", "int8", 5, 9, 2, 2, 0),
)
