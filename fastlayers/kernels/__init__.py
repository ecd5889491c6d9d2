"""The engine: which variants of the kernels exist, which one runs, and how to choose. See README.md next to this file."""

from .dispatch import available, current, info, use
from .warming import warmup

__all__ = ["available", "current", "info", "use", "warmup"]
