"""Lines on stderr: one JSON object each, written at once so that those of several workers do not mix."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback

__all__ = ["event", "failed"]

LONGEST = 4000


def event(name: str, **values: object) -> None:
    """Writes a line: when, which process, what, and its values."""
    line = {"time": round(time.time(), 3), "pid": os.getpid(), "event": name, **values}
    try:
        sys.stderr.write(json.dumps(line, default=str) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # whoever read it has gone: no reason to stop serving
        pass


def failed(name: str, error: BaseException) -> None:
    """Writes what went wrong inside, with the traceback that clients do not see."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    event(name, level="error", error=text[-LONGEST:])
