"""The engine: which variants of the kernels exist, which one runs, and how to choose. See README.md next to this file."""

from typing import TYPE_CHECKING

from .._lazy import exports
from .dispatch import available, current, info, use

if TYPE_CHECKING:
    from .warming import warmup as warmup
else:
    __getattr__, __dir__ = exports(__name__, {"warming": "warmup"})

__all__ = ["available", "current", "info", "use", "warmup"]
