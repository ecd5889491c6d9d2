"""Products and convolutions of bytes: shapes of ResNet, MobileNet and BERT, one row among them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import KINDS

from . import Case


def numbers(rng: np.random.Generator, kind: str, *shape: int) -> np.ndarray:
    """Any bytes of a kind."""
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max + 1, shape).astype(kind)


def _case(
    label: str, x: tuple[int, ...], out: tuple[int, ...], kernel: tuple[int, int], stride: int, groups: int,
    source: str = "uint8", target: str = "uint8", last: bool = True,
) -> Case:  # fmt: skip
    """x and out are (n, c, h, w); padding keeps sizes, but for the stride."""
    pads = (0, 0, *((k - 1) // 2 for k in kernel for _ in range(2)))
    terms = x[1] // groups * kernel[0] * kernel[1]

    def shape(of: tuple[int, ...]) -> tuple[int, ...]:
        n, c, h, w = of
        return (n, 1, h, w, c) if last else (n, c, 1, h, w)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        o = out[1]
        packed = {
            "weight": numbers(rng, "int8", o, x[1] // groups, 1, *kernel),
            "zero": None,
            "factor": (rng.uniform(0.5, 1.5, o) / (60 * np.sqrt(terms) * 64)).astype(np.float32),
            "bias": rng.integers(-9999, 9999, o).astype(np.int32),
            "shift": None,
            "stride": (1, stride, stride),
            "dilation": (1, 1, 1),
            "groups": groups,
        }
        return {
            "x": numbers(rng, source, *shape(x)), "packed": packed, "x_zero": np.full(1, 3, source), "x_scale": None,
            "out": np.empty(shape(out), target), "pads": pads, "x_last": last, "out_last": last, "source": KINDS[source],
            "target": KINDS[target], "value": 0 if target == "int8" else 128,
        }  # fmt: skip

    flops = 2.0 * terms * np.prod(out)
    return Case("qconv", label, arguments, float(flops), float(np.prod(x) + np.prod(out) + terms * out[1]))


def _conv(c: int, o: int, size: int, k: int, stride: int = 1, groups: int = 1, **rest: Any) -> Case:
    end = (size - 1) // stride + 1
    label = f"{k}x{k} {c}->{o}@{size}" + f" stride {stride}" * (stride > 1) + f" groups {groups}" * (groups > 1)
    label += "".join(f" {v}" for v in rest.values() if isinstance(v, str)) + " first" * (not rest.get("last", True))
    return _case(label, (1, c, size, size), (1, o, end, end), (k, k), stride, groups, **rest)


def _linear(m: int, k: int, n: int, **rest: Any) -> Case:
    label = f"linear {m}x{k}->{n}" + "".join(f" {v}" for v in rest.values())
    return _case(label, (1, k, 1, m), (1, n, 1, m), (1, 1), 1, 1, **rest)


CASES: tuple[Case, ...] = (
    _linear(1, 1024, 1024),
    _linear(128, 768, 768),
    _linear(128, 768, 3072, source="int8", target="int8"),
    _linear(128, 768, 768, target="float32"),
    _linear(7, 33, 21, target="int32"),
    _conv(3, 32, 224, 3, 2),
    _conv(64, 64, 56, 3),
    _conv(64, 256, 56, 1),
    _conv(256, 256, 14, 3, source="int8", target="int8"),
    _conv(16, 24, 14, 3, last=False),
    _conv(32, 32, 112, 3, groups=32),
    _conv(144, 144, 56, 3, 2, groups=144),
    _conv(128, 128, 28, 3, groups=32),
)
