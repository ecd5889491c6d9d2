"""Makes WAV files, good and bad, from their parts."""

from __future__ import annotations

import struct

TAIL = bytes.fromhex("000000001000800000aa00389b71")


def chunk(kind: bytes, body: bytes, size: int | None = None) -> bytes:
    """A chunk, padded to an even length; `size` instead of the true one if given."""
    return kind + struct.pack("<I", len(body) if size is None else size) + body + b"\0" * (len(body) & 1)


def fmt(tag: int = 1, channels: int = 1, rate: int = 16000, bits: int = 16, block: int | None = None) -> bytes:
    """A fmt chunk of 16 bytes."""
    block = channels * bits // 8 if block is None else block
    return chunk(b"fmt ", struct.pack("<HHIIHH", tag, channels, rate, rate * block, block, bits))


def extensible(tag: int = 1, bits: int = 16, tail: bytes = TAIL) -> bytes:
    """A fmt chunk of WAVE_FORMAT_EXTENSIBLE, mono."""
    plain = fmt(0xFFFE, bits=bits)[8:]
    return chunk(b"fmt ", plain + struct.pack("<HHIH", 22, bits, 4, tag) + tail)


def wav(*chunks: bytes, size: int | None = None) -> bytes:
    """A RIFF file of the chunks; `size` instead of the true one if given."""
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body
