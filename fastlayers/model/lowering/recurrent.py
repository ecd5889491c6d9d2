"""Recurrent layers: the three kinds of cell, over a sequence and one step."""

from __future__ import annotations

from collections.abc import Sequence

from ...functional._recurrent import GRU, LSTM, RNN, Kind
from ...graph.ir import Node
from ._base import LOWER, Lowering

_INT32 = 6  # ONNX's number


def _sequence(kind: Kind, s: Lowering, node: Node, *inputs: str | None) -> None:
    x: str | None
    x, weights, states, lengths, mask = _split(kind, inputs)
    single = s.rank(node) == 2
    attributes = node.attributes
    if lengths is not None:
        lengths = s.add("Cast", (lengths,), s.name("lengths"), to=_INT32)
    lengths = mask if lengths is None else lengths  # a mask is one of booleans: see functional._recurrent.check_mask
    outputs: Sequence[str] = node.outputs
    if single:
        outputs = tuple(s.name("batch") for _ in outputs)
        x = _led(s, x, 0 if attributes["batch_first"] else 1)
        states = [_led(s, v, 1) for v in states]
        lengths = _led(s, lengths, 0)
    direction, layout = attributes["direction"], int(attributes["batch_first"])
    _add(kind, s, node, x, weights, lengths, states, outputs, direction=direction, layout=layout)
    if single:
        for i, name in enumerate(node.outputs):
            at = 1 if i or not attributes["batch_first"] else 0
            s.add("Squeeze", (outputs[i], s.ints(at)), name)


def _cell(kind: Kind, s: Lowering, node: Node, *inputs: str | None) -> None:
    x, weights, states, _, _ = _split(kind, inputs)
    axes = (0,) if s.rank(node) == 2 else (0, 1)
    after = [s.name("state") for _ in kind.states]
    _add(kind, s, node, _led(s, x, *axes), weights, None, [_led(s, v, *axes) for v in states], ("", *after))
    for name, state in zip(node.outputs, after, strict=True):
        s.add("Squeeze", (state, s.ints(*axes)), name)


def _split(
    kind: Kind, inputs: Sequence[str | None]
) -> tuple[str, dict[str, str | None], list[str | None], str | None, str | None]:
    """An operation's tensors: x, weights by name, states, lengths, mask."""
    count = len(kind.states)
    x, w_ih, w_hh, b_ih, b_hh, *rest = inputs
    states, rest = rest[:count], rest[count:]
    weights = dict(zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), (w_ih, w_hh, b_ih, b_hh), strict=True))
    if kind.extra:
        weights |= {"weight_hr": rest[0], "weight_peephole": rest[1]}
        rest = rest[2:]
    lengths, mask = (*rest, None, None)[:2]
    return x, weights, states, lengths, mask  # type: ignore[return-value]


def _led(s: Lowering, name: str | None, *axes: int) -> str | None:
    """A value with axes of size 1 put in."""
    return None if name is None else s.add("Unsqueeze", (name, s.ints(*axes)), s.name("led"))


def _add(
    kind: Kind,
    s: Lowering,
    node: Node,
    x: str | None,
    weights: dict[str, str | None],
    lengths: str | None,
    states: Sequence[str | None],
    outputs: Sequence[str],
    **attributes: object,
) -> None:
    """The operator: W, R, B and the rest with an axis of directions in front."""

    def directed(name: str, rank: int) -> str | None:
        value = weights.get(name)
        return value if value is None or s.ranks[value] > rank else _led(s, value, 0)

    bias, b_ih, b_hh = None, directed("bias_ih", 1), directed("bias_hh", 1)
    if b_ih is not None or b_hh is not None:
        none = s.add("Mul", (b_ih or b_hh, s.scalar(0.0)), s.name("no bias")) if b_ih is None or b_hh is None else ""
        bias = s.add("Concat", (b_ih or none, b_hh or none), s.name("biases"), axis=1)
    inputs = [x, directed("weight_ih", 2), directed("weight_hh", 2), bias, lengths, *states]
    if kind.extra:
        inputs += [directed("weight_peephole", 1), directed("weight_hr", 2)]
    while inputs[-1] is None:
        inputs.pop()
    options = kind.options(node.op, dict(node.attributes))
    s.add(kind.name.upper(), inputs, outputs, joined=True, options=options, **attributes)


def _register(kind: Kind) -> None:
    LOWER[kind.name] = lambda *given: _sequence(kind, *given)
    LOWER[f"{kind.name}_cell"] = lambda *given: _cell(kind, *given)


for _kind in (LSTM, GRU, RNN):
    _register(_kind)
