"""Operators that streams put into a graph (see `stream.rewrite`): history along time, and states that begin by themselves.

A state that has not begun is a scalar; what it stands for is known once the sizes of x are, so nothing must be told beforehand.

- ``StreamWindow(x, state) -> window, rest, count``: x after what was retained, or after `before` values `fill` if nothing was,
  along `axis`. Windows of `reach` positions with a `step` that fit into it will be read; `rest` is what later ones need. `window`
  is filled up so that one fits into it at least. `count` has as many elements as windows that fit otherwise, all 0.
- ``StreamCut(y, count)``: the first positions of y along `axis`, one per element of count. ``StreamFill(y, count)``: one
  position of zeros along `axis` if count is empty, else y.
- ``StreamStart(state, like, init)``: the state; if it has not begun, init, or zeros of `shape`, where -1 - i is size i of like.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tuples import NamedTuple
from ._base import Spec, View, register
from ._traits import MOVES, PLAIN
from .calls import copy, movable, move, strides_of

if TYPE_CHECKING:
    from .builder import Builder, Ref

_COUNT = np.dtype(np.uint8)
_LARGEST = 1 << 40  # of any size, for what is reckoned with them


class _Plan(NamedTuple):
    """Sizes along time: of what comes before x, of both, of the window; how many windows fit, and how much they leave over."""

    before: int
    total: int
    window: int
    fits: int
    used: int


def _plan(n: View) -> _Plan:
    x, state, axis = n.sizes(0), n.sizes(1), n.get("axis")
    reach, step = n.get("reach"), n.get("step")
    if state and (len(state) != len(x) or (*state[:axis], *state[axis + 1 :]) != (*x[:axis], *x[axis + 1 :])):
        raise n.fail(f"x has shape {x}, the state {state}: expected the same sizes but along axis {axis}")
    if reach < 1 or step < 1 or n.get("before") < 0 or max(reach, step, n.get("before")) > _LARGEST:
        raise n.fail(f"reach is {reach}, step {step}, before {n.get('before')}: expected sizes, the first two from 1 up")
    before = state[axis] if state else n.get("before")
    total = before + x[axis]
    count = (total - reach) // step + 1 if total >= reach else 0
    return _Plan(before, total, max(total, reach), count, count * step)


def _sized(shape: Sequence[Any], axis: int, size: Any) -> tuple[Any, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def window_infer(n: View) -> list[Spec]:
    x, dtype = n.spec(0), n.spec(0).dtype
    if n.spec(1).dtype != dtype:
        raise n.wrong_dtype(f"x has dtype {dtype}, the state {n.spec(1).dtype}: expected the same")
    if x.shape is not None and not 0 <= n.get("axis") < len(x.shape):
        raise n.fail(f"axis is {n.get('axis')}, x has {len(x.shape)} axes")
    if not x.static or not n.spec(1).static:
        unknown = Spec(None if x.shape is None else _sized(x.shape, n.get("axis"), None), dtype)
        return [unknown, unknown, Spec((None,), _COUNT)]
    plan, axis = _plan(n), n.get("axis")
    window, rest = (_sized(n.sizes(0), axis, size) for size in (plan.window, plan.total - plan.used))
    return [Spec(window, dtype), Spec(rest, dtype), Spec((plan.fits,), _COUNT)]


def window_run(n: View, x: np.ndarray, state: np.ndarray) -> Sequence[np.ndarray]:
    plan, axis = _plan(n), n.get("axis")
    fill = n.get("fill", 0.0)
    if not state.ndim:
        state = np.full(_sized(x.shape, axis, plan.before), fill, x.dtype)
    behind = np.full(_sized(x.shape, axis, plan.window - plan.total), fill, x.dtype)
    window = np.concatenate([state, x, behind], axis)
    rest = window[(slice(None),) * axis + (slice(plan.used, plan.total),)]
    return window, rest, np.zeros(plan.fits, _COUNT)


def window_lower(n: View, b: Builder) -> Any:
    dtype = n.spec(0).dtype
    if not movable(dtype) or 0 in _sized(n.sizes(0), n.get("axis"), 1):
        return False
    plan, axis = _plan(n), n.get("axis")
    x = b.input(0)
    shared = plan.before == 0 and plan.window == plan.total  # then x is all there is
    out = x if shared else b.output(0)
    if shared:
        b.alias(0, x)
    strides = strides_of(out.shape)

    def put(part: Ref, at: int, one: bool = False, size: int = 0) -> None:
        shape = _sized(out.shape, axis, size) if one else part.shape
        own = (0,) * len(shape) if one else strides_of(shape)
        copy(b, part, out, shape, 0, own, at * strides[axis], strides)

    fill = b.constant(np.full((), n.get("fill", 0.0), dtype))
    if n.sizes(1) and plan.before:
        put(b.input(1), 0)
    elif plan.before:
        put(fill, 0, True, plan.before)
    if not shared:
        put(x, plan.before)
    if plan.window > plan.total:
        put(fill, plan.total, True, plan.window - plan.total)
    if n.wants(1):
        rest = b.output(1)
        copy(b, out, rest, rest.shape, plan.used * strides[axis], strides, 0, strides_of(rest.shape))
    if n.wants(2):
        count = b.output(2)
        copy(b, b.constant(np.zeros((), _COUNT)), count, count.shape, 0, (0,), 0, (1,))
    return True


def _resized(n: View, size: Any) -> list[Spec]:
    """y with another size along the axis: `size` of y's own and of that of count, if both are known."""
    y, count, axis = n.spec(0), n.spec(1), n.get("axis")
    if y.shape is None:
        return [y]
    if not 0 <= axis < len(y.shape) or (count.shape is not None and len(count.shape) != 1):
        raise n.fail(f"y has shape {y.shape}, count {count.shape}, axis is {axis}: expected an axis of y, and one for count")
    known = count.shape is not None and isinstance(count.shape[0], int) and isinstance(y.shape[axis], int)
    return [Spec(_sized(y.shape, axis, size(y.shape[axis], count.shape[0]) if known else None), y.dtype)]  # type: ignore[index]


