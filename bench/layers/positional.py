"""Positions."""

from __future__ import annotations

from typing import Any

import fastlayers as fl

from . import Pair, Row, load, normal, np


def rotary(layer: bool) -> Pair:
    x = normal(np.random.default_rng(1), 1, 12, 128, 64)
    cos, sin = fl.functional.rotary_tables(128, 64)
    turn = fl.RotaryEmbedding(64)

    def theirs(torch: Any) -> Any:
        tx, tc, ts = torch.tensor(x), torch.tensor(np.tile(cos, 2)), torch.tensor(np.tile(sin, 2))

        def run() -> Any:
            a, b = tx.chunk(2, -1)
            return tx * tc + torch.cat([-b, a], -1) * ts

        return run

    return Pair((lambda: turn(x)) if layer else (lambda: fl.functional.rotary_embedding(x, cos, sin)), theirs)


def added(layer: Any) -> Pair:
    x, table = normal(np.random.default_rng(1), 1, 128, 768), fl.functional.sinusoidal_encoding(128, 768)
    if layer.tensor_shapes():
        table = load(layer)["weight"][:128]

    def theirs(torch: Any) -> Any:
        class Encoding(torch.nn.Module):  # type: ignore[misc, name-defined]
            """As programs with torch have it: the table is cut to the length of x."""

            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("table", torch.tensor(table))

            def forward(self, x: Any) -> Any:
                return x + self.table[: x.size(1)]

        net, tx = Encoding().eval(), torch.tensor(x)
        return lambda: net(tx)

    return Pair(lambda: layer(x), theirs)


ROWS = [
    Row(("rotary_embedding",), "B1 H12 S128 D64", lambda: rotary(False)),
    Row(("RotaryEmbedding",), "B1 H12 S128 D64", lambda: rotary(True)),
    Row(("PositionalEncoding",), "S128 D768", lambda: added(fl.PositionalEncoding(768, batch_first=True))),
    Row(("LearnedPositionalEncoding",), "S128 D768", lambda: added(fl.LearnedPositionalEncoding(512, 768, True))),
    Row(("rotary_tables",), "512 positions of 64", lambda: Pair(lambda: fl.functional.rotary_tables(512, 64)[0])),
    Row(("sinusoidal_encoding",), "512 positions of 512", lambda: Pair(lambda: fl.functional.sinusoidal_encoding(512, 512))),
]
