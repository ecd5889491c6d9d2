"""protobuf without a schema: fields changed, left out, doubled, moved, at any depth; the lengths around them are put right."""

from __future__ import annotations

import functools
import struct
from random import Random

from tests.formats.onnx_build import varint

from . import blocks

__all__ = ["Part", "fields", "joined", "mutate"]

_DEEPEST = 12
_TYPES = (
    "Add", "Relu", "Reshape", "Concat", "Loop", "If", "Scan", "Transpose", "Slice", "Gather", "MatMul", "Shape", "Expand",
    "Conv", "LSTM", "GRU", "RNN", "Identity", "Constant",
    "ConstantOfShape", "Cast", "Pad", "Resize", "Split", "Squeeze", "Unsqueeze", "Softmax", "BatchNormalization", "Gemm",
    "Range", "Tile", "Where", "TopK", "NonZero", "OneHot",
    "ReduceSum", "ReduceMean", "Einsum", "SequenceAt", "SequenceEmpty", "SequenceInsert", "Optional", "CumSum", "Flatten",
    "MaxPool", "AveragePool", "ConvTranspose", "QLinearConv",
    "QuantizeLinear", "DequantizeLinear", "LayerNormalization", "ScatterND", "GatherND", "Upsample", "Attention", "ai.onnx",
    "com.microsoft", "my", "", "x",
)  # fmt: skip
_WORDS = (
    b"", b"x", b"y", b"axis", b"axes", b"perm", b"pads", b"strides", b"kernel_shape", b"group", b"value", b"body",
    b"then_branch", b"else_branch", b"to", b"mode", b"equation", b"\xff", b"\0",
    b"location", b"offset", b"length", b"data.bin", b"../data.bin", b"/etc/passwd", b"-1", b"99999999999", b"\xed\xa0\x80",
    b"NOTSET", b"SAME_UPPER", b"VALID", b"ij,jk->ik", b"...i", b"x" * 300,
    *(t.encode() for t in _TYPES),
)  # fmt: skip
Part = tuple[int, int, bytes, int]  # number, kind, content, and the value of varints


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(content) and shift < 70:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError


@functools.lru_cache(maxsize=4096)
def fields(content: bytes) -> tuple[Part, ...]:
    """The fields of a message, none if it is no message."""
    found, at = [], 0
    try:
        while at < len(content):
            tag, at = _varint(content, at)
            number, kind = tag >> 3, tag & 7
            value = 0
            if kind == 0:
                value, behind = _varint(content, at)
            elif kind == 2:
                size, at = _varint(content, at)
                behind = at + size
            elif kind in (1, 5):
                behind = at + (8 if kind == 1 else 4)
            else:
                return ()
            if behind > len(content) or not 0 < number < 1 << 20:
                return ()
            found.append((number, kind, content[at:behind], value))
            at = behind
    except ValueError:
        return ()
    return tuple(found)


def _encoded(number: int, kind: int, content: bytes) -> bytes:
    return varint(number << 3 | kind) + (varint(len(content)) if kind == 2 else b"") + content


def joined(parts: list[Part]) -> bytes:
    """The message of these fields."""
    return b"".join(_encoded(number, kind, content) for number, kind, content, _ in parts)


def mutate(rng: Random, content: bytes, other: bytes, depth: int = 0) -> bytes:
    """One change of a message or, more likely, of one in it."""
    parts = list(fields(content))
    if not parts or (depth == 0 and rng.random() < 0.08):
        return blocks.mutate(rng, content, other)
    i = rng.randrange(len(parts))
    number, kind, held, value = parts[i]
    message = kind == 2 and depth < _DEEPEST and fields(held) and not (held.isascii() and held.decode("ascii").isprintable())
    if message and rng.random() < 0.85:
        like = [f[2] for f in fields(other) if f[0] == number and f[1] == 2]
        parts[i] = (number, 2, mutate(rng, held, rng.choice(like) if like else b"", depth + 1), 0)
        return joined(parts)
    chance = rng.random()
    if chance < 0.55:
        parts[i] = (number, kind, _value(rng, kind, held, value, parts, other), 0)
    elif chance < 0.65:
        del parts[i]
    elif chance < 0.75:
        parts.insert(rng.randint(0, len(parts)), parts[i])
    elif chance < 0.82:
        j = rng.randrange(len(parts))
        parts[i], parts[j] = parts[j], parts[i]
    elif chance < 0.87:
        parts[i] = (rng.choice((rng.randint(1, 30), rng.choice(parts)[0])), kind, held, 0)
    elif chance < 0.9:
        made = {0: varint(blocks.number(rng)), 1: rng.randbytes(8), 2: rng.choice(_WORDS), 5: rng.randbytes(4)}
        new = rng.choice((0, 1, 2, 5))
        parts[i] = (number, new, made[new], 0)
    elif chance < 0.96:
        theirs = fields(other)
        if theirs:
            parts.insert(i, rng.choice(theirs))
    elif chance < 0.98 and kind == 2:
        raw = varint(number << 3 | 2) + varint(len(held) + rng.choice((-1, 1, 1 << 31, 1 << 62))) + held
        return joined(parts[:i]) + raw + joined(parts[i + 1 :])
    else:
        parts[i:i] = [parts[i]] * rng.choice((3, 30, 300))
    return joined(parts)


def _value(rng: Random, kind: int, held: bytes, value: int, parts: list[Part], other: bytes) -> bytes:
    if kind == 0:
        choice = rng.random()
        if choice < 0.35:
            return varint(value + rng.choice((-2, -1, 1, 2)))
        if choice < 0.6:
            return varint(rng.randint(0, 24))
        return varint(blocks.number(rng)) if choice < 0.97 else b"\x80" * rng.randint(1, 12) + b"\0"
    if kind in (1, 5):
        some = struct.pack("<f", rng.choice((0.0, -1.0, float("nan"), float("inf"), 1e38))) * (2 if kind == 1 else 1)
        return rng.choice((some, rng.randbytes(len(held))))
    choice = rng.random()
    if choice < 0.35:
        return rng.choice(_WORDS)
    names = [p[2] for p in parts if p[1] == 2 and len(p[2]) < 100]
    if choice < 0.6 and names:
        return rng.choice(names)
    return blocks.mutate(rng, held, other)
