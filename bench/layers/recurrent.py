"""Recurrent layers."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, load, normal, np

# steps, batch, inputs, hidden units, directions
LSTM = [
    (1, 1, 128, 128, 1),
    (100, 1, 64, 64, 1),
    (100, 1, 128, 128, 1),
    (100, 1, 256, 256, 1),
    (100, 1, 512, 512, 1),
    (100, 16, 256, 256, 1),
    (50, 32, 512, 512, 1),
    (100, 8, 128, 128, 2),
]


def lstm(steps: int, batch: int, inputs: int, hidden: int, directions: int) -> Pair:
    x = normal(np.random.default_rng(1), steps, batch, inputs)
    layer = fl.LSTM(inputs, hidden, bidirectional=directions == 2)
    state = load(layer, hidden)

    def theirs(torch: Any) -> Any:
        net = torch.nn.LSTM(inputs, hidden, bidirectional=directions == 2).eval()
        net.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
        tx = torch.tensor(x)
        return lambda: net(tx)[0]

    return Pair(lambda: layer(x)[0], theirs, 2.0 * steps * batch * directions * 4 * hidden * (inputs + hidden))


def lstm_cell(batch: int, hidden: int) -> Pair:
    x = normal(np.random.default_rng(1), batch, hidden)
    layer = fl.LSTMCell(hidden, hidden)
    state = load(layer, hidden)
    before = tuple(normal(np.random.default_rng(i), batch, hidden) for i in (2, 3))

    def theirs(torch: Any) -> Any:
        net = torch.nn.LSTMCell(hidden, hidden).eval()
        net.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
        tx, tb = torch.tensor(x), tuple(torch.tensor(b) for b in before)
        return lambda: net(tx, tb)[0]

    return Pair(lambda: layer(x, before)[0], theirs, 2.0 * batch * 8 * hidden * hidden)


def stateless() -> Pair:
    rng = np.random.default_rng(1)
    x, w, r = normal(rng, 20, 4, 64), normal(rng, 256, 64, fan_in=64), normal(rng, 256, 64, fan_in=64)
    return Pair(lambda: fl.functional.lstm(x, None, w, r)[0])


def stateless_cell() -> Pair:
    rng = np.random.default_rng(1)
    x, w, r = normal(rng, 4, 64), normal(rng, 256, 64, fan_in=64), normal(rng, 256, 64, fan_in=64)
    return Pair(lambda: fl.functional.lstm_cell(x, None, w, r)[0])


ROWS = [
    *(
        Row(("LSTM",), f"T{t} B{b} I{i} H{h}" + (" bidirectional" if d == 2 else ""), partial(lstm, t, b, i, h, d))
        for t, b, i, h, d in LSTM
    ),
    Row(("LSTMCell",), "B1 H128", partial(lstm_cell, 1, 128)),
    Row(("LSTMCell",), "B16 H256", partial(lstm_cell, 16, 256)),
    Row(("lstm",), "stateless T20 B4 H64, packs at each call", stateless),
    Row(("lstm_cell",), "stateless B4 H64, packs at each call", stateless_cell),
]
