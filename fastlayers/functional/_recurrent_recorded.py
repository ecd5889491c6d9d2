"""Recurrent functions as operations that can be recorded: the operators LSTM, GRU and RNN, over a sequence and for one step."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..graph.ops import op
from ..graph.record import ints, record, scalar
from ._recurrent import Kind, cell, describe_options, sequence, step, whole

__all__ = ["operation"]

_INT32 = 6  # ONNX's number


def operation(kind: Kind, steps: bool) -> Any:
    """The operation of one layer over `steps`, or of one step: takes x, weights and states by position, those of a layer then
    lengths and a mask, and all else by name; returns the output, of a layer alone, and the states.
    """
    names = ("x", *kind.weights, *kind.states)
    name, rule, records, run = kind.name, whole, _record_sequence, sequence
    if not steps:
        name, rule, records, run = f"{name}_cell", step, _record_cell, cell

    def call(*tensors: Any, **given: Any) -> tuple[np.ndarray, ...]:
        given.update(zip(names, tensors, strict=False))
        return run(kind, given)

    declared = op(
        name, " ".join(names) + " lengths:int mask:mask" * steps, partial(rule, kind), partial(records, kind), describe_options,
        weights=" ".join(kind.weights),
    )  # fmt: skip
    names += ("lengths", "mask") * steps
    return declared(call)


def _record_sequence(kind: Kind, *tensors: Any, **values: Any) -> Any:
    """One layer in all its directions: outputs and final states."""
    x, weights, states, (lengths, mask) = _split(kind, tensors)
    single, first = x.ndim == 2, values["batch_first"]
    if lengths is not None:
        lengths = record("Cast", lengths, to=_INT32)
    lengths = mask if lengths is None else lengths  # a mask is one of booleans: see functional.recurrent.check_mask
    if single:
        x, lengths = _led(x, 0 if first else 1), _led(lengths, 0)
        states = [_led(v, 1) for v in states]
    made = _record(kind, kind.name, x, weights, lengths, states, values, direction=values["direction"], layout=int(first))
    if not single:
        return made
    return tuple(record("Squeeze", v, ints(1 if i or not first else 0)) for i, v in enumerate(made))


def _record_cell(kind: Kind, *tensors: Any, **values: Any) -> Any:
    """The states after one step."""
    x, weights, states, _ = _split(kind, tensors)
    axes = (0,) if x.ndim == 2 else (0, 1)
    given = [_led(v, *axes) for v in states]
    _, *after = _record(kind, f"{kind.name}_cell", _led(x, *axes), weights, None, given, values)
    return tuple(record("Squeeze", v, ints(*axes)) for v in after)


def _split(kind: Kind, tensors: tuple[Any, ...]) -> tuple[Any, dict[str, Any], list[Any], list[Any]]:
    """x, weights by name, states, and what follows them."""
    count = 1 + len(kind.weights)
    end = count + len(kind.states)
    return tensors[0], dict(zip(kind.weights, tensors[1:count], strict=True)), list(tensors[count:end]), list(tensors[end:])


def _led(value: Any, *axes: int) -> Any:
    """A value with axes of size 1 put in."""
    return None if value is None else record("Unsqueeze", value, ints(*axes))


def _record(
    kind: Kind, name: str, x: Any, weights: dict[str, Any], lengths: Any, states: list[Any], values: dict[str, Any],
    **attributes: Any,
) -> Any:  # fmt: skip
    """The operator: W, R, B and the rest with an axis of directions in front."""

    def directed(weight: str, rank: int) -> Any:
        value = weights.get(weight)
        return value if value is None or value.ndim > rank else _led(value, 0)

    bias, b_ih, b_hh = None, directed("bias_ih", 1), directed("bias_hh", 1)
    if b_ih is not None or b_hh is not None:
        none = record("Mul", b_hh if b_ih is None else b_ih, scalar(0.0)) if b_ih is None or b_hh is None else None
        bias = record("Concat", none if b_ih is None else b_ih, none if b_hh is None else b_hh, axis=1)
    inputs = [x, directed("weight_ih", 2), directed("weight_hh", 2), bias, lengths, *states]
    if kind.extra:
        inputs += [directed("weight_peephole", 1), directed("weight_hr", 2)]
    while inputs[-1] is None:
        inputs.pop()
    options = kind.options(name, values)
    return record(kind.name.upper(), *inputs, outputs=1 + len(kind.states), joined=True, options=options, **attributes)
