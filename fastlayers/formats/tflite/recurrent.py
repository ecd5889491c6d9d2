"""Rules of recurrent layers. Weights are a matrix a gate in the file; the operators take them one below the other, i f g o.

TensorFlow Lite keeps what such an operator's state tensors hold from one call of a model to the next, until they are reset; here
every call begins with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..._tuples import NamedTuple
from ...ir.graph import Graph, Value
from ...operators import Spec
from ...operators.graphs import GraphBuilder
from .._arrays import Array
from .call import Call

__all__ = ["RULES"]

Rule = Callable[[Call], str | tuple[str, ...]]
_ACTIVATIONS = {1: "Relu", 4: "Tanh"}


class _Places(NamedTuple):
    """Positions of an LSTM's inputs: the first of the matrices of inputs, of the rest, and the states."""

    weights: int  # input to gates i f g o, then recurrent ones, three peepholes, four biases, projection and its bias
    h: int
    c: int
    norms: int  # four vectors of layer normalization; -1: there are none


def _array(c: Call, i: int, what: str) -> Array | None:
    """A weight as float32, which must be constant; None if it was left out."""
    if not c.has(i):
        return None
    array = c.constant(i)
    if array is None:
        c.refuse(f"with {what} that are computed")
    if array.dtype != np.float32:
        c.refuse(f"with {what} of dtype {array.dtype}")
    return array


def _state(c: Call, i: int) -> str | None:
    """A state that is given, as (1, batch, size); None where it begins with zeros."""
    if not c.has(i) or c.tensor(i).variable:
        return None
    return c.e.node("Unsqueeze", c.x(i), c.e.ints([0]))


def _function(c: Call) -> str:
    name = _ACTIVATIONS.get(c.options["act"])
    if name is None:
        c.refuse(f"with the activation number {c.options['act']}")
    return name


# ---- LSTM ----------------------------------------------------------------------------------------------------------------


class _Lstm(NamedTuple):
    """Weights as the operator takes them."""

    w: Array  # (4 n, inputs)
    r: Array  # (4 n, outputs)
    bias: Array  # (4 n,)
    peepholes: Array | None  # (3 n,), of i f o
    projection: Array | None  # (outputs, n)


def _lstm_weights(c: Call, at: _Places) -> _Lstm:
    first = at.weights
    if any(c.has(at.norms + k) for k in range(4) if at.norms >= 0):
        c.refuse("with layer normalization")
    w, r = ([_array(c, first + 4 * side + k, "weights") for k in range(4)] for side in (0, 1))
    peepholes = [_array(c, first + 8 + k, "peepholes") for k in range(3)]
    biases = [_array(c, first + 11 + k, "biases") for k in range(4)]
    if w[0] is None and r[0] is None:
        # The gates i and f are coupled: i = 1 - f = sigmoid(-sum of f).
        w[0], r[0], biases[0] = (None if v is None else -v for v in (w[1], r[1], biases[1]))
        peepholes[0] = None if peepholes[1] is None else -peepholes[1]
    matrices = [*w, *r, *biases]
    found = [a for a in matrices if a is not None]
    if len(found) < len(matrices) or 0 < sum(p is not None for p in peepholes) < 3:
        c.fail("lacks some of its weights")
    if _array(c, first + 16, "a projection's bias") is not None:
        c.refuse("with a projection that has a bias")
    try:
        own, rest, bias = (np.concatenate(found[4 * k : 4 * k + 4]) for k in range(3))
        three = [p for p in peepholes if p is not None]
        return _Lstm(own, rest, bias, np.concatenate(three) if three else None, _array(c, first + 15, "a projection"))
    except ValueError:
        c.fail(f"its weights have shapes {[a.shape for a in found]}, which do not fit one another")


def _lstm(c: Call, x: str, at: _Places, time_major: bool, backward: bool) -> str:
    """The outputs of all steps, in the layout of x."""
    weights, o = _lstm_weights(c, at), c.options
    if o["proj_clip"] or o.get("diagonal"):
        c.refuse("with projections that are clipped, or with diagonal weights")
    shape = c.e.shape(x)
    steps = None if shape is None or len(shape) != 3 else shape[0 if time_major else 1]
    h, state = _state(c, at.h), _state(c, at.c)
    clip = float(o["cell_clip"])
    tanh = _ACTIVATIONS.get(o["act"]) == "Tanh"
    # Of zeros, with tanh, a cell reaches t at most after t steps.
    reached = not (tanh and state is None and isinstance(steps, int) and steps <= clip)
    if clip > 0 and reached:
        return _clipped(c, x, weights, (h, state), clip, time_major, backward)
    function = _function(c)
    bias = np.concatenate([weights.bias, np.zeros_like(weights.bias)])
    arrays = (weights.w, weights.r, bias)
    inputs: list[str | None] = [x, *(c.e.constant(a[None]) for a in arrays), None, h, state]
    inputs += [None if a is None else c.e.constant(a[None]) for a in (weights.peepholes, weights.projection)]
    return c.e.node(
        "LSTM",
        *inputs,
        direction="reverse" if backward else "forward",
        layout=int(not time_major),
        joined=True,
        activations=("Sigmoid", function, function),
    )


