"""Declarations of how functions are recorded, by their names."""

from __future__ import annotations

from .._lazy import by_name, imported
from ..graph.ops import DECLARED, Op
from ._homes import HOMES

__all__ = ["declared"]

_HOMES = by_name(HOMES)


def declared(name: str) -> Op | None:
    """The declaration of a function of `functional`; None if it is made of others, or is not recorded."""
    if name in _HOMES:
        imported(f"{__package__}.{_HOMES[name]}")
    return DECLARED.get(name)
