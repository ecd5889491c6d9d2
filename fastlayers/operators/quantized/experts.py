"""MoE and QMoE of ONNX Runtime: each token goes through the k experts that a router likes best, weighted by it.

An expert is activation(x W1ᵀ + b1) W2ᵀ + b2; with "swiglu" the first product has gates and values in turn (fusion 1) or gates
first (fusion 2), or the values are x W3ᵀ + b3 (fusion 0). Of QMoE's weights, integers of 2, 4 or 8 bits, each row has a scale,
or each block of it. Only the experts that a token chose are computed; a token's result depends on no other token.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.graph import Dim
from ...kernels import dispatch
from ...kernels.table import NBITS_SUMS
from .._base import Spec, View, register
from .._traits import PLAIN
from ..fused import IDENTITY
from ..shapes import expect, need_kind
from .blocks import floats, kernel_arguments, unpacked
from .parameters import Arrays

if TYPE_CHECKING:
    from ..builder import Builder

# Positions of weight, scale, bias and zero point of the three products; 99: it has none.
_PLACES = {"MoE": ((2, 99, 3, 99), (4, 99, 5, 99), (6, 99, 7, 99)), "QMoE": ((2, 3, 4, 11), (5, 6, 7, 12), (8, 9, 10, 13))}
_BITS = "fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"
_MIXING = 14  # QMoE: weights of the experts, where the router's numbers are for the choice alone
_ACTIVATIONS = ("relu", "gelu", "silu", "swiglu", "identity")


def _bits(n: View, j: int) -> int:
    bits: int = n.get(_BITS[j], n.get("expert_weight_bits", 4))
    if bits not in (2, 4, 8):
        raise n.fail(f"expert_weight_bits is {bits}: expected 2, 4 or 8")
    return bits


def _of(size: Dim, by: int, over: int = 1) -> Dim:
    return -(-size * by // over) if isinstance(size, int) else None


def infer(n: View) -> list[Spec]:
    """Inputs: x (tokens, h) or (b, t, h), the router's numbers (tokens, experts), three products; all floats of one dtype."""
    x, router, places = n.spec(0), n.shape(1), _PLACES[n.op]
    need_kind(n, "f", 0, 1, *(p for place in places for p in (place[1], place[2])), _MIXING)
    for i in (p for place in places for p in (place[1], place[2]) if n.has(p) and n.spec(p).dtype not in (x.dtype, np.float32)):
        raise n.wrong_dtype(f"input {i} has dtype {n.spec(i).dtype}: expected {x.dtype} or float32")
    k, fusion, name, block = n.get("k", 1), n.get("swiglu_fusion", 0), n.get("activation_type", "relu"), n.get("block_size", 0)
    gated = name == "swiglu"
    third = n.has(places[2][0])
    if name not in _ACTIVATIONS or fusion not in (0, 1, 2) or third != (gated and not fusion):
        raise n.fail(
            f"activation_type={name!r}, swiglu_fusion={fusion}, {3 if third else 2} weights: expected one of "
            f"{', '.join(_ACTIVATIONS)}, a fusion of 0 to 2, and three weights for 'swiglu' with a fusion of 0 alone"
        )
    if block and (block < 16 or block & (block - 1)):
        raise n.fail(f"block_size is {block}: expected none or a power of 2 from 16 on")
    if (x.shape is not None and len(x.shape) not in (2, 3)) or (router is not None and len(router) != 2):
        raise n.fail(
            f"x has shape {x.shape}, the router's numbers {router}: expected (tokens, h) or (b, t, h), (tokens, experts)"
        )
    second = n.shape(places[1][0])
    if second is None:
        second = (None, None, None)
    elif len(second) != 3:
        raise n.fail(f"input {places[1][0]} has shape {second}: expected (experts, h, inner)")
    experts: Dim = router[1] if router is not None and isinstance(router[1], int) else second[0]
    if k < 1 or (isinstance(experts, int) and k > experts):
        raise n.fail(f"k is {k}: expected 1 to {experts}")
    if x.shape is not None and router is not None and all(isinstance(d, int) for d in (*x.shape[:-1], router[0])):
        tokens = math.prod(x.shape[:-1])  # type: ignore[arg-type]
        if tokens != router[0]:
            raise n.fail(f"the router's numbers have shape {router}: expected ({tokens}, {experts}) for x {x.shape}")
    width: Dim = x.shape[-1] if x.shape is not None and isinstance(x.shape[-1], int) else second[1]
    inner = _of(second[2], 8, _bits(n, 1)) if n.op == "QMoE" else second[2]
    sides = ((_of(inner, 2 if gated and fusion else 1), width), (width, inner), (inner, width))
    for j, ((weight, scale, bias, zero), (rows, terms)) in enumerate(zip(places, sides, strict=True)):
        expect(n, bias, experts, rows)
        if n.op == "MoE" or not n.has(weight):
            expect(n, weight, experts, rows, terms)
            continue
        bits = _bits(n, j)
        expect(n, weight, experts, rows, _of(terms, bits, 8), dtype=np.uint8)
        if not n.has(scale):
            raise n.fail(f"input {scale}, the scales of input {weight}, is missing")
        blocks = (_of(terms, 1, block),) if block else ()
        packed = (rows, _of(_of(terms, 1, block), bits, 8)) if block else (_of(rows, bits, 8),)
        expect(n, scale, experts, rows, *blocks)
        expect(n, zero, experts, *packed, dtype=np.uint8)
    expect(n, _MIXING, *(router or (None, None)))
    return [x]


