"""Pickles opcode by opcode, alone, in torch's archives, and in torch's old files, which are pickles one after the other."""

from __future__ import annotations

import functools
import itertools
import pickletools
import struct
from random import Random

from . import blocks, zipped

__all__ = ["mutate", "torch"]

_GLOBALS = (
    "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor", "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state",
    "torch._utils _rebuild_sparse_tensor", "torch._utils _rebuild_qtensor", "torch._utils _rebuild_device_tensor_from_numpy",
    "torch._tensor _rebuild_from_type_v2",
    "torch.serialization _get_layout", "torch FloatStorage", "torch HalfStorage", "torch BFloat16Storage", "torch LongStorage",
    "torch BoolStorage",
    "torch.storage UntypedStorage", "torch.storage TypedStorage", "torch float32", "torch int8", "torch Size", "torch device",
    "torch Tensor", "torch.nn.parameter Parameter",
    "collections OrderedDict", "collections defaultdict", "collections Counter", "builtins set", "builtins dict",
    "builtins complex", "builtins eval", "builtins getattr",
    "__builtin__ set", "_codecs encode", "numpy ndarray", "numpy dtype", "numpy._core.multiarray _reconstruct",
    "numpy.core.multiarray scalar", "numpy._core.numeric _frombuffer",
    "os system", "posix system", "argparse Namespace", "copyreg _reconstructor", "builtins bytearray", "fractions Fraction",
    "torch.nn.modules.linear Linear", "x y",
)  # fmt: skip
_SIMPLE = b"(.012NaQRtbdeGlou}])s\x85\x86\x87\x88\x89\x8f\x90\x91\x93\x94\x81\x92\x97\x98"


@functools.lru_cache(maxsize=512)
def _opcodes(content: bytes) -> tuple[tuple[bytes, ...], int]:
    """The opcodes of the pickle that begins the content, and where it ends; none if it is broken."""
    try:
        places = [at for _, _, at in pickletools.genops(content)]
    except Exception:  # it raises all kinds of errors
        return (), 0
    end = (places[-1] or 0) + 1
    bounds = [*(p or 0 for p in places), end]
    return tuple(content[a:b] for a, b in itertools.pairwise(bounds)), end


def _made(rng: Random) -> bytes:
    """An opcode from nothing."""
    kind = rng.randrange(12)
    if kind < 4:
        return bytes([rng.choice(_SIMPLE)])
    if kind < 6:
        return b"c" + rng.choice(_GLOBALS).replace(" ", "\n").encode() + b"\n"
    if kind == 6:
        return b"h" + bytes([rng.choice((0, 1, 2, 5, 255, rng.getrandbits(8)))])
    if kind == 7:
        return b"q" + bytes([rng.getrandbits(3)])
    if kind == 8:
        value = blocks.number(rng) - (0 if rng.random() < 0.7 else 1 << 63)
        raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8a" + bytes([len(raw)]) + raw
    if kind == 9:
        word = rng.choice(_GLOBALS).split()[rng.randrange(2)].encode()
        return b"X" + struct.pack("<I", len(word)) + word
    if kind == 10:
        return rng.choice(
            (
                b"G" + rng.randbytes(8),
                b"J" + rng.randbytes(4),
                b"M" + rng.randbytes(2),
                b"K" + rng.randbytes(1),
                b"I01\n",
                b"L" + b"9" * 99 + b"L\n",
                b"I9\n",
                b"F1e999\n",
            )
        )
    made = (
        b"\x95" + struct.pack("<Q", blocks.number(rng)), b"\x80" + bytes([rng.randrange(8)]), b"B\x03\0\0\0abc",
        b"C\x03abc", b"\x96" + struct.pack("<Q", 3) + b"abc", b"\x8d" + struct.pack("<Q", blocks.number(rng)),
        b"r" + struct.pack("<I", blocks.number(rng, 4)), b"\x8b" + struct.pack("<I", blocks.number(rng, 4)), b"P0\n", b"S'a'\n",
        b"V\\ud800\n", b"ios\nsystem\n", b"p0\n", b"g0\n",
    )  # fmt: skip
    return rng.choice(made)


