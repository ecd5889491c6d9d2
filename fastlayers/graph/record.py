"""Records operators of `operators.OPERATORS` on symbolic values: what functions, layers and arithmetic write into a graph."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._arguments import shown
from ..errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ..ir.graph import Node
from .arrays import as_array
from .symbol import RECORDED, Call, Symbol

__all__ = [
    "COMPARISONS", "LOGIC", "cast", "compare", "converted", "ints", "invert", "logic", "moved", "record", "reduced", "scalar",
    "shape_of", "where",
]  # fmt: skip

COMPARISONS = {
    "equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual",
}  # fmt: skip
LOGIC = {"bitwise_and": "And", "bitwise_or": "Or", "bitwise_xor": "Xor"}


def record(op: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
    """An operator of `operators.OPERATORS` on symbolic values and arrays (None: left out), as a symbolic value, or as many.

    Its rule says what the results are; nothing is converted, so inputs have the dtypes that the operator takes.
    """
    from ..operators import OPERATORS, Spec, View

    specs = [None if v is None else Spec(v.shape, v.dtype) for v in inputs]
    known = [v if isinstance(v, np.ndarray) else None for v in inputs]
    names = tuple(None if v is None else f"input {i}" for i, v in enumerate(inputs))
    node = Node(op, names, tuple(f"output {i}" for i in range(outputs)), attributes)
    results = []
    for shape, dtype in OPERATORS[op].infer(View(node, specs, known))[:outputs]:
        if shape is None:
            raise UnsupportedError(f"trace: {op}: the number of axes of its result follows from values: it cannot be recorded")
        results.append((shape, dtype))
    made = Call(op, inputs, attributes).give(results)
    return made[0] if outputs == 1 else made


def ints(*values: int) -> np.ndarray:
    """A constant vector of integers."""
    return np.array(values, np.int64)


def shape_of(value: Any, op: str, argument: str) -> Any:
    """The shape of an array, of a symbolic value, or of what can be read as an array."""
    return value.shape if isinstance(value, (np.ndarray, Symbol)) else as_array(value, op, argument).shape


def scalar(value: float) -> np.ndarray:
    """A constant number."""
    return np.array(value, np.float32)


def converted(x: Symbol, dtype: np.dtype[Any]) -> Symbol:
    """x with its values as another dtype; recorded once while somebody needs it."""
    if x.dtype == dtype:
        return x
    known = x.casts.get(dtype)
    found = None if known is None else known()
    if found is None:
        found = cast(x, dtype)
        x.casts[dtype] = weakref.ref(found)
    return found


def compare(name: str, a: Any, b: Any) -> Any:
    """One of `COMPARISONS`, or "not_equal", of a symbolic value and another or an array; booleans."""
    a, b = _alike(name, a, b)
    if a.dtype == np.bool_ and name not in ("equal", "not_equal"):  # ordered as values are
        a, b = (_as(v, np.dtype(np.uint8)) for v in (a, b))
    return record("Not", record("Equal", a, b)) if name == "not_equal" else record(COMPARISONS[name], a, b)


def logic(name: str, a: Any, b: Any) -> Any:
    """One of `LOGIC`, as ``&``, ``|`` and ``^`` do: of booleans, or bit by bit of integers."""
    a, b = _alike(name, a, b)
    if a.dtype.kind not in "iub":
        raise DTypeError(f"trace: {name}: the operands have dtype {a.dtype}: expected booleans or integers")
    return record(LOGIC[name] if a.dtype == np.bool_ else f"Bitwise{LOGIC[name]}", a, b)


def invert(x: Symbol) -> Any:
    """``~x``: not, of booleans, or of every bit."""
    if x.dtype.kind not in "iub":
        raise DTypeError(f"trace: invert: the operand has dtype {x.dtype}: expected booleans or integers")
    return record("Not" if x.dtype == np.bool_ else "BitwiseNot", x)


def where(condition: Any, a: Any, b: Any) -> Any:
    """numpy's ``where`` with three arguments."""
    condition = _tensor("where", condition)
    if condition.dtype != np.bool_:
        raise DTypeError(f"trace: where: the condition has dtype {condition.dtype}: expected booleans")
    return record("Where", condition, *_alike("where", a, b))


