"""How many threads one call may use."""

from __future__ import annotations

__all__ = ["get_num_threads", "set_num_threads"]

_count = 1


def get_num_threads() -> int:
    """The most threads that one call may use."""
    return _count


def set_num_threads(n: int) -> None:
    """Sets the most threads that one call may use."""
    global _count
    _count = n
