"""npy: the text of the header changed and its length put right."""

from __future__ import annotations

import struct
from random import Random

from . import blocks, text

__all__ = ["mutate"]

_HEADERS = (
    b"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
    b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (), }",
    b"{'descr': ('<f4', (2,)), 'fortran_order': False, 'shape': (3,), }",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296), }",
    b"{'descr': '<U1', 'fortran_order': False, 'shape': (6,), }",
)  # fmt: skip


def mutate(rng: Random, content: bytes, other: bytes) -> bytes:
    """One change of an npy file."""
    if content[:6] != b"\x93NUMPY" or len(content) < 12 or rng.random() < 0.15:
        return blocks.mutate(rng, content, other)
    width = 2 if content[6] == 1 else 4
    behind = 8 + width
    length = int.from_bytes(content[8:behind], "little")
    header, data = content[behind : behind + length], content[behind + length :]
    version = content[6:8]
    kind = rng.random()
    if kind < 0.7:
        header = text.tokens(rng, header, other[10:138])
    elif kind < 0.75:
        header = rng.choice(_HEADERS)
    elif kind < 0.8:
        header = blocks.mutate(rng, header, other[10:138])
    elif kind < 0.9:
        data = blocks.mutate(rng, data, other)
    else:
        version = rng.choice((b"\1\0", b"\2\0", b"\3\0", b"\4\0", b"\1\1"))
    if rng.random() < 0.3:
        header = header.rstrip() + b" " * (-(len(header.rstrip()) + 11) % 64) + b"\n"
    width = 2 if version == b"\1\0" else 4
    length = len(header) if rng.random() < 0.95 else blocks.number(rng, width)
    return content[:6] + version + struct.pack("<H" if width == 2 else "<L", length & (1 << 8 * width) - 1) + header + data
