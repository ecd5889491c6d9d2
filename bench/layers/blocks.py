"""Blocks of ResNet, GoogLeNet and of networks in networks, beside torch; normalizations are folded on both sides, as is usual."""

from __future__ import annotations

from functools import partial
from typing import Any

import fastlayers as fl

from . import Pair, Row, load, normal, np

CHAINS = {"ResidualBlock": (3, 3), "BottleneckBlock": (1, 3, 1)}  # sizes of the kernels
# name, arguments, channels of x, size of x, stride
SHAPES: list[tuple[str, tuple[int, ...], int, int, int]] = [
    ("ResidualBlock", (64, 64), 64, 56, 1),
    ("ResidualBlock", (128, 256), 128, 28, 2),
    ("BottleneckBlock", (256, 64), 256, 56, 1),
    ("BottleneckBlock", (512, 256, 1024), 512, 28, 2),
]


def residual(name: str, arguments: tuple[int, ...], c: int, size: int, stride: int) -> Pair:
    layer: Any = getattr(fl, name)(*arguments, stride=stride, batch_norm=False)
    state = load(layer, 9 * c)
    x = normal(np.random.default_rng(1), 1, c, size, size)

    def theirs(torch: Any) -> Any:
        run = torch.nn.functional.conv2d
        t = {key: torch.tensor(value) for key, value in state.items()}
        tx, kernels = torch.tensor(x), CHAINS[name]
        strided = kernels.index(3)

        def call() -> Any:
            y = tx
            for i, k in enumerate(kernels):
                y = run(y, t[f"conv{i + 1}.weight"], t[f"conv{i + 1}.bias"], stride if i == strided else 1, k // 2)
                y = torch.relu_(y) if i + 1 < len(kernels) else y
            kept = run(tx, t["downsample.0.weight"], t["downsample.0.bias"], stride) if "downsample.0.weight" in t else tx
            return torch.relu_(y.add_(kept))

        return call

    out = (size // stride) ** 2
    flops = sum(2.0 * out * np.prod(shape) for key, shape in layer.tensor_shapes().items() if key.endswith("weight"))
    return Pair(lambda: layer(x), theirs, float(flops))


def inception(arguments: tuple[int, ...], size: int) -> Pair:
    layer: Any = fl.InceptionBlock(*arguments, batch_norm=False)
    state = load(layer, 9 * arguments[0])
    x = normal(np.random.default_rng(1), 1, arguments[0], size, size)

    def theirs(torch: Any) -> Any:
        run = torch.nn.functional.conv2d
        t = {key: torch.tensor(value) for key, value in state.items()}
        tx = torch.tensor(x)

        def unit(x: Any, name: str, k: int = 1) -> Any:
            return torch.relu_(run(x, t[f"{name}.conv.weight"], t[f"{name}.conv.bias"], 1, k // 2))

        def call() -> Any:
            pooled = torch.nn.functional.max_pool2d(tx, 3, 1, 1)
            three, five = (unit(unit(tx, f"branch{i}.0"), f"branch{i}.1", k) for i, k in ((2, 3), (3, 5)))
            return torch.cat([unit(tx, "branch1"), three, five, unit(pooled, "branch4.1")], 1)

        return call

    flops = sum(2.0 * size * size * np.prod(shape) for key, shape in layer.tensor_shapes().items() if key.endswith("weight"))
    return Pair(lambda: layer(x), theirs, float(flops))


def nin(c: int, channels: tuple[int, ...], size: int, k: int, stride: int, padding: int, head: bool = False) -> Pair:
    layer: Any = fl.NiNBlock(c, channels, k, stride, padding, head=head)
    state = load(layer, k * k * c)
    x = normal(np.random.default_rng(1), 1, c, size, size)

    def theirs(torch: Any) -> Any:
        t = {key: torch.tensor(value) for key, value in state.items()}
        tx = torch.tensor(x)

        def call() -> Any:
            y = tx
            for i in range(len(channels)):
                place = (1, 0) if i else (stride, padding)
                y = torch.relu_(torch.nn.functional.conv2d(y, t[f"{2 * i}.weight"], t[f"{2 * i}.bias"], *place))
            return y.mean((2, 3)) if head else y

        return call

    out = ((size + 2 * padding - k) // stride + 1) ** 2
    flops = sum(2.0 * out * np.prod(shape) for key, shape in layer.tensor_shapes().items() if key.endswith("weight"))
    return Pair(lambda: layer(x), theirs, float(flops))


ROWS = [
    Row(("InceptionBlock",), "3a @28", partial(inception, (192, 64, 96, 128, 16, 32, 32), 28)),
    Row(("InceptionBlock",), "4e @14", partial(inception, (528, 256, 160, 320, 32, 128, 128), 14)),
    Row(("NiNBlock",), "11x11 3->96 @224 stride 4", partial(nin, 3, (96, 96, 96), 224, 11, 4, 0)),
    Row(("NiNBlock",), "3x3 384->10 @5, head", partial(nin, 384, (10, 10, 10), 5, 3, 1, 1, True)),
    *(
        Row(
            (name,),
            f"{c}->{arguments[-1] if stride > 1 else c} @{size} stride {stride}",
            partial(residual, name, arguments, c, size, stride),
        )
        for name, arguments, c, size, stride in SHAPES
    ),
]
