"""Changes to files: of bytes, and of what they stand for in a format, so that lengths, checksums and directories stay right.

A mutator takes a random.Random, the content and another content of the corpus, and gives a changed content. Whatever it is given,
it gives bytes: what is not of its format is changed as bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from . import blocks, flat, folder, gguf, hdf5, keras, msgpack, nodes, npy, pickled, protobuf, safetensors, zipped

__all__ = ["MUTATORS", "Mutator", "mutate"]

Mutator = Callable[[Random, bytes, bytes], bytes]

# How often bytes are changed without regard to what they are for: texts and archives seldom survive that.
BYTES = {"own": 0.03, "safetensors": 0.05, "index": 0.05, "keras": 0.05, "npz": 0.05, "zip": 0.1}
LARGEST = 1 << 18  # bytes; larger inputs are cut off


def _onnx(rng: Random, content: bytes, other: bytes) -> bytes:
    return (nodes if rng.random() < 0.4 else protobuf).mutate(rng, content, other)


MUTATORS: dict[str, Mutator] = {
    "npy": npy.mutate,
    "npz": zipped.mutator(lambda name: npy.mutate),
    "torch": pickled.torch,
    "safetensors": safetensors.mutate,
    "index": folder.mutator({"json": safetensors.index, "": safetensors.mutate}),
    "checkpoint": folder.mutator({"json": safetensors.checkpoint, "": safetensors.mutate}, safetensors.checkpoint, first=0.3),
    "msgpack": msgpack.mutate,
    "gguf": gguf.mutate,
    "hdf5": hdf5.mutate,
    "keras": keras.mutate,
    "tflite": flat.mutate,
    "onnx": folder.mutator({"onnx": _onnx, "": blocks.mutate}, otherwise=_onnx),
    "own": safetensors.own,
    "zip": zipped.mutator(lambda name: blocks.mutate),
}


def mutate(format: str, rng: Random, content: bytes, other: bytes) -> bytes:
    """`content` with one to many changes, most of them to what it stands for; format "any" takes those of a format at random."""
    if format == "any":
        format = rng.choice(list(MUTATORS))
    special = MUTATORS[format]
    rounds = 1 if rng.random() < 0.6 else rng.randint(2, 5)
    for _ in range(rounds):
        chosen = blocks.mutate if rng.random() < BYTES.get(format, 0.15) else special
        try:
            content = chosen(rng, content, other)
        except (RecursionError, OverflowError):  # of what was made deep or large by changes before
            content = blocks.mutate(rng, content, other)
    return content[:LARGEST]
