"""Weights of bytes and of fewer bits stay so in products and tables, where they would be dequantized to float32 as a whole.

before (D: DequantizeLinear of constants)          after
MatMul(x, D(w)), MatMul(x, Transpose(D(w)))        MatMulNBits(x, w')
Gemm(x, D(w), c), Gemm(x, Transpose(D(w)), c)      MatMulNBits(x, w', c)
Gather(D(w), i)                                    GatherBlockQuantized(w', i)
Conv(x, D(w), b)                                   Conv(x, w, b, -, scale, zero point)

D may be DequantizeCodes, too: of floats of 8 bits.

Scales are one for all, one for each column, or one for each block of the axis that is summed (opset 21 on). The bits follow from
the values: int4 is an int8 array here. Sums are exact: in strict precision they have the bits of those with the weights in
float32. Large matrices of 8 bits with a scale for all or for each column stay so where their products take less time
(`bytes_pay`: AVX512-VNNI); elsewhere they become float32, whose products are as fast with one row, 1.3 times as fast with 8,
and fuse. A convolution's are bytes in the graph and float32 as the kernel packs them (each is read for many pixels), a layer at
a time; where a normalization or a constant a channel goes into them, they become float32 here.
"""

from __future__ import annotations

import numpy as np

from .._tuples import NamedTuple
from ..ir.graph import Node
from ..operators.graphs import trimmed
from ..operators.quantized.parameters import BYTES
from ._net import Net, of_columns

__all__ = ["apply"]

_KINDS = ("DequantizeLinear", "DequantizeCodes")
_PARTS = (256, 128, 64, 32, 16)
_LEAST = 1 << 16  # weights of 8 bits that share a scale: of fewer, rounding what they multiply takes too much
_SOME = 1 << 20  # elements that are packed at a time


class Packed(NamedTuple):
    """Weights (columns, terms) as MatMulNBits has them: the names of bytes, scales and zero points, and their sizes."""

    weights: str
    scales: str
    zeros: str | None
    columns: int
    terms: int
    block: int
    bits: int
    codes: str = ""

    @property
    def words(self) -> dict[str, str]:
        """Attributes that say what the numbers stand for."""
        return {"codes": self.codes} if self.codes else {}


def apply(net: Net, bytes_pay: bool = False) -> None:
    """See the module. The net must have its DequantizeLinear of constants still (`fold` with `keep`).

    `bytes_pay`: see `passes.optimize`.
    """
    made: dict[tuple[str, int], Packed | None] = {}
    # Tables last: rows of bytes are taken by numpy, which pays where a product has the bytes anyway.
    for at, node in sorted(net.each("MatMul", "Gemm", "Gather", "Conv"), key=lambda found: found[1].op == "Gather"):
        if node.op == "Conv":
            _convolution(net, at, node)
        elif node.op == "Gather":
            _table(net, at, node, _found(net, made, node.inputs[0], 1, False))
        else:
            _product(net, at, node, _found(net, made, node.inputs[1], 1 if node.attributes.get("transB", 0) else 0, bytes_pay))


def _found(net: Net, made: dict[tuple[str, int], Packed | None], name: str | None, summed: int, bytes_pay: bool) -> Packed | None:
    """Weights that a value was dequantized from; `summed`: the axis that is summed, or that is left of a table."""
    node = net.producer(name)
    turned = node is not None and node.op == "Transpose" and len(node.inputs) == 1
    if node is not None and turned and tuple(node.attributes.get("perm") or (1, 0)) == (1, 0):
        node, summed = net.producer(node.inputs[0]), 1 - summed
    if node is None or node.op not in _KINDS:
        return None
    key = node.outputs[0], summed
    if key not in made:
        made[key] = _packed(net, node, summed, bytes_pay)
    return made[key]


def _product(net: Net, at: int, node: Node, w: Packed | None) -> None:
    get, x = node.attributes.get, node.inputs[0]
    if w is None or get("transA", 0) or get("alpha", 1.0) != 1 or not net.is_float32(x) or not net.rank(x):
        return
    inputs: list[str | None] = [x, w.weights, w.scales, w.zeros]
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        bias = net.value(node.inputs[2])
        if bias is None or bias.dtype != np.float32 or not of_columns(bias, w.columns):
            return
        wide = np.broadcast_to(bias.reshape(-1) * np.float32(get("beta", 1.0)), (w.columns,))
        inputs += [None, net.constant(np.ascontiguousarray(wide, np.float32), str(node.inputs[2]))]
    attributes = {"K": w.terms, "N": w.columns, "block_size": w.block, "bits": w.bits, **w.words}
    net.replace(at, Node("MatMulNBits", trimmed(inputs), node.outputs, attributes))