def _clipped(c: Call, x: str, weights: _Lstm, states: Sequence[str | None], clip: float, time_major: bool, backward: bool) -> str:
    """Step by step, the cell cut off at -clip .. clip, which no kernel does."""
    if weights.projection is not None or weights.peepholes is not None:
        c.refuse("with a clipped cell and peepholes or a projection")
    if _ACTIVATIONS.get(c.options["act"]) != "Tanh":
        c.refuse("with a clipped cell and another activation than tanh")
    e, size = c.e, weights.r.shape[1]
    sums = e.node("Linear", x, e.constant(weights.w), e.constant(weights.bias))  # (.., .., 4 n), of all steps
    batch = e.node("Gather", e.node("Shape", x), e.ints([1 if time_major else 0]), axis=0)
    zeros = e.node("Expand", e.constant(np.zeros((1, 1), np.float32)), e.node("Concat", batch, e.ints([size]), axis=0))
    begin = [zeros if s is None else e.node("Squeeze", s, e.ints([0])) for s in states]
    inner = GraphBuilder(None, e.names)
    float32 = np.dtype(np.float32)
    h, cell = (inner.input(f"~{name}", (None, size), float32) for name in ("h", "cell"))
    part = inner.input("~sums", (None, 4 * size), float32)
    total = inner.node("Add", part, inner.node("Linear", h, inner.constant(weights.r)))
    i, f, g, o = inner.many("Split", (total,), [""] * 4, {"axis": -1, "num_outputs": 4})
    kept = inner.node("Mul", inner.node("Sigmoid", f), cell)
    new = inner.node("Add", kept, inner.node("Mul", inner.node("Sigmoid", i), inner.node("Tanh", g)))
    cut = inner.node("Clip", new, *(inner.constant(np.array(v, np.float32)) for v in (-clip, clip)))
    out = inner.node("Mul", inner.node("Sigmoid", o), inner.node("Tanh", cut))
    again = inner.node("Identity", out)
    shape = (None, size)
    body: Graph = inner.graph([h, cell, part], (Value(name, shape, float32) for name in (out, cut, again)))
    axis = 0 if time_major else 1
    attributes = {
        "body": body, "num_scan_inputs": 1, "scan_input_axes": (axis,), "scan_output_axes": (axis,),
        "scan_input_directions": (int(backward),), "scan_output_directions": (int(backward),),
    }  # fmt: skip
    made = e.many("Scan", (*begin, sums), [""] * 3, attributes)[2]
    whole = e.shape(x)
    e.specs[made] = Spec(None if whole is None else (*whole[:-1], size), float32)
    return made


def unidirectional_lstm(c: Call) -> str:
    """Over a sequence; all outputs."""
    return _lstm(c, c.x(0), _Places(1, 18, 19, 20), bool(c.options["time_major"]), False)


def bidirectional_lstm(c: Call) -> tuple[str, ...]:
    """Forward and backward, one after the other if merge_outputs is set."""
    if any(c.has(i) for i in range(39, 48)):
        c.refuse("with inputs next to the sequence")
    major = bool(c.options["time_major"])
    forward = _lstm(c, c.x(0), _Places(1, 35, 36, -1), major, False)
    backward = _lstm(c, c.x(0), _Places(18, 37, 38, -1), major, True)
    return _joined(c, forward, backward)


def _joined(c: Call, forward: str, backward: str) -> tuple[str, ...]:
    return (c.e.node("Concat", forward, backward, axis=-1),) if c.options["merge_outputs"] else (forward, backward)


# ---- RNN -----------------------------------------------------------------------------------------------------------------


def _rnn(c: Call, x: str, first: int, time_major: bool, backward: bool) -> str:
    w, r, bias = (_array(c, first + i, "weights") for i in range(3))
    if w is None or r is None or bias is None or w.ndim != 2:
        c.fail("lacks some of its weights")
    arrays = (w, r, np.concatenate([bias, np.zeros_like(bias)]))
    inputs = [x, *(c.e.constant(a[None]) for a in arrays), None, _state(c, first + 3)]
    return c.e.node(
        "RNN", *inputs, direction="reverse" if backward else "forward", layout=int(not time_major), joined=True,
        activations=(_function(c),),
    )  # fmt: skip


def rnn(c: Call) -> str:
    """One step: x (batch, inputs)."""
    x = c.e.node("Unsqueeze", c.x(0), c.e.ints([0]))
    return c.e.node("Squeeze", _rnn(c, x, 1, True, False), c.e.ints([0]))


def unidirectional_rnn(c: Call) -> str:
    """Over a sequence; all outputs."""
    return _rnn(c, c.x(0), 1, bool(c.options["time_major"]), False)


def bidirectional_rnn(c: Call) -> tuple[str, ...]:
    """Forward and backward, one after the other if merge_outputs is set."""
    if any(c.has(i) for i in range(9, 12)):
        c.refuse("with inputs next to the sequence")
    major = bool(c.options["time_major"])
    return _joined(c, _rnn(c, c.x(0), 1, major, False), _rnn(c, c.x(0), 5, major, True))


RULES: dict[str, Rule] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": bidirectional_lstm,
    "BIDIRECTIONAL_SEQUENCE_RNN": bidirectional_rnn,
    "RNN": rnn,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": unidirectional_lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": unidirectional_rnn,
}
