"""Transposed convolutions of decoders: images, masks, sequences."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, load, normal, np

# axes, channels, size, kernel, outputs, stride, padding, and what differs from the defaults
SHAPES: list[tuple[int, int, int, int, int, int, int, dict[str, int]]] = [
    (2, 512, 4, 4, 256, 2, 1, {}),
    (2, 32, 32, 4, 64, 2, 1, {}),
    (2, 64, 32, 4, 3, 2, 1, {}),
    (2, 64, 28, 2, 64, 2, 0, {}),
    (2, 128, 16, 3, 64, 2, 1, {"output_padding": 1}),
    (2, 64, 28, 4, 64, 2, 1, {"groups": 64}),
    (2, 21, 16, 16, 21, 8, 4, {}),
    (2, 64, 28, 3, 64, 1, 1, {}),
    (1, 256, 100, 16, 128, 8, 4, {}),
    (3, 32, 8, 2, 16, 2, 0, {}),
]


def transposed(
    axes: int, c: int, size: int, k: int, o: int, stride: int, padding: int, options: dict[str, int], stateless: bool = False
) -> Pair:
    groups, extra = options.get("groups", 1), options.get("output_padding", 0)
    x = normal(np.random.default_rng(1), 1, c, *[size] * axes)
    place: dict[str, Any] = {"stride": stride, "padding": padding, "output_padding": extra, "groups": groups}
    layer = getattr(fl, f"ConvTranspose{axes}d")(c, o, k, **place)
    state = load(layer, c // groups * k**axes)
    w, b = state["weight"], state["bias"]

    def theirs(torch: Any) -> Any:
        run = getattr(torch.nn.functional, f"conv_transpose{axes}d")
        tx, tw, tb = (torch.tensor(a) for a in (x, w, b))
        return lambda: run(tx, tw, tb, **place)

    function = getattr(fl.functional, f"conv_transpose{axes}d")
    ours = (lambda: function(x, w, b, **place)) if stateless else (lambda: layer(x))
    return Pair(ours, None if stateless else theirs, 2.0 * o // groups * c * (size * k) ** axes)


def row(axes: int, c: int, size: int, k: int, o: int, stride: int, padding: int, options: dict[str, int]) -> Row:
    words = [f"{n} {v}" for n, v in options.items()]
    label = " ".join([f"{'x'.join([str(k)] * axes)} {c}->{o} @{size} stride {stride}", *words])
    return Row((f"ConvTranspose{axes}d",), label, partial(transposed, axes, c, size, k, o, stride, padding, options))


ROWS = [
    *(row(*shape) for shape in SHAPES),
    *(
        Row(
            (f"conv_transpose{axes}d",),
            f"stateless 4 16->16 @{size} stride 2, packs at each call",
            partial(transposed, axes, 16, size, 4, 16, 2, 1, {}, True),
        )
        for axes, size in ((1, 500), (2, 16), (3, 6))
    ),
]
