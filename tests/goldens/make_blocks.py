"""Writes blocks.npz: blocks and small networks in torch, in float64, on the values of block_cases.py.

Run from the root of the repository: ``python -m tests.goldens.make_blocks``; made with torch 2.13.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from .block_cases import CASES, GOOGLENET, GOOGLENET_POOLS, inputs, weights


def conv(i: int, o: int, k: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False)


class Residual(nn.Module):
    """Basic block and bottleneck as torchvision has them."""

    def __init__(self, i: int, o: int, convs: list[nn.Conv2d], stride: int) -> None:
        super().__init__()
        self.count = len(convs)
        for at, layer in enumerate(convs, 1):
            setattr(self, f"conv{at}", layer)
            setattr(self, f"bn{at}", nn.BatchNorm2d(layer.out_channels))
        self.downsample = nn.Sequential(conv(i, o, 1, stride), nn.BatchNorm2d(o)) if stride != 1 or i != o else None

    def forward(self, x: Any) -> Any:
        y = x
        for at in range(1, self.count + 1):
            y = getattr(self, f"bn{at}")(getattr(self, f"conv{at}")(y))
            y = y if at == self.count else y.relu()
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


def basic(i: int, o: int, stride: int = 1) -> Residual:
    return Residual(i, o, [conv(i, o, 3, stride), conv(o, o, 3)], stride)


def bottleneck(i: int, c: int, stride: int = 1, groups: int = 1, first: bool = False) -> Residual:
    steps = (stride, 1) if first else (1, stride)
    return Residual(i, 4 * c, [conv(i, c, 1, steps[0]), conv(c, c, 3, steps[1], groups), conv(c, 4 * c, 1)], stride)


class Resnet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1, self.pool = conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.MaxPool2d(3, 2, 1)
        i = 64
        for at, (blocks, c) in enumerate(zip((3, 4, 6, 3), (64, 128, 256, 512), strict=True), 1):
            made = []
            for b in range(blocks):
                made.append(bottleneck(i, c, 2 if at > 1 and b == 0 else 1))
                i = 4 * c
            setattr(self, f"layer{at}", nn.Sequential(*made))
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x: Any) -> Any:
        x = self.pool(self.bn1(self.conv1(x)).relu())
        for at in range(1, 5):
            x = getattr(self, f"layer{at}")(x)
        return self.fc(x.mean((2, 3)))


class Basic(nn.Module):
    """torchvision's BasicConv2d."""

    def __init__(self, i: int, o: int, k: int, stride: int = 1) -> None:
        super().__init__()
        self.conv, self.bn = conv(i, o, k, stride), nn.BatchNorm2d(o, eps=1e-3)

    def forward(self, x: Any) -> Any:
        return self.bn(self.conv(x)).relu()


class Inception(nn.Module):
    def __init__(self, i: int, one: int, red3: int, three: int, red5: int, five: int, pooled: int, large: int = 5) -> None:
        super().__init__()
        self.branch1 = Basic(i, one, 1)
        self.branch2 = nn.Sequential(Basic(i, red3, 1), Basic(red3, three, 3))
        self.branch3 = nn.Sequential(Basic(i, red5, 1), Basic(red5, five, large))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), Basic(i, pooled, 1))

    def forward(self, x: Any) -> Any:
        return torch.cat([branch(x) for branch in (self.branch1, self.branch2, self.branch3, self.branch4)], 1)


class Googlenet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2, self.conv3 = Basic(3, 64, 7, 2), Basic(64, 64, 1), Basic(64, 192, 3)
        for name, widths in GOOGLENET.items():
            setattr(self, name, Inception(*widths))
        self.fc = nn.Linear(1024, 1000)

    def forward(self, x: Any) -> Any:
        pool = torch.nn.functional.max_pool2d
        x = pool(self.conv1(x), 3, 2, ceil_mode=True)
        x = pool(self.conv3(self.conv2(x)), 3, 2, ceil_mode=True)
        for name in GOOGLENET:
            x = getattr(self, name)(x)
            if name in GOOGLENET_POOLS:
                x = pool(x, GOOGLENET_POOLS[name], 2, ceil_mode=True)
        return self.fc(x.mean((2, 3)))


def nin(i: int, channels: list[int], k: int, stride: int = 1, padding: int = 0, head: bool = False) -> nn.Module:
    layers: list[nn.Module] = []
    for at, o in enumerate(channels):
        layers += [nn.Conv2d(i, o, *((1,) if at else (k, stride, padding))), nn.ReLU()]
        i = o
    return nn.Sequential(*layers, *([nn.AdaptiveAvgPool2d(1), nn.Flatten()] if head else []))


MODULES: dict[str, Any] = {
    "inception": Inception, "googlenet": Googlenet, "nin": nin,
    "basic": basic, "bottleneck": bottleneck, "resnet50": Resnet50,
}  # fmt: skip


def main() -> None:
    results = {}
    for case in CASES:
        module = MODULES[case.kind](*case.args, **case.kwargs).eval()
        shapes = {name: tuple(t.shape) for name, t in module.state_dict().items() if t.dtype.is_floating_point}
        state = {name: torch.from_numpy(array) for name, array in weights(case, shapes).items()}
        module.load_state_dict(state, strict=False)
        with torch.no_grad():
            results[case.label] = module.double()(torch.from_numpy(inputs(case)).double()).numpy().astype(np.float32)
    np.savez_compressed(Path(__file__).with_name("blocks.npz"), **results)


if __name__ == "__main__":
    main()
