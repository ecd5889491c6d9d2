"""Questions about shapes, and other views of the same memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.graph import Dim, Shape
from ..rules.shapes import reshape_rule, squeeze_rule
from ._base import INT64, Spec, View, register, unknown
from ._traits import EACH, MOVES, Traits, same_shape
from .shapes import axes_of, axis_of, known, product, rank_of

__all__: list[str] = []

Arrays = tuple[np.ndarray, ...]


def _view_lower(n: View, b: Any) -> Any:
    return b.alias(0, b.input(0))


# ---- the same array --------------------------------------------------------------------------------------------------


SAME = MOVES._replace(elementwise=True, layout=EACH.layout, time="elementwise", sizes="same", nothing=lambda n, result: True)
register("Identity", lambda n: [n.spec(0)], lambda n, x: (x,), _view_lower, SAME)


def _one_of_infer(n: View) -> list[Spec]:
    given, allowed = known(n, 1), tuple(n.get("values", ()))
    if given is not None and not set(given) <= set(allowed):
        told, wanted = (", ".join(map(str, values)) for values in (given, allowed))
        raise ShapeError(f"run: input {n.get('name', '')!r} is {told}: expected {wanted}, which this network is for")
    return [n.spec(0)]


# x, where integers beside it are among the attribute `values`: what a network was not made for is refused when it is bound.
_ONE_OF = MOVES._replace(time="elementwise", sizes="same", steers=(1,))
register("OneOf", _one_of_infer, lambda n, x, given: (x,), _view_lower, _ONE_OF)

# ---- questions -------------------------------------------------------------------------------------------------------


def _part(n: View, rank: int) -> slice:
    """Axes that Shape returns; bounds are cut off at both ends."""
    end = n.get("end")
    return slice(n.get("start", 0), rank if end is None else end)


def _shape_infer(n: View) -> list[Spec]:
    rank = rank_of(n, 0)
    return [Spec((None if rank is None else len(range(rank)[_part(n, rank)]),), INT64)]


def _shape_run(n: View, x: np.ndarray | None) -> Arrays:
    sizes = n.sizes(0)
    return (np.array(sizes[_part(n, len(sizes))], INT64),)


register("Shape", _shape_infer, _shape_run, traits=Traits(time="shape", work="elements", shape_only=True))
register(
    "Size",
    lambda n: [Spec((), INT64)],
    lambda n, x: (np.array(product(n.sizes(0)), INT64),),
    traits=Traits(work="elements", shape_only=True),
)

# ---- new shapes ------------------------------------------------------------------------------------------------------


def _reshape_infer(n: View) -> list[Spec]:
    wanted, dtype = known(n, 1), n.spec(0).dtype
    if wanted is None:
        length = n.shape(1)
        return [
            unknown(length[0], dtype)
            if length is not None and len(length) == 1 and isinstance(length[0], int)
            else Spec(None, dtype)
        ]
    return [Spec(_reshaped(n, n.shape(0), wanted), dtype)]


def _reshaped(n: View, shape: Shape | None, wanted: Sequence[int]) -> Shape:
    return reshape_rule(n.where, shape, wanted, copies=not n.get("allowzero", 0))


def _reshape_run(n: View, x: np.ndarray, shape: np.ndarray) -> Arrays:
    return (x.reshape(_reshaped(n, x.shape, [int(v) for v in shape.reshape(-1)])),)


def _flatten_infer(n: View) -> list[Spec]:
    shape = n.shape(0)
    if shape is None:
        return [unknown(2, n.spec(0).dtype)]
    axis = axis_of(n, n.get("axis", 1), len(shape), limit=len(shape) + 1)
    return [Spec((_joined(shape[:axis]), _joined(shape[axis:])), n.spec(0).dtype)]


def _joined(shape: Shape) -> Dim:
    """The size of axes made one."""
    rest = [s for s in shape if s != 1]
    return rest[0] if len(rest) == 1 else product(shape)


def _flatten_run(n: View, x: np.ndarray) -> Arrays:
    axis = axis_of(n, n.get("axis", 1), x.ndim, limit=x.ndim + 1)
    return (x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])),)


def _squeezed(n: View, shape: Shape, axes: Sequence[int] | None) -> Shape | None:
    if axes is None:
        return tuple(s for s in shape if s != 1) if all(isinstance(s, int) for s in shape) else None
    return squeeze_rule(n.where, shape, axes_of(n, axes, len(shape)))


def _squeeze_infer(n: View) -> list[Spec]:
    shape, axes, dtype = n.shape(0), known(n, 1), n.spec(0).dtype
    if shape is None:
        return [Spec(None, dtype)]
    if n.has(1) and axes is None:
        count = n.shape(1)
        less = count[0] if count is not None and len(count) == 1 and isinstance(count[0], int) else None
        return [unknown(None if less is None else len(shape) - less, dtype)]
    return [Spec(_squeezed(n, shape, axes), dtype)]


def _squeeze_run(n: View, x: np.ndarray, axes: np.ndarray | None = None) -> Arrays:
    shape = _squeezed(n, x.shape, None if axes is None else [int(v) for v in axes.reshape(-1)])
    return (x.reshape(shape),)


def _unsqueezed(n: View, shape: Shape, axes: Sequence[int]) -> Shape:
    rank = len(shape) + len(axes)
    new = axes_of(n, axes, rank)
    rest = iter(shape)
    return tuple(1 if i in new else next(rest) for i in range(rank))


def _unsqueeze_infer(n: View) -> list[Spec]:
    shape, axes, dtype = n.shape(0), known(n, 1), n.spec(0).dtype
    if shape is None:
        return [Spec(None, dtype)]
    if axes is None:
        count = n.spec(1).shape
        more = count[0] if count is not None and len(count) == 1 and isinstance(count[0], int) else None
        return [unknown(None if more is None else len(shape) + more, dtype)]
    return [Spec(_unsqueezed(n, shape, axes), dtype)]


def _unsqueeze_run(n: View, x: np.ndarray, axes: np.ndarray) -> Arrays:
    return (x.reshape(_unsqueezed(n, x.shape, [int(v) for v in axes.reshape(-1)])),)


_VIEW = MOVES._replace(nothing=same_shape)
register("Reshape", _reshape_infer, _reshape_run, _view_lower, _VIEW._replace(time="reshape", sizes="reshape", steers=(1,)))
register("Flatten", _flatten_infer, _flatten_run, _view_lower, _VIEW._replace(time="flatten"))
register("Squeeze", _squeeze_infer, _squeeze_run, _view_lower, _VIEW._replace(time="squeeze", sizes="same", steers=(1,)))
register("Unsqueeze", _unsqueeze_infer, _unsqueeze_run, _view_lower, _VIEW._replace(time="unsqueeze", sizes="same", steers=(1,)))

# ---- broadcasting as opset 6 did it ----------------------------------------------------------------------------------


def _aligned(n: View, shape: Shape, rank: int) -> Shape:
    """The shape with axes of size 1 after it, so that its first axis is below axis `axis` of an array of `rank` axes."""
    axis = axis_of(n, n.get("axis", 0), rank)
    return (*shape, *[1] * max(rank - axis - len(shape), 0))


def _align_infer(n: View) -> list[Spec]:
    shape, rank = n.shape(0), rank_of(n, 1)
    return [Spec(None if shape is None or rank is None else _aligned(n, shape, rank), n.spec(0).dtype)]


def _align_run(n: View, x: np.ndarray, other: np.ndarray) -> Arrays:
    return (x.reshape(_aligned(n, x.shape, other.ndim)),)


register("AlignAxes", _align_infer, _align_run, _view_lower, MOVES)