def _table(net: Net, at: int, node: Node, w: Packed | None) -> None:
    each = 8 // w.bits if w is not None else 1
    if w is None or node.attributes.get("axis", 0) not in (0, -2) or w.terms % each:
        return
    weights, array = w.weights, net.constants[w.weights]
    if w.zeros is not None and net.constants[w.zeros].dtype != np.uint8:
        return
    if array.shape[1] != w.terms // each:  # the last block is a part
        weights = net.constant(np.ascontiguousarray(array[:, : w.terms // each]), weights)
    attributes = {"bits": w.bits, "block_size": w.block, "gather_axis": 0, "quantize_axis": 1, **w.words}
    inputs = trimmed((weights, node.inputs[1], w.scales, w.zeros))
    net.replace(at, Node("GatherBlockQuantized", inputs, node.outputs, attributes))


def _convolution(net: Net, at: int, node: Node) -> None:
    found = net.producer(node.inputs[1])
    if found is None or found.op not in _KINDS or len(node.inputs) > 3 or not net.is_float32(node.inputs[0]):
        return
    q, scale, zero = (net.value(name) for name in (*found.inputs, None)[:3])
    get = found.attributes.get
    if q is None or scale is None or q.dtype not in BYTES or scale.dtype != np.float32 or get("output_dtype", 0) not in (0, 1):
        return
    if any(found.inputs[2:]) and zero is None:
        return
    before, after = net.producer(node.inputs[0]), net.single(node.outputs[0])
    if (before is not None and before.op == "BatchNormalization") or (after is not None and _scales(net, after)):
        return
    inputs = (node.inputs[0], found.inputs[0], (*node.inputs, None)[2], None, *found.inputs[1:])
    attributes = {**node.attributes, "axis": get("axis", 1), "block_size": get("block_size", 0)}
    if codes := get("codes"):
        attributes["codes"] = codes
    net.replace(at, Node("Conv", trimmed(inputs), node.outputs, attributes))


def _scales(net: Net, node: Node) -> bool:
    """Whether a node would go into the weights before it, which are float32 then."""
    constants = any(net.value(name) is not None for name in node.inputs if name is not None)
    return node.op == "BatchNormalization" or (net.traits(node).line is not None and constants)


def _packed(net: Net, node: Node, summed: int, bytes_pay: bool) -> Packed | None:
    """The constants of a DequantizeLinear of a matrix, if they can be so."""
    q, scale, zero = (net.value(name) for name in (*node.inputs, None)[:3])
    get = node.attributes.get
    if q is None or scale is None or (len(node.inputs) > 2 and node.inputs[2] is not None and zero is None):
        return None
    if q.dtype not in BYTES or q.ndim != 2 or not q.size or scale.dtype != np.float32 or get("output_dtype", 0) not in (0, 1):
        return None
    given, axis = get("block_size", 0), get("axis", 1) % 2
    if not np.isfinite(scale).all() or (scale.size != 1 and axis != (summed if given else 1 - summed)):
        return None
    q = q if summed else q.T
    columns, terms = q.shape
    scales, zeros = (None if a is None else _each_block(a, bool(given), summed, columns) for a in (scale, zero))
    if scales is None:
        return None
    if scales.shape[1] == 1:  # the kernel's blocks share it: such as need little padding
        part = min(_PARTS, key=lambda size: -(-terms // size) * (size + 16))
        at = np.zeros(-(-terms // part), np.int64)
    else:
        part = given & -given  # the largest power of 2 that divides it
        at = np.arange(-(-terms // part)) * part // given
    if part < 16:
        return None
    scales = np.ascontiguousarray(scales[:, at])
    if codes := get("codes", ""):
        name = net.constant(_bytes(q, 0, 8, part), f"{node.outputs[0]}/codes")
        return Packed(name, net.constant(scales, f"{node.outputs[0]}/scale"), None, columns, terms, part, 8, codes)
    least, most = (int(q.min()), int(q.max())) if q.dtype == np.uint8 else (-int(q.min()) - 1, int(q.max()))
    bits = next(b for b in (2, 4, 8) if max(least, most) < 1 << (b if q.dtype == np.uint8 else b - 1))
    if bits == 8 and not given and not (bytes_pay and _pays(columns, terms, part)):
        return None
    half = 1 << bits - 1
    low = 0 if q.dtype == np.uint8 else half
    origin = np.full(scales.shape, low) if zeros is None else zeros[:, at].astype(np.int64) + low
    stem = node.outputs[0]
    packed, spread = net.constant(_bytes(q, low, bits, part), f"{stem}/bits"), net.constant(scales, f"{stem}/scale")
    made = None
    if (origin != half).any():
        fits = origin.min() >= 0 and origin.max() < 1 << bits
        made = net.constant(_bytes(origin, 0, bits, 0) if fits else origin.astype(np.float32), f"{stem}/zero")
    return Packed(packed, spread, made, columns, terms, part, bits)


def _pays(columns: int, terms: int, part: int) -> bool:
    """Whether a product with weights of 8 bits is large, and has little of what pads blocks, and columns to four panels."""
    whole = -(-columns // 64) * 64 * (-(-terms // part) * part)
    return columns * terms >= _LEAST and whole * 8 <= columns * terms * 9


def _each_block(values: np.ndarray, blocks: bool, summed: int, columns: int) -> np.ndarray:
    """Scales or zero points as (columns, blocks)."""
    if values.size == 1:
        return np.broadcast_to(values.reshape(1, 1), (columns, 1))
    return values.reshape(-1, 1) if not blocks else values if summed else values.T


def _bytes(q: np.ndarray, low: int, bits: int, block: int) -> np.ndarray:
    """The numbers q + low of rows, lowest bits first, in whole blocks (0: whole bytes)."""
    (rows, terms), each = q.shape, 8 // bits
    wide = -(-terms // block) * block if block else -(-terms // each) * each
    out = np.zeros((rows, wide // each), np.uint8)
    step = max(_SOME // rows, 1) * each
    for i in range(0, terms, step):  # by terms, since those of most files are rows in memory
        some = q.T[i : i + step].astype(np.uint8) + np.uint8(low)
        made = np.zeros((-(-len(some) // each), rows), np.uint8)
        for j in range(each):
            part = some[j::each]
            made[: len(part)] |= part << np.uint8(bits * j)
        out[:, i // each : i // each + len(made)] = made.T
    return out
