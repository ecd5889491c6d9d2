"""HDF5's signature, which may stand behind a block of the user's own."""

from __future__ import annotations

SIGNATURE = b"\x89HDF\r\n\x1a\n"


def find(view: memoryview) -> int | None:
    """Offset of the signature."""
    at = 0
    while at < len(view):
        if view[at : at + 8] == SIGNATURE:
            return at
        at = at * 2 or 512
    return None
