"""GGUF: values, names, shapes and offsets changed one by one, with the padding and the offsets behind them put right mostly."""

from __future__ import annotations

import struct
from random import Random

from . import blocks

__all__ = ["mutate"]

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_KEYS = (b"general.alignment", b"general.architecture", b"split.count", b"tokenizer.ggml.tokens", b"llama.block_count", b"")


class _Cut(Exception):
    """A file that cannot be taken apart."""


class _Parts:
    """A file's pairs (key, type, value) and tensors [name, shape, type, offset], and its data."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at, self.alignment = content, 24, 32
        if content[:4] != b"GGUF" or len(content) < 24:
            raise _Cut
        tensors, pairs = struct.unpack_from("<QQ", content, 8)
        if max(tensors, pairs) > 1000:
            raise _Cut
        self.pairs = []
        for _ in range(pairs):
            key, kind = self.text(), self.number(4)
            start = self.at
            self.skip(kind)
            self.pairs.append((key, kind, content[start : self.at]))
            if key == b"general.alignment" and kind == 4:
                self.alignment = min(int.from_bytes(self.pairs[-1][2], "little"), 4096) or 1
        self.tensors = []
        for _ in range(tensors):
            name, rank = self.text(), self.number(4)
            shape = [self.number(8) for _ in range(min(rank, 8))]
            self.tensors.append((name, shape, self.number(4), self.number(8)))
        self.data = content[self.at + -self.at % self.alignment :]

    def take(self, size: int) -> bytes:
        if size > len(self.content) - self.at:
            raise _Cut
        self.at += size
        return self.content[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def text(self) -> bytes:
        return self.take(self.number(8))

    def skip(self, kind: int) -> None:
        if kind == 9:
            inner, count = self.number(4), self.number(8)
            if inner in _SIZES:
                self.take(_SIZES[inner] * count)
            else:
                for _ in range(min(count, 1000)):
                    self.skip(inner)
        elif kind == 8:
            self.text()
        elif kind in _SIZES:
            self.take(_SIZES[kind])
        else:
            raise _Cut

    def joined(self) -> bytes:
        head = self.content[:8] + struct.pack("<QQ", len(self.tensors), len(self.pairs))
        for key, kind, value in self.pairs:
            head += struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value
        for name, shape, kind, offset in self.tensors:
            head += struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        return head + bytes(-len(head) % self.alignment) + self.data


def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of a GGUF file."""
    try:
        parts = _Parts(content)
    except _Cut:
        return blocks.mutate(rng, content, other)
    chosen = rng.random()
    if chosen < 0.35 and parts.pairs:
        i = rng.randrange(len(parts.pairs))
        key, kind, value = parts.pairs[i]
        change = rng.random()
        if change < 0.3:
            key = rng.choice(_KEYS)
        elif change < 0.5:
            kind = rng.choice((*_SIZES, 8, 9, 13))
        elif change < 0.9:
            value = blocks.mutate(rng, value, b"")
        parts.pairs[i] = key, kind, value
        if change >= 0.9:
            parts.pairs.insert(rng.randrange(len(parts.pairs)), rng.choice(parts.pairs))
    elif chosen < 0.75 and parts.tensors:
        i = rng.randrange(len(parts.tensors))
        name, shape, kind, offset = parts.tensors[i]
        change = rng.random()
        if change < 0.2:
            name = rng.choice((b"", b"a", b"token_embd.weight", blocks.mutate(rng, name, b"ab")))
        elif change < 0.5:
            rng.shuffle(shape)
            shape = [*shape[1:], *rng.choice(([], [1], [0], [blocks.number(rng)]))]
        elif change < 0.75:
            kind = rng.randrange(42)
        elif change < 0.9:
            offset = blocks.number(rng)
        else:
            del parts.tensors[i]
        if change < 0.9:
            parts.tensors[i] = name, shape, kind, offset
    elif chosen < 0.9:
        parts.data = blocks.mutate(rng, parts.data, other)
    else:
        return blocks.mutate(rng, content, other)
    return parts.joined()
