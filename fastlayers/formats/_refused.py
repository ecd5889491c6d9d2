"""The one error that lists everything which a model needs and which is not supported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import UnsupportedError

__all__ = ["times", "unsupported"]

MOST_LINES = 50  # of an error


def times(refused: Mapping[str, int]) -> list[str]:
    """Names of refused things, with their counts."""
    return [f"{what}: {count} time{'s' if count > 1 else ''}" for what, count in sorted(refused.items())]


def unsupported(where: str, refused: Iterable[str]) -> UnsupportedError:
    """The error. `refused`: in the order of the lines."""
    lines = [f"  {line}" for line in refused]
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = [f"  and {len(lines) - MOST_LINES} more"]
    return UnsupportedError("\n".join([f"{where}: the model needs what is not supported:", *lines]))
