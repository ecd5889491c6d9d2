"""Convolutions."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, load, normal, np

# channels, size, kernel, outputs, and what differs from the defaults; padded so that stride 1 keeps the size
CONV2D: list[tuple[int, int, int, int, dict[str, int]]] = [
    (64, 56, 3, 64, {}),
    (128, 28, 3, 128, {}),
    (256, 14, 3, 256, {}),
    (512, 7, 3, 512, {}),
    (64, 56, 3, 64, {"relu": 1}),
    (64, 56, 3, 128, {"stride": 2}),
    (64, 56, 3, 64, {"batch": 8}),
    (64, 56, 1, 256, {}),
    (256, 14, 1, 1024, {}),
    (3, 224, 7, 64, {"stride": 2}),
    (3, 224, 3, 32, {"stride": 2}),
    (32, 56, 5, 64, {}),
    (32, 112, 3, 32, {"groups": 32}),
    (576, 14, 3, 576, {"groups": 576}),
    (144, 56, 3, 144, {"stride": 2, "groups": 144}),
    (120, 28, 5, 120, {"groups": 120}),
]
CONV1D: list[tuple[int, int, int, int, dict[str, int]]] = [(64, 4000, 3, 64, {}), (32, 10000, 11, 32, {"dilation": 4})]


def convolution(axes: int, c: int, size: int, k: int, o: int, options: dict[str, int], stateless: bool = False) -> Pair:
    stride, groups, dilation = (options.get(name, 1) for name in ("stride", "groups", "dilation"))
    padding, batch, relu = dilation * (k - 1) // 2, options.get("batch", 1), "relu" in options
    x = normal(np.random.default_rng(1), batch, c, *[size] * axes)
    act = "relu" if relu else None  # one layer does both here; torch's eager mode has two calls, the second in place
    place: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "activation": act}
    layer = getattr(fl, f"Conv{axes}d")(c, o, k, **place)
    state = load(layer, c // groups * k**axes)
    w, b = state["weight"], state["bias"]

    def theirs(torch: Any) -> Any:
        run = getattr(torch.nn.functional, f"conv{axes}d")
        tx, tw, tb = (torch.tensor(a) for a in (x, w, b))
        if relu:
            return lambda: torch.relu_(run(tx, tw, tb, stride, padding, dilation, groups))
        return lambda: run(tx, tw, tb, stride, padding, dilation, groups)

    out = (size + 2 * padding - dilation * (k - 1) - 1) // stride + 1
    function = getattr(fl.functional, f"conv{axes}d")
    ours = (lambda: function(x, w, b, **place)) if stateless else (lambda: layer(x))
    return Pair(ours, None if stateless else theirs, 2.0 * batch * o * out**axes * (c // groups) * k**axes)


def row(axes: int, c: int, size: int, k: int, o: int, options: dict[str, int]) -> Row:
    label = f"{'x'.join([str(k)] * axes)} {c}->{o} @{size} " + " ".join(f"{n} {v}" for n, v in options.items())
    return Row((f"Conv{axes}d",), label.strip(), partial(convolution, axes, c, size, k, o, options))


ROWS = [
    *(row(2, *shape) for shape in CONV2D),
    *(row(1, *shape) for shape in CONV1D),
    row(3, 16, 16, 3, 32, {}),
    *(
        Row(
            (f"conv{axes}d",),
            f"stateless 3 16->16 @{size}, packs at each call",
            partial(convolution, axes, 16, size, 3, 16, {}, True),
        )
        for axes, size in ((1, 1000), (2, 32), (3, 12))
    ),
]
