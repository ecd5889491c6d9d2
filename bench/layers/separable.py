"""Depthwise and separable convolutions of mobile and speech networks."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, load, normal, np

# axes, channels, size, kernel, outputs (0: no pointwise part), stride
SHAPES: list[tuple[int, int, int, int, int, int]] = [
    (2, 32, 112, 3, 0, 1),
    (2, 96, 56, 7, 0, 1),
    (1, 256, 500, 31, 0, 1),
    (2, 32, 112, 3, 64, 1),
    (2, 128, 56, 3, 128, 2),
    (2, 512, 14, 3, 512, 1),
    (1, 256, 500, 33, 256, 1),
]


def separable(axes: int, c: int, size: int, k: int, o: int, stride: int, stateless: bool = False) -> Pair:
    x = normal(np.random.default_rng(1), 1, c, *[size] * axes)
    place: dict[str, Any] = {"stride": stride, "padding": k // 2}
    layer: Any = (
        getattr(fl, f"SeparableConv{axes}d")(c, o, k, **place) if o else getattr(fl, f"DepthwiseConv{axes}d")(c, k, **place)
    )
    weights = list(load(layer, c).values())

    def theirs(torch: Any) -> Any:
        run = getattr(torch.nn.functional, f"conv{axes}d")
        tx, *tensors = (torch.tensor(a) for a in (x, *weights))
        if o:
            return lambda: run(run(tx, tensors[0], None, groups=c, **place), *tensors[1:])
        return lambda: run(tx, *tensors, groups=c, **place)

    out = ((size - 1) // stride + 1) ** axes
    function = getattr(fl.functional, f"separable_conv{axes}d")
    ours = (lambda: function(x, *weights, **place)) if stateless else (lambda: layer(x))
    return Pair(ours, None if stateless else theirs, 2.0 * out * c * (k**axes + o))


def row(axes: int, c: int, size: int, k: int, o: int, stride: int) -> Row:
    label = f"{'x'.join([str(k)] * axes)} {c}{f'->{o}' if o else ''} @{size}" + (f" stride {stride}" if stride > 1 else "")
    name = f"SeparableConv{axes}d" if o else f"DepthwiseConv{axes}d"
    return Row((name,), label, partial(separable, axes, c, size, k, o, stride))


def rank_one(c: int, size: int, k: int) -> Pair:
    """A depthwise convolution whose kernels are products: two passes here, one there."""
    rng = np.random.default_rng(1)
    x, bias = normal(rng, 1, c, size, size), normal(rng, c)
    weight = normal(rng, c, 1, k, 1, fan_in=k) * normal(rng, c, 1, 1, k, fan_in=k)
    layer = fl.DepthwiseConv2d(c, k, padding=k // 2)
    layer.load_state_dict({"weight": weight, "bias": bias})

    def theirs(torch: Any) -> Any:
        tx, tw, tb = (torch.tensor(a) for a in (x, weight, bias))
        return lambda: torch.nn.functional.conv2d(tx, tw, tb, padding=k // 2, groups=c)

    return Pair(lambda: layer(x), theirs, 2.0 * size * size * c * k * k)


ROWS = [
    *(
        Row(("DepthwiseConv2d",), f"{k}x{k} {c} @{size}, kernels of rank 1", partial(rank_one, c, size, k))
        for c, size, k in ((96, 56, 7), (64, 64, 11))
    ),
    *(row(*shape) for shape in SHAPES),
    *(
        Row(
            (f"separable_conv{axes}d",),
            f"stateless 3 32->32 @{size}, packs at each call",
            partial(separable, axes, 32, size, 3, 32, 1, True),
        )
        for axes, size in ((1, 500), (2, 28))
    ),
]
