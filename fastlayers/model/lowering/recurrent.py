"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.ir import Node
from ._base import Lowering, rule


@rule
def _lstm(
    s: Lowering, node: Node, x: str, w_ih: str, w_hh: str, b_ih: str | None, b_hh: str | None, h0: str | None, c0: str | None
) -> None:
    single = s.rank(node) == 2
    direction = node.attributes["direction"]
    weights = _weights(s, node, 2 if direction == "bidirectional" else 1, w_ih, w_hh, b_ih, b_hh)
    outputs: Sequence[str] = node.outputs
    if single:
        outputs = tuple(s.name("batch") for _ in outputs)
        axis = s.ints(0 if node.attributes["batch_first"] else 1)
        x = s.add("Unsqueeze", (x, axis), s.name("batch"))
        h0, c0 = (None if v is None else s.add("Unsqueeze", (v, s.ints(1)), s.name("batch")) for v in (h0, c0))
    s.add(
        "LSTM", (x, *weights, None, h0, c0), outputs, direction=direction, layout=int(node.attributes["batch_first"]), joined=True
    )
    if single:
        for i, name in enumerate(node.outputs):
            at = 1 if i or not node.attributes["batch_first"] else 0
            s.add("Squeeze", (outputs[i], s.ints(at)), name)


@rule
def _lstm_cell(
    s: Lowering, node: Node, x: str, w_ih: str, w_hh: str, b_ih: str | None, b_hh: str | None, h0: str | None, c0: str | None
) -> None:
    axes = s.ints(0) if s.rank(node) == 2 else s.ints(0, 1)
    weights = _weights(s, node, 1, w_ih, w_hh, b_ih, b_hh)
    x, h0, c0 = (None if v is None else s.add("Unsqueeze", (v, axes), s.name("step")) for v in (x, h0, c0))  # type: ignore[assignment]
    states = (s.name("state"), s.name("state"))
    s.add("LSTM", (x, *weights, None, h0, c0), ("", *states), joined=True)
    for name, state in zip(node.outputs, states, strict=True):
        s.add("Squeeze", (state, axes), name)


def _weights(s: Lowering, node: Node, d: int, w_ih: str, w_hh: str, b_ih: str | None, b_hh: str | None) -> tuple[str | None, ...]:
    """W, R and B with an axis of directions in front."""

    def led(name: str, rank: int) -> str:
        return name if s.ranks[name] == rank else s.add("Unsqueeze", (name, s.ints(0)), s.name("directions"))

    bias = None
    if b_ih is not None or b_hh is not None:
        given = led(b_ih or b_hh, 2)  # type: ignore[arg-type]
        none = s.add("Mul", (given, s.scalar(0.0)), s.name("no bias")) if b_ih is None or b_hh is None else ""
        halves = (none if b_ih is None else led(b_ih, 2), none if b_hh is None else led(b_hh, 2))
        bias = s.add("Concat", halves, s.name("biases"), axis=1)
    return led(w_ih, 3), led(w_hh, 3), bias
