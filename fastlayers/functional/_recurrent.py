"""Recurrent functions, their shared part. Three kinds are a table; a kind differs in its gates, its states and its options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._tuples import NamedTuple
from ..calls import recurrent
from ..calls.machine import ARRAYS
from ..errors import ArgumentError, DTypeError, ShapeError
from ..graph.arrays import as_array, as_float32, as_int64, as_mask, empty, optional_float32, optional_int64, optional_mask
from ..graph.symbol import Symbol
from ..ir.checks import differ, number, same_shape
from ..ir.graph import Dim, Shape
from ..kernels.table import GruOptions, LstmOptions, RnnOptions
from ..rules.weights import gates_rule, state_rule, valid_rule
from ._activation_names import resolve, specify
from ._arithmetic import add, multiply
from ._movement import slice

__all__ = [
    "GRU", "LSTM", "RNN", "WEIGHTS", "Kind", "axes_of_step", "axes_of_x", "cell", "cell_state_rule", "check_mask",
    "check_merge", "describe_options", "merged", "sequence", "single_state", "split_state", "step", "valid_steps", "whole",
]  # fmt: skip

_DIRECTIONS = ("forward", "reverse", "bidirectional")
_SMALLEST_SINGLE = 2.0**-149
_MERGES = ("concat", "sum", "mul", "ave", None)
# Weights by the names that functions and layers give them, and their axes but for the one of directions. h is the size of c, q
# that of h, which projections make smaller, g the number of gates.
WEIGHTS: dict[str, tuple[str, ...]] = {
    "weight_ih": ("g h", "i"),
    "weight_hh": ("g h", "q"),
    "bias_ih": ("g h",),
    "bias_hh": ("g h",),
    "weight_hr": ("q", "h"),
    "weight_peephole": ("3 h",),
}


class Kind(NamedTuple):
    """One kind of cell: its name, its number of gates, what its states are called, its weights beyond the usual four (in the
    order of the pack kernel), and what makes the kernel's options of an operation's attributes.
    """

    name: str
    gates: int
    states: tuple[str, ...]
    extra: tuple[str, ...]
    options: Callable[[str, dict[str, Any]], Any]

    @property
    def weights(self) -> tuple[str, ...]:
        """Names of all weights in the order of the pack kernel."""
        return ("weight_ih", "weight_hh", "bias_ih", "bias_hh", *self.extra)


def _clip(op: str, given: dict[str, Any]) -> float:
    clip = number(op, "clip", given["clip"])
    if not clip >= 0:
        raise ArgumentError(f"{op}: clip is {clip}: expected at least 0, which is no clipping")
    return max(clip, _SMALLEST_SINGLE) if clip else clip  # what float32 takes for 0 is not 0: it clips all to next to nothing


def _lstm_options(op: str, given: dict[str, Any]) -> LstmOptions:
    gate, inner = resolve(op, given["recurrent_activation"]), resolve(op, given["activation"])
    return LstmOptions(((gate, inner, inner),) * 2, _clip(op, given), bool(given["couple_input_forget"]))


def _gru_options(op: str, given: dict[str, Any]) -> GruOptions:
    functions = resolve(op, given["recurrent_activation"]), resolve(op, given["activation"])
    return GruOptions((functions,) * 2, _clip(op, given), bool(given["reset_after"]))


def _rnn_options(op: str, given: dict[str, Any]) -> RnnOptions:
    return RnnOptions((resolve(op, given["nonlinearity"]),) * 2, _clip(op, given))


LSTM = Kind("lstm", 4, ("h0", "c0"), ("weight_peephole", "weight_hr"), _lstm_options)
GRU = Kind("gru", 3, ("h0",), (), _gru_options)
RNN = Kind("rnn", 1, ("h0",), (), _rnn_options)


def describe_options(attributes: dict[str, Any]) -> None:
    """Makes the attributes of a recorded operation plain data."""
    for name in ("activation", "recurrent_activation", "nonlinearity"):
        if name in attributes:
            attributes[name] = specify(resolve("trace", attributes[name]))
    attributes["clip"] = float(attributes["clip"])


# ---- rules -------------------------------------------------------------------------------------------------------------------


def _axes(kind: Kind, name: str) -> str:
    """The axes of a weight as errors show them."""
    text = ", ".join(WEIGHTS[name]).replace("g h", f"{kind.gates} h" if kind.gates > 1 else "h")
    return text if "weight_hr" in kind.extra else text.replace("q", "h")


def whole(kind: Kind, **given: Any) -> list[Shape]:
    """Checks the shapes of a sequence's operands, by the names of the operation's arguments; returns those of its results."""
    name, x, direction, batch_first = kind.name, given["x"], given["direction"], given["batch_first"]
    kind.options(name, given)
    if direction not in _DIRECTIONS:
        raise ArgumentError(f"{name}: direction is {direction!r}: expected one of {', '.join(map(repr, _DIRECTIONS))}")
    if len(x) not in (2, 3):
        raise axes_of_x(name, x, batch_first)
    count = 2 if direction == "bidirectional" else 1
    weights = {}
    for argument in kind.weights:
        shape, rank = given[argument], len(WEIGHTS[argument])
        if shape is not None and not (
            (len(shape) == rank + 1 and not differ(shape[0], count)) or (len(shape) == rank and count == 1)
        ):
            axes = _axes(kind, argument)
            plain = f"({axes}{',' * (rank == 1)}) or " if count == 1 else ""
            raise ShapeError(
                f"{name}: {argument} has shape {shape}: expected {plain}({count}, {axes}) for direction={direction!r}"
            )
        weights[argument] = None if shape is None else shape[-rank:]
    sizes = _sizes(kind, name, x[-1], weights)
    batch, steps = ((), x[0]) if len(x) == 2 else ((x[0],), x[1]) if batch_first else ((x[1],), x[0])
    states = [(count, *batch, size) for size in sizes]
    for argument, state in zip(kind.states, states, strict=False):
        state_rule(name, argument, given[argument], state, x)
    lengths, mask = given["lengths"], given["mask"]
    if lengths is not None and mask is not None:
        raise ArgumentError(f"{name}: lengths and mask are both given: expected one of them at most")
    valid_rule(name, lengths, mask, batch, steps)
    out = (*x[:-1], count * sizes[0] if isinstance(sizes[0], int) else None)
    return [out, *states[: len(kind.states)]]


def axes_of_x(name: str, x: Shape, batch_first: Any) -> ShapeError:
    """The error for an x that is no sequence."""
    order = "(n, t, i)" if batch_first else "(t, n, i)"
    return ShapeError(f"{name}: x has shape {x}: expected {order}, or (t, i) without a batch")


def step(kind: Kind, **given: Any) -> list[Shape]:
    """Checks the shapes of a cell's operands and returns those of its results."""
    name, x = f"{kind.name}_cell", given["x"]
    kind.options(name, given)
    for argument in kind.weights:
        if given[argument] is not None and len(given[argument]) != len(WEIGHTS[argument]):
            comma = "," * (len(WEIGHTS[argument]) == 1)
            raise ShapeError(f"{name}: {argument} has shape {given[argument]}: expected ({_axes(kind, argument)}{comma})")
    if len(x) not in (1, 2):
        raise axes_of_step(name, x)
    states = [(*x[:-1], size) for size in _sizes(kind, name, x[-1], given)]
    for argument, state in zip(kind.states, states, strict=False):
        if given[argument] is not None:
            cell_state_rule(name, argument, given[argument], state, x)
    return states[: len(kind.states)]


