"""All calls."""

from __future__ import annotations

import functools

from .calls import Call, functions
from .layer_calls import layers
from .model_calls import models

__all__ = ["calls"]


@functools.cache
def calls() -> list[Call]:
    """Every call, in an order that does not change."""
    return [*functions(), *layers(), *models()]
