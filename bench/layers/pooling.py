"""Pools over windows, bins, whole maps and time, on maps of image networks and on texts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastlayers as fl

from . import Pair, Row
from .layout import both

f = fl.functional
Call = Callable[[Any], Any]


def row(names: str, label: str, shape: tuple[int, ...], ours: Call, theirs: Callable[[Any, Any], Any] | None) -> Row:
    return Row(tuple(names.split()), label, partial(both, shape, ours, theirs))


def layer(name: str, shape: tuple[int, ...], *args: Any) -> Row:
    made = getattr(fl, name)(*args)
    return row(name, f"{args} @{shape}", shape, made, lambda torch, x: getattr(torch.nn, name)(*args)(x))


def function(name: str, shape: tuple[int, ...], *args: Any) -> Row:
    def theirs(torch: Any, x: Any) -> Any:
        return getattr(torch.nn.functional, name)(x, *args)

    return row(name, f"{args} @{shape}", shape, lambda x: getattr(f, name)(x, *args), theirs)


MAPS = {1: (8, 64, 1000), 2: (1, 64, 112, 112), 3: (1, 16, 16, 28, 28)}


def over(n: int) -> list[Row]:
    found = []
    for call, prefix in ((layer, ""), (function, "_")):
        names = ("max_pool", "avg_pool", "lp_pool", "adaptive_avg_pool", "adaptive_max_pool") if prefix else (
            "MaxPool", "AvgPool", "LPPool", "AdaptiveAvgPool", "AdaptiveMaxPool")  # fmt: skip
        arguments: tuple[tuple[Any, ...], ...] = ((3, 2, 1), (2, 2), (2, 2, 2), (7,), (7,))
        found += [call(f"{name}{n}d", MAPS[n], *args) for name, args in zip(names, arguments, strict=True)]
    return found


def over_time(names: str, op: str) -> Row:
    x = np.random.default_rng(0).standard_normal((8, 128, 768)).astype(np.float32)
    lengths = np.linspace(40, 128, 8).astype(np.int64)

    def theirs(torch: Any) -> Callable[[], Any]:
        t, mask = torch.tensor(x), torch.arange(128) < torch.tensor(lengths)[:, None]
        if op == "mean":
            return lambda: (t * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return lambda: t.masked_fill(~mask[..., None], float("-inf")).amax(1)

    return Row(
        tuple(names.split()), "8x128x768, lengths", lambda: Pair(lambda: getattr(f, f"{op}_over_time")(x, lengths), theirs)
    )


ROWS = [
    *(line for n in (1, 2, 3) for line in over(n)),
    function("adaptive_avg_pool2d", (1, 2048, 7, 7), 7),
    function("adaptive_avg_pool2d", (1, 512, 14, 14), 7),
    function("adaptive_avg_pool2d", (1, 512, 10, 10), 7),
    function("max_pool2d", (1, 192, 28, 28), 3, 1, 1),
    function("avg_pool2d", (1, 192, 28, 28), 3, 1, 1),
    row("global_avg_pool GlobalAvgPool", "1x2048x7x7", (1, 2048, 7, 7), fl.GlobalAvgPool(), lambda t, x: x.mean((2, 3))),
    row("global_max_pool GlobalMaxPool", "1x2048x7x7", (1, 2048, 7, 7), fl.GlobalMaxPool(), lambda t, x: x.amax((2, 3))),
    over_time("mean_over_time MeanOverTime", "mean"),
    over_time("max_over_time MaxOverTime", "max"),
]
