"""Padding, shapes, orders, and parts of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, normal, np

f = fl.functional
# The sizes of an image that each number of padded axes is timed on.
IMAGES = {1: (8, 64, 1000), 2: (1, 64, 56, 56), 3: (1, 8, 16, 32, 32)}


def both(shape: tuple[int, ...], ours: Callable[[np.ndarray], Any], theirs: Callable[[Any, Any], Any] | None = None) -> Pair:
    x = normal(np.random.default_rng(1), *shape)

    def prepared(torch: Any) -> Any:
        tx = torch.tensor(x)
        return lambda: theirs(torch, tx)  # type: ignore[misc]

    return Pair(lambda: ours(x), None if theirs is None else prepared)


def padding(kind: str, axes: int) -> Row:
    name = f"{kind}Pad{axes}d"
    arguments = (2, 0.5) if kind == "Constant" else (2,)
    layer = getattr(fl, name)(*arguments)
    return Row(
        (name,), f"2 @{IMAGES[axes]}", partial(both, IMAGES[axes], layer, lambda torch, x: getattr(torch.nn, name)(*arguments)(x))
    )


IMAGE = IMAGES[2]
# name, ours, torch's
CALLS: list[tuple[str, Callable[[np.ndarray], Any], Callable[[Any, Any], Any] | None]] = [
    ("pad", lambda x: f.pad(x, (1, 1, 1, 1)), lambda t, x: t.nn.functional.pad(x, (1, 1, 1, 1))),
    ("Flatten", fl.Flatten(), lambda t, x: x.flatten(1).clone()),
    ("flatten", lambda x: f.flatten(x, 1), lambda t, x: x.flatten(1).clone()),
    ("Permute", fl.Permute((0, 2, 3, 1)), lambda t, x: x.permute(0, 2, 3, 1).contiguous()),
    ("permute", lambda x: f.permute(x, (0, 2, 3, 1)), lambda t, x: x.permute(0, 2, 3, 1).contiguous()),
    ("to_channels_last", f.to_channels_last, lambda t, x: x.permute(0, 2, 3, 1).contiguous()),
    ("to_channels_first", f.to_channels_first, lambda t, x: x.permute(0, 3, 1, 2).contiguous()),
    ("Reshape", fl.Reshape((64, -1)), lambda t, x: x.reshape(64, -1).clone()),
    ("reshape", lambda x: f.reshape(x, (64, -1)), lambda t, x: x.reshape(64, -1).clone()),
    ("unsqueeze", lambda x: f.unsqueeze(x, 0), lambda t, x: x[None].clone()),
    ("squeeze", lambda x: f.squeeze(x, 0), lambda t, x: x.squeeze(0).clone()),
    ("slice", lambda x: f.slice(x, 1, 8, 40), lambda t, x: x[:, 8:40].clone()),
    ("select", lambda x: f.select(x, 1, 8), lambda t, x: x[:, 8].clone()),
    ("concat", lambda x: f.concat([x, x], 1), lambda t, x: t.cat([x, x], 1)),
]

ROWS = [
    *(padding(kind, axes) for kind in ("Zero", "Constant", "Reflection", "Replication", "Circular") for axes in (1, 2, 3)),
    *(Row((name,), "1x64x56x56, copies", partial(both, IMAGE, ours, theirs)) for name, ours, theirs in CALLS),
]
