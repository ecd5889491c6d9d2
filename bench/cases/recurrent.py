"""Cases of the recurrent kernels: one layer in all its directions a call."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastlayers.kernels.table import UNARY, Activation, GruOptions, LstmOptions, RnnOptions

from . import Case, normal

_GATES = {"lstm": 4, "gru": 3, "rnn": 1}
_OPTIONS = {"lstm": LstmOptions(), "gru": GruOptions(), "rnn": RnnOptions()}
_HARD = Activation(UNARY["hardsigmoid"].code, 0.2, 0.5)
_TANH, _RELU = Activation(UNARY["tanh"].code), Activation(UNARY["relu"].code)


def _case(
    kernel: str,
    steps: int,
    batch: int,
    inputs: int,
    hidden: int,
    label: str = "",
    directions: int = 1,
    options: Any = None,
    peephole: bool = False,
    lengths: bool = False,
    flags: str = "",
    projections: int = 0,
    holes: bool = False,
) -> Case:
    """`flags` name the arguments that are true."""
    g, d, outs = _GATES[kernel] * hidden, directions, projections or hidden
    batch_first, apart, reverse = (name in flags.split() for name in ("batch_first", "apart", "reverse"))

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        x_shape = (batch, steps) if batch_first else (steps, batch)
        out = (*x_shape, d, outs) if batch_first else (steps, d, batch, outs)
        lens = rng.integers(0, steps + 1, batch).astype(np.int32) if lengths else None
        result: dict[str, Any] = {
            "x": normal(rng, *x_shape, inputs),
            "packed": {
                "w_ih": normal(rng, d, g, inputs, fan_in=inputs),
                "w_hh": normal(rng, d, g, outs, fan_in=outs),
                "b_ih": normal(rng, d, g, fan_in=hidden),
                "b_hh": normal(rng, d, g, fan_in=hidden),
                "options": _OPTIONS[kernel] if options is None else options,
            },
            "h0": np.tanh(normal(rng, d, batch, outs)),
            "lengths": rng.random((batch, steps)) < 0.6 if holes else lens,
            "out": np.empty(out if apart else (*x_shape, d * outs), np.float32),
            "hn": np.empty((d, batch, outs), np.float32),
            "batch_first": batch_first,
            "directions_apart": apart,
            "reverse": reverse,
        }
        if kernel == "lstm":
            result |= {"c0": normal(rng, d, batch, hidden), "cn": np.empty((d, batch, hidden), np.float32)}
            result["packed"]["peephole"] = normal(rng, d, 3 * hidden) if peephole else None
            result["packed"]["w_hr"] = normal(rng, d, outs, hidden, fan_in=hidden) if projections else None
        return result

    name = f"T{steps} B{batch} I{inputs} H{hidden}" + " bidirectional" * (d == 2) + f" {label}" * bool(label)
    weights = d * (g * (inputs + outs + 2) + projections * hidden)
    moved = weights + steps * batch * (inputs + d * outs)
    return Case(kernel, name, arguments, 2.0 * steps * batch * d * (g * (inputs + outs) + projections * hidden), 4.0 * moved)


def _dynamic(steps: int, batch: int, inputs: int, hidden: int, label: str = "", directions: int = 1, signed: bool = True) -> Case:
    """An LSTM of bytes. Few steps: where a state is at the edge of two bytes, its float32 and float64 become different ones, and
    the next step's results differ by a hundredth of what they may.
    """
    g, d = 4 * hidden, directions
    low, high, kind = (-127, 128, np.int8) if signed else (0, 256, np.uint8)

    def arguments(rng: np.random.Generator) -> dict[str, Any]:
        return {
            "x": normal(rng, steps, batch, inputs),
            "packed": {
                "w_ih": rng.integers(low, high, (d, g, inputs)).astype(kind),
                "w_hh": rng.integers(low, high, (d, g, hidden)).astype(kind),
                "ih_zero": None if signed else rng.integers(100, 150, (d, g)).astype(kind),
                "hh_zero": None if signed else rng.integers(100, 150, (d, g)).astype(kind),
                "ih_scale": rng.uniform(0.5, 1, (d, g)).astype(np.float32) / np.float32(74 * np.sqrt(inputs)),
                "hh_scale": rng.uniform(0.5, 1, (d, g)).astype(np.float32) / np.float32(74 * np.sqrt(hidden)),
                "b": normal(rng, d, g, fan_in=hidden),
                "peephole": None if signed else normal(rng, d, 3 * hidden),
                "options": LstmOptions(),
            },
            "h0": np.tanh(normal(rng, d, batch, hidden)),
            "c0": normal(rng, d, batch, hidden),
            "lengths": None if batch == 1 else rng.integers(0, steps + 1, batch).astype(np.int32),
            "out": np.empty((steps, d, batch, hidden), np.float32),
            "hn": np.empty((d, batch, hidden), np.float32),
            "cn": np.empty((d, batch, hidden), np.float32),
            "reverse": not signed,
        }

    name = f"T{steps} B{batch} I{inputs} H{hidden}" + " bidirectional" * (d == 2) + f" {label}" * bool(label)
    weights, moved = d * g * (inputs + hidden), 4 * steps * batch * (inputs + d * hidden)
    return Case("dynamic_lstm", name, arguments, 2.0 * steps * batch * weights, 1.0 * weights + moved)


_SIZES = (
    (1, 1, 128, 128),
    (100, 1, 64, 64),
    (100, 1, 128, 128),
    (100, 1, 256, 256),
    (100, 1, 512, 512),
    (100, 16, 256, 256),
    (50, 32, 512, 512),
)

CASES: tuple[Case, ...] = (
    *(_case(kernel, *size) for kernel in ("lstm", "gru") for size in _SIZES),
    *(_case(kernel, 100, 8, 128, 128, directions=2) for kernel in ("lstm", "gru")),
    _dynamic(1, 1, 512, 512),
    _dynamic(2, 8, 96, 256, directions=2),
    _dynamic(3, 3, 5, 33, "uint8, peephole, reverse", signed=False),
    _case("rnn", 100, 1, 128, 128),
    _case("rnn", 100, 16, 128, 128),
    _case("lstm", 30, 4, 40, 100, "reverse batch first", flags="batch_first reverse"),
    _case("lstm", 30, 7, 40, 100, "lengths, apart", directions=2, lengths=True, flags="apart"),
    _case("lstm", 30, 4, 40, 100, "peephole", peephole=True),
    _case("lstm", 30, 4, 40, 100, "clip, coupled", options=LstmOptions(clip=1.0, couple_input_forget=True)),
    _case("lstm", 30, 4, 40, 100, "hard", options=LstmOptions(((_HARD, _TANH, _RELU),))),
    _case("lstm", 30, 1, 40, 100, "projections", directions=2, projections=30),
    _case("lstm", 30, 7, 40, 100, "projections, peephole, lengths", peephole=True, lengths=True, projections=33),
    _case("lstm", 30, 7, 40, 100, "mask", directions=2, holes=True),
    _case("rnn", 30, 7, 40, 100, "mask, reverse, apart", holes=True, flags="reverse apart"),
    _case("gru", 30, 7, 40, 100, "lengths, apart, batch first", directions=2, lengths=True, flags="batch_first apart"),
    _case("gru", 30, 4, 40, 100, "reset before", options=GruOptions(reset_after=False)),
    _case("gru", 30, 4, 40, 100, "hard", options=GruOptions(((_HARD, _TANH),), 2.0)),
    _case("rnn", 30, 7, 40, 100, "relu, lengths", directions=2, options=RnnOptions((_RELU, _TANH), 3.0), lengths=True),
)
