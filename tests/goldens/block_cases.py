"""Blocks and small networks of blocks: make_blocks.py runs them in torch, the tests in fastlayers, on the same drawn numbers."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class BlockCase(NamedTuple):
    """A kind of module with its arguments, on an input of `shape`."""

    kind: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shape: tuple[int, ...]

    @property
    def label(self) -> str:
        return f"{self.kind} {self.args} {self.kwargs} {self.shape}"


def inputs(case: BlockCase) -> np.ndarray:
    """Normal numbers; the label is the seed."""
    return np.random.default_rng(zlib.crc32(case.label.encode())).standard_normal(case.shape).astype(np.float32)


def weights(case: BlockCase, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The tensors by name, each from a seed of its own, so that their order does not matter; scaled to keep values near 1."""
    found = {}
    for name, shape in shapes.items():
        rng = np.random.default_rng([zlib.crc32(case.label.encode()), zlib.crc32(name.encode())])
        values = rng.standard_normal(shape)
        if name.endswith("running_var"):
            values = 0.5 + np.abs(values)
        elif len(shape) == 1:
            values = (1 if name.endswith("weight") else 0) + 0.2 * values
        else:
            values *= np.sqrt(2 / np.prod(shape[1:]))
        found[name] = values.astype(np.float32)
    return found


def B(kind: str, *args: Any, shape: tuple[int, ...], **kwargs: Any) -> BlockCase:  # noqa: N802
    return BlockCase(kind, args, kwargs, shape)


# GoogLeNet's blocks with their channels, and the sizes of the pools of stride 2 after some of them.
GOOGLENET = {
    "inception3a": (192, 64, 96, 128, 16, 32, 32),
    "inception3b": (256, 128, 128, 192, 32, 96, 64),
    "inception4a": (480, 192, 96, 208, 16, 48, 64),
    "inception4b": (512, 160, 112, 224, 24, 64, 64),
    "inception4c": (512, 128, 128, 256, 24, 64, 64),
    "inception4d": (512, 112, 144, 288, 32, 64, 64),
    "inception4e": (528, 256, 160, 320, 32, 128, 128),
    "inception5a": (832, 256, 160, 320, 32, 128, 128),
    "inception5b": (832, 384, 192, 384, 48, 128, 128),
}
GOOGLENET_POOLS = {"inception3b": 3, "inception4e": 2}

CASES = (
    B("basic", 4, 4, shape=(2, 4, 5, 7)),
    B("basic", 4, 6, stride=2, shape=(1, 4, 9, 6)),
    B("basic", 3, 5, shape=(1, 3, 1, 1)),
    B("bottleneck", 12, 3, shape=(2, 12, 5, 4)),
    B("bottleneck", 6, 4, stride=2, groups=2, shape=(1, 6, 7, 5)),
    B("bottleneck", 6, 4, stride=2, first=True, shape=(1, 6, 6, 9)),
    B("inception", 5, 3, 2, 4, 3, 2, 1, shape=(2, 5, 6, 9)),
    B("inception", 4, 1, 2, 3, 2, 17, 2, large=3, shape=(1, 4, 7, 1)),
    B("nin", 3, [6, 5, 4], 5, 2, 2, shape=(2, 3, 9, 8)),
    B("nin", 3, [6, 10], 3, head=True, shape=(2, 3, 5, 6)),
    B("resnet50", shape=(1, 3, 64, 64)),
    B("googlenet", shape=(1, 3, 64, 64)),
)
