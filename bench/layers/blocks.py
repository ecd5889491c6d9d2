"""Blocks of ResNet, beside torch's modules with the normalisations folded into the convolutions, as is usual at inference."""

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


ROWS = [
    Row(
        (name,),
        f"{c}->{arguments[-1] if stride > 1 else c} @{size} stride {stride}",
        partial(residual, name, arguments, c, size, stride),
    )
    for name, arguments, c, size, stride in SHAPES
]
