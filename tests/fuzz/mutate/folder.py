"""Several files as one input: the first is what is read, the others are next to it under their names."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

from . import blocks

__all__ = ["is_folder", "join", "mutator", "split"]

_MAGIC = b"FOLDER\0\0"
_NAMES = (
    "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "data.bin", "x", "below/data.bin", "model.onnx",
    "index.json",
)  # fmt: skip
Files = list[tuple[str, bytes]]


def join(files: Files) -> bytes:
    """The files as one input."""
    names = [(name.encode()[:1000], held) for name, held in files]
    return _MAGIC + b"".join(struct.pack("<HI", len(name), len(held)) + name + held for name, held in names)


def is_folder(content: bytes) -> bool:
    """Whether it is an input of several files."""
    return content.startswith(_MAGIC)


def split(content: bytes) -> Files:
    """The files of an input, as far as there are any; one that is cut off has what is left."""
    files, at = [], len(_MAGIC)
    while at + 6 <= len(content) and len(files) < 20:
        length, size = struct.unpack_from("<HI", content, at)
        name = content[at + 6 : at + 6 + length].decode("utf-8", "replace")
        files.append((name, content[at + 6 + length : at + 6 + length + size]))
        at += 6 + length + size
    return files


Mutator = Callable[[Random, bytes, bytes], bytes]


def mutator(kinds: dict[str, Mutator], otherwise: Mutator = blocks.mutate, first: float = 0.7) -> Mutator:
    """A mutator that changes one file of several by the end of its name, mostly the first; what is one file alone is changed by
    `otherwise`."""

    def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
        if not is_folder(content):
            return otherwise(rng, content, other)
        files = split(content)
        if not files:
            return content
        i = 0 if rng.random() < first else rng.randrange(len(files))
        name, held = files[i]
        kind = rng.random()
        if kind < 0.9:
            others = split(other) if is_folder(other) else [("", other)]
            chosen = next((m for end, m in kinds.items() if end and name.endswith(end)), kinds[""])
            files[i] = (name, chosen(rng, held, rng.choice(others)[1] if others else b""))
        elif kind < 0.93 and len(files) > 1:
            del files[rng.randrange(1, len(files))]
        elif kind < 0.96:
            files[i] = (rng.choice(_NAMES), held)
        else:
            j = rng.randrange(len(files))
            files[i], files[j] = (files[i][0], files[j][1]), (files[j][0], files[i][1])
        return join(files)

    return mutate
