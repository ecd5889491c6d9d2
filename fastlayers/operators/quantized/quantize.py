"""To integers and back: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.

Scales and zero points are one number, or one per index of an axis, or (`block_size`) one for so many neighbours along the axis.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .._base import FLOAT32, Spec, View, register
from .._traits import PLAIN, Layout, Sides, Traits
from ..narrow import NARROW, narrowed
from ..shapes import axis_of, dtype_of
from . import lowering as lower
from .blocks import codes_of
from .parameters import BYTES, Arrays, quantized

UINT8 = np.dtype(np.uint8)


def _granularity(n: View, values: int = 0, scales: int = 1, zeros: int = 2) -> None:
    """Checks the shapes of scale and zero point against that of x; numbers of inputs."""
    x, scale, axis, block = n.shape(values), n.shape(scales), n.get("axis", 1), n.get("block_size", 0)
    if n.has(zeros) and n.shape(zeros) is not None and scale is not None:
        zero = n.shape(zeros)
        assert zero is not None
        one = all(d == 1 for d in (*zero, *scale))
        if not one and (len(zero) != len(scale) or any(_differ(p, q) for p, q in zip(zero, scale, strict=True))):
            raise n.fail(f"the zero point has shape {zero}: expected {scale}, that of the scale")
    if scale is None or x is None or all(d == 1 for d in scale):
        return
    if block < 0:
        raise n.fail(f"block_size is {block}: expected 0 or more")
    if not block:
        if len(scale) != 1:
            raise n.fail(f"the scale has shape {scale}: expected one number, or a vector with the size of axis {axis}")
        at = axis_of(n, axis, len(x))
        if _differ(scale[0], x[at]):
            raise n.fail(f"the scale has {scale[0]} values, x has shape {x}: expected {x[at]}, the size of axis {at}")
        return
    at = axis_of(n, axis, len(x))
    if len(scale) != len(x):
        raise n.fail(f"the scale has shape {scale}, x {x}: expected as many axes, since block_size is {block}")
    for i, (s, d) in enumerate(zip(scale, x, strict=True)):
        want = -(-d // block) if i == at and isinstance(d, int) else d
        if _differ(s, want):
            raise n.fail(f"the scale has shape {scale}, x {x}: expected {want} along axis {i}, since block_size is {block}")


def _differ(a: Any, b: Any) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def spread(n: View, value: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A scale or a zero point in a shape that broadcasts to that of x."""
    if value.size == 1:
        return value.reshape(())
    axis, block = axis_of(n, n.get("axis", 1), x.ndim), n.get("block_size", 0)
    if block:
        slices: list[Any] = [slice(None)] * x.ndim
        slices[axis] = np.arange(x.shape[axis]) // block
        return np.asarray(value[tuple(slices)])
    return value.reshape([-1 if i == axis else 1 for i in range(x.ndim)])


# ---- QuantizeLinear -------------------------------------------------------------------------------------------------------


def target(n: View) -> np.dtype[Any]:
    """The dtype of the result: the zero point's, or the attribute's, or uint8. A type that numpy lacks is always an attribute."""
    number = n.get("output_dtype", 0)
    if not n.has(2):
        return dtype_of(n, number) if number else UINT8
    dtype = n.spec(2).dtype
    if number and dtype_of(n, number) != dtype:
        raise n.wrong_dtype(f"output_dtype is {dtype_of(n, number)}, the zero point has dtype {dtype}: expected the same")
    return dtype


def _bits(number: int) -> int:
    """The size of an integer type of ONNX that numpy lacks; 0 of another type."""
    match = re.fullmatch(r"U?INT(\d)", NARROW[number].name) if number in NARROW else None
    return int(match[1]) if match else 0


def quantize_infer(n: View) -> list[Spec]:
    x, scale, dtype = n.spec(0), n.spec(1), target(n)
    if x.dtype.kind != "f" and x.dtype != np.int32:
        raise n.wrong_dtype(f"input 0 has dtype {x.dtype}: expected a float or int32")
    if scale.dtype.kind != "f" and scale.dtype != np.int32:
        raise n.wrong_dtype(f"the scale has dtype {scale.dtype}: expected a float")
    if n.get("output_dtype", 0) not in NARROW and (dtype.kind not in "iu" or dtype.itemsize > 2):
        raise n.wrong_dtype(f"the result would have dtype {dtype}: expected int8, uint8, int16 or uint16")
    _granularity(n)
    return [Spec(x.shape, dtype)]


def quantize_run(n: View, x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None = None) -> Arrays:
    """round(x / scale) + zero; the quotient has the precision of the scale, unless `precision` names another."""
    number = n.get("precision", 0)
    precision = dtype_of(n, number) if number else scale.dtype if scale.dtype.kind == "f" else FLOAT32
    steps = x.astype(precision) / spread(n, scale, x).astype(precision)
    add = np.zeros((), UINT8) if zero is None else spread(n, zero, x)
    number = n.get("output_dtype", 0)
    if number in NARROW and not _bits(number):
        return (narrowed(steps + add.astype(steps.dtype), number, bool(n.get("saturate", 1))),)
    return (quantized(steps, add, target(n), _bits(number)),)


def _scale_sides(n: View) -> Sides | None:
    """One known scale for all."""
    scale = n.value(1)
    return Sides(((0, -1),)) if scale is not None and scale.size == 1 else None


