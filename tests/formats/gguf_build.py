"""GGUF files made by hand: well made ones, and any lie about them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Pair = tuple[int, bytes]  # a value's type and its bytes
Tensor = tuple[int, Sequence[int], bytes]  # its type's number, its shape as numpy has it, its bytes


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def pair(value: Any) -> Pair:
    """A value as the format has it: lists of texts or numbers too."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, bool):
        return 7, bytes([value])
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, text(value)
    kind = pair(value[0])[0] if value else 4
    return 9, struct.pack("<IQ", kind, len(value)) + b"".join(pair(item)[1] for item in value)


def gguf(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, Any] | None = None, version: int = 3, alignment: int = 32, **lies: Any
) -> bytes:
    """A file; `lies` are "count" of tensors and of "pairs", "offsets" of the tensors, and what "ends" it."""
    data, infos, offsets = b"", b"", list(lies.get("offsets", ()))
    for name, (kind, shape, raw) in tensors.items():
        offset = offsets.pop(0) if offsets else len(data)
        infos += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        infos += struct.pack("<IQ", kind, offset)
        data += raw + bytes(-len(raw) % alignment)
    held = {**(metadata or {}), **({} if alignment == 32 else {"general.alignment": alignment})}
    head = b"GGUF" + struct.pack("<IQQ", version, lies.get("count", len(tensors)), lies.get("pairs", len(held)))
    for key, value in held.items():
        kind, raw = pair(value)
        head += text(key) + struct.pack("<I", kind) + raw
    head += infos
    return head + bytes(-len(head) % alignment) + data + bytes(lies.get("ends", b""))


BLOCKS = {"Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34),
          "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210)}  # fmt: skip
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}


def blocks(kind: str, count: int, seed: int = 0, wild: bool = False) -> np.ndarray:
    """Random blocks (count, bytes); scales are moderate, or `wild`: any half, with infinities, NaN and zeros."""
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 256, (count, BLOCKS[kind][2]), np.uint8)
    if not wild:
        for at in HALVES[kind]:
            made[:, at : at + 2] = rng.normal(0, 0.05, (count, 1)).astype("<f2").view(np.uint8)
    return made


def small() -> bytes:
    """A small file of several types, its last tensor of whole bytes of alignment."""
    return gguf(
        {
            "a": (0, (2, 3), np.arange(6, dtype="<f4").tobytes()),
            "q": (2, (2, 32), blocks("Q4_0", 2).tobytes()),
            "h": (1, (4,), np.arange(4, dtype="<f2").tobytes()),
        },
        {"general.architecture": "x", "t": ["a", "bc"], "n": 7, "s": [0.5, 1.5], "b": True},
        alignment=8,
    )  # fmt: skip


SMALL = small()