# ---- one expert --------------------------------------------------------------------------------------------------------


def _parts(places: tuple[int, ...], e: int, given: Callable[[int], np.ndarray | None]) -> list[Any]:
    return [None if array is None else array[e] for array in map(given, places)]


def _quantized(n: View, j: int, e: int, given: Callable[[int], np.ndarray | None]) -> tuple[Any, ...]:
    """An expert's product: bytes, scales and zero points (rows, blocks), the bias, terms, terms of a block, bits."""
    places, bits = _PLACES["QMoE"][j], _bits(n, j)
    weight, scale, bias, zero = _parts(places, e, given)
    terms = weight.shape[1] * 8 // bits
    block = n.get("block_size", 0) or 1 << 30
    scale = scale.reshape(len(weight), -1).astype(np.float32)
    if zero is not None:
        zero = unpacked(zero, bits)
        zero = zero[:, : scale.shape[1]] if zero.ndim == 2 else zero[: len(weight), None]
    return weight, scale, zero, bias, terms, block, bits


def _floats(n: View, j: int, e: int, given: Callable[[int], np.ndarray | None]) -> tuple[np.ndarray, np.ndarray | None]:
    """Weights (rows, terms) and bias of an expert's product."""
    if n.op == "QMoE":
        weight, scale, zero, bias, terms, block, bits = _quantized(n, j, e, given)
        return floats(weight, scale, zero, np.arange(terms) // block, bits), bias
    weight, _, bias, _ = _parts(_PLACES["MoE"][j], e, given)
    return weight, bias


# ---- all tokens --------------------------------------------------------------------------------------------------------

_Product = Callable[[int, int, np.ndarray], np.ndarray]


def _mixed(n: View, x: np.ndarray, router: np.ndarray, mixing: np.ndarray | None, product: _Product) -> np.ndarray:
    """The sum of the experts that each token chose; `product` takes the number of the product, of the expert, and rows."""
    rows, wide = x.reshape(-1, x.shape[-1]), router.astype(np.float64)
    # Of equal numbers the later expert's counts as larger, as in ONNX Runtime.
    top = np.argsort(wide, 1, kind="stable")[:, ::-1][:, : n.get("k", 1)]
    if mixing is not None:
        weights = np.take_along_axis(mixing.astype(np.float64), top, 1)
        if n.get("normalize_routing_weights", 0):
            weights = weights / weights.sum(1, keepdims=True)
    else:
        weights = np.exp(np.take_along_axis(wide, top, 1) - wide.max(1, keepdims=True))
        every = weights if n.get("normalize_routing_weights", 0) else np.exp(wide - wide.max(1, keepdims=True))
        weights = weights / every.sum(1, keepdims=True)
    out = np.zeros(rows.shape, np.float64)
    for e in np.unique(top):
        at, slot = np.nonzero(top == e)
        chosen = np.ascontiguousarray(rows[at])
        hidden = _activated(n, partial(product, 0, e), partial(product, 2, e), chosen)
        out[at] += weights[at, slot][:, None] * product(1, e, hidden)
    return out.reshape(x.shape).astype(x.dtype)


def _activated(n: View, first: Callable[..., np.ndarray], third: Callable[..., np.ndarray], x: np.ndarray) -> np.ndarray:
    name, fusion, y = n.get("activation_type", "relu"), n.get("swiglu_fusion", 0), first(x)
    if name == "swiglu":
        half = y.shape[1] // 2
        gate, value = (y[:, ::2], y[:, 1::2]) if fusion == 1 else (y[:, :half], y[:, half:]) if fusion else (y, third(x))
        most = n.get("swiglu_limit", np.inf)
        gate, value = np.minimum(gate, most), np.clip(value, -most, most)
        alpha, beta = n.get("activation_alpha", 1.0), n.get("activation_beta", 0.0)
        made = gate / (1 + np.exp(-alpha * gate)) * (value + beta)
    elif name == "silu":
        made = y / (1 + np.exp(-y))
    elif name == "gelu":
        made = y * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y * y * y)))
    else:
        made = np.maximum(y, 0) if name == "relu" else y
    return np.ascontiguousarray(made, y.dtype)