def cut_run(n: View, y: np.ndarray, count: np.ndarray) -> Sequence[np.ndarray]:
    return (y[(slice(None),) * n.get("axis") + (slice(0, count.size),)],)


def cut_lower(n: View, b: Builder) -> Any:
    y = b.input(0)
    return move(b, y, _sized(y.shape, n.get("axis"), min(n.sizes(1)[0], y.shape[n.get("axis")])), 0, strides_of(y.shape))


def fill_run(n: View, y: np.ndarray, count: np.ndarray) -> Sequence[np.ndarray]:
    return (y if count.size else np.zeros(_sized(y.shape, n.get("axis"), 1), y.dtype),)


def fill_lower(n: View, b: Builder) -> Any:
    if n.sizes(1)[0]:
        b.alias(0, b.input(0))
        return True
    return _zeros(n, b, _sized(n.sizes(0), n.get("axis"), 1))


def _zeros(n: View, b: Builder, shape: Sequence[int]) -> bool:
    dtype = n.spec(0).dtype
    if not movable(dtype):
        return False
    zero, out = b.constant(np.zeros((), dtype)), b.output(0)
    copy(b, zero, out, shape, 0, (0,) * len(shape), 0, strides_of(shape))
    return True


def _begun(n: View) -> tuple[Any, ...]:
    """The shape of zeros that a state begins as."""
    like = n.shape(1)
    return tuple(d if d >= 0 else like[-1 - d] if like is not None else None for d in n.get("shape"))


def start_infer(n: View) -> list[Spec]:
    state = n.spec(0)
    if state.shape is None:
        return [state]
    if state.shape:
        return [state]
    if n.has(2):
        if n.spec(2).dtype != state.dtype:
            raise n.wrong_dtype(f"the state has dtype {state.dtype}, what it begins as {n.spec(2).dtype}: expected the same")
        return [n.spec(2)]
    return [Spec(_begun(n), state.dtype)]


def start_run(n: View, state: np.ndarray, like: np.ndarray, init: np.ndarray | None = None) -> Sequence[np.ndarray]:
    if state.ndim:
        return (state,)
    return (np.zeros(_begun(n), state.dtype) if init is None else init,)


def start_lower(n: View, b: Builder) -> Any:
    if n.sizes(0) or n.has(2):
        b.alias(0, b.input(0 if n.sizes(0) else 2))
        return True
    return _zeros(n, b, _begun(n))


register("StreamWindow", window_infer, window_run, window_lower, PLAIN)
register("StreamCut", lambda n: _resized(n, min), cut_run, cut_lower, MOVES)
register("StreamFill", lambda n: _resized(n, lambda size, count: size if count else 1), fill_run, fill_lower, PLAIN)
register("StreamStart", start_infer, start_run, start_lower, PLAIN)
