"""Masked arrays, which would be read with what their masks hide."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["is_masked"]


def is_masked(value: Any) -> bool:
    """Whether it is a masked array. None exists before numpy.ma is there, whose import takes longer than a small model's."""
    return isinstance(value, getattr(sys.modules.get("numpy.ma"), "MaskedArray", ()))
