"""Arrays that are made of no other array's values: constants, ranges, the identity matrix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir.graph import Dim
from ._base import FLOAT32, Spec, View, register, unknown
from ._traits import Traits
from .calls import has, movable, move
from .shapes import dtype_of, known, need_kind, same_dtype, scalar

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]

# ---- Constant, ConstantOfShape ---------------------------------------------------------------------------------------


def _value(n: View) -> np.ndarray:
    value = n.get("value")
    if not isinstance(value, np.ndarray):
        raise n.fail("has no attribute value: expected an array")
    return value


def _fill(n: View) -> np.ndarray:
    """The one number of ConstantOfShape."""
    value = n.get("value")
    value = np.zeros(1, FLOAT32) if value is None else _value(n)
    if value.size != 1:
        raise n.fail(f"value has shape {value.shape}: expected one number")
    return value.reshape(())


def _sizes(n: View, wanted: list[int]) -> tuple[int, ...]:
    if any(w < 0 for w in wanted):
        raise n.fail(f"the shape is {tuple(wanted)}: expected sizes of at least 0")
    return tuple(wanted)


def _of_shape_infer(n: View) -> list[Spec]:
    wanted, dtype = known(n, 0), _fill(n).dtype
    if wanted is None:
        length = n.shape(0)
        return [unknown(length[0] if length is not None and len(length) == 1 and isinstance(length[0], int) else None, dtype)]
    return [Spec(_sizes(n, wanted), dtype)]


def _of_shape_run(n: View, shape: np.ndarray) -> Arrays:
    value = _fill(n)
    return (np.full(_sizes(n, [int(v) for v in shape.reshape(-1)]), value, value.dtype),)


def _of_shape_lower(n: View, b: Any) -> Any:
    wanted, value = known(n, 0), _fill(n)
    if wanted is None or not has("copy") or not movable(value.dtype):
        return False
    return move(b, b.constant(value), _sizes(n, wanted), 0, [0] * len(wanted))


register("Constant", lambda n: [Spec(_value(n).shape, _value(n).dtype)], lambda n: (_value(n),), traits=Traits(work="elements"))
register(
    "ConstantOfShape",
    _of_shape_infer,
    _of_shape_run,
    _of_shape_lower,
    traits=Traits(work="elements", sizes="filled", steers=(0,)),
)

# ---- Range -----------------------------------------------------------------------------------------------------------


def _count(n: View, start: Any, limit: Any, delta: Any) -> int:
    if delta == 0:
        raise n.fail("delta is 0: expected another number")
    if start.dtype.kind in "iu":
        return max(-((int(start) - int(limit)) // int(delta)), 0)
    count = (float(limit) - float(start)) / float(delta)
    if not math.isfinite(count):
        raise n.fail(f"start {start}, limit {limit} and delta {delta} give no number of elements")
    return max(math.ceil(count), 0)


def _range_infer(n: View) -> list[Spec]:
    need_kind(n, "fi")
    dtype, values, count = same_dtype(n), [n.value(i) for i in range(3)], None
    if all(v is not None for v in values):
        count = _count(n, *(scalar(n, i, v) for i, v in enumerate(values)))  # type: ignore[arg-type]
    return [Spec((count,), dtype)]


def _range_run(n: View, start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> Arrays:
    first, last, step = (scalar(n, i, v) for i, v in enumerate((start, limit, delta)))
    numbers = np.arange(_count(n, first, last, step))
    if start.dtype.kind == "f":
        return ((float(first) + numbers * float(step)).astype(start.dtype),)
    return (first + numbers.astype(start.dtype) * step,)


register("Range", _range_infer, _range_run, traits=Traits(work="elements", steers=(0, 1, 2)))

# ---- EyeLike ---------------------------------------------------------------------------------------------------------


def _eye_infer(n: View) -> list[Spec]:
    shape = n.shape(0)
    if shape is not None and len(shape) != 2:
        raise n.fail(f"x has shape {shape}: expected a matrix")
    rows: tuple[Dim, ...] = (None, None) if shape is None else shape
    return [Spec(rows, dtype_of(n, n.get("dtype")) if n.get("dtype") is not None else n.spec(0).dtype)]


def _eye_run(n: View, x: np.ndarray | None) -> Arrays:
    (spec,), (rows, columns) = _eye_infer(n), n.sizes(0)
    return (np.eye(rows, columns, k=n.get("k", 0), dtype=spec.dtype),)


register("EyeLike", _eye_infer, _eye_run, traits=Traits(work="elements", shape_only=True))
