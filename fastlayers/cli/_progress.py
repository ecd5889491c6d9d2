"""A sign of life on the terminal while something takes longer than a second."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

__all__ = ["waiting"]

PATIENCE = 1.0  # seconds before anything is shown
PACE = 0.1  # between looks
Update = Callable[[float], None]


@contextmanager
def waiting(what: str, err: TextIO | None = None) -> Iterator[Update]:
    """Shows what is going on, for how long, and how much of it is done if that is told, from 0 to 1. Only on a terminal, only
    on the error stream, and gone at the end; rich draws it where it is installed.
    """
    err = sys.stderr if err is None else err
    if not err.isatty():
        yield lambda share: None
        return
    state = {"share": -1.0, "end": 0.0}
    shown = threading.Thread(target=_show, args=(what, err, state), daemon=True)
    shown.start()
    try:
        yield lambda share: state.__setitem__("share", share)
    finally:
        state["end"] = 1.0
        shown.join()


def _show(what: str, err: TextIO, state: dict[str, float]) -> None:
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        if state["end"]:
            return
        time.sleep(PACE / 4)
    draw, close = _rich(what, err) if importlib.util.find_spec("rich") is not None else _plain(what, err)
    while not state["end"]:
        draw(state["share"], time.monotonic() - began)
        time.sleep(PACE)
    close()


def _plain(what: str, err: TextIO) -> tuple[Callable[[float, float], None], Callable[[], None]]:
    def draw(share: float, seconds: float) -> None:
        done = f" {share:4.0%}" if share >= 0 else ""
        err.write(f"\r{what}{done} {seconds:.0f} s ")
        err.flush()

    def close() -> None:
        err.write("\r" + " " * (len(what) + 16) + "\r")
        err.flush()

    return draw, close


def _rich(what: str, err: TextIO) -> tuple[Callable[[float, float], None], Callable[[], None]]:
    progress: Any = importlib.import_module("rich.progress")
    console = importlib.import_module("rich.console").Console(file=err)
    bar = progress.Progress(
        progress.SpinnerColumn(), progress.TextColumn("{task.description}", markup=False), progress.BarColumn(),
        progress.TimeElapsedColumn(), console=console, transient=True,
    )  # fmt: skip
    task = bar.add_task(what, total=None)
    bar.start()

    def draw(share: float, seconds: float) -> None:
        if share >= 0:
            bar.update(task, completed=share, total=1.0)

    return draw, bar.stop
