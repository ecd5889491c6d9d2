"""The shared part of operators of quantized networks. A number q stands for (q - zero point) * scale; halves are rounded to even.

Three rules hold everywhere, in numpy and in the kernels, so that every way to compute gives the same integers:
- a sum of products of integers is exact, and wraps around as int32 does where it is beyond that;
- float32(sum) * factor is rounded, the zero point added, and what the dtype cannot hold becomes its least or largest number;
- the factor of a column is (x_scale * w_scale) / y_scale, each step rounded to float32. So does ONNX Runtime.
NaN becomes the least number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.graph import Shape
from .._base import FLOAT32, Spec, View

__all__ = [
    "INTEGERS",
    "Arrays",
    "applied",
    "dequantized",
    "factor",
    "need_integers",
    "need_one",
    "need_scale",
    "quantized",
    "requantized",
    "result_dtype",
    "whole",
    "wrapped",
]

Arrays = tuple[np.ndarray, ...]
INTEGERS = ("int8", "uint8")
BYTES = tuple(np.dtype(name) for name in INTEGERS)


def quantized(x: np.ndarray, zero: Any, dtype: np.dtype[Any], bits: int = 0) -> np.ndarray:
    """round(x) + zero, cut off to what the dtype, or so many of its `bits`, hold; x is a number of steps, of any float dtype."""
    info = np.iinfo(dtype)
    low, high = info.min, info.max
    if bits:
        low = 0 if dtype.kind == "u" else -(1 << (bits - 1))
        high = low + (1 << bits) - 1
    y = np.clip(np.rint(x).astype(np.float64) + np.asarray(zero, np.float64), low, high)
    return np.where(y == y, y, low).astype(dtype)


def requantized(total: np.ndarray, by: np.ndarray, zero: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """Sums (int32) as quantized values."""
    return quantized(total.astype(FLOAT32) * by.astype(FLOAT32), zero, dtype)


def dequantized(x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None = None) -> np.ndarray:
    """(x - zero) * scale as float32."""
    steps = x if zero is None else x.astype(np.int64) - zero.astype(np.int64)
    return np.asarray(steps.astype(FLOAT32) * scale.astype(FLOAT32))


def factor(x_scale: np.ndarray, w_scale: np.ndarray, y_scale: np.ndarray) -> np.ndarray:
    """By what sums are multiplied to become steps of the result."""
    return np.asarray(x_scale.astype(FLOAT32) * w_scale.astype(FLOAT32) / y_scale.astype(FLOAT32))


def wrapped(total: np.ndarray) -> np.ndarray:
    """Exact sums, as float64, in int32."""
    return total.astype(np.int64).astype(np.int32)


def whole(x: np.ndarray, zero: np.ndarray | None) -> np.ndarray:
    """x - zero as float64, in which products and sums of such values are exact."""
    wide = x.astype(np.float64)
    return wide if zero is None else wide - zero.astype(np.float64)


def need_integers(n: View, *positions: int) -> None:
    """Raises unless these inputs, if given, are int8 or uint8."""
    for i in positions:
        if n.has(i) and n.spec(i).dtype not in BYTES:
            raise n.wrong_dtype(f"input {i} has dtype {n.spec(i).dtype}: expected int8 or uint8")


def need_scale(n: View, *positions: int) -> None:
    """Raises unless these inputs are floats."""
    for i in positions:
        if n.spec(i).dtype.kind != "f":
            raise n.wrong_dtype(f"input {i}, a scale, has dtype {n.spec(i).dtype}: expected a float")


def need_one(n: View, *positions: int) -> None:
    """Raises unless these inputs, if given, have one element."""
    for i in positions:
        shape = n.shape(i) if n.has(i) else ()
        if shape is not None and any(isinstance(d, int) and d != 1 for d in shape):
            raise n.fail(f"input {i} has shape {shape}: expected one number")


def need_like(n: View, i: int, x: int) -> None:
    """Raises unless input i, a zero point, if given, has the dtype of input x."""
    if n.has(i) and n.spec(i).dtype != n.spec(x).dtype:
        raise n.wrong_dtype(
            f"input {i}, a zero point, has dtype {n.spec(i).dtype}: expected {n.spec(x).dtype}, that of input {x}"
        )


def triple(n: View, x: int, one: bool = True) -> None:
    """Checks a quantized operand: inputs x (int8 or uint8), x + 1 (its scale), x + 2 (its zero point, which may be left out)."""
    need_integers(n, x)
    need_scale(n, x + 1)
    need_like(n, x + 2, x)
    if one:
        need_one(n, x + 1, x + 2)


def result_dtype(n: View, zero: int, x: int = 0) -> np.dtype[Any]:
    """The dtype of a result: that of its zero point (an input), or of x where that is left out. Checks the scale before it."""
    need_integers(n, zero)
    need_scale(n, zero - 1)
    need_one(n, zero - 1, zero)
    return n.spec(zero).dtype if n.has(zero) else n.spec(x).dtype


def applied(n: View, op: str, specs: list[Spec | None], attributes: dict[str, Any] | None = None) -> View:
    """A view as an operator on floats has it: other inputs, the node's attributes; errors name the node as it is."""
    from ...ir.graph import Node

    names = tuple(None if s is None else f"x{i}" for i, s in enumerate(specs))
    given = dict(n.node.attributes if attributes is None else attributes)
    view = _Named(Node(op, names, n.node.outputs, given), specs, [None] * len(specs))
    view.named = n.where
    return view


class _Named(View):
    """A view whose errors name another node."""

    __slots__ = ("named",)
    named: str

    @property
    def where(self) -> str:
        return self.named


def float_spec(spec: Spec) -> Spec:
    """The same shape in float32."""
    return Spec(spec.shape, FLOAT32)


def array_spec(array: np.ndarray | None) -> Spec | None:
    """The spec of an array that is there."""
    if array is None:
        return None
    shape: Shape = array.shape
    return Spec(shape, array.dtype)
