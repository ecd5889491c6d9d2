"""Recurrent functions: an LSTM over a sequence, one layer in one or two directions, and one step. State goes in and comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, ShapeError
from ..graph.ir import Dim, Shape
from ..graph.ops import op
from ..kernels import _dispatch
from ..kernels.table import LstmOptions
from ._arrays import as_float32, empty, optional_float32
from ._checks import differ, same_shape

if TYPE_CHECKING:
    from ._types import Tensor

__all__ = ["lstm", "lstm_cell"]

_DIRECTIONS = ("forward", "reverse", "bidirectional")
_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def lstm(
    x: Tensor,
    state: tuple[Tensor, Tensor] | None,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
    *,
    batch_first: bool = False,
    direction: str = "forward",
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """One layer of an LSTM over a sequence, gates in the order i, f, g, o.

    ``i, f, g, o = weight_ih x + bias_ih + weight_hh h + bias_hh; c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c)``

    Args:
        x: ``(t, n, i)``, ``(n, t, i)`` if `batch_first`, or ``(t, i)`` without a batch; any real dtype.
        state: ``(h, c)`` before the first step, each ``(d, n, h)``, or ``(d, h)`` without a batch; None is zeros. d is the number
            of directions.
        weight_ih: ``(4 h, i)``, or ``(d, 4 h, i)``.
        weight_hh: ``(4 h, h)``, or ``(d, 4 h, h)``.
        bias_ih: ``(4 h,)``, or ``(d, 4 h)``, or None.
        bias_hh: as `bias_ih`.
        batch_first: whether the first axis of x and of the output is the batch.
        direction: ``"forward"``, ``"reverse"`` (the last step first; each output stays at its own time) or ``"bidirectional"``
            (weights have d = 2: forward, then reverse).

    Returns:
        ``(out, (h, c))``, float32: h of every step, shaped as x with ``d h`` in its last axis, forward columns first; and the
        state after the last step, shaped as `state`.

    Raises:
        ShapeError: shapes or arguments do not fit.
        DTypeError: an argument is complex, or no array of numbers.

    >>> import numpy as np, fastlayers as fl
    >>> out, (h, c) = fl.functional.lstm(np.ones((5, 2, 3)), None, np.ones((16, 3)), np.ones((16, 4)))
    >>> out.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """
    h0, c0 = split_state("lstm", state)
    out, h, c = _lstm(x, weight_ih, weight_hh, bias_ih, bias_hh, h0, c0, batch_first=batch_first, direction=direction)
    return out, (h, c)


def lstm_cell(
    x: Tensor,
    state: tuple[Tensor, Tensor] | None,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """One step of an LSTM, gates in the order i, f, g, o; the formula is that of `lstm`.

    Args:
        x: ``(n, i)``, or ``(i,)`` without a batch; any real dtype.
        state: ``(h, c)`` before the step, each ``(n, h)``, or ``(h,)`` without a batch; None is zeros.
        weight_ih: ``(4 h, i)``.
        weight_hh: ``(4 h, h)``.
        bias_ih: ``(4 h,)`` or None.
        bias_hh: ``(4 h,)`` or None.

    Returns:
        ``(h, c)`` after the step, float32.

    Raises:
        ShapeError: shapes do not fit.
        DTypeError: an argument is complex, or no array of numbers.

    >>> import numpy as np, fastlayers as fl
    >>> h, c = fl.functional.lstm_cell(np.ones((2, 3)), None, np.ones((16, 3)), np.ones((16, 4)))
    >>> h.shape
    (2, 4)
    """
    h0, c0 = split_state("lstm_cell", state)
    result: tuple[np.ndarray, np.ndarray] = _lstm_cell(x, weight_ih, weight_hh, bias_ih, bias_hh, h0, c0)
    return result


def split_state(name: str, state: Any) -> tuple[Any, Any]:
    """h and c of a state argument."""
    if state is None:
        return None, None
    if not isinstance(state, (tuple, list)) or len(state) != 2 or state[0] is None or state[1] is None:
        raise DTypeError(f"{name}: state of type {type(state).__name__}: expected None or a pair (h, c) of arrays")
    return state[0], state[1]


def lstm_rule(
    x: Shape,
    weight_ih: Shape,
    weight_hh: Shape,
    bias_ih: Shape | None,
    bias_hh: Shape | None,
    h0: Shape | None,
    c0: Shape | None,
    batch_first: bool,
    direction: str,
) -> list[Shape]:
    """Checks the shapes of `lstm` and returns those of its three results."""
    if direction not in _DIRECTIONS:
        raise ShapeError(f"lstm: direction is {direction!r}: expected one of {', '.join(map(repr, _DIRECTIONS))}")
    if len(x) not in (2, 3):
        order = "(n, t, i)" if batch_first else "(t, n, i)"
        raise ShapeError(f"lstm: x has shape {x}: expected {order}, or (t, i) without a batch")
    count = 2 if direction == "bidirectional" else 1
    for name, shape in zip(_WEIGHTS, (weight_ih, weight_hh, bias_ih, bias_hh), strict=True):
        rank = 2 if name.startswith("weight") else 1
        if shape is not None and not (
            (len(shape) == rank + 1 and not differ(shape[0], count)) or (len(shape) == rank and count == 1)
        ):
            sizes = ("4 h, i", "4 h, h", "4 h", "4 h")[_WEIGHTS.index(name)]
            plain = f"({sizes}) or " if count == 1 else ""
            raise ShapeError(f"lstm: {name} has shape {shape}: expected {plain}({count}, {sizes}) for direction={direction!r}")
    hidden = cell_rule("lstm", x[-1], weight_ih[-2:], weight_hh[-2:], bias_ih and bias_ih[-1:], bias_hh and bias_hh[-1:])
    batch = () if len(x) == 2 else (x[0] if batch_first else x[1],)
    state = (count, *batch, hidden)
    for name, shape in (("h0", h0), ("c0", c0)):
        if shape is not None:
            same_shape("lstm", name, shape, state, f"for x {x}, {count} direction(s) and {hidden} units")
    return [(*x[:-1], count * hidden if isinstance(hidden, int) else None), state, state]


def cell_rule(name: str, inputs: Dim, weight_ih: Shape, weight_hh: Shape, bias_ih: Shape | None, bias_hh: Shape | None) -> Dim:
    """Checks the weights of one direction against each other and the number of inputs; returns the number of units."""
    hidden = weight_hh[1]
    gates = 4 * hidden if isinstance(hidden, int) else weight_hh[0]
    same_shape(name, "weight_hh", weight_hh, (gates, hidden), "(4 h, h)")
    same_shape(name, "weight_ih", weight_ih, (gates, weight_ih[1]), "(4 h, i), with 4 h as in weight_hh")
    if differ(inputs, weight_ih[1]):
        raise ShapeError(f"{name}: x has {inputs} features, weight_ih {weight_ih} takes {weight_ih[1]}: expected equal numbers")
    for argument, bias in (("bias_ih", bias_ih), ("bias_hh", bias_hh)):
        if bias is not None:
            same_shape(name, argument, bias, (gates,), "(4 h,), with 4 h as in weight_hh")
    return hidden


@op("lstm", "x weight_ih weight_hh bias_ih bias_hh h0 c0", lstm_rule)
def _lstm(
    x: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, h0: Any, c0: Any, *, batch_first: bool, direction: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = as_float32(x, "lstm", "x")
    w_ih, w_hh = as_float32(weight_ih, "lstm", "weight_ih"), as_float32(weight_hh, "lstm", "weight_hh")
    b_ih, b_hh = optional_float32(bias_ih, "lstm", "bias_ih"), optional_float32(bias_hh, "lstm", "bias_hh")
    h0, c0 = optional_float32(h0, "lstm", "h0"), optional_float32(c0, "lstm", "c0")
    shapes: Any = [None if v is None else v.shape for v in (x, w_ih, w_hh, b_ih, b_hh, h0, c0)]
    found = lstm_rule(*shapes, batch_first, direction)  # type: ignore[call-arg]
    d = 2 if direction == "bidirectional" else 1
    arrays = ((w_ih, 2), (w_hh, 2), (b_ih, 1), (b_hh, 1))
    parts = [v if v is None else v.reshape(d, *v.shape[v.ndim - rank :]) for v, rank in arrays]
    packed = _dispatch.kernel("lstm_pack")(*parts, None, LstmOptions())
    out, h, c = (empty(shape) for shape in found)  # type: ignore[arg-type]
    run_lstm(_dispatch.kernel("lstm"), x, packed, h0, c0, batch_first, direction == "reverse", out, h, c)
    return out, h, c


def run_lstm(
    kernel: Callable[..., None],
    x: np.ndarray,
    packed: Any,
    h0: np.ndarray | None,
    c0: np.ndarray | None,
    batch_first: bool,
    reverse: bool,
    out: np.ndarray,
    hn: np.ndarray,
    cn: np.ndarray,
) -> None:
    """One layer in all its directions on checked operands; fills `out`, `hn` and `cn`."""
    if x.ndim == 2:
        batch_first = False
        x, out, hn, cn = x[:, None], out[:, None], hn[:, None], cn[:, None]
        h0, c0 = None if h0 is None else h0[:, None], None if c0 is None else c0[:, None]
    kernel(x, packed, h0, c0, None, out, hn, cn, batch_first, False, reverse)


def lstm_cell_rule(
    x: Shape, weight_ih: Shape, weight_hh: Shape, bias_ih: Shape | None, bias_hh: Shape | None, h0: Shape | None, c0: Shape | None
) -> list[Shape]:
    """Checks the shapes of `lstm_cell` and returns those of its two results."""
    for name, shape, rank in (
        ("weight_ih", weight_ih, 2),
        ("weight_hh", weight_hh, 2),
        ("bias_ih", bias_ih, 1),
        ("bias_hh", bias_hh, 1),
    ):
        if shape is not None and len(shape) != rank:
            raise ShapeError(f"lstm_cell: {name} has shape {shape}: expected {'(4 h, i) or (4 h, h)' if rank == 2 else '(4 h,)'}")
    if len(x) not in (1, 2):
        raise ShapeError(f"lstm_cell: x has shape {x}: expected (n, i), or (i,) without a batch")
    state = (*x[:-1], cell_rule("lstm_cell", x[-1], weight_ih, weight_hh, bias_ih, bias_hh))
    for name, given in (("h0", h0), ("c0", c0)):
        if given is not None:
            same_shape("lstm_cell", name, given, state, f"for x {x} and {state[-1]} units")
    return [state, state]


@op("lstm_cell", "x weight_ih weight_hh bias_ih bias_hh h0 c0", lstm_cell_rule)
def _lstm_cell(
    x: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, h0: Any, c0: Any
) -> tuple[np.ndarray, np.ndarray]:
    x = as_float32(x, "lstm_cell", "x")
    w_ih, w_hh = as_float32(weight_ih, "lstm_cell", "weight_ih"), as_float32(weight_hh, "lstm_cell", "weight_hh")
    b_ih, b_hh = optional_float32(bias_ih, "lstm_cell", "bias_ih"), optional_float32(bias_hh, "lstm_cell", "bias_hh")
    h0, c0 = optional_float32(h0, "lstm_cell", "h0"), optional_float32(c0, "lstm_cell", "c0")
    shapes: list[Any] = [None if v is None else v.shape for v in (x, w_ih, w_hh, b_ih, b_hh, h0, c0)]
    lstm_cell_rule(*shapes)
    biases = (None if b is None else b[None] for b in (b_ih, b_hh))
    packed = _dispatch.kernel("lstm_pack")(w_ih[None], w_hh[None], *biases, None, LstmOptions())
    return run_lstm_cell(_dispatch.kernel("lstm"), x, packed, w_hh.shape[1], h0, c0)


def run_lstm_cell(
    kernel: Callable[..., None], x: np.ndarray, packed: Any, hidden: int, h0: np.ndarray | None, c0: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """One step on checked operands."""
    shape = (*x.shape[:-1], hidden)
    h, c = empty(shape), empty(shape)
    first: Any = None if x.ndim == 2 else (None, None)  # the axis of steps or directions, and of the batch where there is none
    h0, c0 = None if h0 is None else h0[first], None if c0 is None else c0[first]
    kernel(x[first], packed, h0, c0, None, None, h[first], c[first], False, False, False)
    return h, c