def reduced(name: str, x: Symbol, axis: Any, keepdims: bool) -> Any:
    """The operator ``Reduce<name>``, in the dtype in which numpy sums; means of integers are float32."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, Sequence) else (axis,)
    try:
        found = tuple(a % x.ndim if -x.ndim <= (a := operator.index(v)) < x.ndim else -1 for v in axes)
    except TypeError:
        found = (-1,)
    if -1 in found or len(set(found)) < len(found):
        raise ArgumentError(f"trace: {name.lower()}: axis is {shown(axis)}: expected different axes of {x!r}")
    if name == "Mean" and x.dtype.kind != "f":
        x = cast(x, np.float32)
    elif name == "Sum" and x.dtype.kind in "iub":
        x = cast(x, np.uint64 if x.dtype.kind == "u" else np.int64)
    return record(f"Reduce{name}", x, ints(*found), keepdims=int(bool(keepdims))) if found else x


def cast(x: Symbol, dtype: Any) -> Any:
    """x with its values as another dtype, or x itself."""
    from ..operators.shapes import NUMBERS

    try:
        wanted = np.dtype(dtype)
    except (TypeError, ValueError):
        raise DTypeError(f"trace: astype: dtype is {dtype!r}: expected a boolean, an integer or a real dtype") from None
    number = NUMBERS.get(wanted)
    if wanted.kind not in "fiub" or number is None:
        raise DTypeError(f"trace: astype: dtype is {wanted}: expected a boolean, an integer or a real dtype")
    return x if x.dtype == wanted else record("Cast", x, to=number)


def moved(name: str, x: Symbol, *arguments: Any) -> Any:
    """A call that moves values and computes none, in the dtype of x: functions of `functional` are for float32."""
    return _MOVES[name](x, *arguments)


def _slice(x: Symbol, axis: int, start: Any, stop: Any, step: Any) -> Any:
    if step == 0:
        raise ArgumentError("getitem: the step of a slice is 0: expected another number")
    far = np.iinfo(np.int64).max
    first = start if start is not None else 0 if step > 0 else far
    last = stop if stop is not None else far if step > 0 else -far
    return record("Slice", x, ints(first), ints(last), ints(axis), ints(step))


def _select(x: Symbol, axis: int, index: int) -> Any:
    size = x.shape[axis]
    if isinstance(size, int) and not -size <= index < size:
        raise ShapeError(f"getitem: index {index} along axis {axis} of {x!r}: expected {-size} to {size - 1}")
    return record("Gather", x, np.array(index, np.int64), axis=axis)


_MOVES: dict[str, Callable[..., Any]] = {
    "permute": lambda x, dims: record("Transpose", x, perm=tuple(d % max(x.ndim, 1) for d in dims)),
    "reshape": lambda x, shape: record("Reshape", x, ints(*(shape if isinstance(shape, Sequence) else (shape,))), allowzero=1),
    "select": _select,
    "slice": _slice,
    "unsqueeze": lambda x, axis: record("Unsqueeze", x, ints(axis)),
}


def _tensor(name: str, value: Any) -> Any:
    if isinstance(value, Symbol):
        return value
    array = as_array(value, "trace", f"an operand of {name}")
    if array.dtype.kind not in "fiub":
        raise DTypeError(f"trace: {name}: an operand has dtype {array.dtype}: expected a boolean, an integer or a real dtype")
    return array


def _alike(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands in the dtype in which numpy would compare them; a Python number takes the other's where that holds it."""
    first, second = _tensor(name, a), _tensor(name, b)
    dtype = np.result_type(*(v if isinstance(v, (int, float)) else t.dtype for v, t in ((a, first), (b, second))))
    return _as(first, dtype), _as(second, dtype)


def _as(value: Any, dtype: np.dtype[Any]) -> Any:
    return cast(value, dtype) if isinstance(value, Symbol) else value.astype(dtype)


RECORDED.update(cast=cast, compare=compare, invert=invert, logic=logic, moved=moved, reduced=reduced, where=where)
