"""Files of no format, or of one format under another's name."""

from __future__ import annotations

import random
from pathlib import Path

from fastlayers.errors import FormatError

from .cases import REFUSED, Case, Sweep, network


def _garbage() -> list[bytes]:
    rng = random.Random(1)
    return [rng.randbytes(size) for size in (*range(1, 65), 1000, 65536) for _ in range(10)]


def _empty(folder: Path) -> bytes:
    return b""


CASES: list[Case | Sweep] = [
    Case("any", "empty file", _empty, FormatError, "empty"),
    Case("any", "empty network", _empty, FormatError, "empty", network),
    Case("any", "a megabyte of zeros", lambda folder: bytes(1 << 20), REFUSED),
    Case("any", "a megabyte of ones", lambda folder: b"\xff" * (1 << 20), REFUSED),
    Sweep("any", "garbage", _garbage),
    Sweep("any", "garbage as a network", _garbage, read=network),
]