def axes_of_step(name: str, x: Shape) -> ShapeError:
    """The error for an x that is no step."""
    return ShapeError(f"{name}: x has shape {x}: expected (n, i), or (i,) without a batch")


def cell_state_rule(name: str, argument: str, state: Shape, want: Shape, x: Shape) -> None:
    """Raises unless a cell's state has its shape. Not `state_rule`: a recorded cell is a sequence of one step, of other axes."""
    same_shape(name, argument, state, want, f"for x {x} and {want[-1]} units")


def _sizes(kind: Kind, name: str, inputs: Dim, weights: dict[str, Any]) -> tuple[Dim, Dim]:
    """Checks the weights of one direction against each other and the number of inputs; returns the sizes of h and c."""
    rows = f"{kind.gates} h" if kind.gates > 1 else "h"
    outs, hidden, gates = gates_rule(
        name, kind.gates, inputs, weights["weight_ih"], weights["weight_hh"], weights.get("weight_hr")
    )
    for argument in ("bias_ih", "bias_hh"):
        if weights[argument] is not None:
            same_shape(name, argument, weights[argument], (gates,), f"({rows},), with {rows} as in weight_hh")
    if weights.get("weight_peephole") is not None and isinstance(hidden, int):
        same_shape(name, "weight_peephole", weights["weight_peephole"], (3 * hidden,), "(3 h,)")
    return outs, hidden


# ---- what stands around the kernels ------------------------------------------------------------------------------------------


def check_mask(name: str, mask: Any) -> None:
    """Raises unless a mask, array or symbol, is one of booleans."""
    if mask is not None:
        dtype = mask.dtype if isinstance(mask, Symbol) else as_array(mask, name, "mask").dtype
        if dtype != np.bool_:
            raise DTypeError(f"{name}: mask has dtype {dtype}: expected booleans, True for the steps that a sequence has")