_WITH_SCALE = Traits(layout=Layout("tied", _scale_sides, lambda x, out: {}), work="elements")
register("QuantizeLinear", quantize_infer, quantize_run, lambda n, b: lower.quantize_lower(n, b, target(n)), _WITH_SCALE)

# ---- DequantizeLinear -----------------------------------------------------------------------------------------------------


def dequantize_infer(n: View) -> list[Spec]:
    x, scale = n.spec(0), n.spec(1)
    if x.dtype != FLOAT32 and (x.dtype.kind not in "iu" or x.dtype.itemsize > 4):  # float32 holds floats of 8, 6 and 4 bits
        raise n.wrong_dtype(f"input 0 has dtype {x.dtype}: expected integers of 8, 16 or 32 bits, or floats of 8 or fewer")
    if scale.dtype.kind != "f":
        raise n.wrong_dtype(f"the scale has dtype {scale.dtype}: expected a float")
    if n.has(2) and n.spec(2).dtype != x.dtype:
        raise n.wrong_dtype(f"the zero point has dtype {n.spec(2).dtype}: expected {x.dtype}, that of x")
    _granularity(n)
    number = n.get("output_dtype", 0)
    return [Spec(x.shape, dtype_of(n, number) if number else scale.dtype)]


def dequantize_run(n: View, x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None = None) -> Arrays:
    """(x - zero) * scale, the product in float32 at least."""
    number = n.get("output_dtype", 0)
    dtype = dtype_of(n, number) if number else scale.dtype
    exact = FLOAT32 if x.dtype == FLOAT32 else np.dtype(np.int64)
    steps = x if zero is None else x.astype(exact) - spread(n, zero, x).astype(exact)
    wide = np.result_type(scale.dtype, FLOAT32)
    return ((steps.astype(wide) * spread(n, scale, x).astype(wide)).astype(dtype),)


def codes_infer(n: View) -> list[Spec]:
    """Inputs: codes in uint8 of one of `_codes.CODES`, scales."""
    q, scale = n.spec(0), n.spec(1)
    if q.dtype != np.uint8 or scale.dtype != FLOAT32:
        raise n.wrong_dtype(f"the codes have dtype {q.dtype}, the scales {scale.dtype}: expected uint8, float32")
    if codes_of(n) is None:
        raise n.fail("codes is not given")
    _granularity(n)
    return [Spec(q.shape, FLOAT32)]


def codes_run(n: View, q: np.ndarray, scale: np.ndarray) -> Arrays:
    """Numbers that the codes stand for, times the scales."""
    return (dequantized_weight(n, q, scale, None),)


register("DequantizeCodes", codes_infer, codes_run, None, PLAIN)


def weight_rule(n: View, values: int, scales: int, zeros: int) -> None:
    """Raises unless these inputs of another operator are weights of bytes, with scales and zero points as DequantizeLinear's."""
    q, scale = n.spec(values), n.spec(scales)
    if q.dtype not in BYTES or scale.dtype != FLOAT32 or (n.has(zeros) and n.spec(zeros).dtype != q.dtype):
        zero = n.spec(zeros).dtype if n.has(zeros) else None
        raise n.wrong_dtype(
            f"the weights have dtype {q.dtype}, their scales {scale.dtype}, zero points {zero}: expected int8 or uint8, float32, "
            "and that of the weights or none"
        )
    table = codes_of(n)
    if table is not None and (table.size != 256 or q.dtype != np.uint8 or n.has(zeros)):
        raise n.fail(f"codes={n.get('codes')!r} of {q.dtype}: expected 256 codes of uint8, and no zero points")
    _granularity(n, values, scales, zeros)


def dequantized_weight(n: View, q: np.ndarray, scale: np.ndarray, zero: np.ndarray | None) -> np.ndarray:
    """(q - zero) * scale as float32: the very numbers of DequantizeLinear. Attribute `codes`: see `blocks`."""
    table = codes_of(n)
    steps: np.ndarray = q.astype(np.float32) if table is None else table[q]
    if zero is not None:
        steps -= spread(n, zero, q).astype(np.float32)
    steps *= spread(n, scale, q)
    return steps


register("DequantizeLinear", dequantize_infer, dequantize_run, lower.dequantize_lower, _WITH_SCALE)

# ---- DynamicQuantizeLinear ------------------------------------------------------------------------------------------------


def dynamic_infer(n: View) -> list[Spec]:
    x = n.spec(0)
    if x.dtype != FLOAT32:
        raise n.wrong_dtype(f"input 0 has dtype {x.dtype}: expected float32")
    return [Spec(x.shape, UINT8), Spec((), FLOAT32), Spec((), UINT8)]


def dynamic_range(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point of uint8 for values from the least of x to the largest, 0 among them; a scale of 1 if all are 0."""
    low, high = np.fmin.reduce(x, axis=None, initial=0), np.fmax.reduce(x, axis=None, initial=0)  # NaN does not count
    scale = FLOAT32.type(1) if high == low else (high - low) / FLOAT32.type(255)
    return np.asarray(scale, FLOAT32), quantized(np.asarray(FLOAT32.type(0) - low / scale), 0, UINT8)


def dynamic_run(n: View, x: np.ndarray) -> Arrays:
    """x in uint8, with the scale and the zero point of its range."""
    scale, zero = dynamic_range(x)
    return quantized(x / scale, zero, UINT8), scale, zero


register("DynamicQuantizeLinear", dynamic_infer, dynamic_run, lower.dynamic_lower, PLAIN)
