"""Rows of a table by number."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, normal, np

# rows, size of a row, ids
TABLES = [(30522, 384, (1, 128)), (50257, 768, (8, 64)), (10000, 64, (32, 20))]


def embedding(rows: int, width: int, shape: tuple[int, ...], stateless: bool = False) -> Pair:
    rng = np.random.default_rng(1)
    ids, table = rng.integers(0, rows, shape), normal(rng, rows, width)
    layer = fl.Embedding(rows, width)
    layer.load_state_dict({"weight": table})

    def theirs(torch: Any) -> Any:
        ti, tt = torch.tensor(ids), torch.tensor(table)
        return lambda: torch.nn.functional.embedding(ti, tt)

    return Pair((lambda: fl.functional.embedding(ids, table)) if stateless else (lambda: layer(ids)), theirs)


ROWS = [
    *(Row(("Embedding",), f"{r}x{w} ids {shape}", partial(embedding, r, w, shape)) for r, w, shape in TABLES),
    Row(("embedding",), "30522x384 ids (1, 128)", partial(embedding, 30522, 384, (1, 128), True)),
]