def run(n: View, x: np.ndarray, router: np.ndarray, *rest: np.ndarray | None) -> Arrays:
    """In float64."""
    given = dict(enumerate((x, router, *rest))).get

    def product(j: int, e: int, rows: np.ndarray) -> np.ndarray:
        weight, bias = _floats(n, j, e, given)
        y = rows.astype(np.float64) @ weight.T.astype(np.float64)
        return np.asarray(y if bias is None else y + bias)

    return (_mixed(n, x, router, given(_MIXING), product),)


def lower(n: View, b: Builder) -> Any:
    """Products are kernels' over weights that were packed once; which rows they get is known when it runs."""
    places = [place for place in _PLACES[n.op] if n.has(place[0])]
    if not n.float32(0, 1) or any(n.has(i) and n.value(i) is None for place in places for i in place):
        return False
    quantized, packed, sizes, sums = n.op == "QMoE", {}, [], []
    for j, place in enumerate(places):
        weight: Any = n.value(place[0])
        terms = weight.shape[2] * 8 // _bits(n, j) if quantized else weight.shape[2]
        # Blocks of part of a row are summed exactly by ONNX Runtime, and so are weights of 2 bits.
        whole = n.get("accuracy_level", 0) == 4 and 0 < n.get("block_size", 0) <= 256 and not terms % n.get("block_size", 0)
        sums.append(NBITS_SUMS["integer" if whole and _bits(n, j) != 2 else "exact"])
        sizes.append(weight.shape[1])
        for e in range(len(weight)):
            if quantized:
                packed[j, e] = b.pack("nbits_pack", partial(_packing, n, j, e), (j, e))
            else:
                packed[j, e] = b.pack("linear_pack", partial(_floats, n, j, e, n.value), (j, e))
    kernel = b.kernel("nbits" if quantized else "linear")

    def product(j: int, e: int, rows: np.ndarray) -> np.ndarray:
        out: np.ndarray = dispatch.empty((len(rows), sizes[j]))
        kernel(rows, packed[j, e], out, sums[j] if quantized else None, IDENTITY)
        return out

    def mixed(x: np.ndarray, router: np.ndarray, mixing: np.ndarray | None) -> Arrays:
        with np.errstate(all="ignore"):
            return (_mixed(n, x, router, mixing, product),)

    b.python(mixed, (b.input(0), b.input(1), b.optional(_MIXING)), (b.output(0),))
    return True


def _packing(n: View, j: int, e: int) -> tuple[Any, ...]:
    weight, scale, zero, bias, terms, block, bits = _quantized(n, j, e, n.value)
    return kernel_arguments(weight, scale, zero, None if bias is None else bias.astype(np.float32), terms, block, bits)


for _name in _PLACES:
    register(_name, infer, run, lower, PLAIN)
