"""Comparisons, logic, bits, choices between two arrays, and changes of dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._base import BOOL, FLOAT32, Spec, View, register
from ._traits import EACH
from .arithmetic import binary_lower
from .calls import arithmetic, chosen, in_place, integer, movable, number
from .narrow import NARROW, narrowed
from .shapes import broadcast, dtype_of, like, need_kind, same_dtype

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]


def _infer(kinds: str, dtype: np.dtype[Any] | None = None) -> Callable[[View], list[Spec]]:
    """The rule of an operator of two arrays; its result has their dtype, or `dtype`."""

    def infer(n: View) -> list[Spec]:
        need_kind(n, kinds)
        common = same_dtype(n, 0, 1)
        return [Spec(broadcast(n, [n.shape(0), n.shape(1)]), common if dtype is None else dtype)]

    return infer


def _run(function: Callable[..., Any]) -> Callable[..., Arrays]:
    return lambda n, a, b: (function(a, b),)


# ---- comparisons -----------------------------------------------------------------------------------------------------

_function: Callable[..., Any]
for _name, _function, _key, _kinds in (
    ("Equal", np.equal, "equal", "fiubO"),
    ("Less", np.less, "less", "fiu"),
    ("LessOrEqual", np.less_equal, "less_equal", "fiu"),
    ("Greater", np.greater, "greater", "fiu"),
    ("GreaterOrEqual", np.greater_equal, "greater_equal", "fiu"),
):

    def _compare(n: View, b: Any, key: str = _key) -> Any:
        return binary_lower(n, b, "COMPARE", key, "compare")

    register(_name, _infer(_kinds, BOOL), _run(_function), _compare, EACH)

# ---- logic and bits --------------------------------------------------------------------------------------------------

for _name, _function, _kinds in (
    ("And", np.logical_and, "b"),
    ("Or", np.logical_or, "b"),
    ("Xor", np.logical_xor, "b"),
    ("BitwiseAnd", np.bitwise_and, "iu"),
    ("BitwiseOr", np.bitwise_or, "iu"),
    ("BitwiseXor", np.bitwise_xor, "iu"),
):

    def _logic(n: View, b: Any, key: str = _name.removeprefix("Bitwise").lower()) -> Any:
        return integer(n, b, key)

    register(_name, _infer(_kinds), _run(_function), _logic, EACH)


def _shift_infer(n: View) -> list[Spec]:
    if n.get("direction") not in ("LEFT", "RIGHT"):
        raise n.fail(f"direction is {n.get('direction')!r}: expected 'LEFT' or 'RIGHT'")
    return _infer("iu")(n)


def _shift_run(n: View, x: np.ndarray, y: np.ndarray) -> Arrays:
    """Shifts by as many bits as there are, or more, or fewer than none, leave the sign alone."""
    most = x.dtype.itemsize * 8 - 1
    out = (y < 0) | (y > most)
    by = np.where(out, 0, y).astype(x.dtype)
    if n.get("direction") == "LEFT":
        return (np.where(out, x.dtype.type(0), np.left_shift(x, by)),)
    sign = np.where(x < 0, x.dtype.type(-1), x.dtype.type(0)) if x.dtype.kind == "i" else x.dtype.type(0)
    return (np.where(out, sign, np.right_shift(x, by)),)


register("BitShift", _shift_infer, _shift_run, lambda n, b: arithmetic(n, b, str(n.get("direction")).lower()), EACH)

# ---- choices ---------------------------------------------------------------------------------------------------------


def _where_infer(n: View) -> list[Spec]:
    need_kind(n, "b", 0)
    return [Spec(broadcast(n, [n.shape(i) for i in range(3)]), same_dtype(n, 1, 2))]


def _where_lower(n: View, b: Any) -> Any:
    dtype = n.spec(1).dtype
    if not movable(dtype):
        return False
    condition, x, y = b.input(0), b.input(1), b.input(2)
    if dtype != FLOAT32:
        return chosen(b, condition, x, y, dtype)
    shape = broadcast(n, [ref.shape for ref in (condition, x, y)])
    over = in_place(b, shape, x, y, condition)  # type: ignore[arg-type]
    return b.call("where", condition, x, y, b.output(0, over=over))


def _where_run(n: View, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> Arrays:
    return (np.asarray(np.where(condition, x, y)),)


register("Where", _where_infer, _where_run, _where_lower, EACH)

# ---- dtypes ----------------------------------------------------------------------------------------------------------


def _cast(n: View, x: np.ndarray, dtype: np.dtype[Any]) -> Arrays:
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    if "O" in (x.dtype.kind, dtype.kind):
        return (_of_strings(n, x, dtype) if x.dtype.kind == "O" else _as_strings(x),)
    return (x.astype(dtype),)


def _of_strings(n: View, x: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The values that strings say."""
    if dtype.kind == "O":
        return x
    number = {"f": float, "i": int, "u": int}.get(dtype.kind)
    try:
        if number is None:
            raise ValueError(f"a string cannot be cast to {dtype}")
        return np.asarray([number(item) for item in x.reshape(-1)], dtype).reshape(x.shape)
    except (ValueError, OverflowError) as error:
        raise n.wrong_dtype(f"{error}"[:200]) from error


