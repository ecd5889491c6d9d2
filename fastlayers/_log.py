"""The log "fastlayers". Importing `logging` takes milliseconds, and code that wants its records has imported it."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["info"]


def info(text: str, *values: object) -> None:
    """Writes a line of level INFO, if there can be anybody who reads it."""
    logging: Any = sys.modules.get("logging")
    if logging is not None:
        logging.getLogger("fastlayers").info(text, *values, stacklevel=2)