def _argument(rng: Random, opcode: bytes) -> bytes:
    """The opcode with what stands after it changed, its length right where it has one."""
    code, rest = opcode[:1], opcode[1:]
    if code == b"X":
        text = (
            blocks.mutate(rng, rest[4:], b"storage")
            if rng.random() < 0.5
            else rng.choice((b"", b"storage", b"cpu", b"0", b"1", b"a", b"\xff", b"x" * 300))
        )
        return code + struct.pack("<I", len(text)) + text
    if code in (b"K", b"h", b"q"):
        return code + bytes([rng.choice((0, 1, 2, 3, 127, 255, rng.getrandbits(8)))])
    if code in (b"M", b"J"):
        return code + struct.pack("<H" if code == b"M" else "<I", blocks.number(rng, len(rest)))
    if code == b"\x8a":
        value = rng.choice((blocks.number(rng), -blocks.number(rng), 1 << 300))
        raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        return code + bytes([len(raw)]) + raw
    if code == b"c":
        return b"c" + rng.choice(_GLOBALS).replace(" ", "\n").encode() + b"\n"
    return code + blocks.mutate(rng, rest, b"") if rest else _made(rng)


def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of the pickle that begins the content; what follows it stays."""
    opcodes, end = _opcodes(content)
    if not opcodes or rng.random() < 0.05:
        return blocks.mutate(rng, content, other)
    made = list(opcodes)
    i = rng.randrange(len(made))
    kind = rng.random()
    if kind < 0.35:
        made[i] = _argument(rng, made[i])
    elif kind < 0.5:
        made[i] = _made(rng)
    elif kind < 0.65:
        made.insert(i, _made(rng))
    elif kind < 0.72:
        del made[i]
    elif kind < 0.8:
        j = rng.randrange(len(made))
        made[i], made[j] = made[j], made[i]
    elif kind < 0.88:
        j = rng.randrange(len(made))
        made[i:i] = made[j : j + rng.randint(1, 20)] * rng.choice((1, 1, 1, 2, 50))
    elif kind < 0.92:
        del made[i : i + rng.randint(1, 12)]
    else:
        theirs, _ = _opcodes(other)
        j = rng.randrange(len(theirs)) if theirs else 0
        made[i:i] = theirs[j : j + rng.randint(1, 20)]
    return b"".join(made) + content[end:]


def _later(rng: Random, content: bytes, other: bytes) -> bytes:
    """A change of one of several pickles that follow one another, or of the data after them."""
    bounds, at = [0], 0
    while len(bounds) < 7:
        _, end = _opcodes(content[at:])
        if not end:
            break
        at += end
        bounds.append(at)
    at = rng.choice(bounds[1:] or bounds)
    if at == bounds[-1] or rng.random() < 0.05:
        return content[:at] + blocks.mutate(rng, content[at:], other)
    return content[:at] + mutate(rng, content[at:], other[at:])


def _member(name: str) -> zipped.Mutator:
    return mutate if name.endswith(".pkl") else blocks.mutate


_archive = zipped.mutator(_member)


def torch(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of a file of torch.save: most are of a pickle."""
    if not content.startswith(b"PK"):
        return _later(rng, content, other)
    entries = list(zipped.members(content))
    i = next((i for i, e in enumerate(entries) if e.name.endswith("data.pkl")), None)
    if i is None or rng.random() < 0.3:
        return _archive(rng, content, other)
    like = next((e.content for e in zipped.members(other) if e.name.endswith("data.pkl")), b"")
    entries[i] = entries[i]._replace(content=mutate(rng, entries[i].content, like))
    return zipped.written(rng, entries)