def _as_strings(x: np.ndarray) -> np.ndarray:
    """Values as onnxruntime writes them: floats with 8 digits, doubles with 17, without what is not needed."""
    made = np.empty(x.size, object)
    form = ".17g" if x.dtype == np.float64 else ".8g"
    special = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}
    if x.dtype.kind == "f":
        made[:] = [special.get(text, text) for text in (format(float(item), form) for item in x.reshape(-1))]
    else:
        made[:] = [str(item) for item in x.reshape(-1).tolist()]
    return made.reshape(x.shape)


def _cast_lower(n: View, b: Any, dtype: np.dtype[Any]) -> Any:
    old = n.spec(0).dtype
    if old == dtype:
        return b.alias(0, b.input(0))
    a, z = number("KINDS", old.name), number("KINDS", dtype.name)
    if a is None or z is None:
        return False
    return b.call("cast", b.input(0), b.output(0), a, z)


def _to(n: View) -> np.dtype[Any]:
    return dtype_of(n, n.get("to", 0))


def _cast_infer(n: View) -> list[Spec]:
    if n.get("round_mode", "up") not in ("up", "down", "nearest"):
        raise n.fail(f"round_mode is {n.get('round_mode')!r}: expected 'up', 'down' or 'nearest'")
    return [like(n.spec(0), _to(n))]


def _cast_run(n: View, x: np.ndarray) -> Arrays:
    number = n.get("to", 0)
    if number in NARROW:
        return (narrowed(x, number, bool(n.get("saturate", 1)), n.get("round_mode", "up")),)
    return _cast(n, x, _to(n))


register(
    "Cast",
    _cast_infer,
    _cast_run,
    lambda n, b: n.get("to", 0) not in NARROW and _cast_lower(n, b, _to(n)),
    # To a type of `NARROW` it would round.
    EACH._replace(sizes="same", nothing=lambda n, result: n.shape(0) is not None and n.get("to") not in NARROW),
)
register(
    "CastLike",
    lambda n: [like(n.spec(0), n.spec(1).dtype)],
    lambda n, x, other: _cast(n, x, other.dtype),
    lambda n, b: _cast_lower(n, b, n.spec(1).dtype),
    EACH,
)


def _bit_cast_infer(n: View) -> list[Spec]:
    need_kind(n, "fiubc", 0)
    old, new = n.spec(0).dtype, _to(n)
    if old.itemsize != new.itemsize:
        raise n.wrong_dtype(f"{old} cannot be read as {new}: expected a dtype of {old.itemsize} bytes")
    return [like(n.spec(0), new)]


register("BitCast", _bit_cast_infer, lambda n, x: (np.ascontiguousarray(x).view(_to(n)).reshape(x.shape),), traits=EACH)
