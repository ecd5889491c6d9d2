"""Functions of positions along an axis: their values, sinusoidal encodings, and the tables of rotary embeddings.

Recorded layers have them where a length is a name: all follow from sizes, and become constants of a binding. In the tables of
rotary embeddings, positions may also be values, which come when the model runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._base import FLOAT32, INT64, Spec, View, register
from ._traits import PLAIN, Traits
from .positional_tables import rotary_rows, sinusoidal_rows, whole_rotary
from .shapes import axis_of, need_kind

if TYPE_CHECKING:
    from .builder import Builder

__all__: list[str] = []


def _start(n: View) -> int:
    start = n.get("start", 0)
    if type(start) is not int or not 0 <= start < 2**62:
        raise n.fail(f"start is {start!r}: expected an int of at least 0")
    return start


def _axis(n: View) -> int | None:
    """The axis whose positions are meant; None while the rank is unknown."""
    shape = n.shape(0)
    return None if shape is None else axis_of(n, n.get("axis", 0), len(shape))


def _size(n: View) -> Any:
    axis = _axis(n)
    return None if axis is None else n.shape(0)[axis]  # type: ignore[index]


def _dim(n: View) -> int:
    dim, base = n.get("dim"), n.get("base", 10000.0)
    if type(dim) is not int or dim < 0 or dim % 2 or type(base) is not float or not base > 0:
        raise n.fail(f"dim is {dim!r}, base {base!r}: expected an even size and a positive float")
    return dim


# ---- the values of positions -------------------------------------------------------------------------------------------


def _axis_infer(n: View) -> list[Spec]:
    _start(n)
    return [Spec((_size(n),), INT64)]


def _axis_run(n: View, x: np.ndarray | None) -> Sequence[np.ndarray]:
    return (np.arange(_start(n), _start(n) + n.sizes(0)[_axis(n)], dtype=INT64),)  # type: ignore[index]


_OF_SIZES = Traits(work="elements", shape_only=True)


def _axis_lower(n: View, b: Builder) -> Any:
    return _constant(b, 0, *_axis_run(n, None))


def _constant(b: Builder, i: int, array: np.ndarray) -> None:
    """Output i is an array that follows from sizes; what it takes counts as the binding's."""
    b.nbytes += array.nbytes
    b.alias(i, b.constant(array))


register("AxisPositions", _axis_infer, _axis_run, _axis_lower, _OF_SIZES)

# ---- sinusoidal encodings -----------------------------------------------------------------------------------------------


def _sinusoidal_infer(n: View) -> list[Spec]:
    _start(n)
    return [Spec((_size(n), _dim(n)), FLOAT32)]


def _sinusoidal_run(n: View, x: np.ndarray | None) -> Sequence[np.ndarray]:
    """Rows of the table for the positions along an axis of the input."""
    steps, dim = n.sizes(0)[_axis(n)], _dim(n)  # type: ignore[index]
    return (sinusoidal_rows(_start(n), steps, dim, n.get("base", 10000.0)) if steps else np.zeros((0, dim), np.float32),)


def _sinusoidal_lower(n: View, b: Builder) -> Any:
    return _constant(b, 0, *_sinusoidal_run(n, None))


register("SinusoidalEncoding", _sinusoidal_infer, _sinusoidal_run, _sinusoidal_lower, _OF_SIZES)

# ---- rotary embeddings --------------------------------------------------------------------------------------------------


def _rotary_infer(n: View) -> list[Spec]:
    """Cosines and sines, of the positions along an axis of the input."""
    _start(n)
    return [Spec((_size(n), _dim(n) // 2), FLOAT32)] * 2


def _rotary_run(n: View, x: np.ndarray | None) -> Sequence[np.ndarray]:
    steps, dim = n.sizes(0)[_axis(n)], _dim(n)  # type: ignore[index]
    if not steps:
        return (np.zeros((0, dim // 2), np.float32),) * 2
    return rotary_rows(_start(n), steps, dim, n.get("base", 10000.0))


def _rotary_lower(n: View, b: Builder) -> Any:
    for i, table in enumerate(_rotary_run(n, None)):
        if n.wants(i):
            _constant(b, i, table)


register("RotaryTables", _rotary_infer, _rotary_run, _rotary_lower, _OF_SIZES)


def _ids_infer(n: View) -> list[Spec]:
    """Cosines and sines of positions that are given."""
    need_kind(n, "iu", 0)
    ids, half = n.shape(0), _dim(n) // 2
    return [Spec(None if ids is None else (*ids, half), FLOAT32)] * 2


def _ids_run(n: View, ids: np.ndarray) -> Sequence[np.ndarray]:
    dim = _dim(n)
    if not ids.size:
        return (np.zeros((*ids.shape, dim // 2), np.float32),) * 2
    least, most = int(ids.min()), int(ids.max())
    if least < 0:
        raise n.fail(f"the positions are {least} to {most}: expected at least 0")
    cos, sin = whole_rotary(most + 1, dim, n.get("base", 10000.0))
    return cos[ids], sin[ids]


register("RotaryTablesAt", _ids_infer, _ids_run, traits=PLAIN)
