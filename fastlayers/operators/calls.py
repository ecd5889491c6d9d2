"""Helpers of lowering rules: available kernels, results in place, and strided copies that are views where they can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import table
from ..kernels.table import UNARY, Activation
from ._base import FLOAT32, View

if TYPE_CHECKING:
    from .builder import Builder, Ref

__all__ = [
    "MOST_AXES",
    "activation",
    "arithmetic",
    "chosen",
    "copy",
    "float32_constant",
    "function",
    "has",
    "in_place",
    "indexable",
    "indices",
    "integer",
    "merged",
    "movable",
    "move",
    "number",
    "strides_of",
    "unary",
]

MOST_AXES = 8  # that the copy kernel takes once they are merged
KERNELS = {kernel.name for kernel in table.KERNELS}


def has(*kernels: str) -> bool:
    """Whether the engine has all of these kernels."""
    return KERNELS.issuperset(kernels)


def number(name: str, key: str) -> int | None:
    """The number that a table of `kernels.table` gives to an operation, or None if it has none."""
    found: int | None = getattr(table, name, {}).get(key)
    return found


def activation(name: str, *parameters: float) -> Activation | None:
    """An elementwise function as kernels take it, or None if there is none of that name."""
    return Activation(UNARY[name].code, *parameters) if name in UNARY else None


def unary(n: View, b: Builder, function: Activation | None) -> Any:
    """Output 0 as an elementwise function of input 0, in its place if it can be; False if that has no kernel."""
    if function is None or not n.float32(0):
        return False
    x = b.input(0)
    return b.call("unary", x, b.output(0, over=x), function)


def in_place(b: Builder, shape: Sequence[int], *operands: Ref) -> Ref | None:
    """The operand whose memory an elementwise result of this shape may take, if nothing else needs it.

    Not one of whose memory another operand shows a part or another shape: that would be read after it was overwritten.
    """
    for i, ref in enumerate(operands):
        others = (other for k, other in enumerate(operands) if k != i and b.root(other) is b.root(ref))
        if ref.shape == tuple(shape) and all(other == ref for other in others):
            return ref
    return None


def integer(n: View, b: Builder, key: str, *constants: Ref) -> Any:
    """Output 0 as a function of `table.INTEGER` or `table.ARITHMETIC` of two arrays of one dtype: the inputs, or input 0 and a
    constant.

    False, and nothing done, if there is no such function of their dtype.
    """
    dtype = n.spec(0).dtype
    source = {"bool": 9, "int32": 7, "int64": 8}.get(dtype.name)
    code = number("INTEGER", key)
    if code is None or source is None:
        return arithmetic(n, b, key, *constants)
    if dtype.kind == "b" and key not in ("and", "or", "xor", "equal", "not_equal"):
        return False
    x, y = b.input(0), constants[0] if constants else b.input(1)
    return b.call("integer", x, y, b.output(0), code, source)


# The operations of the kernel `arithmetic` by kinds of dtypes; other kernels have those of float32.
_FLOATS = frozenset(table.ARITHMETIC) - {"and", "or", "xor", "left", "right"}
_OF_KIND = {"i": frozenset(table.ARITHMETIC), "u": frozenset(table.ARITHMETIC), "f": _FLOATS, "b": frozenset[str]()}


def arithmetic(n: View, b: Builder, key: str, *constants: Ref) -> Any:
    """As `integer`, but of all other dtypes, except float16."""
    dtype = n.spec(0).dtype
    source = None if dtype == np.float16 else number("KINDS", dtype.name)
    if source is None or key not in _OF_KIND.get(dtype.kind, ()) or "activation" in n.node.attributes:
        return False
    x, y = b.input(0), constants[0] if constants else b.input(1)
    return b.call("arithmetic", x, y, b.output(0), table.ARITHMETIC[key], source)


# What `function` has of each kind of dtypes.
_TESTS = ("is_nan", "is_inf", "is_positive_inf", "is_negative_inf")
_WHOLE = frozenset(("not", "negative", "abs", "sign", "relu"))
_FUNCTIONS = {
    "float16": frozenset((*_TESTS, "negative", "abs", "relu")),
    "float32": frozenset(table.FUNCTIONS) - {"not"},
    "float64": frozenset(table.FUNCTIONS) - {"not"},
    **{f"int{bits}": _WHOLE for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": _WHOLE - {"negative"} for bits in (8, 16, 32, 64)},
}


def function(n: View, b: Builder, key: str) -> Any:
    """Output 0 as a function of `table.FUNCTIONS` of input 0; False, and nothing done, if there is none of its dtype."""
    name = n.spec(0).dtype.name
    if key not in _FUNCTIONS.get(name, ()):
        return False
    x = b.input(0)
    over = None if key in _TESTS else x
    return b.call("function", x, b.output(0, over=over), table.FUNCTIONS[key], table.KINDS[name])


def chosen(b: Builder, condition: Ref, x: Ref, y: Ref, dtype: np.dtype[Any]) -> Any:
    """Output 0 as x where the condition holds, else y; they broadcast. Of any dtype, since nothing is computed."""
    out, size = b.output(0), dtype.itemsize
    if size < 4:
        return b.call("choose", condition, x, y, out, size)
    # As if the items were one or two values of float32.
    x, y, out = (r._replace(dtype=FLOAT32, shape=(*r.shape, size // 4)) for r in (x, y, out))
    return b.call("where", condition.view((*condition.shape, 1)), x, y, out)


def indexable(n: View, i: int) -> bool:
    """Whether kernels take input i as indices: integers, cast where they are not int64."""
    dtype = n.spec(i).dtype
    return dtype.kind in "iu" and dtype.name in table.KINDS


def indices(n: View, b: Builder, i: int) -> Ref:
    """Input i, which is `indexable` (or floats that `cast` takes), as int64."""
    value = n.value(i)
    if value is not None:
        return b.constant(value.astype(np.int64))
    given = b.input(i)
    if given.dtype == np.int64:
        return given
    made = b.temp(given.shape, np.dtype(np.int64))
    b.call("cast", given, made, table.KINDS[given.dtype.name], table.KINDS["int64"])
    return made


def movable(dtype: np.dtype[Any]) -> bool:
    """Whether the copy and gather kernels take elements of this dtype."""
    return dtype.itemsize in (1, 2, 4, 8)


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Distances between neighbours of each axis of a contiguous array, in elements."""
    found = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        found[i] = found[i + 1] * shape[i + 1]
    return tuple(found)


