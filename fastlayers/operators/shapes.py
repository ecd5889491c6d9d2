"""Helpers of shape rules: broadcasting, axes, known values, dtypes. Sizes may be ints, names or None (see ir.graph)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..ir.checks import axis
from ..ir.graph import Dim, Shape
from ..rules.shapes import broadcast_rule
from ._base import FLOAT32, Spec, View, ints
from .narrow import NARROW

__all__ = [
    "DTYPES",
    "axes_of",
    "axis_of",
    "broadcast",
    "dtype_of",
    "expect",
    "known",
    "need_kind",
    "need_number",
    "product",
    "rank_of",
    "same_dtype",
    "scalar",
]

# ONNX's codes of the dtypes that numpy has: not those of `NARROW`, and not text (8).
DTYPES: dict[int, np.dtype[Any]] = {
    number: np.dtype(name)
    for number, name in (
        (1, "float32"), (2, "uint8"), (3, "int8"), (4, "uint16"), (5, "int16"), (6, "int32"), (7, "int64"), (9, "bool"),
        (10, "float16"), (11, "float64"), (12, "uint32"), (13, "uint64"), (14, "complex64"), (15, "complex128"),
    )
}  # fmt: skip
NUMBERS = {dtype: number for number, dtype in DTYPES.items()}

STRING = np.dtype(object)
KINDS = {"f": "floats", "i": "integers", "u": "unsigned integers", "b": "booleans", "c": "complex numbers", "O": "strings"}


def dtype_of(n: View, number: int) -> np.dtype[Any]:
    """The dtype that an attribute such as Cast's `to` names: a wider one for a type of `NARROW`."""
    found = STRING if number == 8 and n.op == "Cast" else NARROW[number].dtype if number in NARROW else DTYPES.get(number)
    if found is None:
        raise UnsupportedError(f"{n.where}: elements of ONNX type {number} are not supported")
    return found


def need_kind(n: View, kinds: str, *positions: int) -> None:
    """Raises unless these inputs (all, by default) have a dtype of these kinds of numpy's: f, i, u, b, c, O (strings)."""
    for i in positions or range(len(n.inputs)):
        spec = n.inputs[i] if i < len(n.inputs) else None
        if spec is not None and spec.dtype.kind not in kinds:
            raise n.wrong_dtype(f"input {i} has dtype {spec.dtype}: expected {', '.join(KINDS[k] for k in kinds)}")


def same_dtype(n: View, *positions: int) -> np.dtype[Any]:
    """The dtype that these inputs (all, by default) share."""
    specs = [n.inputs[i] for i in (positions or range(len(n.inputs))) if i < len(n.inputs)]
    found = list(dict.fromkeys(spec.dtype for spec in specs if spec is not None))
    if len(found) > 1:
        raise n.wrong_dtype(f"its inputs have dtypes {', '.join(map(str, found))}: expected the same for all")
    return found[0] if found else n.spec(0).dtype


def need_number(n: View, i: int) -> None:
    """Raises unless input i, if given, is one number of the dtype of input 0 (or float32 next to another float: old opsets)."""
    if not n.has(i):
        return
    x, spec = n.spec(0).dtype, n.spec(i)
    if spec.dtype != x and not (x.kind == "f" and spec.dtype == FLOAT32):
        raise n.wrong_dtype(f"input {i} has dtype {spec.dtype}: expected {x}, that of x")
    if spec.shape is not None and (len(spec.shape) > 1 or any(isinstance(d, int) and d != 1 for d in spec.shape)):
        raise n.fail(f"input {i} has shape {spec.shape}: expected one number")


def broadcast(n: View, shapes: Iterable[Shape | None]) -> Shape | None:
    """The shape that numpy would give an elementwise operation of arrays of these shapes."""
    given: list[Shape] = []
    for shape in shapes:
        if shape is None:
            return None
        given.append(shape)
    return broadcast_rule(n.where, given) if given else ()


def product(sizes: Iterable[Dim]) -> int | None:
    """The product of sizes, or None if it cannot be told. A size of 0 settles it."""
    total: int | None = 1
    for size in sizes:
        if size == 0:
            return 0
        total = total * size if total is not None and isinstance(size, int) else None
    return total


def rank_of(n: View, i: int) -> int | None:
    """The number of axes of input i."""
    shape = n.shape(i)
    return None if shape is None else len(shape)


def axis_of(n: View, value: int, rank: int, name: str = "axis", limit: int | None = None) -> int:
    """An axis counted from the front. `limit`: the axis may also be just after the last, as in Flatten and OneHot."""
    after = 0 if limit is None else limit - rank
    if not rank and not after:
        raise n.fail("x has no axes: expected at least one")
    return axis(n.where, value, rank, name, after)


def axes_of(n: View, values: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, each once, in the order given."""
    found = tuple(axis_of(n, v, rank) for v in values)
    if len(set(found)) != len(found):
        raise n.fail(f"axes {tuple(values)} name one axis twice")
    return found


def known(n: View, i: int) -> list[int] | None:
    """The integers of input i if they are known: a vector, or a scalar as one of length 1."""
    if not n.has(i):
        return None
    spec = n.spec(i)
    if spec.dtype.kind not in "iu":
        raise n.wrong_dtype(f"input {i} has dtype {spec.dtype}: expected integers")
    if spec.shape is not None and len(spec.shape) > 1:
        raise n.fail(f"input {i} has shape {spec.shape}: expected a vector")
    return ints(n.value(i))


def scalar(n: View, i: int, array: np.ndarray) -> Any:
    """The one number of an array, of a numpy type."""
    if array.size != 1:
        raise n.fail(f"input {i} has shape {array.shape}: expected one number")
    return array.reshape(-1)[0]


def expect(n: View, i: int, *sizes: Dim, dtype: Any = None) -> None:
    """Raises unless input i, if it is given, has these sizes as far as they are known, and this dtype if one is said."""
    if not n.has(i):
        return
    spec = n.spec(i)
    if dtype is not None and spec.dtype != dtype:
        raise n.wrong_dtype(f"input {i} has dtype {spec.dtype}: expected {np.dtype(dtype)}")
    if spec.shape is not None and (
        len(spec.shape) != len(sizes)
        or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(spec.shape, sizes, strict=True))
    ):
        raise n.fail(f"input {i} has shape {spec.shape}: expected {sizes}")


def like(spec: Spec, dtype: np.dtype[Any] | None = None) -> Spec:
    """The same shape, and another dtype if one is given."""
    return Spec(spec.shape, spec.dtype if dtype is None else dtype)