def valid_steps(name: str, lengths: Any, mask: Any, batch: tuple[int, ...], steps: int) -> np.ndarray | None:
    """Lengths or mask as the kernels take them, or None; their batch has an axis."""
    if mask is not None:
        check_mask(name, mask)
        if lengths is not None:
            raise ArgumentError(f"{name}: lengths and mask are both given: expected one of them at most")
        array = as_mask(mask, name, "mask")
        valid_rule(name, None, array.shape, batch, steps)
        return array if batch else array[None]
    if lengths is None:
        return None
    array = as_int64(lengths, name, "lengths")
    valid_rule(name, array.shape, None, batch, steps)
    if array.size and not 0 <= array.min() <= array.max() <= steps:
        raise ArgumentError(f"{name}: lengths go from {array.min()} to {array.max()}: expected 0 to {steps}, the steps of x")
    return array.astype(np.int32).reshape(-1)


def check_merge(name: str, merge: Any, directions: int) -> None:
    """Raises unless `merge` is one that these directions can have."""
    if merge not in _MERGES:
        raise ArgumentError(f"{name}: merge is {merge!r}: expected one of {', '.join(map(repr, _MERGES))}")
    if merge != "concat" and directions == 1:
        raise ArgumentError(f"{name}: merge is {merge!r}: only a bidirectional layer has two outputs to merge")


def merged(out: Any, merge: str | None) -> Any:
    """The outputs of two directions, which are next to each other in the last axis, as `merge` says; None: the two of them."""
    if merge == "concat":
        return out
    size = out.shape[-1] // 2
    forward, backward = slice(out, -1, 0, size), slice(out, -1, size, 2 * size)
    if merge is None:
        return forward, backward
    if merge == "mul":
        return multiply(forward, backward)
    return add(forward, backward) if merge == "sum" else multiply(add(forward, backward), np.float32(0.5))


def sequence(kind: Kind, given: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """An operation over a sequence on arrays: all its arguments by name; `given` is changed."""
    name = kind.name
    x, weights, before = _converted(kind, name, given)
    lengths = optional_int64(given.get("lengths"), name, "lengths")
    mask = optional_mask(given.get("mask"), name, "mask")
    given["lengths"], given["mask"] = None if lengths is None else lengths.shape, None if mask is None else mask.shape
    results: Any = whole(kind, **given)
    d, batch_first = 2 if given["direction"] == "bidirectional" else 1, given["batch_first"]
    batch, steps = ((), len(x)) if x.ndim == 2 else ((x.shape[0],), x.shape[1]) if batch_first else ((x.shape[1],), x.shape[0])
    valid = valid_steps(name, lengths, mask, batch, steps)
    led = [None if w is None else w.reshape(d, *w.shape[w.ndim - len(WEIGHTS[n]) :]) for n, w in weights.items()]
    packed = recurrent.pack(ARRAYS, name, lambda: (*led, kind.options(name, given)))
    out, *after = map(empty, results)
    recurrent.layer(ARRAYS, name, x, packed, before, valid, out, after, batch_first, given["direction"] == "reverse")
    return (out, *after)


def cell(kind: Kind, given: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """An operation of one step on arrays: all its arguments by name; `given` is changed."""
    name = f"{kind.name}_cell"
    x, weights, before = _converted(kind, name, given)
    results: Any = step(kind, **given)
    after = tuple(map(empty, results))
    led = [None if w is None else w[None] for w in weights.values()]
    packed = recurrent.pack(ARRAYS, kind.name, lambda: (*led, kind.options(name, given)))
    recurrent.step(ARRAYS, kind.name, x, packed, before, after)
    return after


def _converted(kind: Kind, name: str, given: dict[str, Any]) -> Any:
    """x, weights by name and states as float32 arrays; `given` has their shapes from then on."""
    x = as_float32(given["x"], name, "x")
    weights = {n: (as_float32 if i < 2 else optional_float32)(given.get(n), name, n) for i, n in enumerate(kind.weights)}
    before = [optional_float32(given.get(n), name, n) for n in kind.states]
    given["x"] = x.shape
    for n, array in (*weights.items(), *zip(kind.states, before, strict=True)):
        given[n] = None if array is None else array.shape
    return x, weights, before


def split_state(name: str, state: Any) -> tuple[Any, Any]:
    """h and c of a state argument."""
    if state is None:
        return None, None
    if not isinstance(state, (tuple, list)) or len(state) != 2 or state[0] is None or state[1] is None:
        raise DTypeError(f"{name}: state of type {type(state).__name__}: expected None or a pair (h, c) of arrays")
    return state[0], state[1]


def single_state(name: str, state: Any) -> Any:
    """h of a state argument of a kind that has no c."""
    if isinstance(state, tuple):
        raise DTypeError(f"{name}: state of type tuple: expected None or an array, h")
    return state
