"""Lines on stderr: one JSON object each, written at once so that those of several workers do not mix."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
import traceback
from contextlib import suppress

__all__ = ["event", "failed", "serving", "take_over"]

LONGEST = 4000


def event(name: str, **values: object) -> None:
    """Writes a line: when, which process, what, and its values."""
    line = {"time": round(time.time(), 3), "pid": os.getpid(), "event": name, **values}
    try:
        sys.stderr.write(json.dumps(line, default=str) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # its reader has gone: no reason to stop serving
        pass


def serving(url: str, models: list[str], page: bool, **values: object) -> None:
    """Says that the server is up: to programs on stderr as `event` does, to people on stdout."""
    event("serving", url=url, models=models, **values)
    names = ", ".join(dict.fromkeys(models[:5])) + (", ..." if len(models) > 5 else "") or "nothing"
    with suppress(OSError, ValueError):
        print(f"serving {names} on {url}{', page at /' if page else '; with --page, a page at /'}", flush=True)


def failed(name: str, error: BaseException) -> None:
    """Writes what went wrong inside, with the traceback that clients do not see."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    event(name, level="error", error=text[-LONGEST:])


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Writes what another library logs as a line of fastlayers' log."""
        event("log", level=record.levelname.lower(), logger=record.name, message=record.getMessage()[:LONGEST])


def take_over() -> None:
    """From now on warnings of Python's log, such as of the HTTP server, are lines like all others."""
    logging.basicConfig(handlers=[_Lines(logging.WARNING)], force=True)
