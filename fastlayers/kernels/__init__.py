"""The engine: which variants of the kernels exist, which one runs, and how to choose. See README.md beside this file."""

from ._dispatch import available, current, info, use

__all__ = ["available", "current", "info", "use"]