def merged(shape: Sequence[int], x_strides: Sequence[int], out_strides: Sequence[int]) -> list[list[int]]:
    """[size, stride in x, stride in out] of the axes of a copy; those of size 1 are gone, neighbours in both have become one."""
    axes: list[list[int]] = []
    for size, s, t in zip(shape, x_strides, out_strides, strict=True):
        if size == 1:
            continue
        if axes and axes[-1][1] == s * size and axes[-1][2] == t * size:
            axes[-1] = [axes[-1][0] * size, s, t]
        else:
            axes.append([size, s, t])
    return axes


def move(b: Builder, x: Ref, shape: Sequence[int], offset: int, strides: Sequence[int], i: int = 0) -> Any:
    """Output i as elements of x: a view where they are contiguous, else a strided copy. `shape` may split the output's axes.

    False, and nothing done, if they are too wildly for the kernel.
    """
    if not math.prod(shape):
        b.output(i)  # without elements: nothing writes it
        return None
    own = strides_of(shape)
    axes = merged(shape, strides, own)
    if not axes or (len(axes) == 1 and axes[0][1] == 1):
        return b.alias(i, x.view(shape, offset))
    if len(axes) > MOST_AXES:
        return False
    return copy(b, x, b.output(i), shape, offset, strides, 0, own)


def copy(
    b: Builder,
    x: Ref,
    out: Ref,
    shape: Sequence[int],
    x_offset: int,
    x_strides: Sequence[int],
    out_offset: int,
    out_strides: Sequence[int],
) -> None:
    """A strided copy of `movable` elements into a part of out."""
    if 0 in shape:
        return
    axes = merged(shape, x_strides, out_strides) or [[1, 1, 1]]
    sizes, from_, to = (tuple(axis[k] for axis in axes) for k in range(3))
    b.call("copy", x, out, sizes, x_offset, from_, out_offset, to, out.dtype.itemsize)


def float32_constant(b: Builder, value: Any, shape: Sequence[int] = ()) -> Ref:
    """A constant of the program."""
    return b.constant(np.full(shape, value, FLOAT32))
