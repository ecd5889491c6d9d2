"""Elementwise functions, gated units and PReLU. All are bound by memory: four values an access, each read and written once."""

from __future__ import annotations

from typing import Any

from ..table import Activation
from ._cuda import F32, Kernel, cdiv, cuda, f32, kernel, load4, per_function, sized, store4, threads
from ._device import Array, on_device
from ._math import function

__all__ = ["gated", "prelu", "unary"]

BLOCK = threads(256)
ZERO = f32(0)


@per_function
def _unary(f: Any) -> Kernel:
    @kernel
    def unary_kernel(x: F32, out: F32, n: int, whole: int, a: float, b: float) -> None:
        """`whole` values, divisible by 4, are read four at once."""
        me, step = cuda.grid(1), cuda.gridsize(1)
        for i in range(me * 4, whole, step * 4):
            p, q, r, s = load4(x, i)
            store4(out, i, f(p, a, b), f(q, a, b), f(r, a, b), f(s, a, b))
        for i in range(whole + me, n, step):
            out[i] = f(x[i], a, b)

    return unary_kernel


@on_device
def unary(x: Array, out: Array, activation: Activation) -> None:
    """out = f(x), f given by code and parameters; out may be x."""
    n = x.size
    if n:
        whole = n // 4 * 4 if x.aligned and out.aligned else 0
        grid = sized(cdiv(n, 4) if whole else n, BLOCK)
        _unary(function(activation.code)).launch(grid, BLOCK, x.flat, out.flat, n, whole, activation.a, activation.b)


@kernel
def prelu_kernel(x: F32, slope: F32, out: F32, n: int, channels: int, inner: int) -> None:
    """One number a thread: neighbours read neighbours, and a slope from the cache."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        v = x[i]
        out[i] = v if v >= ZERO else v * slope[i // inner % channels]


@on_device
def prelu(x__oci: Array, slope__c: Array, out__oci: Array) -> None:
    """out = x where x >= 0, else slope[c] x."""
    n = x__oci.size
    if n:
        _, channels, inner = x__oci.shape
        prelu_kernel.launch(sized(n, BLOCK), BLOCK, x__oci.flat, slope__c.flat, out__oci.flat, n, channels, inner)


@per_function
def _gated(f: Any) -> Kernel:
    @kernel
    def gated_kernel(x: F32, out: F32, n: int, inner: int, gate: int, a: float, b: float) -> None:
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            row = i // inner
            start = i + row * inner  # of row's first half
            out[i] = x[start + (1 - gate) * inner] * f(x[start + gate * inner], a, b)

    return gated_kernel


@on_device
def gated(x__o2i: Array, out__oi: Array, activation: Activation, gate: int) -> None:
    """out = x[:, 1 - gate] * f(x[:, gate]), f without parameters."""
    n = out__oi.size
    if n:
        _gated(function(activation.code)).launch(
            sized(n, BLOCK), BLOCK, x__o2i.flat, out__oi.flat, n, out__oi.shape[1], gate, activation.a, activation.b
        )
