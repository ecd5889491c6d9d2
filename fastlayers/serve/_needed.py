"""Whether the packages of the extra ``serve`` are installed."""

from __future__ import annotations

import importlib.util

from .._extras import install
from ..errors import MissingExtraError

__all__ = ["check"]

_MODULES = ("httptools", "prometheus_client", "uvicorn")


def check() -> None:
    """Raises, with the command that installs them, unless all are there. None is imported."""
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"serve: needs {', '.join(missing)}, not installed here: {install('serve')}")
